"""The move overlap: nests wait in time, whatever order kernels run in; devices without are left."""

import re
from types import FunctionType, SimpleNamespace

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emission import check_schedule, emit
from blockbuster.emit.closing import place_waits
from blockbuster.emit.closing.bind import bind
from blockbuster.emit.interpret.interpreter import run_tiles
from blockbuster.emit.interpret.memory import Hazard
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.target.compiler import compiled_entry
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile import verify_waits
from blockbuster.emit.tile.listing import listing
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.emit.tile.waits import Release, Wait
from blockbuster.errors import EmitError, ParseError, VerifyError
from blockbuster.runtime.launch import run_interpreted
from tests.emit.parse_tiles import parse_tiles
from tests.emit.test_move_mutants import anew, mutated

SIZES = dict(M=64, K=64, N=128, H=32)
DIMS = dict(x="M K", w="K N", u="N H")
MOVES = "split; block nest 1 M 16, K 32, N 64; block nest 2 M 16, N 64, H 32; warps 4"


def chain(x, w, u):
    return (x @ w) @ u


@pytest.fixture(scope="module")
def graph():
    return bb.fuse(bb.lower(bb.trace(chain, **DIMS))).snapshots[0]


def scheduled(graph, more="overlap", **options):
    return emit(graph, SIZES, "float32", schedule=f"{MOVES}; {more}", **options)


ROW = "t1: f32[N] = load X[M, N]"


def two(*second, first="release", between="", row=ROW):
    """Row sums, then a nest of these lines; ``between`` is the text of a nest between the two.

    ``first`` stands before the lines ``row``, which load what is summed.
    """
    number = 3 if between else 2
    return parse_tiles(f"""
tiles {{
  dots in f32
  inputs X: f32[M, N], W: f32[M]
  outputs Y: f32[M]
  workspaces I1: f32[M], I2: f32[M]
  units M
  nest 1 {{
    grid M warps 4
    {first}
    {row}
    t2: f32[] = row_sum(t1)
    store I1[M] = t2
  }}
  {between}
  nest {number} {{
    {chr(10).join(second)}
  }}
}}
""")


GRID = "grid M warps 4"
OF_W, OF_I1 = "t3: f32[] = load W[M]", "t4: f32[] = load I1[M]"
PRODUCT, STORE = "t5: f32[] = t4 * t3", "store Y[M] = t5"
RIGHT = two(GRID, OF_W, "wait", OF_I1, PRODUCT, STORE)
EARLY = "warps 4 overlaps forall M {"
DRAFT = two(EARLY, OF_I1, OF_W, PRODUCT, STORE, "}", first="")
STORING = two(
    EARLY, OF_W, "t6: f32[] = t3 + 1", "store I2[M] = t6", OF_I1, PRODUCT, STORE, "}", first=""
)
FOLDING = two(
    EARLY, OF_I1, "t6: f32[] = init +", OF_W, "t6 += t3", "t5: f32[] = t4 * t6", "t6 += t3",
    "t7: f32[] = t5 + t6", "store Y[M] = t7", "}", first="",
)  # fmt: skip
TOUCHES = re.compile(r"\b(?:ld|st)\.global|cp\.async\.c|griddepcontrol\.wait")
X, W = np.arange(6.0).reshape(2, 3), np.array([2.0, 3.0])


def ran(program):
    return run_tiles(program, dict(X=X, W=W), seed=1)["Y"]


# what a program is -------------------------------------------------------------------------


def test_a_nest_that_waits_in_time_is_right():
    verify_tiles(RIGHT)
    assert ran(RIGHT).tolist() == [6.0, 36.0]
    assert listing(RIGHT).count("wait") == listing(RIGHT).count("release") == 1


WAITING = (GRID, OF_W, "wait", OF_I1, PRODUCT, STORE)


def test_the_first_nest_may_wait_for_what_ran_before():
    program = two(*WAITING, first="wait release")
    verify_tiles(program)
    assert ran(program).tolist() == [6.0, 36.0]


