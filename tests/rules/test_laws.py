"""The table of laws: proven row by row, and what it answers, proven as well."""

import ast
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

import blockbuster as bb
from blockbuster.ir.expr import FUNCTIONS as SCALAR_FUNCTIONS
from blockbuster.ir.expr import Arg, Const, call
from blockbuster.ir.parse import parse
from blockbuster.rules import laws
from blockbuster.rules.laws import EXPONENTIALS, LAWS, MOVES, Question, Repaired, repaired
from blockbuster.rules.separate import ANY, signs_of
from tests.mutants.mutate import Copies
from tests.parameters import rest_slow
from tests.rules.law_programs import broken_sides, passed_sides, reads_neutral, repair_sides, sides

ALL = tuple(dict.fromkeys((*LAWS, *MOVES, *EXPONENTIALS)))
ROWS = [(law, monoid) for law in ALL for monoid in law.monoids]
BROKEN = [
    pytest.param(pair, id=f"{law.name}, {monoid}, {name}")
    for law, monoid in ROWS
    for name, pair in broken_sides(law, monoid)
]


@pytest.mark.parametrize(("law", "monoid"), ROWS, ids=[f"{law.name}, {m}" for law, m in ROWS])
def test_a_row_is_proven(law, monoid):
    proof = bb.prove_equal(*sides(law, monoid))

    assert proof.equal
    assert proof.tier in ("A", "ordered")


@pytest.mark.parametrize("pair", BROKEN)
def test_a_row_without_its_condition_is_refuted(pair):
    assert bb.prove_equal(*pair).equal is False


def test_every_row_with_a_condition_is_tried_without_it():
    conditions = sum(
        (law.signs != ANY) + law.turns + bool(law.leaves) + reads_neutral(law) for law, _ in ROWS
    )

    assert len(BROKEN) == conditions > 0


PASSED = [(name, law) for law in (*LAWS, *EXPONENTIALS) for name in law.passes]


@pytest.mark.parametrize(("name", "law"), PASSED, ids=[name for name, _ in PASSED])
def test_what_a_factor_passes_is_proven(name, law):
    assert bb.prove_equal(*passed_sides(name, law)).equal


def test_a_factor_of_any_sign_passes_no_extremum():
    for name in ("row_max", "row_min"):
        assert bb.prove_equal(*passed_sides(name, LAWS[0])).equal is False


def test_only_the_size_of_a_factor_passes_absolute_values():
    assert MOVES[-1].passes == ("abs", "row_max")  # as a factor that is not negative passes rows
    assert bb.prove_equal(*passed_sides("abs", LAWS[0], "abs(s)")).equal
    assert bb.prove_equal(*passed_sides("abs", LAWS[0])).equal is False


def test_an_exponential_makes_a_factor_of_a_shift():
    assert bb.prove_equal(*_sums("exp(x_1 + s)", "t * exp(s)")).equal
    assert bb.prove_equal(*_sums("exp(x_1 + s)", "t * s")).equal is False


def _sums(inside, outside):
    text = """graph(x: N[M,N], s: [M]) {{
  t = map N (x_1 in !x, s = s) {{ g = {} over [M,N]  f = row_sum(g)  yield +f }}
  h = {} over [M]
  return h
}}"""
    return parse(text.format(inside, "t * 1")), parse(text.format("exp(x_1)", outside))


USES = (
    "beside", "dependent_folds", "factor_out", "factor_out_exp", "monotone_out_of_extremum",
    "repair_by_law", "rolling_update", "shared_factor", "unscaled",
)  # fmt: skip


def test_no_use_of_the_table_lists_functions_of_its_own():
    """What may leave a fold, or be repaired in one, is written in the table."""
    found = {}
    for name in USES:
        tree = ast.parse(Path(laws.__file__).with_name(f"{name}.py").read_text("utf-8"))
        groups = [node.elts for node in ast.walk(tree) if isinstance(node, ast.Tuple | ast.Set)]
        named = [[e.value for e in group if isinstance(e, ast.Constant)] for group in groups]
        found[name] = [each for each in named if sum(e in SCALAR_FUNCTIONS for e in each) > 1]

    assert not any(found.values()), found


R, C, P, Q, D = map(Arg, range(5))
EXPONENTIAL = call("exp", call("sub", C, R))
QUESTIONS = {
    "exp(c - r)": (EXPONENTIAL, [0], [1], "+"),
    "(c / r)^2": (call("square", call("div", C, R)), [0], [1], "+"),
    "c^3 / r": (call("div", call("pow", C, 3.0), R), [0], [1], "+"),
    "exp(r - relu(c)^2)": (
        call("exp", call("sub", R, call("square", call("relu", C)))), [0], [1], "+",
    ),
    "d exp(p c - r) / q": (
        call("div", call("mul", D, call("exp", call("sub", call("mul", P, C), R))), Q),
        [0, 3], [1, 4], "+",
    ),
    "c / |r|": (call("div", C, call("abs", R)), [0], [1], "max"),
    "c rsqrt(r^2 + p^2)": (
        call("mul", C, call("rsqrt", call("add", call("square", R), call("square", P)))),
        [0], [1], "min",
    ),
    "c + 2 r - q": (call("sub", call("add", C, call("mul", R, 2.0)), Q), [0, 3], [1], "max"),
    "c r where c < 0": (
        call("where", call("lt", C, 0.0), call("mul", C, R), 0.0), [0], [1], "+",
    ),
    "sqrt((c r)^2)": (call("sqrt", call("square", call("mul", C, R))), [0], [1], "max"),
    "r max(c, d)": (
        call("maximum", call("mul", call("abs", R), C), call("mul", D, call("abs", R))),
        [0], [1, 4], "+",
    ),
}  # fmt: skip
UNPROVEN = {"c rsqrt(r^2 + p^2)", "sqrt((c r)^2)"}  # roots are uninterpreted functions in proofs


