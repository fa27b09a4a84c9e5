"""The term align, which pulls the words of a dictionary to their translations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from pretrain.artifacts import Artifacts
from pretrain.data.batch import Batch
from pretrain.objectives.term import Term
from synthlang.config import StrictModel
from synthlang.dictionary.ids import IdDictionary

if TYPE_CHECKING:
    import torch

    from pretrain.model.tensors import TensorBatch


class AlignSettings(StrictModel):
    """Settings of the term align."""

    alpha: float = Field(default=10.0, ge=0.0)
    """Weight of the alignment term (ALIGN-MLM, equation 2)."""


class Align(Term[AlignSettings]):
    """The term align: −Σ cosine / n over the n pairs of the dictionary (Tang et al. 2022, "ALIGN-MLM", section 3)."""

    name, kind, causal_kind = "align", "align_mlm", "align_clm"
    settings, weight_key = AlignSettings, "alpha"
    needs = frozenset({"dictionary"})
    masked = False

    def own_loss(self, settings: AlignSettings, artifacts: Artifacts, device: torch.device) -> Alignment:
        assert artifacts.dictionary is not None, "prepare draws the dictionary of align"
        return Alignment(artifacts.dictionary, not artifacts.own_rows, device)


class Alignment:
    """The loss of the term align, over the whole dictionary in every step (ALIGN-MLM, section 3 and appendix G.5).

        L_align = −Σ cos(E[i], E[i′])

    E are rows of the word embedding without position, language or LayerNorm. The loss of a run is divided by the number
    of pairs (see ``count``).

    Args:
        dictionary: The pairs of ids, at least one.
        shared: True if all languages have the same rows, which are then read at once.
        device: The device of the model.
    """

    def __init__(self, dictionary: IdDictionary, shared: bool, device: torch.device) -> None:
        import torch

        assert len(dictionary), "an empty dictionary aligns nothing"
        self.pairs = len(dictionary)
        languages = torch.from_numpy(dictionary.languages)
        if shared:
            languages = torch.zeros_like(languages)
        ids = torch.from_numpy(dictionary.pairs)
        self.blocks: list[tuple[int, int, torch.Tensor, torch.Tensor]] = []  # languages and ids of both sides
        for left, right in torch.unique(languages, dim=0).tolist():
            here = ids[(languages == torch.tensor([left, right])).all(dim=1)].to(device)
            self.blocks.append((left, right, here[:, 0].contiguous(), here[:, 1].contiguous()))

    def count(self, batch: Batch) -> int:
        """Return the number of pairs of the dictionary, whatever the batch is."""
        return self.pairs

    def sum(self, model: Any, batch: TensorBatch | None = None) -> torch.Tensor:
        """Return the negative sum of the cosines, [] float32, of a model with ``word_rows``. The batch is not used."""
        import torch

        from pretrain.model.losses import sum_of_cosines

        totals = []
        for left, right, sources, targets in self.blocks:
            if left == right:
                rows = model.word_rows(torch.cat([sources, targets]), left)
            else:
                rows = torch.cat([model.word_rows(sources, left), model.word_rows(targets, right)])
            totals.append(sum_of_cosines(rows.float()))
        return -torch.stack(totals).sum()