LOADS = two(GRID, OF_W, OF_I1, "wait", PRODUCT, STORE)
STORES = two(GRID, OF_W, "t5: f32[] = t3 + 1", STORE, "wait", OF_I1)
LATE = two(*WAITING, first="", row=f"{ROW} wait release")
NEVER = two(GRID, OF_W, "t5: f32[] = t3 + 1", "t8: int[] = index M at first",
            "for N from 0 to t8 {", "wait", "}")  # fmt: skip


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (LOADS, "I1 is loaded in nest 2 before it waits"),
        (STORES, "Y is stored in nest 2 before it waits"),
        (NEVER, "nest 2 waits inside a loop, which may have no iteration"),
        (two(GRID, "wait", OF_W, "wait", OF_I1, PRODUCT, STORE), "nest 2 waits 2 times"),
        (LATE, "X is loaded in nest 1 before it waits for the nest before"),
        (two(*WAITING, first="release wait"), "nest 1 releases the next nest twice, or before"),
        (two(*WAITING, "release"), "nest 2 releases a nest that does not wait"),
        (two(GRID, OF_W, OF_I1, PRODUCT, STORE), "nest 1 releases a nest that does not wait"),
        (two(GRID, "release", "wait", OF_W, OF_I1, PRODUCT, STORE), "nest 2 releases"),
        (
            two(GRID, OF_W, "wait", OF_I1, PRODUCT, STORE, first="release release"),
            "nest 1 releases the next nest twice",
        ),
    ],
)
def test_ill_formed(program, reason):
    with pytest.raises(VerifyError, match=reason):
        verify_tiles(program)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (LOADS, r"I1\[[01]\] is read before the wait: a nest before may not have written it"),
        (STORES, "Y is written before the wait: a nest before may read it yet"),
        (NEVER, "a program of nest 2 never waits"),  # no iteration for the first row
        (LATE, "X is read before the wait: it may not be complete yet"),
    ],
)
def test_a_run_finds_what_comes_too_early(program, reason):
    with pytest.raises(Hazard, match=reason):
        ran(program)


@pytest.mark.parametrize("waits", [False, True])
def test_what_came_before_a_chain_has_ended_when_it_begins(waits):
    """Nest 3 reads what nest 1 wrote, then waits for nest 2: right if that did not begin early."""
    lines = (GRID, "wait" if waits else "", "release", OF_W, "store I2[M] = t3")
    middle = f"nest 2 {{ {chr(10).join(lines)} }}"
    last = (GRID, OF_I1, "wait", "t3: f32[] = load I2[M]", PRODUCT, STORE)
    program = two(*last, first="release" if waits else "", between=middle)

    if waits:
        with pytest.raises(Hazard, match=r"I1\[[01]\] is read before the wait"):
            ran(program)
        with pytest.raises(VerifyError, match="I1 is loaded in nest 3 before it waits"):
            verify_tiles(program)
    else:
        verify_tiles(program)
        assert ran(program).tolist() == [6.0, 36.0]


# the move ------------------------------------------------------------------------------------


def test_the_second_kernel_waits_before_its_loop(graph):
    kernel = scheduled(graph)
    first, second = kernel.tile_program.nests

    assert kernel.schedule.endswith("overlap\n")
    assert isinstance(first.body[0], Release)
    waits = [at for at, stmt in enumerate(second.body) if isinstance(stmt, Wait)]
    assert waits == [1], "behind the sums, before the loop that loads what the first one stores"
    assert parse_tiles(str(kernel.tile_program)) == kernel.tile_program


def test_what_need_not_wait_goes_first():
    assert place_waits.place_waits(bind(DRAFT)) == RIGHT


