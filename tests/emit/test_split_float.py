"""The move split-float: which dots it takes, that they keep their values, and how they err."""

from dataclasses import replace

import numpy as np
import pytest

import blockbuster as bb
from bench.split_float import DEPTHS, MATMULS, SIZES, one_sum, rounded, schedules, split_product
from blockbuster.costs.registers import registers
from blockbuster.costs.work import work_of
from blockbuster.emission import check_schedule, emit
from blockbuster.emit.schedule import split_float
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.site import EVERYWHERE, Site
from blockbuster.emit.target.assembler import dots_may_break
from blockbuster.emit.target.compiler import compile_kernel
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.layouts import layouts_of
from blockbuster.emit.tile.program import Let, statements
from blockbuster.emit.tile.shared_memory import shared_bytes
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.errors import EmitError, VerifyError
from blockbuster.runtime.launch import run_interpreted
from blockbuster.selection.priors import PRIORS
from tests.emit.parse_tiles import parse_tiles

LEAST = PRIORS.split_sum_elements

MATMUL = dict(M=128, K=64, N=128)
SPLIT = "block M 128, N 64, K 32; split-float; warps 8; stage nest 1 K 3"
ATTENTION = dict(M=128, N=96, D=16, L=16)


def graph_of(fn, **inputs):
    return bb.fuse(bb.lower(bb.trace(fn, **inputs))).final


@pytest.fixture(scope="module")
def product():
    return graph_of(lambda x, w: x @ w, x="M K", w="K N")


@pytest.fixture(scope="module")
def attention():
    def fn(q, k, v):
        return bb.softmax(q @ k.T, axis=-1) @ v

    return graph_of(fn, q="M D", k="N D", v="N L")


def test_the_text_says_it_and_reads_back(product):
    kernel = emit(product, MATMUL, "float32", schedule=SPLIT)

    assert 'input_precision="tf32x3"' in kernel.source
    assert "split-float" in kernel.schedule
    assert "= dot(x_2, w_3) split" in str(kernel.tile_program)
    assert parse_tiles(str(kernel.tile_program)) == kernel.tile_program
    assert emit(product, MATMUL, "float32", schedule=kernel.schedule).source == kernel.source


def test_without_it_dots_are_exact(product):
    source = emit(product, MATMUL, "float32", schedule=SPLIT.replace("split-float; ", "")).source

    assert 'input_precision="ieee"' in source
    assert "tf32" not in source


@pytest.mark.parametrize("summands", [LEAST, LEAST - 1, LEAST // 2])
def test_by_default_dots_of_short_sums_are_exact(product, summands):
    source = emit(product, MATMUL | {"K": summands}, "float32").source
    long = summands >= LEAST

    assert ('input_precision="tf32x3"' in source) == long
    assert ('input_precision="ieee"' in source) != long


def test_values_stay(attention):
    text = "block M 64, N 32, D 16 whole, L 16 whole; {}warps 4"
    arrays = {
        name: np.random.default_rng(0).normal(size=shape).astype("float32")
        for name, shape in dict(q=(128, 16), k=(96, 16), v=(96, 16)).items()
    }
    plain, split = (
        run_interpreted(emit(attention, ATTENTION, "float32", schedule=text.format(word)), arrays)
        for word in ("", "split-float; ")
    )
    for name, found in split.items():
        assert (found == plain[name]).all()
    assert check_schedule(
        attention, text.format("split-float; "), sizes=ATTENTION, dtype="float32", trials=2
    )


def test_a_nest_can_be_split_alone():
    def chain(x, w, u):
        return (x @ w) @ u

    two = bb.fuse(bb.lower(bb.trace(chain, x="M K", w="K N", u="N H"))).snapshots[0]
    sizes = dict(M=64, K=64, N=64, H=64)
    text = "block M 64, K 32, N 64, H 64\nsplit\nsplit-float nest 2\nwarps 4"
    nests = emit(two, sizes, "float32", schedule=text).tile_program.nests
    lets = [[s for s in statements(n.body) if isinstance(s, Let)] for n in nests]
    assert [[s.split for s in found] for found in lets if found] == [[False], [True]]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("split-float nest 2", "there is no nest 2: split-float takes a nest"),
        ("split-float; split-float nest 1", "all dots are split"),
    ],
)
def test_what_is_refused_is_said(product, line, reason):
    with pytest.raises(EmitError, match=reason):
        emit(product, MATMUL, "float32", schedule=f"block M 64, N 64, K 32\n{line}\nwarps 4")


def test_dots_of_narrow_dtypes_are_refused(product):
    with pytest.raises(EmitError, match="dots take float16, expected float32"):
        emit(product, MATMUL, "float16", schedule=SPLIT)


def test_a_program_without_dots_is_refused():
    rows = graph_of(lambda x: bb.softmax(x, axis=-1), x="M N")
    with pytest.raises(EmitError, match="no dot of two blocks is there"):
        emit(rows, dict(M=64, N=64), "float32", schedule="block M 16, N 64\nsplit-float\nwarps 4")


def test_targets_for_which_triton_splits_no_dots_are_refused(product):
    with pytest.raises(EmitError, match="Triton splits no dots for gfx942"):
        emit(product, MATMUL, "float32", "gfx942", schedule=SPLIT)


def start_of(graph, sizes):
    kernel = emit(graph, sizes, "float32", schedule="block M 64, N 64, K 32\nwarps 4")
    return unscheduled(kernel.derivation.start.draft, sizes, target_of("sm_90"))


