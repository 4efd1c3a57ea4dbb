"""Result types and type errors of operators."""

import pytest

from blockbuster.errors import VerifyError
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.ops import (
    FUNCTIONALS,
    ROW_FOLDS,
    Cast,
    Elementwise,
    Functional,
    Pointwise,
    Reduce,
    Relabel,
    Transpose,
)
from blockbuster.ir.types import Type, fresh_dim, size_class


def item(axes: str) -> Type:
    return Type((), tuple(axes))


RESULTS = [
    *((name, ("MK", "MK"), "MK") for name in ("add", "sub", "mul", "div")),
    *((name, ("MK", "M"), "MK") for name in ("row_shift", "row_scale")),
    *((name, ("MK", "K"), "MK") for name in ("col_shift", "col_scale")),
    *((name, ("MK",), "M") for name in ROW_FOLDS.values()),
    *((name, ("M",), "") for name in ROW_FOLDS.values()),
    ("dot", ("MK", "NK"), "MN"),
    ("outer", ("M", "N"), "MN"),
]

ERRORS = [
    *((name, ("MK", "M"), "expected equal types") for name in ("add", "sub", "mul", "div")),
    *(
        (name, args, reason)
        for name in ("row_shift", "row_scale")
        for args, reason in (
            (("MK", "K"), rf"operand 1 of {name} has axes \[K\], expected \[M\]"),
            (("M", "M"), f"operand 0 of {name} has axes .*, expected a block"),
        )
    ),
    *(
        (name, args, reason)
        for name in ("col_shift", "col_scale")
        for args, reason in (
            (("MK", "M"), rf"operand 1 of {name} has axes \[M\], expected \[K\]"),
            (("K", "K"), f"operand 0 of {name} has axes .*, expected a block"),
        )
    ),
    *((name, ("",), "is a scalar") for name in ROW_FOLDS.values()),
    ("dot", ("M", "MK"), "expected two blocks"),
    ("dot", ("MK", "KN"), r"operand 1 of dot has axes \[K,N\], expected its last to be K"),
    ("dot", ("MK", "MK"), "both operands of dot have rows M: relabel one of them"),
    ("outer", ("MK", "N"), "expected two vectors"),
    ("outer", ("M", "M"), "both operands of outer have the axis M: relabel one of them"),
]


@pytest.mark.parametrize(("name", "args", "result"), RESULTS)
def test_result_type(name, args, result):
    assert Functional(name).result_types(tuple(map(item, args))) == (item(result),)


@pytest.mark.parametrize(("name", "args", "reason"), ERRORS)
def test_type_error(name, args, reason):
    with pytest.raises(VerifyError, match=reason):
        Functional(name).result_types(tuple(map(item, args)))


def test_every_functional_is_tested():
    assert {name for name, _, _ in RESULTS} == set(FUNCTIONALS) == {name for name, _, _ in ERRORS}


@pytest.mark.parametrize("name", FUNCTIONALS)
def test_functionals_count_operands_and_want_items(name):
    arity, _ = FUNCTIONALS[name]
    with pytest.raises(VerifyError, match=f"{name} takes {arity} operands, got 3"):
        Functional(name).result_types((item("MK"),) * 3)
    with pytest.raises(VerifyError, match=f"operand 0 of {name} has type M.M,K., expected a local"):
        Functional(name).result_types((Type(("M",), ("M", "K")),) * arity)


def test_unknown_functional():
    with pytest.raises(ValueError, match="unknown functional operator 'gemm'; known: add"):
        Functional("gemm")


SUM = call("add", Arg(0), Arg(1))
LISTED = Type(("M", "K"), ("M",))

OTHER_ERRORS = [
    (Elementwise(SUM), (item("M"), item("K")), r"types \[M\], \[K\], expected equal"),
    (Elementwise(SUM), (item("M"),), r"the expression reads operands \[0, 1\] of 1 given"),
    (Elementwise(call("add", 1, 2)), (), "an elementwise operator needs an operand"),
    (Elementwise(SUM), (LISTED, LISTED), "expected a local item"),
    (Pointwise(SUM, ("M", "M")), (item("M"), item("M")), "repeat a dim"),
    (Pointwise(SUM, ("M", "K")), (item("KM"), item("M")), "expected the order"),
    (Pointwise(SUM, ("M", "K")), (item("M"),), r"reads operands \[0, 1\] of 1 given"),
    (Cast("float16"), (), "cast takes 1 operand, got 0"),
    (Cast("float16"), (LISTED,), "expected a local item"),
    (Transpose(("K", "M"), ("M",)), (), "transpose takes 1 operand"),
    (Transpose(("K", "N"), ("M",)), (LISTED,), "does not reorder"),
    (Relabel("M", "M'"), (), "relabel takes 1 operand"),
    (Relabel("N", "N'"), (LISTED,), "relabel of N: the operand has type"),
    (Relabel("M", "K"), (LISTED,), "has that dim already"),
    (Relabel("M", "N"), (LISTED,), "different sizes"),
    (Reduce("M", "+"), (), "reduce takes 1 operand"),
    (Reduce("M", "xor"), (Type(("M",), ("K",)),), "unknown monoid 'xor'; known: +, prod, "),
    (Reduce("K", "+"), (Type(("M",), ("K",)),), "expected a list over K"),
    (Reduce("M", "+"), (Type(("M", "N"), ("K",)),), "would accumulate a list: expected one level"),
    (Reduce("M", "+"), (Type(("M",), ("M",)),), r"the items \[M\] still carry that axis"),
]


@pytest.mark.parametrize(("op", "args", "reason"), OTHER_ERRORS)
def test_type_errors_of_other_operators(op, args, reason):
    with pytest.raises(VerifyError, match=reason.replace("+,", r"\+,")):
        op.result_types(args)


def test_result_types_of_other_operators():
    assert Pointwise(SUM, ("M", "K")).result_types((item("M"), item("K"))) == (item("MK"),)
    assert Cast("float16").result_types((item("MK"),)) == (item("MK"),)
    assert Transpose(("K", "M"), ("M",)).result_types((LISTED,)) == (Type(("K", "M"), ("M",)),)
    assert Relabel("M", "M'").result_types((LISTED,)) == (Type(("M'", "K"), ("M'",)),)
    assert Reduce("M", "max").result_types((Type(("M",), ("K",)),)) == (item("K"),)


def test_flops():
    block, other = item("MK"), item("NK")
    assert Functional("dot").flops((block, other)) == (2, ("M", "K", "N"))
    assert Functional("outer").flops((item("M"), item("N"))) == (1, ("M", "N"))
    assert Functional("row_sum").flops((block,)) == (1, ("M", "K"))
    assert Elementwise(call("exp", call("neg", Arg(0)))).flops((block,)) == (2, ("M", "K"))
    assert Relabel("M", "M'").flops((block,)) == (0, ())


def test_fresh_dims_share_their_size():
    assert fresh_dim("M", ["M", "M'"]) == "M''"
    assert size_class(fresh_dim("M", ["M"])) == "M"
    assert fresh_dim("N", ["M"]) == "N"