SCALED = """
tiles {
  dots in f32
  inputs X: f32[M, N]
  outputs Y: f32[M]
  workspaces I1: f32[M]
  units M
  nest 1 { warps 4 forall M {
    t1: f32[N] = load X[M, N]
    t2: f32[] = row_sum(t1)
    store I1[M] = t2
  } }
  nest 2 { warps 4 overlaps forall M {
    t3: f32[] = load I1[M]
    t4: f32[] = t3 + 1
    t5: f32[] = init +
    for N {
      t6: f32[N] = load X[M, N]
      t7: f32[] = row_sum(t6)
      t5 += t7
    }
    t8: f32[] = t4 * t5
    store Y[M] = t8
  } }
}
"""


def test_a_loop_that_reads_nothing_of_it_goes_before_the_wait():
    draft = parse_tiles(SCALED)
    placed = place_waits.place_waits(bind(draft))

    assert [type(stmt).__name__ for stmt in placed.nests[1].body] == [
        "Init", "For", "Wait", "Load", "Let", "Let", "Store",
    ]  # fmt: skip
    assert prove_tiles(draft, placed, trials=3).equal


def test_the_results_are_those_of_kernels_in_turn(graph):
    random = np.random.default_rng(0)
    shapes = {name: tuple(SIZES[d] for d in dims.split()) for name, dims in DIMS.items()}
    arrays = {n: random.normal(size=shape).astype("float32") for n, shape in shapes.items()}
    early, late = (
        run_interpreted(scheduled(graph, more), arrays)["out"] for more in ("overlap", "")
    )

    assert (early == late).all()
    assert np.allclose(early, chain(**arrays), rtol=1e-4, atol=1e-4)


def test_the_schedule_is_proved(graph):
    assert check_schedule(graph, f"{MOVES}; overlap nest 2", sizes=SIZES, trials=2)


def test_moves_may_follow(graph):
    kernel = scheduled(graph, "overlap; chunk nest 2 N 2; stage nest 1 K 2")

    assert [verify_waits.is_dependent(nest) for nest in kernel.tile_program.nests] == [
        False, True, True,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("overlap nest 1; overlap nest 1", "nest 1 overlaps the one before already"),
        ("overlap nest 3", "there is no nest 3"),
        ("overlap; overlap nest 2", "nest 2 overlaps the one before already"),
        ("overlap nest 2; overlap", "every nest overlaps the one before already"),
    ],
)
def test_refusals(graph, line, reason):
    with pytest.raises(EmitError, match=reason):
        scheduled(graph, line)


@pytest.mark.parametrize("target", ["sm_80", "gfx942"])
def test_other_devices_have_no_dependent_launch(graph, target):
    with pytest.raises(EmitError, match=f"{target} has no dependent launches"):
        scheduled(graph, target=target)


def test_nothing_follows_the_place(graph):
    with pytest.raises(ParseError, match="nothing follows the place of overlap"):
        scheduled(graph, "overlap nest 2 early")


MUTANTS = [
    # where a nest waits: (text of place_waits or verify_waits, what replaces it)
    (place_waits, "(*early, Wait(), *release, *late)", "(*early, *late, Wait())"),
    (place_waits, "and not touching(stmt, arrays):", ":"),
    (place_waits, "made.keys().isdisjoint(own_reads) and", "True and"),
    (place_waits, "{**made, **read}.keys()", "made.keys()"),
    (
        place_waits,
        "arrays = dict[Tile, None](), dict[Tile, None](), dict(written)",
        "arrays = dict[Tile, None](), dict[Tile, None](), {}",
    ),
    (verify_waits, "if isinstance(inner, Store):", "if False:"),
    (verify_waits, "inner.view.buffer in written:", "False:"),
    (verify_waits, "written = {**written, **stored(nest.body)}", "written = {}"),
    (verify_waits, "leads = not number and dependent(nest)", "leads = False"),
]


