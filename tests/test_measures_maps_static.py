"""The baseline without contexts of the probe ``maps``: planted, against a plain reading, and trained."""

import importlib.util

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group

from probes.measures.maps.dictionary import read_dictionary
from probes.measures.maps.probe import maps_probe
from synthlang.errors import InputError
from tests.aligned_runs import random_run
from tests.maps_cases import subject_of, unit, values_of

WIDTH = 12


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return random_run(tmp_path_factory.mktemp("store"))


def names_of(given, side: int) -> list[str]:
    """All words of the sentences that are used, in the order of their first occurrence."""
    corpus = (given.aligned.text.left, given.aligned.text.right)[side]
    rows = [*given.data.train.tolist(), *given.data.dev.tolist()]
    return list(dict.fromkeys(word for row in rows for word in corpus[row].words))


def write_vec(path, vectors) -> str:
    rows = [f"{word} {' '.join(f'{number:.6f}' for number in row)}" for word, row in vectors.items()]
    path.write_text(f"{len(rows)} {WIDTH}\n" + "\n".join(rows) + "\n")
    return str(path)


def planted(run, folder, noise: float):
    """Vectors of both languages: those of a word and its counterpart differ by a turn, a shift and noise."""
    given = subject_of(run)
    generator, turn = np.random.default_rng(0), ortho_group.rvs(WIDTH, random_state=0)
    right = {word: generator.normal(size=WIDTH).round(6) for word in names_of(given, 1)}
    partner = {}
    for row in range(len(given.data.links)):
        for a, b in given.data.links.of_pair(row):
            partner[given.aligned.text.left[row].words[a]] = given.aligned.text.right[row].words[b]
    left = {}
    for word in names_of(given, 0):
        vector = (
            right[partner[word]] @ turn + noise * generator.normal(size=WIDTH) if word in partner else np.ones(WIDTH)
        )
        left[word] = vector.round(6)
    return left, right, {"left": write_vec(folder / "l.vec", left), "right": write_vec(folder / "r.vec", right)}


@pytest.mark.parametrize(("supervision", "moves"), [("parallel", "target"), ("dictionary", "source")])
def test_a_planted_turn_is_undone(run, tmp_path, supervision, moves):
    *_, files = planted(run, tmp_path, 0.0)
    static = {"kind": "load", "supervision": supervision, **files}
    found = values_of(subject_of(run, {"static": static, "moves": moves, "supervision": ["parallel"]}, layers=[2]))
    held = found["static"]
    assert held["words"]["cosine"]["mean"]["p@1"] > 99 and held["fit"]["residual"] < 1e-6
    # a word that comes twice is found as one of the two without its sentence, and nearly always with it
    assert held["alone"]["cosine"]["mean"] < held["context"]["cosine"]["mean"] > 85
    assert found["before"][0]["context"]["cosine"]["mean"] < 50
    assert held["counts"]["linked words without a vector (parent)"] == 0


