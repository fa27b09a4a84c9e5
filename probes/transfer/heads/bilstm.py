"""Two bidirectional LSTM layers over the words of a sentence."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

LAYERS = 2


class BiLstm(nn.Module):
    """``width`` units in each direction; dropout on what goes in, comes out, and goes from one layer to the next."""

    def __init__(self, *, hidden: int, width: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.LSTM(hidden, width, LAYERS, batch_first=True, dropout=dropout, bidirectional=True)
        self.width = 2 * width

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """[r, k, d], words first in each row of the mask [r, k] → [r, k, 2 · width]; padding is never read."""
        words = states.shape[1]
        if not words:
            return states.new_zeros(len(states), 0, self.width)
        # one step at least, which packed sequences ask for: in a row without words nobody looks at it
        lengths = mask.sum(dim=1).clamp(min=1).cpu()
        packed = pack_padded_sequence(self.dropout(states), lengths, batch_first=True, enforce_sorted=False)
        y, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=words)
        dropped: Tensor = self.dropout(y)
        return dropped
