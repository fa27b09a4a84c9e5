"""The input of a head: a state for each word, from layers of a model that is fine-tuned or frozen."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pretrain.adjust.vectors import layer_numbers
from pretrain.config import ModelConfig
from pretrain.model.attention import Layer, at_columns
from pretrain.model.dropout import Noise
from pretrain.model.language_model import LanguageModel
from pretrain.model.text import Text
from probes.models.pretrained import Role, bounded_batches
from probes.rotation.features import Rotation
from probes.transfer.config import FeaturesConfig
from probes.transfer.tasks.base import Batch, Examples, Head
from synthlang.errors import InputError
from synthlang.rng import key_of

MOST = 1 << 31  # maximum size of cached states, in bytes; the states of larger sets are computed in each epoch


def pick_words(states: Tensor, words: Tensor, subword: str, whole: Tensor) -> Tensor:
    """Return the states [r, 1 + k, d] of whole rows and of k words, from the states [r, w, d] of all columns.

    ``words`` [r, k, 2] has the first and the last column of each word. ``whole`` [r, 1] is from ``whole_rows``.
    With the ``subword`` mean, a word is the mean of its columns, and otherwise its ``first`` or ``last`` column.
    """
    if subword != "mean":
        return at_columns(states, word_slots(words, subword, whole))
    columns = torch.arange(states.shape[1], device=states.device)
    inside = ((columns >= words[..., :1]) & (columns <= words[..., 1:])).to(states.dtype)
    weights = inside / inside.sum(-1, keepdim=True).clamp(min=1.0)
    return torch.cat([at_columns(states, whole), weights @ states], dim=1)


def word_slots(words: Tensor, subword: str, whole: Tensor) -> Tensor:
    """Return the columns [r, 1 + k] to read: ``whole`` [r, 1], then one column of each word in ``words`` [r, k, 2].

    The column of a word is its last column for the ``subword`` last, and its first column otherwise.
    """
    return torch.cat([whole, words[..., 1 if subword == "last" else 0]], dim=1)


def whole_rows(text: Text, is_causal: bool) -> Tensor:
    """Return the column [r, 1] whose state represents each row: ``<s>``, or the last token in a decoder.

    ``is_causal`` is True for a decoder, in which only the last token sees the whole row.
    """
    rows, width = text.input_ids.shape
    columns = torch.arange(width, device=text.input_ids.device)
    if not is_causal:
        return columns[:1].expand(rows, 1)
    valid = torch.ones_like(text.input_ids) if text.valid is None else text.valid
    return (valid * columns).amax(1, keepdim=True)


class Features(nn.Module):
    """States [r, 1 + k, width] of a batch: the state of the row (column 0), then one state for each word.

    The state of a row is the state of ``<s>``, or of the last token in a decoder. A batch without words gives the
    states of all columns, [r, w, width], with the state of the row in column 0. Unused weights, such as the output
    layer and the layers above the last layer that is read, are not trained. The new layers on top
    (``config.top_layers``) are like the layers of the model. With ``combine: concat``, they are as wide as all read
    layers together. Their weights are drawn from PyTorch's random generator.

    Args:
        bodies: The pretrained model for each role. The models are copied, so the originals do not change.
        config: The settings.
        rotations: The map or normalisation for each role, which is applied to each layer before layers are combined.
        also_read: Further layers to train, because an additional loss reads them.

    Raises:
        InputError: A body lacks a layer, or two bodies differ in hidden size.
    """

    def __init__(
        self,
        bodies: Mapping[Role, LanguageModel],
        config: FeaturesConfig,
        rotations: Mapping[Role, Rotation] | None = None,
        also_read: Sequence[int] = (),
    ) -> None:
        super().__init__()
        self.config, self.frozen, self.rotations = config, config.tune == "none", dict(rotations or {})
        copies = {id(body): copy.deepcopy(body) for body in bodies.values()}
        sizes = [str(body.shape.hidden) for body in copies.values()]
        if len(set(sizes)) > 1:
            reason = f"has the hidden size {sizes[1]}, but the first model has {sizes[0]}"
            hint = "choose a model with the same hidden size"
            raise InputError(reason, keys="target_model", hint=hint, code="conflict")
        self.bodies = nn.ModuleList(copies.values())
        self._of = {role: list(copies).index(id(body)) for role, body in bodies.items()}
        self.layers = {role: layer_numbers(config.layers, body, "features.layers") for role, body in bodies.items()}
        for role in bodies:
            also = layer_numbers(also_read, self.body(role), "continual.loss.layers")
            self._freeze(self.body(role), max(*self.layers[role], *also, 0))
        first = self.body(next(iter(bodies)))
        parts = len(config.layers) if config.combine == "concat" else 1
        self.width = parts * first.shape.hidden
        self.top = nn.ModuleList(_new_layer(first, parts) for _ in range(config.top_layers))
        self.noise = Noise()

    def body(self, role: Role) -> LanguageModel:
        """Return the copy of the model that reads the language ``role``. Its weights are fine-tuned or frozen."""
        body = self.bodies[self._of[role]]
        assert isinstance(body, LanguageModel)
        return body

    @property
    def reads_all(self) -> bool:
        """True if ``read`` returns all columns, so that words are selected afterwards."""
        return self.config.top_layers > 0 or self.config.subword == "mean"

    def train(self, mode: bool = True) -> Features:
        """Set the training mode, but keep frozen models in evaluation mode without dropout."""
        super().train(mode)
        if self.frozen:
            self.bodies.train(False)
        return self

    def seed_dropout(self, key: int) -> None:
        """Seed the dropout of the next forward pass, which then depends only on ``key``."""
        self.noise.seed(key_of("top", key), next(self.parameters()).device)
        for body in self.bodies:
            assert isinstance(body, LanguageModel)
            body.seed_dropout(key)

    def forward(self, batch: Batch) -> Tensor:
        """Return the states of a batch, with the shapes that the class describes."""
        return self.finish(self.read(batch), batch)

    def read(self, batch: Batch) -> Tensor:
        """Return the combined layers of the model, for each row and its words, [r, 1 + k, d], or for all columns.

        All columns [r, w, d] are returned if ``reads_all`` is true or the batch has no words. ``finish`` then selects
        the row and its words.
        """
        body, layers = self.body(batch.role), self.layers[batch.role]
        columns = None
        if batch.words is not None and not self.reads_all:
            columns = word_slots(batch.words, self.config.subword, whole_rows(batch.text, body.causal))
        with torch.no_grad() if self.frozen else nullcontext():
            states = body.read(batch.text, columns, layers)
            if batch.role in self.rotations:
                rotation = self.rotations[batch.role]
                states = [rotation.apply(layer, index, batch.role) for index, layer in enumerate(states)]
            if len(states) == 1:
                return states[0]
            return torch.cat(states, -1) if self.config.combine == "concat" else torch.stack(states).mean(0)

    def finish(self, states: Tensor, batch: Batch) -> Tensor:
        """Apply the new layers to the result of ``read``, and select the states of rows and words.

        For a batch without words, all columns [r, w, width] are returned, with the state of the row in column 0.
        """
        is_causal = self.body(batch.role).causal
        if self.reads_all:
            rows, width = states.shape[:2]
            for layer in self.top:
                assert isinstance(layer, Layer)
                states = layer(states, batch.text.seen(), None, layer.draw(self.noise, rows, width, width))
        whole = whole_rows(batch.text, is_causal)
        if batch.words is None:
            return torch.cat([at_columns(states, whole), states[:, 1:]], dim=1) if is_causal else states
        return pick_words(states, batch.words, self.config.subword, whole) if self.reads_all else states

    def _freeze(self, body: LanguageModel, deepest: int) -> None:
        """Freeze unused weights and weights that the settings keep fixed. ``deepest`` is the last layer in use."""
        still = {"embeddings.bias", *(name for name, _ in body.named_parameters() if name.startswith("head."))}
        if self.config.freeze_embeddings:
            still.add("embeddings.words")
        if self.config.freeze_language_parts:
            still |= set(body.language_specific())
        unread = tuple(f"layers.{number}." for number in range(deepest, body.shape.layers))
        for name, parameter in body.named_parameters():
            parameter.requires_grad_(not (self.frozen or name in still or name.startswith(unread)))


def _new_layer(body: LanguageModel, parts: int) -> Layer:
    """Return a layer like the layers of the model, but ``parts`` times as wide and initialised as in RoBERTa."""
    shape = body.shape
    sizes = {name: parts * getattr(shape, name) for name in ("heads", "hidden", "feed_forward")}
    layer = Layer(ModelConfig(**shape.model_dump() | sizes | {"layers": 1}), body.epsilon)
    with torch.no_grad():
        for module in layer.modules():
            if isinstance(module, nn.Linear):
                module.weight.normal_(0.0, shape.init_std)
                module.bias.zero_()
    return layer.to(body.norm.weight.device)


class TaskModel(nn.Module):
    """The model of a task: the features, and a head that reads them.

    Methods take the result of `Features.read` as argument ``read``, so that cached states are not computed again.

    Args:
        features: The features.
        head: The head, which is computed in float32.
    """

    precision = "float32"
    """The precision of the features: ``float32``, or ``bfloat16`` by autocast."""

    def __init__(self, features: Features, head: Head) -> None:
        super().__init__()
        self.features, self.head = features, head

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.features.parameters()).device

    def read(self, batch: Batch) -> Tensor:
        """Return the result of `Features.read` in float32, [r, 1 + k, d] or [r, w, d], before the new layers."""
        with self._autocast():
            states = self.features.read(batch)
        return states.float()

    def states(self, batch: Batch, read: Tensor | None = None) -> Tensor:
        """Return the input of the head, float32 [r, 1 + k, d], or [r, w, d] for a batch without words."""
        with self._autocast():
            states = self.features.finish(self.features.read(batch) if read is None else read, batch)
        return states.float()

    def loss(self, batch: Batch, read: Tensor | None = None) -> Tensor:
        """Return the mean loss over the targets of a batch in nats, a scalar."""
        return self.head.loss(self.states(batch, read), batch)

    def decode(self, batch: Batch, read: Tensor | None = None) -> list[Any]:
        """Return the best prediction for each row of a batch (see ``Head.decode``).

        Raises:
            InputError: An arc score of a parser is NaN or infinite.
        """
        return self.head.decode(self.states(batch, read), batch)

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bfloat16")


class FrozenStates:
    """Cache in memory of the results of `Features.read` for all rows of a set.

    Args:
        rows: The states of each row, [n, d] float32 on the CPU, without padding.
        reads_all: The value of `Features.reads_all` with which the states were computed.
    """

    def __init__(self, rows: list[Tensor], reads_all: bool) -> None:
        self._rows, self._reads_all = rows, reads_all

    def of(self, batch: Batch) -> Tensor:
        """Return the states [r, n, d] of the r rows of a batch, float32 on the CPU, with 0 for padding."""
        rows = [self._rows[row] for row in batch.rows.tolist()]
        states: Tensor = rows[0].new_zeros(len(rows), _there(batch, self._reads_all).shape[1], rows[0].shape[-1])
        for row, known in zip(states, rows, strict=True):
            row[: len(known)] = known
        return states


def frozen_states(model: TaskModel, examples: Examples, most: int = MOST) -> FrozenStates | None:
    """Return the states of ``examples`` if the features are frozen and the states fit into ``most`` bytes, else None.

    The batches for reading do not depend on the training batches, so a resumed fit gets the same states. For rows in
    two languages the result is None, because their padding in the middle depends on the batch. The model is left in
    evaluation mode.
    """
    features = model.features
    if not features.frozen or int(examples.lengths.sum()) * features.width * 4 > most:
        return None
    model.eval()
    kept = [torch.empty(0)] * len(examples)
    for rows in bounded_batches(examples.lengths):
        batch = examples.batch(rows)
        if len(batch.text.spans) > 1:
            return None
        with torch.no_grad():
            states = model.read(batch.to(model.device)).cpu()
        there = _there(batch, features.reads_all)
        counts = (there * torch.arange(1, there.shape[1] + 1)).amax(1)  # number of states up to the last real one
        for row, count, known in zip(rows.tolist(), counts.tolist(), states, strict=True):
            kept[row] = known[:count].clone()
    return FrozenStates(kept, features.reads_all)


def _there(batch: Batch, reads_all: bool) -> Tensor:
    """Return the mask [r, n] of states that are not padding. They are tokens, or ``<s>`` and words."""
    if not reads_all and batch.words is not None:
        return F.pad(batch.mask, (1, 0), value=True)
    return torch.ones_like(batch.text.input_ids) if batch.text.valid is None else batch.text.valid
