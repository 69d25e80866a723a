"""A pre-norm BERT with a table of positions in every layer."""

import math

import torch
import torch.nn.functional as F
import torch_npu
from torch import nn

MAX_POSITIONS = 5120


def sinusoids(positions, width):
    angles = torch.arange(positions)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    return torch.stack((angles.sin(), angles.cos()), dim=-1).reshape(positions, width)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))
        self.feed_norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.register_buffer("positions", sinusoids(MAX_POSITIONS, width))

    def attend(self, x):
        query, key, value = self.query_key_value(x + self.positions[: x.shape[1]]).chunk(3, dim=-1)
        scale = (x.shape[-1] // self.heads) ** -0.5
        return self.output(torch_npu.npu_fusion_attention(query, key, value, self.heads, "BSH", scale=scale)[0])

    def forward(self, x):
        x = x + self.scale * self.attend(self.attention_norm(x))
        return x + self.down(F.gelu(self.up(self.feed_norm(x))))


class Bert(nn.Module):
    def __init__(self, vocabulary=16000, width=1024, heads=16, layers=12):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))
