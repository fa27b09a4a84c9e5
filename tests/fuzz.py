"""Damage for readers: truncated, shuffled, spliced and random bytes, as a hypothesis strategy."""

from hypothesis import strategies as st


@st.composite
def damaged(draw, good: bytes) -> bytes:
    """Return ``good`` after one to three random damages."""
    data = good
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(["truncate", "shuffle", "flip", "insert", "double", "replace", "random"])):
            case "truncate":
                data = data[:start]
            case "shuffle":
                data = b"\n".join(draw(st.permutations(data.split(b"\n"))))
            case "flip":
                out = bytearray(data)
                for _ in range(draw(st.integers(1, 8)) if out else 0):
                    out[draw(st.integers(0, len(out) - 1))] = draw(st.integers(0, 255))
                data = bytes(out)
            case "insert":
                data = data[:start] + draw(st.binary(max_size=40)) + data[start:]
            case "double":
                data = data[: draw(st.integers(start, len(data)))] + data[start:]
            case "replace":
                separator = draw(st.sampled_from([b"\t", b" ", b'"', b":", b","]))
                parts, values = data.split(separator), [b"", b"-1", b"999999999999", b"\xff", b"null"]
                parts[draw(st.integers(0, len(parts) - 1))] = draw(st.sampled_from(values))
                data = separator.join(parts)
            case "random":
                data = draw(st.binary(max_size=len(data)))
    return data
