"""Damage for readers: truncated, shuffled, spliced and random bytes, as a hypothesis strategy."""

from hypothesis import strategies as st


@st.composite
def damaged(draw, good: bytes) -> bytes:
    """``good`` after one to three accidents."""
    data = good
    for _ in range(draw(st.integers(1, 3))):
        data = draw(st.sampled_from(ACCIDENTS))(draw, data)
    return data


def _truncate(draw, data):
    return data[: draw(st.integers(0, len(data)))]


def _shuffle_lines(draw, data):
    return b"\n".join(draw(st.permutations(data.split(b"\n"))))


def _flip(draw, data):
    out = bytearray(data)
    for _ in range(draw(st.integers(1, 8)) if out else 0):
        out[draw(st.integers(0, len(out) - 1))] = draw(st.integers(0, 255))
    return bytes(out)


def _insert(draw, data):
    place = draw(st.integers(0, len(data)))
    return data[:place] + draw(st.binary(max_size=40)) + data[place:]


def _double(draw, data):
    start = draw(st.integers(0, len(data)))
    stop = draw(st.integers(start, len(data)))
    return data[:stop] + data[start:]


def _replace_field(draw, data):
    separator = draw(st.sampled_from([b"\t", b" ", b'"', b":", b","]))
    parts = data.split(separator)
    parts[draw(st.integers(0, len(parts) - 1))] = draw(st.sampled_from([b"", b"-1", b"999999999999", b"\xff", b"null"]))
    return separator.join(parts)


def _random(draw, data):
    return draw(st.binary(max_size=len(data)))


ACCIDENTS = [_truncate, _shuffle_lines, _flip, _insert, _double, _replace_field, _random]
