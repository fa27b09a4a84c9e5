"""The table of the papers line by line: every entry, key and value that it names is what a config resolves to."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from probes.measures.probe_command import read_probe_config
from probes.study.config import StudyConfig
from probes.transfer.transfer_command import read_transfer_config
from synthlang.catalogue import FILES, WHOLE, load_yaml, merged, names, whole_file
from synthlang.config import load, parse
from synthlang.language import Language
from synthlang.strict_yaml import parse_yaml

DOC = Path(__file__).parents[1] / "docs" / "papers.md"
PAPERS = ("align_mlm", "emerging", "cao2020", "kulshreshtha2020", "impact")
OF_CLAIMS = ("impossible", "imbalance")
"""Papers of which we test claims, but whose numbers we do not have."""
KINDS = "|".join({*FILES, *WHOLE} - {"data"})  # data/… is a folder there
ENTRY = re.compile(rf"({KINDS})/([^\s:]+)(?:: (.+))?")
AS_ENTRY = re.compile(r"[^\s:]+/[^\s:]+: ")
NEXT_KEY = re.compile(r", (?=[\w.+-]+ = )")
VERDICTS = ("same", "switch", "on purpose")
LEAST, LEAST_OF_CLAIMS = 25, 12  # lines of each paper


@dataclass(frozen=True)
class Line:
    """A line of a table: where it stands in the paper, what is printed, our setting, the verdict and why."""

    paper: str
    number: int
    where: str
    printed: str
    setting: str
    verdict: str

    @property
    def spans(self) -> list[str]:
        """The parts of the line that are marked as code: entries of the catalogue, keys, commands."""
        return re.findall(r"`([^`]+)`", self.setting + self.verdict)

    @property
    def named(self) -> list[re.Match[str]]:
        """The entries of the catalogue that the line names."""
        return [found for span in self.spans if (found := ENTRY.fullmatch(span))]

    @property
    def answer(self) -> str:
        """The verdict alone."""
        return self.verdict.partition(":")[0]


def read_lines(text: str) -> list[Line]:
    """The lines of all tables; the heading of a paper has its name in the catalogue."""
    paper, lines = "", []
    for number, row in enumerate(text.splitlines(), 1):
        if heading := re.match(r"## .*\(`(?:papers|claims)/(\w+)`\)$", row):
            paper = heading[1]
        elif paper and row.startswith("| ") and not row.startswith("| where |"):
            cells = [cell.strip() for cell in row.strip("|").split(" | ")]
            assert len(cells) == 4, (number, row)
            lines.append(Line(paper, number, *cells))
    return lines


LINES = read_lines(DOC.read_text(encoding="utf-8"))


@pytest.fixture(scope="module", autouse=True)
def place(tmp_path_factory):
    """Where commands run, with the dictionaries that a user links under data/."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "data" / "muse").mkdir(parents=True)
    for name in ("muse.txt", *(f"data/muse/{a}-{b}.txt" for a, b in (("en", "fr"), ("fr", "en")))):
        (folder / name).write_text("house maison\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


@cache
def settings(kind: str, name: str) -> Any:
    """All keys of an entry with their values, the defaults too, as JSON values."""
    match kind:
        case "papers" | "claims":
            data = parse_yaml(whole_file(kind, name).read_text(encoding="utf-8"), name)
            return data["tables"] if kind == "papers" else {claim["id"]: claim for claim in data["claims"]}
        case "studies":
            data = load_yaml(name, kind)
            return merged(parse(StudyConfig, data).model_dump(mode="json"), data)
        case "parts":
            return load_yaml(name, kind)
        case "adjust":
            return load(AdjustConfig, name, kind=kind).model_dump(mode="json")
        case "derived":
            return parse(Language, load_yaml(name, kind)).model_dump(mode="json")
        case "probes":
            return read_probe_config(Path(name), {}, []).model_dump(mode="json")
        case "transfer":
            return read_transfer_config(Path(name), {}, {}, []).model_dump(mode="json")
    return of_a_run(load_yaml(name, kind))


REST = {"source": "text:DIR", "language": "trans", "validation": {"every": 1}}
"""What a row, languages or a size lack of a run, where they do not say it themselves."""


def of_a_run(data: dict[str, Any]) -> dict[str, Any]:
    """All keys of a run, or of a part of one; a dictionary that the user has to name is any."""
    said = {*data, "language"} if "languages" in data else set(data)
    rest = {key: value for key, value in REST.items() if key not in said}
    text = re.sub(r'"NAME-THE-MUSE[^"]*"', '"muse.txt"', json.dumps(merged(rest, data)))
    config = parse(PretrainConfig, json.loads(text))
    return {key: value for key, value in config.model_dump(mode="json").items() if key not in rest}


def value_at(node: Any, key: str) -> Any:
    """What stands under a dotted key; an axis of a study may have dots in its own keys. KeyError if nothing does."""
    parts = key.split(".")
    if isinstance(node, list):
        node = {str(i): item for i, item in enumerate(node)}
    for size in range(len(parts), 0, -1):
        head, rest = ".".join(parts[:size]), ".".join(parts[size:])
        if isinstance(node, dict) and head in node:
            return value_at(node[head], rest) if rest else node[head]
    raise KeyError(key)


def problems(line: Line) -> list[str]:
    """Return the statements of a line that are not true."""
    found = [f"{span} is no entry" for span in line.spans if AS_ENTRY.match(span) and not ENTRY.fullmatch(span)]
    for kind, name, keys in (entry.groups() for entry in line.named):
        if name not in names(kind):
            found.append(f"{kind} has no entry {name}")
            continue
        known = settings(kind, name)
        for text in NEXT_KEY.split(keys) if keys else ():
            key, equals, value = text.partition(" = ")
            try:
                actual = value_at(known, key)
            except KeyError:
                found.append(f"{kind}/{name} has no key {key}")
                continue
            said = parse_yaml(value, "the table") if equals else actual
            if said != actual:
                found.append(f"{kind}/{name}: {key} is {actual!r}, not {said!r}")
    return found


def flaws(line: Line) -> list[str]:
    """Return the parts that a line lacks."""
    found = [name for name in ("where", "printed", "setting") if not getattr(line, name)]
    if line.answer not in VERDICTS:
        found.append(f"{line.answer!r} is no verdict")
    if line.answer != "same" and ": " not in line.verdict:
        found.append("say why")
    if line.answer == "switch" and not any(entry[3] for entry in line.named):
        found.append("name the key that is the switch")
    return found


@pytest.mark.parametrize("paper", [*PAPERS, *OF_CLAIMS])
def test_what_the_lines_of_a_paper_name_is_so(paper):
    found = {line.number: problems(line) for line in LINES if line.paper == paper}
    assert not {number: wrong for number, wrong in found.items() if wrong}


def test_every_line_has_a_place_and_a_verdict():
    assert not {line.number: missing for line in LINES if (missing := flaws(line))}


def test_every_paper_has_its_lines():
    counts = Counter(line.paper for line in LINES)
    assert set(counts) == {*PAPERS, *OF_CLAIMS} and set(names("papers")) == set(PAPERS)
    assert min(counts[paper] for paper in PAPERS) >= LEAST, counts
    assert min(counts[paper] for paper in OF_CLAIMS) >= LEAST_OF_CLAIMS, counts


@pytest.mark.parametrize("paper", OF_CLAIMS)
def test_every_claim_of_a_paper_without_a_table_has_a_line(paper):
    text = " ".join(line.setting for line in LINES if line.paper == paper)
    ours = [name for name, claim in settings("claims", paper).items() if claim["source"] == "our question"]
    missing = [name for name in settings("claims", paper) if name not in ours and f"claims/{paper}: {name}" not in text]
    assert not missing


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_and_figure_of_a_paper_has_a_line(paper):
    text = " ".join(line.setting for line in LINES if line.paper == paper)
    missing = [table for table in settings("papers", paper) if f"studies/{paper}-{table}/" not in text]
    assert not missing


@pytest.mark.parametrize(
    ("setting", "found"),
    [
        ("`rows/align_nlm: objective.alpha = 10.0`", ["rows has no entry align_nlm"]),
        ("`row/align_mlm: objective.alpha`", ["row/align_mlm: objective.alpha is no entry"]),
        ("`rows/align_mlm: objective.alfa`", ["rows/align_mlm has no key objective.alfa"]),
        ("`rows/align_mlm: objective.alpha = 1.0`", ["rows/align_mlm: objective.alpha is 10.0, not 1.0"]),
        ("`sizes/paper: model.layers = 8, model.heads = 9`", ["sizes/paper: model.heads is 8, not 9"]),
        ("`sizes/paper: language.name`", ["sizes/paper has no key language.name"]),
        ("`languages/trans: language.transforms.2`", ["languages/trans has no key language.transforms.2"]),
        ("`claims/align_mlm: alpha-matters`", ["claims/align_mlm has no key alpha-matters"]),
        ("`rows/mlm: objective.mask_rate = 0.15` and `rows/mlm: batch.rows`", []),
        ("`adjust/cao2020: loss.layers = [-1], data.length = null`", []),
    ],
)
def test_what_is_not_so_is_seen(setting, found):
    assert problems(Line("align_mlm", 1, "section 1", "something", setting, "same")) == found
