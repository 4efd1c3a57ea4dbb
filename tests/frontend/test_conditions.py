"""Masks that functions hold as arrays, and the conditions on positions that they equal."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.frontend.conditions import MOST, condition_of, truth_of

torch = pytest.importorskip("torch")

SIZE = 16
ROWS, COLUMNS = np.arange(SIZE)[:, None], np.arange(SIZE)[None]
MASKS = {
    "j - i <= 0": COLUMNS <= ROWS,
    "j - i >= 1": COLUMNS > ROWS,
    "j - i >= -2 and j - i <= 0": (COLUMNS <= ROWS) & (COLUMNS > ROWS - 3),
    "not (j - i >= -2 and j - i <= 0)": ~((COLUMNS <= ROWS) & (COLUMNS > ROWS - 3)),
    "j <= 4": np.repeat(COLUMNS < 5, SIZE, axis=0),
    "i >= 3": np.repeat(ROWS >= 3, SIZE, axis=1),
    "j <= 4 and j - i <= 0": (COLUMNS < 5) & (COLUMNS <= ROWS),
    "not (j >= 3 and j - i >= 1)": (COLUMNS < 3)
    | (COLUMNS <= ROWS),  # a prefix, and causal behind it
    "j // 4 - i // 4 <= 0": COLUMNS // 4 <= ROWS // 4,
    "j // 4 - i // 4 >= 0 and j // 4 - i // 4 <= 0": COLUMNS // 4 == ROWS // 4,
    "j - i <= 0 and j // 4 - i // 4 >= 0": (COLUMNS // 4 == ROWS // 4) & (COLUMNS <= ROWS),
    "not (j // 4 - i // 4 >= 0 and j // 4 - i // 4 <= 0)": COLUMNS // 4 != ROWS // 4,
    # a band with the first columns, or with rows and columns that see all, or without a diagonal
    "j - i <= 0 and not (j >= 2 and j - i <= -4)": (COLUMNS <= ROWS)
    & ((COLUMNS > ROWS - 4) | (COLUMNS < 2)),
    "not (i >= 2 and j >= 2 and not (j - i >= -3 and j - i <= 3))": (abs(COLUMNS - ROWS) < 4)
    | (COLUMNS < 2)
    | (ROWS < 2),
    "j <= 8 and not (j - i >= 0 and j - i <= 0)": (COLUMNS < 9) & (COLUMNS != ROWS),
}
OTHERS = {
    "a checkerboard": (ROWS + COLUMNS) % 2 == 0,
    "an antidiagonal": ROWS + COLUMNS < SIZE,
    "everywhere": np.ones((SIZE, SIZE), bool),
    "nowhere": np.zeros((SIZE, SIZE), bool),
    "two elements more": (COLUMNS <= ROWS) | ((ROWS == 2) & (COLUMNS % 4 == 3)),
}


@pytest.mark.parametrize("text", MASKS)
def test_a_mask_is_the_condition_that_it_equals(text):
    found = condition_of(MASKS[text])

    assert str(found) == text
    assert np.array_equal(np.broadcast_to(found.holds(ROWS, COLUMNS), (SIZE, SIZE)), MASKS[text])


@pytest.mark.parametrize("name", OTHERS)
def test_another_mask_is_none(name):
    assert condition_of(OTHERS[name]) is None


def test_masks_of_other_shapes():
    assert str(condition_of(COLUMNS < 5)) == "j <= 4"
    assert str(condition_of(np.tri(4, 9, 5, dtype=bool))) == "j - i <= 5"
    assert condition_of(np.ones((0, 4), bool)) is None
    assert condition_of(np.broadcast_to(True, (MOST, 2))) is None


def test_floats_are_masks_if_they_are_two_numbers():
    for other in (-np.inf, -1e9, np.finfo("float32").min, 1.0, -0.5):
        mask, ends = truth_of(np.array([0.0, other]))
        assert np.where(mask, *ends).tolist() == [0.0, other]
        mask, ends = truth_of(np.array([-0.0, other]))  # adding -0.0 keeps -0.0
        assert np.signbit(np.where(mask, *ends)).tolist() == [True, other < 0]
    for others in ((-0.0,), (np.nan,), (np.inf,), (1.0, 2.0), (-0.0, 1.0)):
        assert truth_of(np.array([0.0, *others])) is None
    assert truth_of(np.array([0, 1])) is None


def attention(q, mask):
    return torch.softmax((q @ q.T).masked_fill(~mask, -torch.inf), -1) @ q


CAUSAL = torch.ones(SIZE, SIZE, dtype=torch.bool).tril()
ADDED = torch.triu(torch.full((SIZE, SIZE), -torch.inf, dtype=torch.float64), 1)
BAND = torch.from_numpy(MASKS["j - i >= -2 and j - i <= 0"])


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", CAUSAL.clone())

    def forward(self, q):
        return torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=self.mask)


def causal_made_here(q):
    return attention(q, torch.ones(q.shape[0], q.shape[0], dtype=torch.bool).tril())


def added_made_here(q):
    s = q.shape[0]
    return torch.softmax(q @ q.T + torch.triu(torch.full((s, s), float("-inf")), 1), -1) @ q


def subsequent(q):
    mask = torch.nn.Transformer.generate_square_subsequent_mask(q.shape[0])
    return torch.softmax(q @ q.T + mask, -1) @ q


MULTIPLIED = CAUSAL.double()

PROGRAMS = {
    "multiplied": lambda q: ((q @ q.T) * MULTIPLIED) @ q,
    "finite": lambda q: torch.softmax(q @ q.T + (1 - MULTIPLIED) * -1e9, -1) @ q,
    "of one": lambda q: q @ q.T + torch.eye(SIZE, dtype=torch.float64),
    "captured": lambda q: attention(q, CAUSAL),
    "added": lambda q: torch.softmax(q @ q.T + ADDED, -1) @ q,
    "with unit axes": lambda q: torch.softmax(q @ q.T + ADDED[None, None], -1)[0, 0] @ q,
    "made": causal_made_here,
    "made of floats": added_made_here,
    "of torch's": subsequent,
    "a buffer": Layer(),
    "a band": lambda q: attention(q, BAND),
    "blocks": lambda q: attention(q, torch.from_numpy(MASKS["j // 4 - i // 4 <= 0"])),
    "a prefix": lambda q: attention(q, torch.from_numpy(MASKS["not (j >= 3 and j - i >= 1)"])),
    "padding": lambda q: torch.where(torch.arange(SIZE)[:, None] < 11, q, 0.0),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_read_no_mask(name):
    fn = PROGRAMS[name]
    q = torch.randn(SIZE, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    fast = bb.jit(fn)

    assert torch.allclose(fast(q), fn(q), equal_nan=True)
    assert list(fast.plan_for(q).inputs) in (["q"], ["args_0"])


def test_a_mask_that_changes_is_looked_at_again():
    mask = CAUSAL.clone()
    fast = bb.jit(lambda x: torch.where(mask, x, 0.0))
    x = torch.ones(SIZE, SIZE)

    assert torch.equal(fast(x), mask * x)
    mask[0, 5] = True
    assert torch.equal(fast(x), mask * x)


def test_the_sizes_of_a_mask_are_kept():
    fast = bb.jit(lambda x: torch.where(CAUSAL, x, 0.0))

    assert fast(torch.ones(1, SIZE)).shape == (SIZE, SIZE)
    with pytest.raises(bb.TraceError, match="16 and 8 differ"):
        fast(torch.ones(8, 8))


def test_the_report_says_what_became_of_a_mask():
    checks = torch.from_numpy(OTHERS["a checkerboard"])

    def masked(x):
        return torch.where(CAUSAL, x, 0.0) + torch.where(checks, x, 0.0)

    report = str(bb.jit(masked).report_for(torch.ones(SIZE, SIZE)))

    assert "the mask CAUSAL, 16 x 16, is computed: j - i <= 0, at row i and column j" in report
    assert "the mask checks, 16 x 16, stays an input: no condition on positions" in report


def test_block_programs_compute_the_masks():
    q = np.random.default_rng(0).standard_normal((SIZE, 4))
    program = bb.trace(lambda q: bb.where(MASKS["j - i <= 0"], q @ q.T, -np.inf), q="M D")
    wanted = np.where(COLUMNS <= ROWS, q @ q.T, -np.inf)

    assert [one.name for one in program.inputs] == ["q"]
    np.testing.assert_allclose(bb.evaluate(bb.lower(program), {"q": q})["out"], wanted)
