"""Functions and modules for ``torch.compile``, with examples of their arguments."""

import torch
import torch.nn.functional as F
from torch import nn

X = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))
IMAGE = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(2))
WORDS = torch.tensor([[1, 5, 0], [2, 2, 7]])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.norm = nn.Embedding(10, 8), nn.LayerNorm(8)
        self.into, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, words):
        x = self.words(words)
        many, length, _ = x.shape
        parts = self.into(self.norm(x)).chunk(3, -1)
        q, k, v = (part.view(many, length, 2, 4).transpose(1, 2) for part in parts)
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return F.gelu(self.out(heads.transpose(1, 2).reshape(many, length, 8))) + x


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.out = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 5)

    def forward(self, x):
        x = F.relu(self.norm(self.conv(x)), inplace=True)
        return self.out(F.max_pool2d(x, 2).mean((2, 3)))


class Sorted(nn.Module):
    """An operator in the middle that no kernel has."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x):
        y = self.one(x).relu()
        return {"out": self.other(y.sort(-1)[0]), "seen": (y, y.t())}


def mlp():
    return nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))


MODULES = {
    "mlp": (mlp, X),
    "attention": (Attention, WORDS),
    "images": (Images, IMAGE),
    "sorted": (Sorted, X),
    "dropout": (lambda: nn.Sequential(nn.Linear(6, 8), nn.Dropout(), nn.Softmax(-1)), X),
}


def mutated_input(x):
    x.add_(1)
    return x * 2


def mutated_view(x):
    y = x * 2
    y[0].mul_(3)
    return y.exp()


def later_mutated(x):
    view, y = x[0], x * 2
    view.zero_()
    return y + x


def items_set(x):
    y = x * 2
    y[1] = 0.0
    y += 1
    return y


def broken(x):
    y = x.exp()
    torch._dynamo.graph_break()
    return y.sin() + 1


def branched(x):
    return x * 2 if x.exp().sum() > 0 else x


def autocast(x):
    with torch.autocast("cpu", torch.bfloat16):
        return x @ x.t()


def several(x):
    y = x * 2
    return y, y.t(), y[0], y


FUNCTIONS = {
    "views of inputs": lambda x: (x.view(-1), x.t(), x * 2),
    "views of results": several,
    "results in another layout": lambda x: x.t().exp(),
    "a view of another layout": lambda x: (x.t().exp() * 2).t().view(-1),
    "channels last": lambda x: (
        x.repeat(2, 1, 1, 1).contiguous(memory_format=torch.channels_last) * 2
    ),
    "mutated input": mutated_input,
    "mutated view": mutated_view,
    "mutated later": later_mutated,
    "items set": items_set,
    "out": lambda x: torch.add(x, 1, out=torch.empty_like(x)) * 2,
    "graph break": broken,
    "branch": branched,
    "random": lambda x: F.dropout(x.exp(), 0.5) * torch.rand(6),
    "random alone": lambda x: (torch.rand(3) * 2, x),
    "autocast": autocast,
    "no elements": lambda x: (x[:0].exp() * 2, x + 1),
    "complex": lambda x: torch.view_as_complex(x.view(4, 3, 2)).abs() * 2,
    "integers and masks": lambda x: ((x > 0) & (x < 1), (x * 9).int() // 2, torch.arange(6) / 2),
    "shapes of elements": lambda x: x[x > 0] * 2,
    "two results of one": lambda x: torch.var_mean(x.exp(), -1),
    "functions of graphs": lambda x: torch.cond(x.sum() > 0, lambda y: y + 1, torch.sin, (x,)),
    "vmap": lambda x: torch.vmap(lambda row: row.exp() * 2)(x),
    "nothing": lambda x: x,
}
