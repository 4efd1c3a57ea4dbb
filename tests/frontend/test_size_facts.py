"""What a trace asks of the sizes of its examples says exactly for which others it is the same."""

from itertools import product

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.errors import TraceError
from blockbuster.frontend.size_facts import SizeFacts
from blockbuster.frontend.trace import trace_with_facts
from blockbuster.ir.lengths import ONE, share_of, size, whole
from tests.parameters import one_in


def said(x):
    return x * float(len(repr(x)))


def tried(x, y):
    try:
        return x[2:] + 1.0
    except TraceError:
        return x + y[:1]


FUNCTIONS = {
    "sum": lambda x, y: x + y,
    "tail": lambda x, y: x[1:] + y,
    "third": lambda x, y: x[2] * y,
    "last two": lambda x, y: x[-2:] * y,
    "first three": lambda x, y: x[:3] * y,
    "product": lambda x, y: x @ y,
    "gram": lambda x, y: x @ y.T,
    "turned": lambda x, y: x.T + y,
    "joined": lambda x, y: bb.concat([x, y], axis=0)[1:] * 2.0,
    "joined twice": lambda x, y: bb.concat([x, x], axis=0) + y,
    "heads": lambda x, y: bb.merge_heads(bb.split_heads(x, 2)) + y,
    "half": lambda x, y: x[: x.shape[0] // 2] + y,
    "normed": lambda x, y: bb.rms_norm(x, y[0]),
    "one row": lambda x, y: bb.sum(x, axis=0, keepdims=True) + y,
    "in a row": lambda x, y: x.reshape(-1) + y.reshape(-1),
    "in twos": lambda x, y: x.reshape(2, -1) + y.reshape(-1)[0],
    "as many rows": lambda x, y: x.reshape(y.shape[0], -1) * y[:, :1],
    "squeezed": lambda x, y: np.squeeze(x).sum() + y,
    "repeated": lambda x, y: np.repeat(x, 2, axis=1) * y,
    "split": lambda x, y: bb.chunk(x, 2, 1)[0] + y,
    "rest": lambda x, y: x * (x.shape[0] % y.shape[1]) + y,
    "what is printed": lambda x, y: said(x) + y,
    "what fails": tried,
}
EXTENTS = (1, 2, 3, 4)


def traced(function, extents):
    """The program and the facts for these extents; the type of the refusal where there is none."""
    a, b, c, d = extents
    try:
        return trace_with_facts(function, x=np.ones((a, b)), y=np.ones((c, d)))
    except TraceError:
        return None


@pytest.mark.parametrize("name", one_in(6, FUNCTIONS))
def test_sizes_of_which_the_facts_hold_give_the_same_trace(name):
    function = FUNCTIONS[name]
    every = list(product(EXTENTS, repeat=4))
    found = {extents: traced(function, extents) for extents in every}
    programs: dict[object, list] = {}
    for extents, made in found.items():
        if made:
            known = programs.setdefault(repr(made[0].listing()), [])
            if len(known) < 3:
                known.append((extents, made))
    held = 0
    for listed in programs.values():
        for _, (program, facts) in listed:
            holds = facts.condition()
            for extents, made in found.items():
                if holds(extents):
                    held += 1
                    assert made is not None, extents
                    assert made[0] == program, extents
    assert held > len(programs) if name != "what is printed" else held


def test_a_fact_is_asked_once_and_of_any_length():
    facts = SizeFacts()
    axes = {"?0": 6, "?1": 4}

    assert facts.ask("whole", size("?0") * share_of(2), whole(0), axes)
    assert facts.ask("at least", size("?0") * size("?1"), whole(24), axes)
    assert not facts.ask("equal", size("?0") - size("?1"), ONE, axes)
    assert not facts.ask("equal", size("?0") - size("?1"), ONE, axes)

    assert len(facts) == 3
    holds = facts.condition()
    assert holds([8, 4])
    assert not holds([7, 4])  # half of it is no whole number
    assert not holds([4, 4])  # 16 elements
    assert not holds([6, 5])  # differ by one
