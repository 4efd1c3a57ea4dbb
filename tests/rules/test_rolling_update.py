"""Reductions that wait for others run in their loop, with normalizers that no rule knows."""

from collections import Counter

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emission import emit
from blockbuster.frontend.lower import lower
from blockbuster.frontend.trace import trace
from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.semantics import Float32, Float64
from blockbuster.ir.ops import Map, Rescale
from blockbuster.ir.parse import parse
from blockbuster.rules import ROLLING_RULES, RollingUpdate, fuse, reasons, safe
from blockbuster.runtime.launch import run_batch
from blockbuster.testing.cases import read_cases
from tests.emit.numpy_runs import run_numpy
from tests.mutants.mutate import Mutant
from tests.parameters import one_in, rest_slow
from tests.rules.golden import GOLDEN
from tests.rules.rolling_cases import REFUSED, SOLVER, TABLE, cases, reason_of


def largest(x):
    return bb.max(x, axis=-1, keepdims=True)


def total(x):
    return bb.sum(x, axis=-1, keepdims=True)


def of_squared_relu(x):
    """Softmax's sum over exponents that are the least for the largest elements."""
    c = bb.square(bb.relu(x))
    return total(bb.exp(bb.min(c, axis=-1, keepdims=True) - c))


def norm(x):
    top = largest(bb.abs(x))
    return top * total((bb.abs(x) / top) ** 3) ** (1 / 3)


def log_sum_exp(x, t):
    top = largest(x)
    return top + t * bb.log(total(bb.exp((x - top) / t)))


def rms_then_largest(x):
    """The scale of a dynamic quantization, and the largest normed value itself."""
    y = x / bb.sqrt(bb.mean(bb.square(x), axis=-1, keepdims=True) + 1e-5)
    return largest(bb.abs(y)) / 127


def nearest(x, c):
    """The distance to the nearest of some centers, as a part of that to the farthest."""
    squared = total(bb.square(x)) - 2 * (x @ c.T) + bb.sum(bb.square(c), axis=-1)
    distance = bb.sqrt(bb.relu(squared))
    return bb.min(distance / largest(distance), axis=-1, keepdims=True)


def attention(q, k, v):
    """Weights of a normalizer of our own: 1 + the largest absolute score, to the power 2."""
    scores = q @ k.T
    weights = bb.square(scores / (largest(bb.abs(scores)) + 1))
    return (weights @ v) / (total(weights) + 1e-3)


def distance_to_the_largest(x):
    return largest(bb.abs(x - largest(x)))


def of_tanh(x):
    return largest(bb.tanh(x - largest(x)))


def by_two(x):
    """Two results of one loop enter a sum, which is no product of functions of either."""
    size = bb.abs(x)
    return total(x * total(size) + x * bb.square(largest(size)))


MUSTS = {
    of_squared_relu: "N", norm: "N", log_sum_exp: "N", rms_then_largest: "N", nearest: "K",
    attention: "N", distance_to_the_largest: "N", of_tanh: "N", by_two: "N",
}  # fmt: skip
DIMS = {"x": "M N", "t": "M 1", "q": "M D", "k": "N D", "v": "N L", "c": "K D"}
SIZES = {"M": 5, "N": 37, "K": 37, "D": 3, "L": 4}
ROLLING = RollingUpdate()


def inputs_of(fn):
    names = fn.__code__.co_varnames[: fn.__code__.co_argcount]
    return {name: "M D" if (fn, name) == (nearest, "x") else DIMS[name] for name in names}


def fused(fn):
    return fuse(lower(trace(fn, **inputs_of(fn))), ROLLING_RULES)


def maps_over(graph, fn):
    """How many loops run over the dim that is reduced."""
    return sum(op.dim == MUSTS[fn] for _, level in graph.walk() for _, op in level.of_type(Map))


@pytest.mark.parametrize("fold", [bb.max, bb.min])
def test_a_softmax_by_hand_stays_in_range_before_its_extremum(fold):
    """Its exponential leaves the sum behind all factors: alone it would overflow."""

    def fn(x):
        e = bb.exp(x - bb.max(x, axis=-1, keepdims=True))
        return fold(e / bb.sum(e, axis=-1, keepdims=True), axis=-1)

    x = np.array([[120.0, -300, 0, 100], [1, 2, 3, 4], [-900, -600, -300, -300]])
    graph = bb.lower(bb.trace(fn, x="M N"))
    made = safe(fuse(graph, ROLLING_RULES).final)
    found = bb.evaluate(made, {"x": x}, blocks={"N": 2}, semantics=Float32)["out"]

    np.testing.assert_allclose(found, bb.evaluate(graph, {"x": x})["out"], rtol=1e-5, atol=1e-30)


SPECIAL = ("factor-out", "factor-out-exp", "repair-by-law")
GENERAL = tuple(rule for rule in ROLLING_RULES if rule.name not in SPECIAL)


@pytest.mark.parametrize("fn", MUSTS)
@pytest.mark.parametrize(
    "rules", [ROLLING_RULES, GENERAL], ids=["all rules", "none that knows factors"]
)
def test_one_pass(fn, rules):
    derivation = fuse(lower(trace(fn, **inputs_of(fn))), rules)

    assert maps_over(derivation.final, fn) == 1
    assert derivation.final.buffered_edges() == ()


