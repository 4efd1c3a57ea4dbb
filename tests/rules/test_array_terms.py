"""Terms of values: one number for what has the same elements, and another for anything else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.ir.parse import parse
from blockbuster.rules.array_terms import Terms, below, value_of

DIMS = {"x": "M N", "y": "M N", "v": "M"}


def start(function, **dims):
    return bb.lower(bb.trace(function, **(dims or DIMS)))


def numbers(graph, terms=None):
    """The numbers of the outputs of a program."""
    terms = terms or Terms()
    made = terms.values(graph)
    return [made[output.value] for output in graph.outputs]


def column(vector):
    return vector[:, None]


EQUAL = {
    "a sum, either way round": lambda x, y, v: (x + y, y + x),
    "a product, either way round": lambda x, y, v: (x * y, y * x),
    "a product with a vector, either way round": lambda x, y, v: (x * column(v), column(v) * x),
    "extrema, either way round": lambda x, y, v: (bb.maximum(x, y), bb.maximum(y, x)),
    "comparisons, either way round": lambda x, y, v: (
        bb.where(x == y, x, 1.0), bb.where(y == x, x, 1.0)
    ),
    "a matmul and its transpose": lambda x, y, v: (
        x @ bb.transpose(y), bb.transpose(bb.transpose(y).T @ bb.transpose(x)).T
    ),
    "a fold, written twice": lambda x, y, v: (x.sum(axis=1), bb.sum(x, axis=-1)),
    "a fold, kept as a column and dropped": lambda x, y, v: (
        bb.max(x, axis=1, keepdims=True)[:, 0], bb.max(x, axis=1)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EQUAL)
def test_equal_values_have_one_number(name):
    first, second = numbers(start(EQUAL[name]))

    assert first == second


UNEQUAL = {
    "a difference, either way round": lambda x, y, v: (x - y, y - x),
    "a quotient, either way round": lambda x, y, v: (x / y, y / x),
    "a choice, either way round": lambda x, y, v: (
        bb.where(x > 0, x, y), bb.where(x > 0, y, x)
    ),
    "a comparison, either way round": lambda x, y, v: (
        bb.where(x > y, x, y), bb.where(y > x, x, y)
    ),
    "folds along different dims": lambda x, y, v: (
        x - bb.max(x, axis=0), x - bb.max(x, axis=1, keepdims=True)
    ),
    "a sum and a maximum": lambda x, y, v: (bb.sum(x, axis=1), bb.max(x, axis=1)),
    "a maximum and a minimum": lambda x, y, v: (bb.max(x, axis=1), bb.min(x, axis=1)),
    "folds of different inputs": lambda x, y, v: (bb.sum(x, axis=1), bb.sum(y, axis=1)),
    "a value and the value rescaled": lambda x, y, v: (x, x * 2.0),
    "numbers that differ in the last digit": lambda x, y, v: (x * 0.1, x * (0.1 + 2**-56)),
    "a sum of two and of one twice": lambda x, y, v: (x + y, x + x),
}  # fmt: skip


@pytest.mark.parametrize("name", UNEQUAL)
def test_different_values_have_different_numbers(name):
    first, second = numbers(start(UNEQUAL[name]))

    assert first != second


UNSCALED = {
    "softmax": (lambda x: bb.softmax(x), dict(x="M N")),
    "softmax of columns": (lambda x: bb.softmax(x, axis=0), dict(x="M N")),
    "norm": (lambda x: bb.layer_norm(x), dict(x="M N")),
    "matmuls": (lambda x, w, u: bb.tanh(x @ w) @ u, dict(x="M K", w="K N", u="N L")),
    "three axes": (lambda x: bb.exp(x - bb.logsumexp(x, axis=1, keepdims=True)), dict(x="B M N")),
}


@pytest.mark.parametrize("name", UNSCALED)
def test_a_value_keeps_its_number_while_loops_are_fused(name):
    function, dims = UNSCALED[name]
    derivation = bb.fuse(start(function, **dims))
    forms, terms = [derivation.start, *derivation.snapshots], Terms()

    assert len(derivation.steps) > 1
    assert len({tuple(numbers(form, terms)) for form in forms}) == 1


SPELLINGS = {
    "an operator for each function": """
        Y = map M (x in !X) {
          y = map N (b in !x) { e = exp(b) c = e * 2 s = row_sum(c) yield +s } yield y
        }""",
    "one expression": """
        Y = map M (x in !X) {
          y = map N (b in !x) { c = 2 * exp(b) s = row_sum(c) yield +s } yield y
        }""",
    "stored, and read again": """
        E = map M (x in !X) { e = map N (b in !x) { c = exp(b) yield c } yield e }
        Y = map M (e in !E) {
          y = map N (b in !e) { c = b * 2 s = row_sum(c) yield +s } yield y
        }""",
    "a reduction of stored sums": """
        S = map M (x in !X) {
          e = map N (b in !x) { c = exp(b) * 2 s = row_sum(c) yield s } yield e
        }
        Y = map M (s in !S) { y = reduce + N (!s) yield y }""",
    "a cast on the way": """
        Y = map M (x in !X) {
          y = map N (b in !x) {
            e = exp(b) c = cast float32 (e) d = c * 2 s = row_sum(d) yield +s
          } yield y
        }""",
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_loops_blocks_stores_and_casts_do_not_change_a_number(name):
    terms = Terms()
    spelled, first = (
        numbers(parse(f"graph(X: M,N[M,N]) {{ {text} return Y }}"), terms)
        for text in (SPELLINGS[name], next(iter(SPELLINGS.values())))
    )

    assert spelled == first


def test_a_fold_of_folds_of_blocks_is_one_fold():
    terms = Terms()
    (number,) = numbers(start(lambda x: bb.sum(x, axis=1), x="M N"), terms)

    assert terms[number].fn == "fold +"
    assert terms[terms[number].args[0]].fn == "input"


def test_a_fold_of_a_fold_along_another_dim_is_another_fold():
    terms = Terms()
    (number,) = numbers(start(lambda x: bb.sum(bb.sum(x, axis=1), axis=0), x="M N"), terms)

    assert [terms[at].fn for at in (number, *terms[number].args)] == ["fold +", "fold +"]
    assert [terms[at].leaf for at in (number, *terms[number].args)] == ["M", "N"]


def test_a_maximum_of_sums_of_blocks_is_not_their_sum():
    terms = Terms()
    text = "s = row_sum(b) yield max s } yield y }"
    rows = "Y = map M (x in !X) { y = map N (b in !x) {"
    (number,) = numbers(parse(f"graph(X: M,N[M,N]) {{ {rows} {text} return Y }}"), terms)

    assert [terms[at].fn for at in (number, *terms[number].args)] == ["fold max", "fold +"]


def test_an_array_and_its_transpose_are_told_apart_if_its_dims_have_one_size():
    first, second = numbers(start(lambda x: (x + x, x + bb.transpose(x)), x="N N"))

    assert first != second


def test_only_a_term_that_was_met_is_known():
    terms = Terms()
    (number,) = numbers(start(lambda x, y: x * y, x="M N", y="M N"), terms)
    fn, (first, second), _ = terms[number]

    assert terms.known(fn, (first, second)) == terms.known(fn, (second, first)) == number
    assert terms.known("add", (first, second)) is None


def test_a_number_is_the_value_of_its_term_and_nothing_else_has_one():
    terms = Terms()
    numbers(start(lambda x: x * 0.1, x="M N"), terms)

    assert [value_of(term) for term in terms.terms] == [None, 0.1, None]


def test_what_an_extremum_may_be_one_of_is_below_it():
    terms = Terms()
    (number,) = numbers(start(lambda x, y, v: bb.maximum(bb.max(x * 2.0, axis=1), v)), terms)

    assert {terms[at].fn for at in below(terms, number)} == {
        "maximum", "fold max", "mul", "input"
    }  # fmt: skip


# random expressions -----------------------------------------------------------------

BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "maximum": bb.maximum,
}
UNARY = {
    "neg": lambda a: -a,
    "max": lambda a: bb.max(a, axis=1, keepdims=True) + a * 0.0,
    "sum": lambda a: bb.sum(a, axis=0, keepdims=True) + a * 0.0,
    "double": lambda a: a * 2.0,
}
TREES = st.recursive(
    st.sampled_from(["x", "y"]),
    lambda inner: (
        st.tuples(st.sampled_from([*BINARY]), inner, inner)
        | st.tuples(st.sampled_from([*UNARY]), inner)
    ),
    max_leaves=4,
)


def evaluated(tree, arrays):
    if isinstance(tree, str):
        return arrays[tree]
    fn, *parts = tree
    return (UNARY | BINARY)[fn](*(evaluated(part, arrays) for part in parts))


def respelled(tree):
    """The same value with the operands of each commutative function exchanged."""
    if isinstance(tree, str):
        return tree
    fn, *parts = (tree[0], *map(respelled, tree[1:]))
    return (fn, *(parts[::-1] if fn in ("add", "mul", "maximum") else parts))


@given(st.lists(TREES, min_size=2, max_size=6))
def test_values_with_one_number_have_the_same_elements(trees):
    random = np.random.default_rng(0)
    arrays = {name: random.integers(-3, 4, (2, 3)) + 0.0 for name in "xy"}
    outputs = [*trees, *map(respelled, trees)]
    program = bb.trace(
        lambda x, y: tuple(evaluated(t, {"x": x, "y": y}) for t in outputs), x="M N", y="M N"
    )
    values = list(program.numpy(arrays).values())
    found = numbers(bb.lower(program))

    assert found[: len(trees)] == found[len(trees) :]
    for number, value in zip(found, values, strict=True):
        np.testing.assert_array_equal(value, values[found.index(number)])
