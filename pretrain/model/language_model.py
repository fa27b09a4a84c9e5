"""A transformer language model with separate parts for languages, and losses at the labelled positions only.

Each kind of model is a subclass: the encoder in ``pretrain.model.roberta`` and the decoder in ``pretrain.model.gpt2``.
Work that no loss needs is left out. In an encoder, queries and the feed-forward network of the last layer, and the
projection to the vocabulary, are computed only at the masked positions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from pretrain.config import ModelConfig, SharingConfig
from pretrain.data.batch import IGNORE, RowGroup
from pretrain.model.attention import Kept, Layer, SeparateLayers, at_columns
from pretrain.model.dropout import Noise, dropout
from pretrain.model.losses import Exponentials, exponentials, masked_loss
from pretrain.model.tensors import TensorBatch
from pretrain.model.text import Packed, Text
from synthlang.rng import key_of
from synthlang.vocabularies.xlm_tokenizer import XLM

ABSENT = -(2**40)  # so small that an access fails with any offset
EPSILON = {"roberta": 1e-5, "xlm-roberta": 1e-5, "bert": 1e-12, XLM: 1e-5}
"""Epsilon of LayerNorm, by architecture. An XLM of random weights differs from a RoBERTa in its output alone."""


class Embeddings(nn.Module):
    """The embedding tables of a model of L languages over ``size`` ids.

    Shared tables are indexed by the id itself.

    Args:
        ids: The sorted ids of each language, with special tokens, [ids] int64 each.
        size: Number of ids of all languages.
        positions: Number of positions of a row.
        hidden: Width d.
        separate: True if each language has its own word and position embeddings.
        language_ids: True to add language embeddings.
        biased: True if the tied output has a trained bias.

    Attributes:
        words: Word embeddings, [size, d]. Separate embeddings have rows for the ids of each language, one language
            after another.
        bias: Bias of the tied output for each row of ``words``. Without ``biased``, it is 0 and not trained.
        positions: Position embeddings, [positions, d], or [L · positions, d] if separate.
        languages: Language embeddings, which are added to each token, [L, d], or None.
        segments: Differences of the other token types to type 0 in the original checkpoint, [s, d]. They are not
            trained and are kept for exports.
    """

    def __init__(
        self,
        ids: Sequence[NDArray[np.int64]],
        size: int,
        positions: int,
        hidden: int,
        separate: bool,
        language_ids: bool,
        biased: bool = True,
    ) -> None:
        super().__init__()
        languages = len(ids)
        self.separate, self.size, self.length = separate, size, positions
        self.sizes = [len(own) for own in ids]
        self.words = nn.Parameter(torch.empty(sum(self.sizes) if separate else size, hidden))
        bias = torch.zeros(len(self.words))
        if biased:
            self.bias: Tensor = nn.Parameter(bias)
        else:
            self.register_buffer("bias", bias, persistent=False)
        self.positions = nn.Parameter(torch.empty(positions * (languages if separate else 1), hidden))
        self.languages = nn.Parameter(torch.empty(languages, hidden)) if language_ids else None
        for language, own in enumerate(ids):
            self.register_buffer(f"ids_{language}", torch.from_numpy(own.astype(np.int64)), persistent=False)
        self.register_buffer("places", torch.from_numpy(_places(ids, size)), persistent=False)
        offsets = np.cumsum([0, *self.sizes[:-1]])
        self.register_buffer("offsets", torch.from_numpy(offsets), persistent=False)
        self.register_buffer("segments", torch.zeros(0, hidden), persistent=False)
        self.places: Tensor
        self.offsets: Tensor
        self.segments: Tensor

    def ids(self, language: int) -> Tensor:
        """Return the sorted ids of a language, [ids] int64."""
        own: Tensor = self.get_buffer(f"ids_{language}")
        return own

    def forward(
        self, input_ids: Tensor, languages: Tensor, positions: Tensor | None, segments: Tensor | None = None
    ) -> Tensor:
        """Return the sum of the embeddings of tokens, [r, w, d].

        Args:
            input_ids: Token ids, [r, w].
            languages: Number of the language of each token, [r, w].
            positions: 0-based positions, [r, w] (None: 0 … w − 1 in each row).
            segments: Token types, [r, w] (None: all 0).
        """
        if positions is None:
            positions = torch.arange(input_ids.shape[1], device=input_ids.device)
        if self.separate:
            positions = positions + languages * self.length
        x = nn.functional.embedding(self.rows(input_ids, languages), self.words)
        x = x + nn.functional.embedding(positions, self.positions)
        if segments is not None and len(self.segments):
            types = torch.cat([torch.zeros_like(self.segments[:1]), self.segments])  # type 0 is in the positions
            x = x + nn.functional.embedding(segments, types)
        return x if self.languages is None else x + nn.functional.embedding(languages, self.languages)

    def rows(self, ids: Tensor, languages: Tensor | int) -> Tensor:
        """Return the row of ``words`` of each id, in the shape of ``ids``.

        ``languages`` has the number of the language of each id, or is one number. With separate embeddings, an id that
        the language does not have gets a row number below 0, which no table has.
        """
        if not self.separate:
            return ids
        return self.places[languages, ids] + self.offsets[languages]

    def outputs(self, languages: Sequence[int], restrict: bool) -> dict[int, tuple[Tensor, Tensor]]:
        """Return the output matrix [V, d] and the bias [V] of each language.

        A matrix has a row for each id of the model. With ``restrict``, and always with separate embeddings, it has a
        row for each of the sorted ids of the language.
        """
        if self.separate:
            words, bias = torch.split(self.words, self.sizes), torch.split(self.bias, self.sizes)
            return {m: (words[m], bias[m]) for m in languages}
        if restrict:
            return {m: (self.words[self.ids(m)], self.bias[self.ids(m)]) for m in languages}
        return dict.fromkeys(languages, (self.words, self.bias))

    def positions_of(self, language: int) -> Tensor:
        """Return the position embeddings of a language, [positions, d]."""
        first = language * self.length if self.separate else 0
        return self.positions[first : first + self.length]

    def fill(self, words: Tensor, bias: Tensor, positions: Tensor) -> None:
        """Copy words [size, d], their biases [size] and positions [positions, d] into the rows of all languages."""
        own = torch.cat([self.ids(m) for m in range(len(self.sizes))]) if self.separate else slice(None)
        self.words.copy_(words[own])
        self.bias.copy_(bias[own])
        self.positions.copy_(positions.repeat(len(self.positions) // len(positions), 1))

    def whole(self, language: int) -> tuple[Tensor, Tensor]:
        """Return the embeddings [size, d] and biases [size] of all ids. Rows of ``language`` take precedence.

        With separate embeddings, an id that ``language`` does not have gets the row of the first language that has it,
        or 0 if no language has it.
        """
        if not self.separate:
            return self.words, self.bias
        words = self.words.new_zeros(self.size, self.words.shape[1])
        bias = self.bias.new_zeros(self.size)
        outputs = self.outputs(range(len(self.sizes)), restrict=True)
        order = [language, *(m for m in outputs if m != language)]
        for other in reversed(order):  # the first of the order is written last
            words[self.ids(other)], bias[self.ids(other)] = outputs[other]
        return words, bias


def _places(ids: Sequence[NDArray[np.int64]], size: int) -> NDArray[np.int64]:
    """Return the index of each id among the ids of each language, or ABSENT, [L, size]."""
    places = np.full((len(ids), size), ABSENT)
    for language, own in enumerate(ids):
        assert np.all(np.diff(own) > 0) and own[-1] < size, "ids of a language are sorted, distinct and in the space"
        places[language, own] = np.arange(len(own))
    return places


class Head(nn.Module):
    """The layers between the last layer and the tied output: none, as in XLM and GPT-2."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layers to states of any shape […, d]."""
        return x