def arrays_for(fn, dtype=float):
    random = np.random.default_rng(0)
    shapes = {
        name: [SIZES.get(dim, 1) for dim in dims.split()] for name, dims in inputs_of(fn).items()
    }
    given = {name: 2 * random.standard_normal(shape) for name, shape in shapes.items()}
    if "t" in given:
        given["t"] = np.abs(given["t"]) + 0.5
    return {name: array.astype(dtype) for name, array in given.items()}


def expected(fn):
    given = {name: array.astype(float) for name, array in arrays_for(fn, np.float32).items()}
    return trace(fn, **inputs_of(fn)).numpy(given)["out"]


def sizes_for(fn):
    return {
        dim: SIZES[dim] for dims in inputs_of(fn).values() for dim in dims.split() if dim != "1"
    }


def kernels(fn, rules=GENERAL):
    """The kernel of a fused program, and one whose long loop is run in chunks."""
    graph = safe(fuse(lower(trace(fn, **inputs_of(fn))), rules).final)
    tiles = {"M": 16, MUSTS[fn]: 16}
    return [
        emit(graph, sizes_for(fn), "float32", tiles=tiles, chunks=chunks)
        for chunks in ({}, {MUSTS[fn]: 2})
    ]


@pytest.mark.parametrize("fn", MUSTS)
def test_numpy_text_is_right_whole_and_in_chunks(fn):
    for kernel in kernels(fn):
        results = run_numpy(
            kernel.tile_program, arrays_for(fn, np.float32), sizes_for(fn), dtype=np.float32, seed=0
        )
        np.testing.assert_allclose(results["out"], expected(fn), rtol=2e-5, atol=2e-6)


@pytest.mark.interpreter
def test_kernels_are_right_whole_and_in_chunks():
    jobs = [(kernel, arrays_for(fn, np.float32), fn) for fn in MUSTS for kernel in kernels(fn)]
    results = run_batch([job[:2] for job in jobs])

    for (_, _, fn), found in zip(jobs, results, strict=True):
        np.testing.assert_allclose(found["out"], expected(fn), rtol=2e-5, atol=2e-6)


# random reductions -------------------------------------------------------------------------

CASES = cases(210)
AT_ONCE = 10
BLOCKS = (12, 3, 1, 5)


def test_there_are_enough_of_each_kind():
    kinds = Counter(case.kind for case in CASES)

    assert len(CASES) >= 200
    assert min(kinds[TABLE], kinds[SOLVER], kinds[REFUSED]) >= 60
    assert {len(case.leads) for case in CASES} == {1, 2, 3}


def rows(seed):
    """Rows that begin with zeros or are small, and one that is 0."""
    random = np.random.default_rng(seed)
    x, y = random.standard_normal((2, 6, 12))
    x[1, :3] = x[3, 3:6] = 0
    x[2] *= 1e-3
    x[4] = 0
    return {"X": 2 * x, "Y": y, "P": np.abs(random.standard_normal(6)) + 0.5}


def results(graph, seed, block):
    with np.errstate(all="ignore"):
        (found,) = evaluate(graph, rows(seed), semantics=Float64, block_sizes={"N": block}).values()
    return found


def wrong(case, rule=ROLLING):
    """What is wrong with the answer for a case, or ""."""
    graph = parse(case.text())
    match = rule.match(graph)
    if case.kind == REFUSED:
        told = reasons(rule, graph)
        return "" if not match and any(reason_of(case) in why for why in told) else f"{told}"
    if match is None:
        return f"refused: {reasons(rule, graph)}"
    after = rule.apply(match)
    for block in BLOCKS:
        before, found = results(graph, 0, 12), results(after, 0, block)
        if not np.allclose(before, found, rtol=1e-9, atol=1e-11, equal_nan=True):
            return f"{found} for {before} in blocks of {block}"
    return ""


@pytest.mark.parametrize("first", one_in(7, range(0, len(CASES), AT_ONCE)))
def test_repaired_ones_are_right_and_refused_ones_say_why(first):
    for case in CASES[first : first + AT_ONCE]:
        assert not wrong(case), f"{case}: {wrong(case)}"


def rational(case):
    """Proofs know no laws of other functions, and do not reach each order of a maximum's operands:
    what waits for one is compared in floating point above.
    """
    functions = ("tanh", "exp", "sqrt", "abs(x", "relu")
    extrema = any(lead in str(case) for lead in ("p_max", "p_least"))
    return case.monoid == "+" and not extrema and not any(name in case.g for name in functions)


PROVABLE = [*dict.fromkeys(case for case in CASES if case.kind != REFUSED and rational(case))]


@pytest.mark.parametrize("case", rest_slow(PROVABLE, PROVABLE[:1]), ids=str)
def test_repaired_ones_are_proven(case):
    graph = parse(case.text())

    assert bb.prove_equal(graph, ROLLING.apply(ROLLING.match(graph))).equal


