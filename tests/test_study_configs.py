"""The studies of the papers' tables and our own: every file expands, at three sizes that differ in size only."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any, cast

import pytest

from probes.claims.papers import read_claims, read_tables
from probes.claims.spec import probe_measures
from probes.models.names import CellModel, ModelLimits, language_of
from probes.results.labels import is_seed
from probes.results.measures import PERPLEXITIES, measure_of
from probes.stages.base import StageKeys
from probes.study.cell import Cell
from probes.study.cells import load_study
from probes.study.checks import check_cells, missing_inputs
from probes.study.graph import graph
from probes.transfer.splits import Split
from synthlang.catalogue import find, names
from synthlang.transforms.code_switch import CodeSwitch
from tests.refusals import refusal
from tests.shipped import catalogued, place, study

__all__ = ["place"]

ROOT = Path(__file__).parents[1]
SIZES = ("paper", "lab", "tiny")
TABLES = {
    "align_mlm": [*(f"table{n}" for n in range(1, 9)), "figure1", "figure2", "figure3"],
    "emerging": ["table1", *(f"figure{n}" for n in range(2, 9))],
    "cao2020": [*(f"table{n}" for n in range(1, 6)), "figure1", "figure2", "figure3"],
    "kulshreshtha2020": ["table3", "figure2"],
    "impact": [*(f"table{n}" for n in range(2, 10)), "figure1", "figure2"],
}
OF_PAPERS = [f"{paper}-{table}" for paper, tables in TABLES.items() for table in tables]
DOSES = [
    f"dose-{dose}"
    for dose in ("trans", "inv", "perm", "reorder", "typology", "mark", "switch", "dictionary", "parallel", "sharing")
]
OF_DECODERS = {
    "impossible": "impossible",
    "imbalance": "imbalance",
    "decoder-table3": "decoders",
    "objectives": "objectives",
}
"""Studies of decoders, with the claims of each."""
OURS = [*DOSES, "typology", "emergence", "align_mlm-alpha", *OF_DECODERS]
OF_NO_NUMBERS = ["cao2020-examples", "impact-sov", "impact-yandex"]
"""What papers report without numbers, in a section or an appendix."""
CONFIRMATIONS = [
    f"confirm-{name}"
    for name in (
        *("align_mlm", "align_mlm-xlm", "cao2020-table1", "cao2020-table3"),
        *("emerging", "impact", "kulshreshtha2020"),
    )
]
MORE = {  # further studies of one size
    "tiny": [
        "align_mlm-grid-text",
        "align_mlm-grid-treebank",
        "emerging-table1-treebank",
        "fine-tuning",
        "emergence-map",
        "up-to-rotation",
        "sep-emb",
        *OF_NO_NUMBERS,
        *CONFIRMATIONS,
    ],
    "lab": ["align_mlm-trans+inv", *OF_NO_NUMBERS],
    "paper": OF_NO_NUMBERS,
}
FILES = [f"{size}/{name}" for size in SIZES for name in (*OF_PAPERS, *OURS, *MORE[size])]
OFFLINE = [f"tiny/{name}" for name in (*OF_PAPERS, *OURS, *OF_NO_NUMBERS, *CONFIRMATIONS, "up-to-rotation", "sep-emb")]


pytestmark = pytest.mark.usefixtures("place")


def labels(cells: list[Cell]) -> dict[str, set[str]]:
    """Axis → labels, but for seeds, which are a matter of size."""
    found: dict[str, set[str]] = {}
    for cell in cells:
        for axis, label in cell.labels.items():
            if not is_seed(axis):
                found.setdefault(axis, set()).add(label)
    return found


def of_one_seed(cells: list[Cell]) -> list[Cell]:
    """Return the first cell of each condition. The others differ by their seeds, with which no check is another."""
    first: dict[frozenset[tuple[str, str]], Cell] = {}
    for cell in cells:
        first.setdefault(frozenset(item for item in cell.labels.items() if not is_seed(item[0])), cell)
    return [*first.values()]


def header(name: str) -> str:
    """Return the descriptions of a study and of its bases."""
    return " ".join(find("studies", catalogued(name)).about)


def not_run(name: str) -> str:
    """Return the text from ``Not run:`` to the end."""
    return header(name).partition("Not run:")[2]


@pytest.mark.parametrize("size", SIZES)
def test_there_is_a_study_for_every_table_and_figure(size):
    of_size = {name.removesuffix(f"/{size}") for name in names("studies") if name.endswith(f"/{size}")}
    assert of_size == {*OF_PAPERS, *OURS, *MORE[size]}
    assert len(OF_PAPERS) == 39


@pytest.mark.parametrize("name", [*FILES, "quickstart"])
def test_it_expands_and_says_what_it_is(name):
    config, cells = study(name)  # reading it looks for its papers and claims
    assert config.name == Path(name).name and config.title and cells
    if Path(name).name in OF_PAPERS:
        assert config.paper == (Path(name).name.replace("-", "/", 1),)
    assert len({cell.name for cell in cells}) == len(cells)
    assert any(cell.tasks or cell.probes for cell in cells) or Path(name).name == "emergence-map"  # of runs alone
    assert all(cell.pretrain is not None or cell.model for cell in cells)


MORE_LABELS = {("cao2020-figure2", "language", "tiny")}
"""Axes with labels that the printed figure has not, so that a correlation over them can be decided."""


@pytest.mark.parametrize("name", [*OF_PAPERS, *OURS])
def test_sizes_of_a_study_have_the_same_labels_tasks_and_probes(name):
    paper, *others = [study(f"{size}/{name}") for size in SIZES]
    for size, (config, cells) in zip(SIZES[1:], others, strict=True):
        ours, theirs = labels(cells), labels(paper[1])
        assert set(ours) == set(theirs)
        for axis, known in theirs.items():
            assert ours[axis] <= known or (name, axis, size) in MORE_LABELS
            assert all(label in not_run(f"{size}/{name}") for label in known - ours[axis]), (axis, known - ours[axis])
        assert (config.title, config.paper, config.claims) == (paper[0].title, paper[0].paper, paper[0].claims)
        assert {t for c in cells for t in c.tasks} == {t for c in paper[1] for t in c.tasks}
        assert {p for c in cells for p in c.probes} == {p for c in paper[1] for p in c.probes}


OF_NO_TABLE = {"alpha-hardly-matters"}
"""Claims of an axis that no table has; docs/studies.md says how they are run."""


STUDIES_OF = {paper: [f"{paper}-{table}" for table in tables] for paper, tables in TABLES.items()}
STUDIES_OF |= {claims: [name] for name, claims in OF_DECODERS.items()}


@pytest.mark.parametrize("claims", STUDIES_OF)
@pytest.mark.parametrize("size", SIZES)
def test_every_side_of_a_claim_is_run(size, claims):
    """A cell has the labels of what is looked up, each of those that it is a mean over, and measures it."""
    cells = [cell for name in STUDIES_OF[claims] for cell in study(f"{size}/{name}")[1]]
    for claim in read_claims(claims):
        for quantity in claim.quantities() if claim.id not in OF_NO_TABLE else ():
            task = quantity.where.get("task")
            probe = quantity.measure.startswith("probe:") and not quantity.measure.startswith(f"probe:{PERPLEXITIES}")
            for averaged in product(
                *([(axis, one) for one in labels] for axis, labels in quantity.average.items() if labels)
            ):
                where = {axis: label for axis, label in (*quantity.where.items(), *averaged) if axis != "task"}
                fits = [cell for cell in cells if where.items() <= cell.labels.items()]
                assert any((task is None or task in cell.tasks) and (cell.probes or not probe) for cell in fits), (
                    claim.id,
                    quantity,
                )


@pytest.mark.parametrize("name", [f"{size}/{name}" for size in SIZES for name in OF_PAPERS])
def test_every_printed_cell_is_run_or_said_not_to_be(name):
    """A label of the table that no cell of ours has is told under ``Not run:``."""
    config, cells = study(name)
    tasks = {task for cell in cells for task in cell.tasks}
    known = labels(cells) | ({"task": tasks} if tasks else {})
    told = not_run(name)
    assert isinstance(config.paper, tuple)
    for table in read_tables(config.paper[0]):
        for printed in table.numbers:
            wanted = {(a, label) for q in (printed.quantity, printed.against) if q for a, label in q.where.items()}
            missing = {(axis, label) for axis, label in wanted if label not in known.get(axis, set())}
            assert all(label in told for _, label in missing), missing
            if not missing:
                where = {k: v for k, v in printed.quantity.where.items() if k != "task"}
                task = printed.quantity.where.get("task")
                fits = [c for c in cells if all(c.labels.get(k) == v for k, v in where.items())]
                fits = [c for c in fits if task is None or task in c.tasks]
                assert fits, printed
                for axis, averaged in printed.quantity.average.items():
                    there = {label for c in fits for label in (c.tasks if axis == "task" else [c.labels.get(axis)])}
                    left_out = {label for label in averaged if label not in there}
                    assert all(label in told for label in left_out), (printed, left_out)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("table", ["table3", "table4", "figure1", "figure3"])
def test_retrieval_fits_on_the_training_pairs_of_the_adjustment(table, size):
    """Only pairs of the training set count as seen, and a rotation is fitted on them (Cao et al. 2020, section 3.3)."""
    cells = [cell for cell in study(f"{size}/cao2020-{table}")[1] if cell.adjust is not None]
    assert cells
    for cell in cells:
        assert cell.adjust is not None
        adjusted = cell.adjust.data
        for probe in cell.probes.values():
            read = probe.data
            assert (read.test, read.dev, read.gap) == (0, adjusted.test, adjusted.dev)
            assert (read.sentences, read.draw, read.one_to_one) == (
                adjusted.sentences, adjusted.draw, adjusted.one_to_one
            )  # fmt: skip


@pytest.mark.parametrize("name", OFFLINE)
def test_tiny_studies_need_nothing_but_the_built_in_source(name):
    _, cells = study(name)
    for cell in cells:
        assert cell.model is None and cell.pretrain is not None
        for run in (cell.init_from, cell.pretrain, cell.target_model):
            assert run is None or all(member.source.startswith("builtin:") for member in run.all_languages)
            assert run is None or run.start is None or run.start.model == CellModel.INIT
        for task in cell.tasks.values():
            assert task.target is None and task.train is None and (task.test or "builtin:").startswith("builtin:")
    check_cells(of_one_seed(cells))


@pytest.mark.parametrize("name", [catalogued(n) for n in names("studies") if not n.endswith(("/paper", "/lab"))][::3])
def test_it_has_a_smoke_run(name):
    whole, _ = study(name)
    small, cells = load_study(Path(catalogued(name)), [], smoke=True)
    assert graph(cells, small.seeds, StageKeys()).stages and len(cells) <= 60
    assert (small.name, small.scale, small.claims) == (f"{whole.name}-smoke", "smoke", ())
    assert small.fingerprint != whole.fingerprint


TREES = ("upos", "head", "deprel", "feats", "lemma")


class Anything:
    """A source, or the items of a task, of which its name alone is looked at: a parsed one has trees."""

    splits = ("train", "dev", "test")

    def __init__(self, spec: str) -> None:
        self.name = self.fingerprint = spec
        self.columns = ("word", *(TREES if "conllu:" in spec or "data/ud/" in spec else ()))


@pytest.fixture
def nothing_needed(monkeypatch):
    """Nothing that a study names has to be there: no data, aligner, parser, extra or checkpoint."""
    stubs: dict[str, Any] = {
        "probes.study.checks.missing_inputs": lambda cells: [],
        "probes.stages.inputs.open_source": Anything,
        "probes.measures.sentences.texts.open_source": Anything,
        "probes.stages.inputs.find_aligner": lambda program: program,
        "probes.stages.inputs.limits_of_model": lambda model: ModelLimits(12, 512, bert=True),
        "probes.stages.inputs.count_text": lambda pair: None,
        "probes.stages.inputs.open_engine": lambda parser: parser,
        "probes.stages.inputs.Inputs.check_references": lambda *_: None,
        "pretrain.model.from_hf.check_start": lambda *_: None,
        "probes.measures.distances.find_spec": lambda name: name,
        "probes.static.settings.find_spec": lambda name: name,
    }
    for name, stub in stubs.items():
        monkeypatch.setattr(name, stub)
    monkeypatch.setattr(
        "probes.transfer.splits._Opener.split",
        lambda _, spec, name, *keys, **kept: Split(cast(Any, Anything(spec.partition("#")[0])), name),
    )


@pytest.mark.parametrize("name", [name for name in FILES if name not in OFFLINE])
def test_studies_of_natural_data_are_not_refused(name, nothing_needed):
    """Where all that they name is there."""
    check_cells(of_one_seed(study(name)[1]))


def test_all_missing_inputs_are_listed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "text" / "en").mkdir(parents=True)
    missing = missing_inputs(study("lab/align_mlm-table3")[1])
    assert missing and "data/text/en" not in missing and all(path.startswith("data/") for path in missing)
    (tmp_path / "data" / "text" / "en" / "train.txt").write_text("one word\n")
    error = refusal(check_cells, study("lab/align_mlm-table3")[1])
    names = [path.removeprefix("data/") for path in missing]
    assert error.code == "missing" and error.reason.endswith(
        f"4 data sets of the study are missing: {', '.join(names)}"
    )
    error = refusal(check_cells, study("lab/align_mlm-table3", "source=text:none/en", "tasks.nli.train=none/nli")[1])
    assert error.reason.endswith("are missing: ner/en, ud/en, text/en-parsed, and the inputs none/en, none/nli")


def test_missing_inputs_are_listed_where_cells_cannot_be_built_without_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # without the dictionaries, whose words are part of the languages
    error = refusal(load_study, Path("emerging-table1/paper"), [])
    assert error.code == "missing" and not error.others
    assert {"muse/en-fr", "muse/zh-en", "text/zh", "ud/ru"} <= set(error.reason.split("missing: ")[1].split(", "))


def test_word_vectors_of_the_tiny_study_need_no_extra(monkeypatch):
    monkeypatch.setattr("probes.static.settings.find_spec", lambda name: None)
    path = Path("cao2020-table3/tiny")
    check_cells(load_study(path, [])[1])
    _, cells = load_study(path, ["probes.retrieval.retrieval.static={kind: train, text: apart}"])
    error = refusal(check_cells, cells)
    assert (error.keys, error.code) == (("probes", "retrieval", "retrieval", "static", "vectors", "kind"), "extra")


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("tiny/emerging-") or "sharing" in name])
def test_no_items_are_in_a_language_that_switches(name):
    """Words of the other language are for pretraining (section 4.2): each row of a table has the same test items."""
    spoken: dict[tuple[str, str], set[str]] = {}
    for cell in study(name)[1]:
        for task in (task for task in cell.tasks.values() if task.target is None):
            run = cell.target_model or cell.pretrain
            assert run is not None
            language = language_of(task.language, run)
            assert not any(isinstance(transform, CodeSwitch) for transform in language.transforms), cell.name
            spoken.setdefault((cell.labels["pair"], task.task), set()).add(language.fingerprint)
    assert all(len(languages) == 1 for languages in spoken.values())


def test_the_document_names_every_study_and_its_examples_are_studies(place, tmp_path):
    document = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
    for name in (*OF_PAPERS, *OURS, *(more for of_size in MORE.values() for more in of_size)):
        assert f"{name}`" in document or f"study {name} --size" in document, name
    for name, size in re.findall(r"study (\S+) --size ([a-z]+)", document):
        assert f"{name}/{size}" in names("studies")
    example, mine = (re.search(rf"```yaml {kind}\n(.*?)```", document, re.DOTALL) for kind in ("study", "mine"))
    assert example and mine
    (tmp_path / "my-study.yaml").write_text(example[1], encoding="utf-8")
    config, cells = load_study(tmp_path / "my-study.yaml", [])
    check_cells(cells)
    assert len(cells) == 4 and config.seeds == [0]
    assert len(graph(cells, config.seeds).stages) == 4 + 4 + 4  # pretrainings, alignments, transfers
    (tmp_path / "wider.yaml").write_text(mine[1], encoding="utf-8")
    _, cells = load_study(tmp_path / "wider.yaml", [])
    assert all(cell.pretrain is not None and cell.pretrain.model.hidden == 128 for cell in cells)


# --- how many models a condition has, and how to have more ---


@pytest.mark.parametrize("name", [f"tiny/{name}" for name in (*OF_PAPERS, *OURS)])
def test_tiny_conditions_have_several_models(name):
    """Not so many fine-tunings of one model: what differs between pretrainings decides."""
    _, cells = study(name)
    models: dict[frozenset[tuple[str, str]], set[tuple[int, int | None, int | None]]] = {}
    for cell in cells:
        assert cell.pretrain is not None
        second, adjust = (None if part is None else part.seed for part in (cell.target_model, cell.adjust))
        condition = frozenset(item for item in cell.labels.items() if not is_seed(item[0]))
        models.setdefault(condition, set()).add((cell.pretrain.seed, second, adjust))
    least = min(map(len, models.values()))
    assert least >= 3, name
    assert len({len(pairs) for pairs in models.values()}) == 1, "conditions are compared model by model"
    for pairs in models.values():
        for first, second, _ in pairs:
            assert second is None or first != second, "two models of one language and one seed are one model"
        assert len({first for first, *_ in pairs}) == len(pairs), "each has a pretraining of its own"


@pytest.mark.parametrize("name", OF_DECODERS)
def test_a_study_of_decoders_is_planned_on_its_three_models(name):
    config, cells = study(f"tiny/{name}")
    claims = {claim.id for claim in read_claims(OF_DECODERS[name])}
    assert config.claims == (OF_DECODERS[name],) and config.planned == 3 and claims
    quantities = [one for claim in read_claims(OF_DECODERS[name]) for one in claim.quantities()]
    assert not [measure for measure in probe_measures(quantities) if measure_of(measure) is None]
    assert {cell.pretrain.seed for cell in cells if cell.pretrain is not None} == {0, 1, 2}


@pytest.mark.parametrize("size", SIZES)
def test_models_of_a_study_of_decoders_read_as_many_tokens(size):
    """But for the models of one language that read as many as one language of a bilingual model."""
    for name in OF_DECODERS:
        tokens = {
            (run.steps * run.batch.rows * run.batch.length, cell.labels.get("shares", ""))
            for cell in study(f"{size}/{name}")[1]
            if (run := cell.pretrain) is not None
        }
        whole = {count for count, shares in tokens if not shares.startswith("alone ")}
        assert len(whole) == 1, name
        parts = {shares: count / max(whole) for count, shares in tokens if shares.startswith("alone ")}
        assert parts == {} or parts == pytest.approx({"alone 50%": 0.5, "alone 10%": 0.1, "alone 1%": 0.01}, rel=3e-3)


@pytest.mark.parametrize("size", SIZES)
def test_impossible_languages_of_a_family_have_affected_sentences_at_each_size(size):
    """Each probe reads the language of its run, whose transforms flag sentences."""
    for cell in study(f"{size}/impossible")[1]:
        [probe], run = cell.probes.values(), cell.pretrain
        assert run is not None and probe.sentences.affected and probe.sentences.split == "test"
        [language] = run.all_languages
        assert language.language.flags_sentences and probe.language == language.name == cell.labels["language"]
        on_tokens = not cell.labels["language"].endswith(("word-hop", "no-hop"))
        assert language.language.on_tokens == (size != "tiny" and on_tokens)


@pytest.mark.parametrize("name", CONFIRMATIONS)
def test_a_confirmation_has_new_seeds_and_a_new_lexicon_and_a_plan_for_each(name):
    config, cells = study(f"tiny/{name}")
    assert isinstance(config.planned, dict) and config.pool == "confirmation"
    text = " ".join(repr((cell.parts, cell.tasks, cell.probes)) for cell in cells)
    assert set(re.findall(r"builtin:mini-english\S*?seed=(\d+)", text)) <= {"112", "113"}
    assert "mini-english?types=500&sentences=10000'" not in text
    seeds = {cell.pretrain.seed for cell in cells if cell.pretrain is not None}
    assert min(seeds) == 100 and len(seeds) == max(config.planned.values())