def test_it_is_that_of_a_plain_reading(run, tmp_path):
    left, right, files = planted(run, tmp_path, 0.4)
    for vectors in (left, right):  # some words have none
        for word in list(vectors)[3::9]:
            del vectors[word]
    files = {"left": write_vec(tmp_path / "l.vec", left), "right": write_vec(tmp_path / "r.vec", right)}
    given = subject_of(run, {"static": {"kind": "load", **files}, "supervision": ["parallel"]}, layers=[2])
    values = values_of(given)["static"]
    sides = []
    for vectors in (left, right):
        rows = unit(np.array(list(vectors.values())))
        rows = unit(rows - rows.mean(0))
        sides.append(dict(zip(vectors, rows, strict=True)))
    text, data = given.aligned.text, given.data
    links = [
        (text.left[row].words[a], text.right[row].words[b])
        for row in data.train.tolist()
        for a, b in data.links.of_pair(row)
    ]
    known = [(a, b) for a, b in links if a in sides[0] and b in sides[1]]
    assert values["counts"]["pairs of words without a vector"] == len(links) - len(known) > 0
    turn, _ = orthogonal_procrustes(
        np.array([sides[0][a] for a, _ in known]), np.array([sides[1][b] for _, b in known])
    )
    sides[0] = {word: row @ turn for word, row in sides[0].items()}
    words: tuple[list[np.ndarray | None], list[np.ndarray | None]] = ([], [])
    pairs: list[tuple[int, int]] = []
    starts = [0, 0]
    for row in data.dev.tolist():
        for side, corpus in enumerate((text.left, text.right)):
            own = [sides[side].get(word) for word in corpus[row].words]
            there = np.array([vector for vector in own if vector is not None])
            sentence = np.concatenate([there.mean(0), there.max(0), there.min(0)])
            words[side].extend(None if v is None else np.concatenate([v, sentence]) for v in own)
        pairs += [(starts[1] + b, starts[0] + a) for a, b in data.links.of_pair(row)]
        starts = [len(words[0]), len(words[1])]
    for name, width in (("context", None), ("alone", WIDTH)):
        # a linked word without a vector is a candidate far from all, and a miss: zeros; others are no candidates
        expected = expected_accuracy(words, pairs, width)
        for score, ways in expected.items():
            assert values[name][score] == pytest.approx(ways, abs=0.35), (name, score)
    missing = values["counts"]["linked words without a vector (parent)"]
    assert missing == sum(words[1][a] is None for a, _ in pairs) > 0
    # of the words that are measured alone it is counted too, and said
    counts = values["counts"]
    for side, name in ((1, "parent"), (0, "other language")):
        asked = queries(given, side)
        unknown = sum(word not in sides[side] for word in asked)
        lost = sum(word in sides[side] and not any(b in sides[1 - side] for b in asked[word]) for word in asked)
        assert counts[f"measured words without a vector ({name})"] == unknown
        assert counts[f"measured words whose translations have no vector ({name})"] == lost
    assert sum(count for reason, count in counts.items() if reason.startswith("measured words")) > 0


def queries(given, side):
    """Word → its translations, of the pairs that are measured."""
    dictionary = read_dictionary(given)
    held = dictionary.forward if side == 1 else dictionary.backward
    words, others = dictionary.corpora[side].form.names, dictionary.corpora[1 - side].form.names
    assert words is not None and others is not None
    types = dictionary.types[side], dictionary.types[1 - side]
    found: dict[str, set[str]] = {}
    for query, answer in held.pairs().tolist():
        found.setdefault(words[types[0][query]], set()).add(others[types[1][answer]])
    return found


def test_the_tables_show_them_with_and_without_their_sentence(run, tmp_path):
    _, right, files = planted(run, tmp_path, 0.0)
    del right[next(iter(right))]
    static = {"kind": "load", "left": files["left"], "right": write_vec(tmp_path / "r.vec", right)}
    given = subject_of(run, {"static": static, "supervision": ["parallel"]}, layers=[2])
    with given.reading():
        found = maps_probe(given)
    rows = {str(table.title)[:12]: list(table.columns[0].cells) for table in found.tables}
    assert rows["Retrieval of"][-2:] != rows["Translation "][-2:] and rows["Translation "][-1] == "static vectors"
    context = next(table for table in found.tables if "words in context" in str(table.title))
    assert list(context.columns[0].cells)[-2:] == ["static, with sentence", "static, alone"]
    for key in ("words", "context", "alone"):
        assert len(found.values["static"]["intervals"][key]) == 2
    assert any(note.startswith("static vectors: who has no vector is not found") for note in found.notes)
    reason = "static vectors: linked words without a vector (parent)"
    assert found.values["counts"][reason] == found.values["static"]["counts"][reason.removeprefix("static vectors: ")]


