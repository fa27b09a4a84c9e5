"""The catalogue: entries by name, words, and that every part of it is used and says what it is."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from probes.cli import app
from synthlang import catalogue
from synthlang.catalogue import FILES, WHOLE, filled, find, folder, load_yaml, names
from synthlang.errors import InputError
from synthlang.strict_yaml import parse_yaml, read_yaml
from tests.refusals import place_and_code, refusal

TEXT = {path: path.read_text(encoding="utf-8") for path in folder().rglob("*.yaml")}
PARTS = ("rows", "languages", "sizes", "parts")
SPELLED = {
    "x": ["a", "b"],
    "named": {"p": {"n": 1}, "q": {"n": 2}},
    "some": ["q"],
    "five": 5,
    "m": {"k": [1]},
    "l": [1, 2],
}
FILLED = [
    ("a {five} b", "a 5 b"),
    ("{five}", 5),
    ("{m}", {"k": [1]}),
    ({"{x}": "v{x}"}, {"a": "va", "b": "vb"}),
    ({"{x}-{named}": ["{n}", "{x}"]}, {f"{x}-{p}": [n, x] for x in "ab" for p, n in (("p", 1), ("q", 2))}),
    ({"{named in some}": "{n}"}, {"q": 2}),
    ({"other": 1, "{named in some}": {"w": "{named}"}}, {"other": 1, "q": {"w": "q"}}),
    # a later key is merged over an earlier one and keeps its place
    ({"{x}": {"k": 1, "l": 1}, "a": {"k": 2}}, {"a": {"k": 2, "l": 1}, "b": {"k": 1, "l": 1}}),
    (["{l}", 3, {"{named}": {"n": "{n}"}}, {"k": "{five}"}], [1, 2, 3, {"n": 1}, {"n": 2}, {"k": 5}]),
    ({"{x}": None, "k": True}, {"a": None, "b": None, "k": True}),
]


@pytest.mark.parametrize(("written", "expected"), FILLED)
def test_words(written, expected):
    found = filled(written, SPELLED)
    assert found == expected and (not isinstance(found, dict) or list(found) == list(expected))


@pytest.mark.parametrize("kind", [*FILES, *WHOLE])
def test_every_entry_can_be_read_and_says_what_it_is(kind):
    assert names(kind) and len(set(names(kind))) == len(names(kind))
    for name in () if kind in WHOLE else names(kind):
        entry = find(kind, name)
        assert entry.data or kind == "parts", name
        assert kind == "parts" or len(entry.summary) > 8, name
        assert not re.search(r"\{\w+( in \w+)?\}", str(entry)), name
        assert not {"about", "base", "words"} & entry.data.keys(), name


def test_every_derived_language_names_what_it_follows():
    """A work with its year, or that it is our own or the substitute for a natural language."""
    named = re.compile(r"[A-Z]\w+ (et al\. |& \w+ )?\d{4}|ALIGN-MLM|is our own|Substitute for")
    assert not [name for name in names("derived") if not named.search(" ".join(find("derived", name).about))]


def test_every_part_is_used():
    """A part that nothing is based on is a mistake; so is a word that nothing is written with."""
    used: set[str] = set()

    def look(value: object) -> None:
        if isinstance(value, str):
            used.add(value)
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            look(item)

    for kind in FILES:
        for stem in catalogue._stems(kind):
            for layers in catalogue._entries(kind, stem).values():
                for raw, words in layers:
                    look(filled(raw, words))
    assert [f"{kind}/{name}" for kind in PARTS for name in names(kind) if f"{kind}/{name}" not in used] == []
    for path, written in TEXT.items():
        shared = path.stem == "words"
        words = read_yaml(path) if shared else read_yaml(path).get("words", {})
        text = "".join(TEXT.values()) if shared else written + TEXT[folder() / "words.yaml"]
        assert [w for w in words if not re.search(rf"\{{{w}\}}|\{{{w} in | in {w}\}}", text)] == [], path


def test_a_file_of_ones_own_is_based_on_entries_and_files(tmp_path):
    (tmp_path / "rows").mkdir()
    (tmp_path / "more.yaml").write_text("steps: 7\nbase: sizes/tiny\n")
    (tmp_path / "a.yaml").write_text("base: [rows/align_mlm, languages/trans, more.yaml]\nseed: 3\n")
    found = load_yaml(tmp_path / "a.yaml", "runs")
    expected = find("runs", "align_mlm/trans/tiny").data
    assert found == {**expected, "steps": 7, "seed": 3}
    found["steps"] = 0  # a copy
    assert load_yaml("align_mlm/trans/tiny", "runs")["steps"] == 4000
    # a file goes before an entry
    (tmp_path / "rows" / "mlm").write_text("k: 1\n")
    (tmp_path / "b.yaml").write_text("base: rows/mlm\n")
    assert load_yaml(tmp_path / "b.yaml") == {"k": 1}


BAD = [
    ("runs", "align_mlm/trans/tin", "", "unknown", "did you mean align_mlm/trans/tiny"),
    (
        "studies",
        "align_mlm-table3",
        "",
        "unknown",
        "add a size: align_mlm-table3/paper or align_mlm-table3/lab or align_mlm-table3/tiny",
    ),
    ("runs", "quickstart", "", "unknown", "this name is one of the studies, which synthlang study runs"),
    (
        "studies",
        "align_mlm/trans/tiny",
        "",
        "unknown",
        "this name is one of the runs, which synthlang pretrain runs",
    ),
    ("studies", "quikstart", "", "unknown", "did you mean quickstart?"),
    ("adjust", "zzzz", "", "unknown", "list them with: synthlang configs adjust"),
    ("runs", "runs/mine.yaml", "mine.yaml", "missing", ""),
]


@pytest.mark.parametrize(("kind", "name", "place", "code", "hint"), BAD)
def test_a_name_of_nothing(kind, name, place, code, hint):
    error = refusal(load_yaml, name, kind)
    assert place_and_code(error) == (place, code) and error.hint.startswith(hint)


def run(*words: str) -> str:
    done = CliRunner().invoke(app, ["configs", *words], catch_exceptions=True)
    if isinstance(done.exception, InputError):
        return f"error: {done.exception}"
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize(
    ("words", "kind", "name"),
    [
        (["align_mlm/trans+inv/tiny"], "runs", "align_mlm/trans+inv/tiny"),
        (["studies", "align_mlm-table3/lab"], "studies", "align_mlm-table3/lab"),
        (["sizes/tiny"], "sizes", "tiny"),
        (["derived", "sov"], "derived", "sov"),
    ],
)
def test_configs_prints_one_in_full(words, kind, name, tmp_path):
    text = run(*words)
    assert text.startswith("# ") and parse_yaml(text, "printed") == find(kind, name).data
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    assert load_yaml(tmp_path / "mine.yaml", kind) == load_yaml(name, kind)


OVER = "Changed from "


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("mlm/trans/lab", ["MLM (ALIGN-MLM", "Transliteration (T_trans)", "One H200"]),
        (
            "align_mlm/trans+inv/lab",
            ["ALIGN-MLM (", OVER + "rows/mlm: MLM (", "Transliteration and ", OVER + "languages/trans: T", "One H200"],
        ),
    ],
)
def test_what_need_not_hold_of_an_entry_is_said_of_the_base_that_it_changes(name, told):
    about = find("runs", name).about
    assert [line[: len(start)] for line, start in zip(about, told, strict=True)] == told


def test_configs_lists():
    everything = run()
    for kind in (*FILES, *WHOLE):
        assert (f"\n{kind}:\n" in f"\n{everything}") == (kind != "parts")
    runs = run("runs").splitlines()
    assert len(runs) == 115
    assert re.match(r"  mlm/trans/\{paper,lab,tiny\} +MLM \(ALIGN-MLM, appendix G.2\)", runs[1])
    assert "quickstart      " in run("studies")
    derived = run("derived")
    assert re.search(r"^  impossible/no-reverse\[/paper\] +Control of the reverse languages", derived, re.MULTILINE)
    found = run("studies", "--search", "typology").splitlines()
    assert found[0] == "studies:" and found[1:] and all("typology" in line.lower() for line in found[1:])
    assert "contains 'no such text'" in run("--search", "no such text") and "remove one of the two" in run(
        "quickstart", "--search", "x"
    )
    assert run("papers", "impact") == (folder() / "papers" / "impact.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["cao2020"],
            "entries of several kinds have the name 'cao2020'; "
            "choose synthlang configs adjust cao2020 or synthlang configs probes cao2020",
        ),
    ],
)
def test_configs_of_nothing(words, message):
    assert message in run(*words)


def test_a_study_by_name_and_size(tmp_path):
    words = ["study", "align_mlm-figure1", "--size", "tiny", "--dry-run", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0 and "20 cells" in done.output
    mine = tmp_path / "mine.yaml"
    mine.write_text("base: studies/align_mlm-figure1/tiny\nname: mine\n")
    words[1] = str(mine)
    assert "mine.yaml: a study in a file has no sizes; leave --size out" in str(
        CliRunner().invoke(app, words).exception
    )
