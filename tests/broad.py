"""What every path through the compiler owes a random array program: plain NumPy's numbers."""

import re
import warnings

import numpy as np

from blockbuster.compile import jit
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.errors import TraceError
from blockbuster.frontend import lower, trace
from blockbuster.interp.binding import bind, dims_of
from blockbuster.interp.equal import prove_equal
from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.semantics import Float64
from blockbuster.interp.setting import Setting
from blockbuster.ir.fitting import fitted
from blockbuster.ir.list_only import list_only
from blockbuster.ir.parse import parse
from blockbuster.ir.types import size_class
from blockbuster.ir.verify import verify
from blockbuster.rules import PAPER_RULES, RULES, fuse, safe
from tests.emit.cases import FOLDER, pass_chains
from tests.emit.numpy_runs import run_numpy
from tests.interp.plain import plain
from tests.selection.counting import assert_equals_the_count

EXACT, ROUNDED = 1e-7, 2e-2  # of the largest number of a result; a cast may round to 8 bits


def refused(error):
    """A refusal names the user's line."""
    assert re.search(r"\.py:\d+|returned a", str(error)), error


class Broad:
    """An example with the truth about it; every method is one path."""

    def __init__(self, function, dims, arrays, random, limit=EXACT):
        self.function, self.dims, self.arrays, self.random = function, dims, arrays, random
        self.limit = limit
        self.told = False
        made = self.function(**self.arrays)
        made = made if isinstance(made, tuple) else (made,)
        self.wanted = [np.asarray(array, float) for array in made]

    def same(self, found, what, limit=None):
        """Assert that arrays, by name or in order, are those of NumPy."""
        found = list(found.values()) if isinstance(found, dict) else found
        found = found if isinstance(found, list | tuple) else (found,)
        assert len(found) == len(self.wanted), what
        for got, right in zip(found, self.wanted, strict=True):
            got = np.asarray(got, float)
            assert got.shape == right.shape, (what, got.shape, right.shape)
            scale = np.abs(right).max(initial=1.0)
            far = np.abs(got - right).max(initial=0.0)
            assert far <= (limit or self.limit) * scale, (what, far, got, right)

    def program(self):
        """The array program of dims by name, and of examples where it can be traced so."""
        program = trace(self.function, **self.dims)
        self.same(program.numpy(self.arrays), "oracle")
        try:
            self.same(trace(self.function, **self.arrays).numpy(self.arrays), "oracle of examples")
        except TraceError as error:
            refused(error)
        return program

    def setting(self, graph, sizes):
        """Sizes by class, and random blocks."""
        classes = dict.fromkeys(map(size_class, dims_of(graph)))
        single = list_only(graph)
        own = {dim: sizes[dim] for dim in classes}
        steps = {d: 1 if d in single else self.random.randint(1, max(own[d], 1)) for d in classes}
        return own, steps

    def all_sizes_show(self, graph):
        """True if the arrays tell all sizes: then they do so in every form of the program."""
        shapes = {name: array.shape for name, array in self.arrays.items()}
        try:
            bind(graph, shapes)
        except ValueError:  # one shows in no input
            return False
        return True

    def graph(self, graph, sizes, what):
        """A block program, and its safe form, in random blocks."""
        verify(graph)
        for kind, made in ((what, graph), (f"safe {what}", safe(graph))):
            own, steps = self.setting(made, sizes)
            found = evaluate(made, self.arrays, sizes=own if self.told else None, block_sizes=steps)
            self.same(found, f"{kind} {steps}\n{made}")
            if self.random.random() < 0.3:
                again = plain(made, self.arrays, own, steps, Float64)
                for name, array in found.items():
                    np.testing.assert_allclose(again[name], array, rtol=1e-9, atol=1e-9)

    def text(self, graph):
        functions = {op.name: op.fn for op in graph.mentions.miscs}
        assert parse(str(graph), functions) == graph

    def emitted(self, graph, sizes):
        """NumPy text, whole tiles and padded ones, of a program without opaque functions."""
        if graph.mentions.miscs:
            return
        own, steps = self.setting(graph, sizes)
        tiles = lower_to_tiles(graph)
        found = run_numpy(tiles, self.arrays, own, steps, seed=1, folder=FOLDER)
        self.same(found, f"numpy text\n{tiles}")
        label, passed, can_pad = self.random.choice(list(pass_chains(graph)))
        found = run_numpy(passed, self.arrays, own, steps, padded=can_pad, folder=FOLDER)
        self.same(found, f"numpy text {label} {steps}\n{passed}")

    def compiled(self):
        """``jit`` in double and in single precision."""
        self.same(jit(self.function)(*self.arrays.values()), "jit")
        if min(array.size for array in self.arrays.values()):
            single = [array.astype(np.float32) for array in self.arrays.values()]
            self.same(jit(self.function)(*single), "jit float32", ROUNDED)

    def elsewhere(self, program, graph):
        """Other sizes, where they fit: what the oracle and the interpreter say of them."""
        classes = dict.fromkeys((*program.dims, *map(size_class, dims_of(graph))))
        drawn = {d: program.sizes.get(d, self.random.randint(1, 6)) for d in classes}
        try:
            sizes = fitted(drawn, (*program.rules, *graph.size_rules))
        except ValueError:
            return
        numbers = np.random.default_rng(self.random.randrange(2**32))
        axes = {given.name: given.shape for given in program.inputs}
        arrays = {
            name: numbers.uniform(-2, 2, [sizes[d] if isinstance(d, str) else d for d in shape])
            for name, shape in axes.items()
        }
        try:
            right = program.numpy(arrays)
        except ValueError:  # a slice reaches over its axis
            return
        own, steps = self.setting(graph, sizes)
        found = evaluate(graph, arrays, sizes=own, block_sizes=steps)
        for name, array in right.items():
            array = np.asarray(array, float)
            assert found[name].shape == array.shape
            known = np.isfinite(array) & (np.abs(array) < 1e3)
            scale = np.abs(array[known]).max(initial=1.0)
            far = np.abs(found[name] - array)[known].max(initial=0.0)
            assert far <= 100 * self.limit * scale, ("other sizes", sizes, far)

    def check(self):
        """Every path."""
        program = self.program()
        graph = lower(program)
        sizes = program.bind(self.arrays)
        self.told = not self.all_sizes_show(graph)
        self.graph(graph, sizes, "lowered")
        if 0 not in sizes.values():
            self.elsewhere(program, graph)
        some = [graph]
        for rules in (PAPER_RULES, RULES):
            snapshots = fuse(graph, rules).snapshots
            some += snapshots
            for number, snapshot in enumerate(snapshots):
                assert {rule.dim for rule in snapshot.size_rules} <= set(sizes)
                self.graph(snapshot, sizes, f"snapshot {number}")
        chosen = self.random.choice(some)
        self.text(chosen)
        self.emitted(chosen, sizes)
        self.emitted(safe(chosen), sizes)
        if 0 not in sizes.values():
            assert_equals_the_count(chosen, Setting(*self.setting(chosen, sizes)))
            if self.random.random() < 0.2:
                proof = prove_equal(graph, chosen, trials=2)
                assert proof.equal is not False, proof
        try:
            self.compiled()
        except TraceError as error:  # jit traces examples, whose dims may be others
            refused(error)


def check(example, random):
    """Every path of a random example."""
    limit = ROUNDED if example.is_rounded else EXACT
    function = example.function
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        Broad(function, function.inputs, example.arrays, random, limit).check()