def expected_accuracy(words, pairs, width):
    kept, places = [], []
    for side, column in ((1, 0), (0, 1)):
        linked = {pair[column] for pair in pairs}
        used = [at for at, vector in enumerate(words[side]) if vector is not None or at in linked]
        places.append({at: row for row, at in enumerate(used)})
        size = len(next(v for v in words[side] if v is not None)) if width is None else width
        rows = [np.zeros(size) if words[side][at] is None else words[side][at][:width] for at in used]
        kept.append(np.array(rows))
    lost = [words[1][a] is None or words[0][b] is None for a, b in pairs]
    # zeros have cosine 0 to all: a number too small to matter in place of them gives the same
    x, y = (np.where((rows == 0).all(1, keepdims=True), 0.0, rows) for rows in kept)
    with np.errstate(invalid="ignore"):
        cosine = np.nan_to_num(unit(x)) @ np.nan_to_num(unit(y)).T
    of_x, of_y = np.sort(cosine, axis=1)[:, -10:].mean(1), np.sort(cosine, axis=0)[-10:].mean(0)
    result = {}
    for score, table in (("cosine", cosine), ("csls", 2 * cosine - of_x[:, None] - of_y[None])):
        ways = {}
        for way, matrix, flip in (("forward", table, False), ("backward", table.T, True)):
            credits = []
            for (a, b), miss in zip(pairs, lost, strict=True):
                query, answer = places[0][a], places[1][b]
                query, answer = (answer, query) if flip else (query, answer)
                near = matrix[query] >= matrix[query].max() - 1e-6
                credits.append(0.0 if miss else near[answer] / near.sum())
            ways[way] = 100 * float(np.mean(credits))
        result[score] = {**ways, "mean": (ways["forward"] + ways["backward"]) / 2}
    return result


@pytest.mark.parametrize("kind", ["fasttext", "word2vec"])
def test_vectors_are_trained_on_both_sides(run, kind):
    pytest.importorskip("gensim", reason="gensim (extra probe) is not installed")
    vectors = {"kind": kind, "size": 8, "min_count": 2, "epochs": 1, "buckets": 100}
    maps = {"static": {"kind": "train", "vectors": vectors}, "supervision": ["parallel"]}
    first = values_of(subject_of(run, maps, layers=[2]))["static"]
    assert first["vectors"]["left"]["sentences"] == first["vectors"]["right"]["sentences"] == 40
    assert (first["counts"]["linked words without a vector (parent)"] == 0) == (kind == "fasttext")
    # rare types that are measured alone get the mean of their n-grams
    assert (first["counts"]["measured words without a vector (parent)"] == 0) == (kind == "fasttext")
    assert 0 <= first["context"]["csls"]["mean"] <= 100
    assert values_of(subject_of(run, maps, layers=[2]))["static"] == first


def test_what_cannot_be_measured_is_said(run, tmp_path):
    _, right, files = planted(run, tmp_path, 0.0)
    few = tmp_path / "few.vec"
    few.write_text("2 12\n" + "\n".join(f"nothing{i} {' '.join(str(i + j * j) for j in range(12))}" for i in (1, 2)))
    narrow = tmp_path / "narrow.vec"
    narrow.write_text(f"{len(right)} 2\n" + "\n".join(f"{word} {i % 7 + 1} 1" for i, word in enumerate(right)))
    for changed, message in (
        ({"left": str(few)}, "no pair of words to fit the rotation on has a vector on both sides"),
        ({"right": str(narrow)}, "12 and 2 dimensions"),
        ({"right": str(tmp_path / "gone.vec")}, "gone.vec"),
    ):
        with pytest.raises(InputError, match=message):
            values_of(subject_of(run, {"static": {"kind": "load", **files, **changed}}, layers=[2]))
    if importlib.util.find_spec("gensim") is None:
        with pytest.raises(InputError, match="needs gensim"):
            values_of(subject_of(run, {"static": {"kind": "train"}}, layers=[2]))