class LanguageModel(nn.Module):
    """A language model of one or more languages, with random weights that are a function of the arguments.

    Args:
        shape: Shape of the model.
        sharing: Shared and separate parts.
        ids: The sorted ids of each language, with the special tokens.
        size: Number of ids, which is the number of rows of a shared embedding.
        positions: Number of tokens of the longest row, which is the size of the position table of a language.
        pad: Id of the padding token, for exports.
        language_ids: True to add language embeddings.
        seed: Seed of the weights.
        architecture: Name of the architecture in transformers (default: XLM for a linear output, and else the kind).
        epsilon: Epsilon of LayerNorm (default: the architecture's).

    Attributes:
        causal: True for a decoder, which predicts next tokens.
        layer_type: Class of the layers.
        biased: True if the tied output has a bias.
    """

    causal: ClassVar[bool] = False
    layer_type: ClassVar[type[Layer]] = Layer
    biased: ClassVar[bool] = True

    def __init__(
        self,
        shape: ModelConfig,
        sharing: SharingConfig,
        ids: Sequence[NDArray[np.int64]],
        size: int,
        positions: int,
        pad: int,
        language_ids: bool,
        seed: int,
        architecture: str | None = None,
        epsilon: float | None = None,
    ) -> None:
        super().__init__()
        architecture = architecture or (XLM if shape.output == "linear" else shape.kind)
        epsilon = EPSILON.get(architecture, 1e-5) if epsilon is None else epsilon
        self.shape, self.sharing, self.pad, self.architecture, self.epsilon = shape, sharing, pad, architecture, epsilon
        self.origin: dict[str, Any] | None = None  # the config of the checkpoint that the model started from
        self.language_count = len(ids)
        separate = sharing.embeddings == "separate"
        self._restricts = separate or sharing.softmax == "language"
        self.embeddings = Embeddings(ids, size, positions, shape.hidden, separate, language_ids, self.biased)
        self.norm = nn.LayerNorm(shape.hidden, eps=epsilon)
        self.layers = nn.ModuleList(
            SeparateLayers(self.layer_type(shape, epsilon) for _ in range(self.language_count))
            if number in sharing.layers
            else self.layer_type(shape, epsilon)
            for number in range(1, shape.layers + 1)
        )
        self.head = self._new_head()
        self.noise = Noise()
        self._step_layer: Callable[..., Tensor] = Layer.__call__
        self._exponentials: Exponentials = exponentials
        self._initialise(seed)

    def _new_head(self) -> Head:
        return Head()

    def _initialise(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(key_of("init", seed) >> 1)  # torch takes signed 64-bit seeds
        with torch.no_grad():
            for parameter in self.parameters():
                if parameter.ndim >= 2:
                    parameter.normal_(0.0, self.shape.init_std, generator=generator)
            for name, parameter in self.named_parameters():
                if parameter.ndim < 2:
                    parameter.fill_(1.0 if name.endswith("norm.weight") else 0.0)

    def forward(self, batch: TensorBatch, weights: Tensor | None = None) -> Tensor:
        """Return −log p(label) at every labelled position in nats, or 0 for the label IGNORE, [rows, k] float32.

        With ``weights`` [rows, k], only some logits are in memory at a time. The gradient of the result must then be
        proportional to the weights.
        """
        x, seen = self.embed(batch.input_ids, batch.languages, batch.positions), self.seen(batch)
        for number, layer in enumerate(self.layers, 1):
            columns = batch.masked if number == self.shape.layers and not self.causal else None
            x = self._through(layer, x, seen, columns, batch.groups)
        return self._losses(self.head(self.last(x)), batch, weights)

    def seen(self, rows: TensorBatch | Text) -> Tensor | None:
        """Return the attention mask of rows for ``Layer.forward``, [r, 1 or w, w] bool, or None for no mask."""
        return rows.seen()

    def first(self, x: Tensor) -> Tensor:
        """Return the input of the first layer, before dropout, from the sum of the embeddings ``x``."""
        return x

    def last(self, x: Tensor) -> Tensor:
        """Return the output of the last layer from its states ``x``."""
        return x

    def read(self, text: Text, columns: Tensor | None = None, layers: Sequence[int] | None = None) -> list[Tensor]:
        """Return the outputs of ``layers``, each [r, w, d], or [r, k, d] at ``columns`` [r, k].

        Layers are 1 … N, and 0 is the embeddings (default: the last layer). Outputs at padding have no meaning. If
        ``text.positions`` is None, a row must not have more tokens than the position table.
        """
        width, wanted = text.input_ids.shape[1], (self.shape.layers,) if layers is None else tuple(layers)
        most = self.embeddings.length
        # Rows with positions of their own (two padded blocks) may be wider than the model.
        assert text.positions is not None or width <= most, f"{width} tokens in a row, but the model reads {most}"
        if text.packed is not None:
            packed = self._read_packed(text, text.packed, columns, set(wanted))
            return [packed[number] for number in wanted]
        groups = (RowGroup(0, len(text.input_ids), text.spans),)
        x = self.embed(text.input_ids, text.languages, text.positions, text.segments)
        outputs, seen = {0: x if columns is None else at_columns(x, columns)}, self.seen(text)
        for number, layer in enumerate(self.layers[: max(wanted)], 1):
            x = self._through(layer, x, seen, columns if number == max(wanted) else None, groups)
            x = self.last(x) if number == self.shape.layers else x
            if number in wanted:
                outputs[number] = x if columns is None or number == max(wanted) else at_columns(x, columns)
        return [outputs[number] for number in wanted]

    def _read_packed(
        self, text: Text, packed: Packed, columns: Tensor | None, wanted: Collection[int]
    ) -> dict[int, Tensor]:
        """Compute the outputs of the wanted layers at tokens only. Outputs at padding are 0.

        At tokens, the result equals the outputs of the padded rows up to rounding.
        """
        rows, width = text.input_ids.shape
        ids, languages, positions, segments = _tokens(text, packed)
        x = self.embed(ids, languages, positions, segments).squeeze(0)
        last, seen = max(wanted), self.seen(text)
        outputs = {0: _rows(x, packed, columns)} if 0 in wanted else {}
        for number, own in enumerate(self.layers[:last], 1):
            layer = own.copy(text.spans[0][2]) if isinstance(own, SeparateLayers) else own
            assert isinstance(layer, Layer)
            if number == last and columns is not None and columns.numel() < len(packed.places):
                keep = layer.draw(self.noise, rows, columns.shape[1], width)
                x = layer(packed.pad(x), seen, columns, keep)
                outputs[number] = self.last(x) if number == self.shape.layers else x
                break
            x = layer.of_tokens(x, packed, seen, layer.draw(self.noise, rows, width, width, len(packed.places)))
            x = self.last(x) if number == self.shape.layers else x
            if number in wanted:
                outputs[number] = _rows(x, packed, columns)
        return outputs

    def logits(self, text: Text, columns: Tensor | None = None) -> Tensor:
        """Return the logits of all ids for text of one language, [r, w, V], or [r, k, V] at ``columns`` [r, k].

        With a softmax over one language, logits of other ids are −∞. A causal model predicts the next token.
        """
        (language,) = {language for _, _, language in text.spans}
        weight, bias = self.embeddings.outputs([language], restrict=self._restricts)[language]
        logits = F.linear(self.head(self.read(text, columns)[0]), weight, bias)
        if not self._restricts:
            return logits
        whole = logits.new_full((*logits.shape[:-1], self.embeddings.size), float("-inf"))
        return whole.index_copy(-1, self.embeddings.ids(language), logits)

    def word_rows(self, ids: Tensor, language: int) -> Tensor:
        """Return the word embeddings of ids [n] of a language, without position or LayerNorm, [n, d]."""
        return F.embedding(self.embeddings.rows(ids, language), self.embeddings.words)

    def token_losses(self, states: Tensor, labels: Tensor, language: int) -> Tensor:
        """Return −log p(label) in nats, [n] float32, for text of one language.

        Memory for n · V logits is needed, where V is the number of ids of the softmax.

        Args:
            states: Outputs of the last layer, [n, d].
            labels: Ids to predict, [n]. IGNORE is allowed only with a softmax over all ids.
            language: Number of the language.
        """
        weight, bias = self.embeddings.outputs([language], self._restricts)[language]
        if self._restricts:  # a softmax over the ids of the language
            labels = self.embeddings.places[language, labels]
        return masked_loss(self.head(states), weight, bias, labels)

    def language_specific(self) -> list[str]:
        """Return the names of the parameters whose rows or copies each belong to one language."""
        own = tuple(f"layers.{number - 1}." for number in self.sharing.layers)
        if self.embeddings.separate:
            own += ("embeddings.words", "embeddings.bias", "embeddings.positions")
        return [name for name, _ in self.named_parameters() if name.startswith(own)]

    def seed_dropout(self, key: int) -> None:
        """Make all dropout until the next call a function of ``key`` (64 bits)."""
        self.noise.seed(key, self.embeddings.words.device)

    def compile_steps(self, backend: str = "inductor") -> None:
        """Compile the training step with torch.compile, one layer at a time, so that equal layers compile once.

        ``backend`` is the name of a backend of torch.compile.
        """
        self._step_layer = torch.compile(Layer.forward, dynamic=False, backend=backend)
        self._exponentials = torch.compile(exponentials, dynamic=False, backend=backend)

    def embed(
        self, input_ids: Tensor, languages: Tensor, positions: Tensor | None, segments: Tensor | None = None
    ) -> Tensor:
        """Return the input of the first layer, with dropout, [r, w, d].

        The arguments are as in ``Embeddings.forward``.
        """
        x = self.first(self.embeddings(input_ids, languages, positions, segments))
        rate = self.shape.dropout
        keep = self.noise.keep(rate, *x.shape) if self.training and rate else None
        return dropout(x, rate, keep, self.training)

    def _through(
        self, layer: nn.Module, x: Tensor, seen: Tensor | None, columns: Tensor | None, groups: tuple[RowGroup, ...]
    ) -> Tensor:
        if isinstance(layer, SeparateLayers):
            return layer.route(x, seen, columns, groups, self.noise, self._run)
        assert isinstance(layer, Layer)
        return self._run(layer, x, seen, columns)

    def _run(self, layer: Layer, x: Tensor, seen: Tensor | None, columns: Tensor | None) -> Tensor:
        rows, width, _ = x.shape
        keep: Kept = layer.draw(self.noise, rows, width if columns is None else columns.shape[1], width)
        step = self._step_layer if self.training else Layer.__call__
        return step(layer, x, seen, columns, keep)

    def _losses(self, x: Tensor, batch: TensorBatch, weights: Tensor | None) -> Tensor:
        """Return the cross entropy at the labelled positions from their last hidden states ``x`` [r, k, d]."""
        step = self._exponentials if self.training else exponentials
        if not self._restricts:
            weight, bias, labels = self.embeddings.words, self.embeddings.bias, batch.labels
            each = None if weights is None else weights.flatten()
            return masked_loss(x.flatten(0, 1), weight, bias, labels.flatten(), step, each).view_as(labels)
        languages = sorted({language for group in batch.groups for _, _, language in group.spans})
        outputs = self.embeddings.outputs(languages, restrict=True)
        own = self._languages_of_labels(batch)
        wanted = batch.labels != IGNORE
        places = self.embeddings.places[own, torch.where(wanted, batch.labels, 0)]
        losses = []
        for group in batch.groups:
            rows = slice(group.start, group.stop)
            states, total = x[rows].flatten(0, 1), torch.zeros((), device=x.device)
            each = None if weights is None else weights[rows].flatten()
            for language in sorted({language for _, _, language in group.spans}):
                # A row with several languages passes through the softmax of each, which ignores the other positions.
                labels = torch.where(wanted[rows] & (own[rows] == language), places[rows], IGNORE)
                total = total + masked_loss(states, *outputs[language], labels.flatten(), step, each)
            losses.append(total.view_as(batch.labels[rows]))
        return torch.cat(losses)

    def _languages_of_labels(self, batch: TensorBatch) -> Tensor:
        """Return the language of the label at each labelled position, [rows, k]."""
        return at_columns(batch.languages.unsqueeze(-1), batch.masked).squeeze(-1)


def _tokens(text: Text, packed: Packed) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Return the ids, languages, positions and segments of all tokens without padding, each [1, t]."""
    ids, positions = text.input_ids, text.positions
    if positions is None:
        positions = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
    segments = None if text.segments is None else packed.pick(text.segments)[None]
    return packed.pick(ids)[None], packed.pick(text.languages)[None], packed.pick(positions)[None], segments


def _rows(x: Tensor, packed: Packed, columns: Tensor | None) -> Tensor:
    padded = packed.pad(x)
    return padded if columns is None else at_columns(padded, columns)
