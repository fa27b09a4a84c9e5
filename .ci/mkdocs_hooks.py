"""Changes that the site makes to a page of ``docs/``."""

import json
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from probes import reference

VERDICT = re.compile(r"(?<=\| )(?:(agrees|replicates)|differs|does not replicate)(?= [(|])")


def on_files(files: Files, config: Any) -> Files:
    """Add the notebook as a page."""
    cells = json.loads(Path(config.docs_dir, "first-hour.ipynb").read_text(encoding="utf-8"))["cells"]
    texts = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    page = "\n\n".join(text if kind == "markdown" else f"```python\n{text}\n```" for kind, text in texts)
    title, _, rest = page.partition("\n")
    page = f"{title}\n\n[Download this page as a notebook](first-hour.ipynb).\n{rest}\n"
    files.append(File.generated(config, "first-hour.md", content=page))
    return files


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """Fill in the reference, widen the findings, and drop the words that blocks of code carry for the tests.

    The tables of the findings need the room of the table of contents, and their verdicts have colours. The word after
    ``yaml`` at a block of code names its role in the tests; Markdown does not know it.
    """
    markdown = reference.filled(markdown)
    if page.file.src_path.startswith("findings"):
        page.meta["hide"] = ["toc"]
        markdown = VERDICT.sub(
            lambda found: f'<span class="{"holds" if found[1] else "fails"}">{found[0]}</span>', markdown
        )
    return re.sub(r"^```yaml \w+$", "```yaml", markdown, flags=re.MULTILINE)
