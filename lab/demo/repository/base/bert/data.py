"""Masked tokens from a flat file of token ids."""

import numpy as np
import torch
from torch.utils.data import Dataset

MASK = 4
IGNORED = -100


class MaskedTokens(Dataset):
    """Sequences of one length with 15 % of the tokens masked; labels are set where a token was masked."""

    def __init__(self, path, length=512):
        self.length = length
        self.tokens = np.memmap(path, dtype=np.uint16, mode="r")

    def __len__(self):
        return len(self.tokens) // self.length

    def __getitem__(self, index):
        start = index * self.length
        tokens = torch.from_numpy(self.tokens[start : start + self.length].astype(np.int64))
        masked = torch.rand(self.length) < 0.15
        labels = torch.where(masked, tokens, IGNORED)
        return torch.where(masked, MASK, tokens), labels
