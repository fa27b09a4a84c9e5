"""Quick ways to a result that a plain loop gives too."""

import sys
import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from synthlang.export.rows import Strings
from synthlang.sources.segmentation import MARKS_END


@given(st.lists(st.text(max_size=5), max_size=20))
@example([])
@example(["", "é", "", "日本", "a", "👩‍🚀", ""])
def test_strings_are_the_utf8_of_each(strings):
    found = Strings.of(strings)
    assert [found.data[a:b] for a, b in zip(found.offsets, found.offsets[1:], strict=False)] == [
        s.encode() for s in strings
    ]
    assert found.array.to_pylist() == strings


def test_no_mark_lies_beyond_the_end_of_marks():
    """The test uses the Unicode version of this Python, on which words depend."""
    late = (chr(c) for c in range(MARKS_END, sys.maxunicode + 1))
    assert not [c for c in late if unicodedata.category(c)[0] in "PSZ" or c.isspace()]
    assert any(unicodedata.category(chr(c))[0] == "S" for c in range(0x1F000, MARKS_END))