def test_places_are_the_nests_with_dots(product):
    start = start_of(product, MATMUL)
    move = split_float.SplitFloat()

    assert [*move.sites(start)] == [EVERYWHERE, Site(1)]
    assert [*move.sites(move.apply(start, Site(1)))] == []


def test_a_predicate_that_is_off_lets_an_ill_formed_program_through(product, monkeypatch):
    """Without the look at dtypes a dot of float16 would be split, which the verifier catches."""
    kernel = emit(product, MATMUL, "float16", schedule="block M 64, N 64, K 32\nwarps 4")
    monkeypatch.setattr(split_float, "FLOAT", "float16")
    start = unscheduled(kernel.derivation.start.draft, MATMUL, target_of("sm_90"))
    made = split_float.SplitFloat().apply(start, EVERYWHERE)
    with pytest.raises(VerifyError, match="is split, but its operands are no float32"):
        verify_tiles(made.draft)


def test_only_dots_of_two_blocks_are_split():
    program = emit(
        graph_of(lambda x: bb.exp(x), x="M N"), dict(M=64, N=64), "float32",
        schedule="block M 16, N 64\nwarps 4",
    ).tile_program  # fmt: skip
    (nest,) = program.nests
    body = tuple(replace(s, split=True) if isinstance(s, Let) else s for s in nest.body)
    with pytest.raises(VerifyError, match="is split, but no dot of two blocks"):
        verify_tiles(replace(program, nests=(replace(nest, body=body),)))


# what it costs ----------------------------------------------------------------------


def works(graph, text):
    program = emit(graph, MATMUL, "float32", schedule=text).tile_program
    (nest,) = program.nests
    (work,) = work_of(program, MATMUL, "sm_90")
    return nest, program, work.phases


def test_matrix_units_make_three_products(product):
    _, _, found = works(product, SPLIT)
    _, _, plain = works(product, SPLIT.replace("split-float; ", ""))
    unit = ("matrix", "tf32")

    assert sum(phase.operations.get(unit, 0) for phase in found) == 3 * 2 * 128 * 64 * 128
    assert not any(unit in phase.operations for phase in plain)


def test_fewer_instructions_and_more_registers_are_counted(product):
    nest, program, split = works(product, SPLIT)
    other, plain_program, plain = works(product, SPLIT.replace("split-float; ", ""))

    def issued(found):
        return sum(phase.instructions for phase in found)

    assert issued(split) < issued(plain) / 2
    assert registers(layouts_of(program, nest))[0] > 100
    assert shared_bytes(program, nest) - shared_bytes(plain_program, other) == 2 * 4 * 32 * 64


def test_an_assembler_that_breaks_dots_of_several_widths_is_looked_for(attention):
    text = "block M 64, N 64, D 16 whole, L 16 whole; {}warps 4"
    split, plain = (
        emit(attention, ATTENTION, "float32", schedule=text.format(word)).tile_program
        for word in ("split-float; ", "")
    )
    assert dots_may_break(split, "sm_90")
    assert not dots_may_break(plain, "sm_90")


def test_hopper_multiplies_with_four_warps_together(product):
    kernel = emit(product, MATMUL, "float32", schedule=SPLIT)
    (report,) = compile_kernel(kernel)

    assert report.spills == 0
    assert report.shared == shared_bytes(kernel.tile_program, kernel.tile_program.nests[0])


# errors, in an emulation ------------------------------------------------------------


@pytest.mark.parametrize("depth", [256, 1024])
def test_the_error_is_that_of_one_sum_at_most(depth):
    random = np.random.default_rng(1)
    a, b = (random.standard_normal(shape).astype("f4") for shape in ((24, depth), (depth, 24)))
    exact = np.float64(a) @ np.float64(b)
    split, usual = (np.linalg.norm(made(a, b) - exact) for made in (split_product, one_sum))
    assert split <= 0.8 * usual


def test_what_float32_holds_to_the_end_is_kept():
    """Parts of numbers near the least normal ones are subnormal, and still there."""
    random = np.random.default_rng(2)
    a = (random.standard_normal((8, 64)) * 2.0**-100).astype("f4")
    b = np.eye(64, 8, dtype="f4")
    assert np.abs(split_product(a, b) / a[:, :8] - 1).max() < 2.0**-20


def test_infinities_and_nan_come_out_as_in_float64():
    a = np.ones((4, 32), "f4")
    b = np.ones((32, 4), "f4")
    a[0, 3], a[1, 5], b[7, 2] = np.inf, np.nan, -np.inf
    a[2, 7] = 0.0
    with np.errstate(invalid="ignore"):
        exact = np.float64(a) @ np.float64(b)
        found = split_product(a, b)
    assert np.array_equal(np.isnan(found), np.isnan(exact))
    assert np.array_equal(found[np.isinf(exact)], exact[np.isinf(exact)])


def test_rounding_is_to_eleven_digits():
    x = np.float32([1 + 2**-11, 1 + 2**-12, -(1 + 2**-11), np.inf])
    assert rounded(x).tolist() == [1 + 2**-10, 1.0, -(1 + 2**-10), np.inf]


def test_what_is_measured_on_a_gpu_replays():
    name, sizes = SIZES[0]
    found = schedules(name, sizes)
    assert len(found) == 1 + 2 * len(MATMULS)
    assert sum("split-float" in (text or "") for text in found.values()) == len(MATMULS)
    assert max(DEPTHS) == 8192
