"""Each loss against loops over slots and pairs, the weighted sum, and where gradients go."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from pretrain.build import build_objective
from pretrain.config import ObjectiveConfig, SharingConfig
from pretrain.model.tensors import TensorBatch
from pretrain.objectives.align import Alignment
from pretrain.objectives.objective import Objective
from pretrain.objectives.table import NAMES
from tests.masking_cases import V, copies, dictionary_of, masker_of, monolingual
from tests.objective_cases import batch_of, mixed_batch, model_of, plain_losses

CPU = torch.device("cpu")
DICTIONARY = copies(0.25, seed=3)


def objective_of(shared=True, dictionary=DICTIONARY, **settings) -> Objective:
    config: Any = SimpleNamespace(
        objective=ObjectiveConfig(**settings), sharing=SharingConfig(embeddings="shared" if shared else "separate")
    )
    languages = [SimpleNamespace(name=name) for name in ("en", "de")]
    parallel = [SimpleNamespace(left=0, right=1)]
    artifacts: Any = SimpleNamespace(dictionary=dictionary, own_rows=not shared, languages=languages, parallel=parallel)
    return build_objective(config, artifacts, CPU)


CASES: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"kind": "mlm"}, ("mlm",)),
    ({"kind": "xlm"}, ("mlm", "tlm")),
    ({"kind": "dict_mlm", "dict_target": "label-or-copy"}, ("mlm", "dict")),
    ({"kind": "dict_mlm", "dict_target": "switched"}, ("mlm", "dict")),
    ({"kind": "dict_mlm"}, ("mlm", "dict")),
    ({"kind": "align_mlm"}, ("mlm", "align")),
    ({"kind": "sum", "weights": {"mlm": 0.5, "tlm": 2.0, "dict": 1.5, "align": 3.0}}, ("mlm", "tlm", "dict", "align")),
    ({"kind": "sum", "weights": {"dict": 1.0}}, ("mlm", "dict")),
    ({"kind": "sum", "weights": {"tlm": 1.0, "mlm": 1.0, "align": 0.0}}, ("mlm", "tlm", "align")),
]


@pytest.mark.parametrize(("settings", "names"), CASES)
def test_losses_are_those_of_a_plain_implementation(settings, names):
    model, objective = model_of(), objective_of(**settings)
    batch = mixed_batch(settings.get("dict_target", "label"), terms=names)
    expected = plain_losses(model, batch, DICTIONARY)
    assert objective.names == names
    assert objective.counts(batch) == {name: expected[name][1] for name in names}
    assert all(expected[name][1] > 3 for name in names)
    losses = objective.sums(model, TensorBatch.of(batch, CPU))
    assert tuple(losses) == names
    for name, total in losses.items():
        assert total.dtype == torch.float32
        assert total.item() == pytest.approx(expected[name][0], rel=1e-5, abs=1e-5)
    # the whole: one denominator for all slots, another for the pairs
    scale = objective.scales(objective.counts(batch))
    weights = {str(term): weight for term, weight in objective_weights(settings).items()}
    slots = sum(expected[name][1] for name in names if name != "align")
    whole = sum(weights.get(n, 0.0) * expected[n][0] / slots for n in names if n != "align")
    if "align" in names:
        whole += weights["align"] * expected["align"][0] / len(DICTIONARY)
    got = sum(scale[name] * total.item() for name, total in losses.items())
    assert got == pytest.approx(whole, rel=1e-5)


@pytest.mark.parametrize(("settings", "names"), CASES)
def test_the_sum_of_the_means_of_corpora_is_that_of_a_loop_over_positions(settings, names):
    """ALIGN-MLM, section 3: L(C1) + L(C2), with sentence pairs + L(C12), each the mean over its masked positions."""
    model, objective = model_of(), objective_of(**settings, mean_over="corpora")
    batch = mixed_batch(settings.get("dict_target", "label"), terms=names)
    losses = model(TensorBatch.of(batch, CPU)).double().tolist()
    weights, means = objective_weights(settings), dict[str, float]()
    for corpus, rows in {"en": range(3), "de": range(3, 6), "en+de": range(6, len(batch.labels))}.items():
        sums, n = dict.fromkeys(names, 0.0), 0
        for row in rows:
            for place in np.flatnonzero(batch.labels[row] != -100).tolist():
                sums[NAMES[batch.terms[row, place]]] += losses[row][place]
                n += 1
        means |= {f"{name}/{corpus}": weights.get(name, 0.0) * sums[name] / n for name in names if n}
    if "align" in names:
        means["align"] = weights["align"] * plain_losses(model, batch, DICTIONARY)["align"][0] / len(DICTIONARY)
    counts, found = objective.counts(batch), objective.sums(model, TensorBatch.of(batch, CPU))
    assert tuple(counts) == tuple(found) == objective.names
    assert sum(n for name, n in counts.items() if name != "align") == batch.targets
    scale = objective.scales({name: torch.tensor(float(n)) for name, n in counts.items()})
    got = {name: (scale[name] * total).item() for name, total in found.items()}
    assert {name: value for name, value in got.items() if value} == pytest.approx(
        {name: value for name, value in means.items() if value}, rel=1e-5
    )


def test_a_micro_batch_without_rows_of_a_corpus_adds_nothing_to_its_mean():
    objective = objective_of(kind="mlm", mean_over="corpora")
    batch = batch_of([(monolingual(3, 1), "mlm")], masker_of(), halves=False)
    found = objective.sums(model_of(), TensorBatch.of(batch, CPU))
    assert objective.counts(batch) == {"mlm/en": 0, "mlm/de": batch.targets}
    assert found["mlm/en"].item() == 0.0 and found["mlm/de"].item() > 0.0


def objective_weights(settings):
    """By hand: what the config says about weights."""
    if "weights" in settings:
        return settings["weights"]
    kinds = {"mlm": {}, "xlm": {"tlm": 1.0}, "dict_mlm": {"dict": 1.0}, "align_mlm": {"align": 10.0}}
    return {"mlm": 1.0} | kinds[settings["kind"]]


def test_alignment_reaches_exactly_the_rows_of_the_dictionary():
    model = model_of()
    objective_of(kind="align_mlm").sums(model, TensorBatch.of(mixed_batch(), CPU))["align"].backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    assert list(gradients) == ["embeddings.words"]
    words, gradient = model.embeddings.words.detach().double(), gradients["embeddings.words"].double()
    expected = torch.zeros_like(words)
    for a, b in DICTIONARY.pairs.tolist():
        for one, other in ((a, b), (b, a)):
            x, y = words[one], words[other]
            expected[one] -= y / (x.norm() * y.norm()) - (x @ y) * x / (x.norm() ** 3 * y.norm())
    assert torch.allclose(gradient, expected, atol=1e-6)
    rows = torch.nonzero(gradient.abs().sum(1)).flatten().tolist()
    assert rows == sorted(DICTIONARY.pairs.ravel().tolist())


def test_alignment_of_separate_embeddings_has_the_rows_of_each_language():
    """The same id has a different row in each language. A pair of one id pulls both rows together."""
    model = model_of(embeddings="separate")
    dictionary = dictionary_of([(7, V + 9), (8, V + 9), (3, 3)])
    loss = Alignment(dictionary, False, CPU).sum(model)
    words = model.embeddings.words.detach().double().numpy()
    first = len(model.embeddings.ids(0))
    place = [{i: n for n, i in enumerate(model.embeddings.ids(m).tolist())} for m in (0, 1)]
    rows = [(place[0][a], first + place[1][b]) for a, b in dictionary.pairs.tolist()]
    cosines = [np.dot(words[a], words[b]) / np.linalg.norm(words[a]) / np.linalg.norm(words[b]) for a, b in rows]
    assert loss.item() == pytest.approx(-sum(cosines), abs=1e-5)
    loss.backward()
    gradient = model.embeddings.words.grad
    assert gradient is not None
    assert set(torch.nonzero(gradient.abs().sum(1)).flatten().tolist()) == {row for pair in rows for row in pair}


def test_alignment_of_several_languages_is_over_all_pairs():
    ids = torch.nn.Embedding(60, 8)
    model: Any = SimpleNamespace(word_rows=lambda i, member: ids(i + 20 * member))
    dictionary = dictionary_of([(5, 6), (7, 8), (5, 9)], [(0, 1), (0, 2), (0, 2)])
    loss = Alignment(dictionary, False, CPU)
    words = ids.weight.detach()
    cosines = [torch.cosine_similarity(words[a], words[b], dim=0).item() for a, b in ((5, 26), (7, 48), (5, 49))]
    assert loss.pairs == 3 and loss.sum(model).item() == pytest.approx(-sum(cosines), abs=1e-6)


def test_alignment_is_exact_whatever_the_precision_of_the_run():
    model, align = model_of(), Alignment(DICTIONARY, True, CPU)
    with torch.autocast("cpu", torch.bfloat16):
        low = align.sum(model)
    assert low.dtype == torch.float32 and low.item() == align.sum(model).item()


@pytest.mark.parametrize("tensors", [False, True])
def test_a_step_without_a_labelled_slot_has_the_loss_zero(tensors):
    objective = objective_of(kind="sum", weights={"mlm": 2.0, "tlm": 1.0, "align": 3.0})
    counts: dict[str, Any] = {"mlm": 0, "tlm": 0, "align": 50}
    if tensors:
        counts = {name: torch.tensor(float(count)) for name, count in counts.items()}
    scale = objective.scales(counts)
    assert {name: float(factor) for name, factor in scale.items()} == pytest.approx(
        {"mlm": 2.0, "tlm": 1.0, "align": 0.06}
    )
