"""What the site changes of a page."""

import re
from typing import Any

VERDICT = re.compile(r"(?<=\| )(?:mostly )?(agrees|differs)(?= [(|])")


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """The word after ``yaml`` at a block of code says to the tests what it is; Markdown knows none there.

    The tables of the findings need the room of the table of contents, and their verdicts have colours.
    """
    if page.file.src_path.startswith("findings"):
        page.meta["hide"] = ["toc"]
        markdown = VERDICT.sub(r'<span class="\1">\g<0></span>', markdown)
    return re.sub(r"^```yaml \w+$", "```yaml", markdown, flags=re.MULTILINE)