@pytest.mark.parametrize(("module", "old", "new"), MUTANTS, ids=[old for _, old, _ in MUTANTS])
def test_a_wait_at_another_place_is_caught(monkeypatch, graph, module, old, new):
    made = (scheduled(graph, more) for more in ("overlap", "overlap nest 1"))
    drafts = [bind(kernel.derivation.final.draft) for kernel in made]
    drafts += [bind(DRAFT), bind(STORING), bind(FOLDING)]

    def right():
        found = []
        for program in map(anew, drafts):
            try:
                found.append(prove_tiles(program, place_waits.place_waits(program), trials=2).equal)
            except VerifyError:
                found.append(False)
        return found

    assert right() == [True] * 5
    mutated(monkeypatch, module, old, new)
    assert False in right()


# the text -------------------------------------------------------------------------------------


def test_a_kernel_that_begins_early_waits_and_the_first_begins_as_usual(graph):
    kernel = scheduled(graph)
    functions = re.findall(r"@triton\.jit\ndef (\w+)\((.*?)\n\n\n", kernel.source, re.DOTALL)
    waiting = [name for name, body in functions if "gdc_wait()" in body]
    launches = re.findall(r"(\w+)\[\(grid,\)\]\((.*?)\n            \)", kernel.source, re.DOTALL)
    early = [name for name, arguments in launches if "**early" in arguments]

    assert waiting == early == ["out_kernel"]
    assert kernel.source.count("gdc_launch_dependents()") == 1
    assert "early = {}\n        grid" in kernel.source


def launched(source, overlaps, inputs=DIMS, **sizes):
    """Each kernel that the launcher starts for arrays of these sizes, with what it is told."""
    module, found = load_module(source), []

    class Kernel(SimpleNamespace):
        def __getitem__(self, _):
            return lambda *_, **options: found.append((self.name, options))

    names = [entry["function"].__name__ for entry in module.KERNELS]
    stubs = {name: Kernel(name=name) for name in names}
    stubs |= {"check_array": noted_sizes, "can_overlap": lambda _: overlaps}
    stubs |= {"leave_room": lambda started: None}
    launch = FunctionType(module.launch.__code__, {**vars(module), **stubs}, argdefs=(None,))
    launch(*(np.zeros([sizes[d] for d in dims.split()], "float32") for dims in inputs.values()))
    return found


def noted_sizes(name, array, axes, like, size):
    size.update(zip(axes, array.shape, strict=True))


def test_a_launcher_says_which_kernels_begin_early(graph):
    source = scheduled(graph).source
    (first, plain), (second, early) = launched(source, True, **SIZES)
    assert (first, second) == ("I1_kernel", "out_kernel")
    assert early.pop("launch_pdl") is True
    assert plain["OVERLAPS"] is early["OVERLAPS"] is True
    assert "launch_pdl" not in plain

    for _, options in launched(source, False, **SIZES):
        assert "launch_pdl" not in options
        assert options["OVERLAPS"] is False


def test_a_kernel_with_none_before_it_begins_as_usual(graph):
    """An empty grid is not started: what the caller launched before is then what comes before."""
    ((name, options),) = launched(scheduled(graph).source, True, **{**SIZES, "N": 0})
    assert name == "out_kernel"
    assert "launch_pdl" not in options


def test_without_the_move_nothing_of_it_is_printed(graph):
    source = scheduled(graph, "").source
    assert not re.search(r"gdc|OVERLAPS|\bearly\b|overlaps", source)


def test_by_default_kernels_overlap_where_they_read_what_the_one_before_wrote(graph):
    assert emit(graph, SIZES, "float32").schedule.endswith("overlap nest 1\noverlap nest 2\n")
    assert "overlap" not in emit(graph, SIZES, "float32", target="sm_80").schedule


def test_machine_code_waits_before_it_touches_memory(graph):
    """Loads and stores of the compiler's text follow the wait where nothing may go before."""
    kernel = scheduled(graph)
    _, entry = load_module(kernel.source).KERNELS
    ptx = compiled_entry(entry, target_of("sm_90"))[0].asm["ptx"]

    assert TOUCHES.search(ptx)[0] == "griddepcontrol.wait"
    older = compiled_entry(entry, target_of("sm_80"))[0].asm["ptx"]
    assert "griddepcontrol" not in older