@pytest.mark.parametrize(
    "name", rest_slow(QUESTIONS, quick=["exp(c - r)", "(c / r)^2", "c + 2 r - q", "c / |r|"])
)
def test_an_answer_of_the_table_is_proven(name):
    g, producers, elements, monoid = QUESTIONS[name]
    question = Question(g, tuple(producers), tuple(elements), monoid, {})
    found = repaired(question)

    assert isinstance(found, Repaired)
    proof = bb.prove_equal(*repair_sides(question, found))
    assert proof.equal is not False
    assert proof.equal or name in UNPROVEN


def ask(g, monoid="+", signs=None):
    return repaired(Question(g, (0,), (1,), monoid, signs or {}))


@pytest.mark.parametrize(
    ("g", "monoid", "reason"),
    [
        (call("exp", call("mul", C, R)), "+", "it takes mul of elements and producers together"),
        (call("mul", C, R), "max",
         "its factor may have another sign when the producers have changed"),
        (call("add", C, R), "+",
         "a changed shift s leaves s times the number of elements, which h is not given"),
        (call("where", call("lt", R, 0.0), C, 0.0), "+",
         "it takes where of elements and producers together"),
    ],
)  # fmt: skip
def test_the_table_says_why_not(g, monoid, reason):
    assert ask(g, monoid).reason == reason


def test_a_sign_is_a_condition_for_extrema_alone():
    scaled = call("mul", C, R)

    assert isinstance(ask(scaled, "+"), Repaired)
    assert isinstance(ask(scaled, "max", {0: "0+"}), Repaired)
    assert isinstance(ask(scaled, "max", {0: "-"}), Repaired)
    assert isinstance(ask(call("mul", C, call("square", R)), "max"), Repaired)
    assert not isinstance(ask(call("relu", scaled), "+"), Repaired)
    assert isinstance(ask(call("relu", scaled), "+", {0: "+"}), Repaired)


def test_what_may_be_zero_is_a_divisor():
    assert ask(call("mul", C, R)).divisors == (Arg(1),)
    assert ask(call("div", C, R)).divisors == (Arg(2),)
    assert ask(call("mul", C, R), signs={0: "+"}).divisors == ()
    assert ask(EXPONENTIAL).divisors == ()


FUNCTIONS = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "maximum": max, "minimum": min,
    "neg": lambda a: -a, "abs": abs, "square": lambda a: a * a, "relu": lambda a: max(a, 0),
    "reciprocal": lambda a: 1 / a,
}  # fmt: skip
SIGNS = ("-", "0", "+", "-0", "0+", "-+", "-0+")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signs_of_a_function_cover_what_it_gives(name):
    function = FUNCTIONS[name]
    numbers = {"-": (-2, -1), "0": (0,), "+": (1, 3)}
    count = function.__code__.co_argcount if hasattr(function, "__code__") else 2
    count = 1 if function is abs else count
    for known in product(SIGNS, repeat=count):
        said = signs_of(call(name, *(Arg(i) for i in range(count))), dict(enumerate(known)))
        for values in product(*([n for s in each for n in numbers[s]] for each in known)):
            try:
                value = function(*map(Fraction, values))
            except ZeroDivisionError:
                continue
            assert ("-" if value < 0 else "+" if value > 0 else "0") in said, (known, values)


@pytest.mark.parametrize(("power", "said"), [(2.0, "0+"), (3.0, "-0+"), (0.5, "0+"), (-1.0, "-0+")])
def test_signs_of_powers(power, said):
    assert signs_of(call("pow", R, Const(power)), {}) == said


MUTANTS = {
    "a difference adds": ("self.shift(b), -1)", "self.shift(b), 1)"),
    "a quotient multiplies": ("self.factor(b), -1)", "self.factor(b), 1)"),
    "a root has its sign": ('call("abs", base) if NEGATIVE in', "base if NEGATIVE in"),
    "a maximum of any factor": ("return None if of_order and", "return None if False and"),
    "squares may be negative": ("return _size_of(a)", "return a"),
    "a choice by the producer": ("if not free:", "if False:"),
    "a multiple is a term": ("_added({}, self.shift(a), k)", "self.shift(a)"),
}  # fmt: skip
ASKED = (
    *(Question(g, tuple(ps), tuple(cs), f, {}) for g, ps, cs, f in QUESTIONS.values()),
    Question(call("relu", call("mul", C, R)), (0,), (1,), "+", {}),
    Question(call("where", call("lt", R, 0.0), C, 0.0), (0,), (1,), "+", {}),
)


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_give_other_answers(name):
    mutant = Copies("blockbuster.rules.separate", *MUTANTS[name]).copy("blockbuster.rules.laws")

    assert any(_said(mutant.repaired(asked)) != _said(repaired(asked)) for asked in ASKED)


def _said(answer):
    return getattr(answer, "h", None)
