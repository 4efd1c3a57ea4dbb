"""The move join: rows of tiles over several axes of an image, its refusals, and where it pays."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emission import check_schedule, emit
from blockbuster.emit.schedule.join import Join
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import replayed
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.dataflow import mapped
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import Store
from blockbuster.emit.tile.trips import bound_sizes, walked_in
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.errors import EmitError, ParseError, VerifyError
from blockbuster.runtime.launch import run_batch
from tests.emit.numpy_runs import run_numpy
from tests.emit.parse_tiles import parse_tiles

JOIN, SM_90 = Join(), target_of("sm_90")
LINE = "nc(t*h+d*r), kcr -> nkh"
IMAGE = "nc(t*h+d*r)(v+s), kcrs -> nkhv"
GROUPS = "ngc(t*h+d*r)(v+s), gkcrs -> ngkhv"
VOLUME = "nc(t*h+d*r)(v+s)z, kcrs -> nkhvz"


@dataclass(frozen=True)
class Setting:
    """An einsum of two arrays: its program, the block program, and integers for its inputs."""

    program: object
    arrays: dict

    @staticmethod
    def of(spec, x, w, *, step=1, gap=1, pad=1, seed=0):
        pads = {letter: (pad, 0) for letter in "hv" if f"{letter}+" in spec or f"*{letter}" in spec}

        numbers = dict(t=step, d=gap) if pads else {}

        def contracted(x, w):
            return bb.einsum(spec, x, w, pad=pads or None, **numbers)

        random = np.random.default_rng(seed)
        arrays = {
            name: random.integers(-4, 5, shape).astype("float32")
            for name, shape in (("x", x), ("w", w))
        }
        return Setting(bb.trace(contracted, **arrays), arrays)

    @property
    def graph(self):
        return bb.fuse(bb.lower(self.program)).final

    @property
    def right(self):
        return self.program.numpy(self.arrays)["out"]

    @property
    def start(self):
        tiles = lower_to_tiles(self.graph)
        shapes = {name: array.shape for name, array in self.arrays.items()}
        sizes = bound_sizes(tiles, shapes)
        return unscheduled(typed_for_gpu(self.graph, tiles, given_by("float32")), sizes, SM_90)

    def text(self, most=9):
        """Loops joined, at most so many pairs, and ragged blocks of 16 lanes."""
        made = self.start
        for _ in range(most):
            sites = [*JOIN.sites(made)]
            made = JOIN.apply(made, sites[-1]) if sites else made
        dims = [d for d in walked_in(made.draft.nests[0]) if d not in made.draft.units]
        return f"{made.schedule}block {', '.join(f'{dim} 16' for dim in dims)}\nwarps 4\n"

    def emitted(self, text):
        return emit(self.graph, self.start.sizes, "float32", schedule=text)


@pytest.fixture(scope="module")
def image():
    return Setting.of(IMAGE, (2, 16, 9, 9), (20, 16, 3, 3), step=2)


@st.composite
def contractions(draw):
    """Windows along one to two of one to three axes, whose sizes fill no block."""
    spec = draw(st.sampled_from((LINE, IMAGE, GROUPS, VOLUME)))
    letters = spec.partition(",")[0]
    step, gap, pad = (draw(st.integers(*ends)) for ends in ((1, 3), (1, 2), (0, 2)))
    taps = draw(st.lists(st.integers(1, 3), min_size=2, max_size=2))
    c, k, groups = (draw(st.integers(1, most)) for most in (20, 20, 2))
    sides = draw(st.lists(st.integers(7, 9), min_size=3, max_size=3))
    places = sides[: sum(letter in spec for letter in "hvz")]
    x = (draw(st.integers(1, 3)), *([groups] if "g" in letters else []), c, *places)
    w = (*([groups] if "g" in letters else []), k, c, *taps[: 1 if spec == LINE else 2])
    seed = draw(st.integers(0, 99))
    return Setting.of(spec, x, w, step=step, gap=gap, pad=pad, seed=seed), draw(st.integers(1, 3))


# values ------------------------------------------------------------------------------


@settings(max_examples=settings().max_examples)
@given(contractions())
def test_numpy_text_is_right(drawn):
    setting, most = drawn
    kernel = setting.emitted(setting.text(most))
    sizes = {**setting.start.sizes}
    found = run_numpy(kernel.tile_program, setting.arrays, sizes, seed=1)

    np.testing.assert_array_equal(found["out"], setting.right)


@settings(max_examples=settings().max_examples // 8)
@given(st.lists(contractions(), min_size=4, max_size=4))
def test_the_interpreter_agrees(drawn):
    jobs = [(setting.emitted(setting.text(most)), setting.arrays) for setting, most in drawn]

    for made, (setting, _) in zip(run_batch(jobs), drawn, strict=True):
        np.testing.assert_array_equal(made["out"], setting.right)


@settings(max_examples=settings().max_examples // 8)
@given(contractions())
def test_it_is_proved_down_to_padded_lanes(drawn):
    setting, most = drawn

    assert check_schedule(setting.graph, setting.text(most), setting.start.sizes, trials=2).equal


# texts -------------------------------------------------------------------------------


def test_the_program_reads_back(image):
    kernel = image.emitted(image.text())

    assert "A_H_I as H of A H I step 2" in " ".join(str(kernel.tile_program).split())
    assert parse_tiles(str(kernel.tile_program)) == kernel.tile_program
    assert "offs_h = offs_a_h_i // I % H" in kernel.source
    assert kernel.source.count("% H") == 1  # once for each block, not in the loop


def test_shares_are_read_back_with_their_mistakes(image):
    text = str(image.emitted(image.text()).tile_program)
    with pytest.raises(ParseError, match="B is none of the joined A H I"):
        parse_tiles(text.replace("as H of A H I", "as B of A H I"))


def test_blocks_of_joined_dims_are_masked_and_walked(image):
    """Sizes of one class have products that blocks fill and others that they do not."""
    made = replayed(image.start, "join nest 1 H\n")
    cut = replayed(made, "block H_I 16\n")
    (block,) = cut.draft.nests[0].blocks

    assert made.sizes["H_I"] == 32
    assert block.ragged
    with pytest.raises(EmitError, match="H_I joins several dims: it is walked in blocks"):
        replayed(made, "block H_I 64 whole\n")


# refusals ----------------------------------------------------------------------------


def refusal(setting, loop):
    start = setting.start if isinstance(setting, Setting) else setting
    return JOIN.why_not(start, Site(1, loop))


@pytest.mark.parametrize(
    ("loop", "why"),
    [
        ("F", "the loop over F is not on the grid"),
        ("I", "the blocks of I have several elements already"),
        ("Z", "there is no nest 1 Z"),
    ],
)
def test_refusals(image, loop, why):
    assert refusal(image, loop).startswith(why)


def test_what_differs_by_the_outer_dim_alone_is_no_row():
    setting = Setting.of("bmk, bkn -> bmn", (3, 8, 16), (3, 16, 8))

    assert refusal(setting, "A") == "t3 differs by A, and has no rows of B"


def test_positions_are_no_rows():
    graph = bb.fuse(bb.lower(bb.trace(lambda x: x * bb.arange(x.shape[-2])[:, None], x="B M N")))
    tiles = lower_to_tiles(graph.final)
    typed = typed_for_gpu(graph.final, tiles, given_by("float32"))
    start = unscheduled(typed, dict(B=2, M=3, N=4), SM_90)

    assert "holds positions along M" in JOIN.why_not(start, Site(1, "B"))


def test_a_cut_dim_is_not_joined(image):
    cut = replayed(image.start, "block I 16")

    assert refusal(cut, "H") == "I is cut already: join before"


def test_a_store_that_misses_a_share_is_no_program(image):
    """Two rows would be stored at one place."""
    program = image.emitted(image.text()).tile_program

    def change(stmt):
        if not isinstance(stmt, Store):
            return stmt
        dims = tuple(None if "as A of" in str(dim) else dim for dim in stmt.view.dims)
        return replace(stmt, view=replace(stmt.view, dims=dims))

    nest = replace(program.nests[0], body=mapped(program.nests[0].body, change))
    with pytest.raises(VerifyError, match="iterations over A_H_I store out at one place"):
        verify_tiles(replace(program, nests=(nest,)))


def test_two_axes_of_one_dim_need_shares(image):
    program = image.emitted(image.text()).tile_program
    text = str(program).replace("A_H_I as I of A H I]", "A_H_I as H of A H I]")

    with pytest.raises(VerifyError, match="out is accessed under the dims"):
        verify_tiles(parse_tiles(text))


# where it pays -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("side", "joins"), [(56, "HV"), (14, "NHV"), (7, "NHV"), (128, ""), (100, "HV")]
)
def test_rows_that_fill_no_tiles_are_joined(side, joins):
    program = bb.trace(
        lambda x, w: bb.einsum("n(h+r)(v+s)c, rsck -> nhvk", x, w),
        x=f"N P={side + 2} Q={side + 2} C", w="R=3 S=3 C K",
    )  # fmt: skip
    graph = bb.fuse(bb.lower(program)).final
    sizes = dict(N=32, C=64, K=128, P=side + 2, Q=side + 2, R=3, S=3)
    text = emit(graph, sizes, "float16").schedule

    assert text.count("join") == max(len(joins) - 1, 0)


@pytest.mark.parametrize(("side", "joins"), [(14, True), (28, True), (56, False)])
def test_short_lines_of_images_are_joined(side, joins):
    """Lines that fill most of a tile are loaded wide, each by itself."""
    program = bb.trace(lambda x, w: np.einsum("nchw,kc->nkhw", x, w), x="N C H W", w="K C")
    graph = bb.fuse(bb.lower(program)).final
    text = emit(graph, dict(N=8, C=64, K=64, H=side, W=side), "float16").schedule

    assert ("join nest 1 H" in text) == joins


def test_a_product_without_windows_is_not_joined():
    """Its axes would have been one before it was lowered, if nothing told them apart."""
    graph = bb.fuse(bb.lower(bb.trace(lambda x, w: x @ w, x="B M K", w="K N"))).final

    assert "join" not in emit(graph, dict(B=64, M=20, K=64, N=64), "float16").schedule