def test_blocks_without_elements_that_count_are_neutral():
    """All that a block's maximum is of is masked: -inf."""
    graph = parse(GOLDEN.joinpath("rolling_update", "parameter.bb").read_text().split("# after")[0])
    after = ROLLING.apply(ROLLING.match(graph))
    x = np.random.default_rng(1).standard_normal((12, 2))
    x[:3, 0] = x[6:9, 1] = -np.inf
    given = {"X": x, "P": np.array([0.5, 2.0])}

    for block in BLOCKS:
        with np.errstate(all="ignore"):
            (found,) = evaluate(after, given, semantics=Float64, block_sizes={"N": block}).values()
        np.testing.assert_allclose(found, np.exp((x - x.max(0)) / given["P"]).sum(0), rtol=1e-12)


def test_a_group_with_two_leads_has_a_text():
    program = ROLLING.apply(ROLLING.match(parse(CASES_OF_TWO)))
    (members,) = [
        [r for r in op.results if isinstance(r, Rescale)] for _, op in program.of_type(Map)
    ]

    assert [member.leads for member in members] == [(0, 1)]
    assert parse(str(program)) == program


CASES_OF_TWO = next(c for c in CASES if c.kind == SOLVER and len(c.leads) == 2).text()

GOLDEN_CASES = read_cases(GOLDEN / "rolling_update")


def told(case, rule):
    """Whether a rule does something else than a golden case says."""
    graph = parse(case.before)
    match = rule.match(graph)
    if match is None:
        return case.after is not None or reasons(rule, graph) != list(case.because)
    return rule.apply(match).show() != case.after


MUTANTS = (
    Mutant("rolling: a sign", "RollingUpdate", "laws",
           'each = call("sub", new, old) if times > 0', "each = call(\"sub\", new, old) if True"),
    Mutant("rolling: a missing element", "RollingUpdate", "dependent_folds",
           "leaves.items() if value is None)", "leaves.items() if value is None)[1:]"),
    Mutant("rolling: an h that does not distribute", "RollingUpdate", "laws",
           "if law.leaves and change is not None:", "if False:"),
    Mutant("rolling: a dropped domain", "RollingUpdate", "rolling_update",
           "if answer.divisors:", "if False:"),
    Mutant("rolling: zeros of a magnitude", "RollingUpdate", "rolling_update",
           "self.never_zero if number in guarded else", "AS_IT_IS if number in guarded else"),
    Mutant("rolling: not the lead itself", "RollingUpdate", "beside",
           "by_dim(edit, found.restored, given,", "by_dim(edit, AS_IT_IS, given,"),
    Mutant("rolling: the lead's identity", "RollingUpdate", "rolling_update",
           'call("maximum", Arg(0), 0.0)', "AS_IT_IS"),
)  # fmt: skip


@pytest.mark.parametrize("mutant", rest_slow(MUTANTS, MUTANTS[3:4]), ids=lambda mutant: mutant.name)
def test_mutants_die(mutant):
    """By a golden case, or by a random reduction."""
    rule = mutant.build()

    assert any(notices(rule, case) for case in GOLDEN_CASES) or any(
        wrong(each, rule) for each in CASES
    )


def notices(rule, case):
    """A mutant may also break what the rule asserts."""
    try:
        return told(case, rule)
    except AssertionError:
        return True


def test_softmax_with_its_maximum_and_without_run_in_one_and_the_same_loop():
    """What the program subtracts, and what the safety pass adds, is one running maximum."""

    def with_maximum(q, k, v):
        scores = q @ k.T
        weights = bb.exp(scores - largest(scores))
        return (weights @ v) / total(weights)

    def without_maximum(q, k, v):
        weights = bb.exp(q @ k.T)
        return (weights @ v) / total(weights)

    loops = []
    for fn in (with_maximum, without_maximum):
        final = safe(fuse(lower(trace(fn, q="M D", k="N D", v="N L"))).final)
        (loop,) = [op for _, level in final.walk() for _, op in level.of_type(Map) if op.dim == "N"]
        loops.append(loop)

    assert loops[0] == loops[1]


NO_NUMBERS = {
    "infinity over elements": lambda x: np.sum(
        np.abs(np.maximum(-np.inf / x, -np.max(np.abs(x), -1, keepdims=True))), -1),
    "an infinite choice": lambda x: np.sum(
        2.0 / bb.where(x < np.max(x, -1, keepdims=True), x, -np.inf), -1),
    "a division by 0": lambda x: np.sum(
        np.max(x, -1, keepdims=True) / bb.where(x > -1, 2.0, 0.0), -1),
}  # fmt: skip


@pytest.mark.parametrize("fn", NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_functions_with_numbers_that_sympy_computes_otherwise_are_not_repaired(fn):
    graph = bb.lower(bb.trace(fn, x="M N"))
    made = bb.fuse(graph, ROLLING_RULES).final
    x = np.abs(np.random.default_rng(0).standard_normal((4, 6)))
    with np.errstate(all="ignore"):
        (found,) = bb.evaluate(made, {"x": x}, block_sizes=dict(M=4, N=2)).values()
        np.testing.assert_allclose(found, fn(x), rtol=1e-9)
