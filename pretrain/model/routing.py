"""A layer that each language has a copy of: which rows and columns go through which copy."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from pretrain.data.batch import Group
from pretrain.data.rows import Span
from pretrain.model.attention import Layer, at_columns
from pretrain.model.dropout import Noise

Run = Callable[[Layer, Tensor, Tensor | None, Tensor | None], Tensor]


class SeparateLayers(nn.ModuleList):
    """One copy of a layer for each language (Conneau et al. 2020, "Emerging Cross-lingual Structure", section 4.3)."""

    def route(
        self,
        x: Tensor,
        valid: Tensor | None,
        columns: Tensor | None,
        groups: tuple[Group, ...],
        noise: Noise,
        run: Run,
    ) -> Tensor:
        """As Layer.forward, each group of rows through the copies of its languages; ``run`` runs one copy."""
        outputs = []
        for group in groups:
            rows = slice(group.start, group.stop)
            part, seen = x[rows], None if valid is None else valid[rows]
            at = None if columns is None else columns[rows]
            languages = {language for _, _, language in group.spans}
            if len(languages) == 1:
                outputs.append(run(self.copy(languages.pop()), part, seen, at))
            else:
                mixed = self._mixed(part, seen, group.spans, noise)
                outputs.append(mixed if at is None else at_columns(mixed, at))
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)

    def copy(self, language: int) -> Layer:
        """The copy of a language."""
        layer = self[language]
        assert isinstance(layer, Layer)
        return layer

    def _mixed(self, x: Tensor, valid: Tensor | None, spans: tuple[Span, ...], noise: Noise) -> Tensor:
        """Rows of several languages (TLM): each span has its copy's weights, attention sees the whole row."""
        rows, width, _ = x.shape
        first = self.copy(spans[0][2])
        keep = first.draw(noise, rows, width, width)
        projected = [self.copy(language).project(x[:, start:stop]) for start, stop, language in spans]
        q, k, v = (torch.cat(parts, dim=1) for parts in zip(*projected, strict=True))
        context = first.attend(q, k, v, valid, keep[0])  # attention itself has no weights
        finished = []
        for start, stop, language in spans:
            out, down = (None if k is None else k[:, start:stop] for k in keep[1:])
            finished.append(self.copy(language).finish(context[:, start:stop], x[:, start:stop], (None, out, down)))
        return torch.cat(finished, dim=1)
