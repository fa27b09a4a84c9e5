"""The documentation as a site: all links lead somewhere and nothing comes from the network; the notebook runs."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from probes.reference import commands
from probes.study.requirements import requirements_of

ROOT = Path(__file__).parents[1]
LOADED = re.compile(r"""(?:<(?:script|img|iframe)\b[^>]*\bsrc|<link\b[^>]*\bhref)=["']?(?:https?:)?//[^"'>\s]+""")


def test_the_site_is_whole_and_loads_nothing(tmp_path, monkeypatch):
    """The build fails at a warning, such as a link that leads nowhere.

    The tables of requirements have one study each here. ``test_study_requirements.py`` tests all of their rows.
    """
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings_handlers")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    def of_one_study(size):
        return [requirements_of(f"align_mlm-table3/{size}")]

    monkeypatch.setattr("probes.requirements_page.requirements", of_one_study)
    build(load_config(str(ROOT / ".ci" / "mkdocs.yml"), site_dir=str(tmp_path), strict=True))
    pages = {page.name: page.read_text(encoding="utf-8") for page in tmp_path.glob("*.html")}
    assert not {name: found for name, text in pages.items() if (found := LOADED.findall(text))}
    assert not [name for name, text in pages.items() if "```" in text], "a block of code that Markdown does not know"
    assert 'id="probes.run_study"' in pages["python.html"] and (tmp_path / "first-hour.ipynb").is_file()
    assert "synthlang" in pages["first-hour.html"]
    assert all(text.count('iframe-worker.js"></script>') == 1 for text in pages.values())
    index = (tmp_path / "search" / "search_index.js").read_text(encoding="utf-8")
    assert index.startswith("var __index = {"), "the search of a page that is opened from a folder reads this script"
    theme = next((tmp_path / "assets" / "javascripts").glob("bundle.*.js")).read_text(encoding="utf-8")
    shim = (tmp_path / "iframe-worker.js").read_text(encoding="utf-8")
    assert "new Worker(" in theme and "__index" in theme and "window.Worker = class" in shim


def test_the_notebook_runs(tmp_path, monkeypatch):
    client, form = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = form.read(ROOT / "docs" / "first-hour.ipynb", 4)
    assert not [cell for cell in notebook.cells if cell.get("outputs")], "outputs stay out of the repository"
    shown = '{"source": source, "steps": 400, "optimizer.warmup_steps": 40, "validation.every": 50, "log_every": 50}'
    fewer = '{"source": source, "steps": 9, "optimizer.warmup_steps": 2, "validation.every": 3, "log_every": 3}'
    assert sum(shown in cell.source for cell in notebook.cells) == 1
    for cell in notebook.cells:
        cell.source = cell.source.replace(shown, fewer).replace("&sentences=1000", "&sentences=300")
    client.NotebookClient(notebook, timeout=500, kernel_name="python3").execute(cwd=str(tmp_path))
    kinds = {kind for cell in notebook.cells for out in cell.get("outputs", ()) for kind in out.get("data", ())}
    assert {"image/png", "text/html"} <= kinds


def test_the_commands_of_the_pages_exist_with_their_options():
    known = {name: {option for parameter in one.params for option in parameter.opts} for name, one in commands()}
    wrong = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = re.sub(r"\\\n", " ", page.read_text(encoding="utf-8"))
        code = "\n".join(re.findall(r"^```.*?^```|^ {4}.*?$|`[^`\n]+`", text, re.DOTALL | re.MULTILINE))
        for line in re.findall(r"(?:^ *|`)synthlang ([a-z][^`\n]*)", code, re.MULTILINE):
            words = re.split(r"#| && ", line)[0].split()
            name = " ".join(words[:2]) if words[0] in ("order", "data") else words[0]
            options = {word for word in words if re.fullmatch(r"--[a-z][a-z-]*", word)} - {"--help"}
            if name not in known or options - known[name]:
                wrong.append(f"{page.name}: synthlang {line}")
    assert not wrong, wrong
