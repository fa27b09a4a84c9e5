"""Scripts: reversible alphabets of 256 letters, one for each byte of UTF-8.

A word in a script is its UTF-8 bytes, each written as one letter. Every word of every language can therefore be
written and read back. The byte-level BPE of the source has an exact copy in the script (``vocabulary``), in which
each token id is larger by V.

    cyrillic   the cat ,  →  тхе цат ђ
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

from synthlang.errors import InputError

SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
CONTROL_WORDS = "words that are control tokens (<mask>, …), read as unknown"  # a key of ``Rewrite.counts``
SPACE = "Ġ"  # the character of byte-level BPE for the byte of the space
_SPECIAL = re.compile("(" + "|".join(re.escape(token) for token in SPECIAL_TOKENS) + ")")

# These letters look or sound most alike, so that a person can read the derived text.
_CYRILLIC = dict(zip("abcdefghijklmnopqrstuvwxyz", "абцдефгхийклмнопщрстувшжыз", strict=True))
# No UTF-8 text contains these bytes, so they get the code points of a block that are not letters.
_NEVER = (0xC0, 0xC1, *range(0xF5, 0x100))


@dataclass(frozen=True)
class Script:
    """An alphabet of 256 consecutive code points from ``first`` (a multiple of 64, so there are few lead bytes).

    Attributes:
        name: Name of the script.
        first: First code point.
        preferred: Letters of some ASCII characters, by character. The other bytes get the remaining code points in
            order.
        unfit: Code points of the block that are not letters. Bytes that no UTF-8 text contains get them.
    """

    name: str
    first: int
    preferred: Mapping[str, str]
    unfit: tuple[int, ...] = ()

    @cached_property
    def letters(self) -> tuple[str, ...]:
        """The letter of each byte value, [256]."""
        table = {ord(latin): letter for latin, letter in self.preferred.items()}
        table |= dict(zip(_NEVER, map(chr, self.unfit), strict=False))
        used = set(table.values())
        free = (chr(c) for c in range(self.first, self.first + 256) if chr(c) not in used)
        return tuple(table.get(byte) or next(free) for byte in range(256))

    @cached_property
    def bytes_of(self) -> dict[str, int]:
        """The byte value of each letter."""
        return {letter: byte for byte, letter in enumerate(self.letters)}

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """A regular expression that matches one letter of the script."""
        return re.compile(f"[{chr(self.first)}-{chr(self.first + 255)}]")

    @property
    def space(self) -> str:
        """The letter for the space, which marks the start of a word in the script."""
        return self.letters[ord(" ")]

    def encode(self, word: str) -> str:
        """Write a word in the script. Special tokens such as ``<mask>`` are unchanged.

        >>> SCRIPTS["cyrillic"].encode("cat")
        'цат'
        """
        return _encode(self.name, word)

    def decode(self, word: str) -> str:
        """Read a word back: decode(encode(w)) = w. A word without a letter of the script is unchanged.

        Raises:
            InputError: The letters do not decode to UTF-8.
        """
        return _decode(self.name, word)

    def encode_token(self, token: str) -> str:
        """Write a token of byte-level BPE in the script, byte by byte. A special token is unchanged.

        Raises:
            KeyError: A character of the token does not stand for a byte (see ``byte_characters``).

        >>> SCRIPTS["cyrillic"].encode_token("cat")
        'цат'
        """
        table = _bytes_of_characters()
        return token if token in SPECIAL_TOKENS else "".join(self.letters[table[char]] for char in token)

    def decode_token(self, token: str) -> str:
        """Read a token back: decode_token(encode_token(t)) = t. Characters outside the script are unchanged."""
        characters = byte_characters()
        return "".join(characters[self.bytes_of[c]] if c in self.bytes_of else c for c in token)

    def occurs_in(self, word: str) -> bool:
        """Return whether the word has a letter of the script, so that it looks like a transliterated word."""
        return self.pattern.search(word) is not None


SCRIPTS: dict[str, Script] = {
    script.name: script
    for script in (
        Script(
            "cyrillic",
            0x0400,
            _CYRILLIC | {latin.upper(): letter.upper() for latin, letter in _CYRILLIC.items()},
            unfit=tuple(range(0x0482, 0x048A)),
        ),
        Script("syllabics", 0x1440, {}),
        Script("hangul", 0xAC00, {}),
    )
}


@cache
def byte_characters() -> tuple[str, ...]:
    """Return the character that byte-level BPE writes for each byte value, [256] (GPT-2's table)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return tuple(chr(byte) if byte in printable else chr(next(others)) for byte in range(256))


def token_of_word(word: str) -> str:
    """Return the token of byte-level BPE that is a whole word, with the space before it.

    >>> token_of_word("cat"), token_of_word("é")
    ('Ġcat', 'ĠÃ©')
    """
    return SPACE + "".join(byte_characters()[byte] for byte in word.encode("utf-8"))


@cache
def _bytes_of_characters() -> dict[str, int]:
    return {char: byte for byte, char in enumerate(byte_characters())}


@lru_cache(maxsize=32_000)  # words of 0.4 kB each, in every process
def _encode(name: str, word: str) -> str:
    letters = SCRIPTS[name].letters
    parts = _SPECIAL.split(word)
    return "".join(p if p in SPECIAL_TOKENS else "".join(letters[b] for b in p.encode("utf-8")) for p in parts)


@lru_cache(maxsize=200_000)
def _decode(name: str, word: str) -> str:
    script = SCRIPTS[name]

    def read(match: re.Match[str]) -> str:
        try:
            return bytes(script.bytes_of[letter] for letter in match.group()).decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{match.group()!r} is not a word in the script {name}: its letters do not decode to UTF-8",
                hint="decode only text that synthlang wrote in this script",
                code="format",
            ) from error

    return re.sub(f"(?:{script.pattern.pattern})+", read, word)
