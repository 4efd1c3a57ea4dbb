"""What the dims of a program are to its dots: which blocks may vary, and how far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from blockbuster.emit.schedule.block import least_lanes, unlooped
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.tile.program import Fold, For, Let, Nest, TileProgram, statements
from blockbuster.emit.tile.tiling import Tiling, power_of_two
from blockbuster.emit.tile.trips import dims_in
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.decisions.default_tiles import repeated_dims
from blockbuster.selection.priors import PRIORS


@dataclass(frozen=True)
class Roles:
    """``varying``: the dims whose lanes vary, those of ``dots`` if there are any. ``rows``: of
    results of dots. ``kept``: those that start wider, too: of results of dots, or along rows.
    ``again``: those whose blocks have dots done again; they are not cut further than usual. Scores
    made twice for halves of their columns took self-attention 7.4 microseconds instead of 5.5.
    ``running``: those that loops with a running exponent walk.
    ``usual``: no lanes asked for, for each dim; another of its size class would speak for it.
    ``fewest``: the lanes that dots take of their dims, at least.
    """

    varying: tuple[Dim, ...]
    dots: tuple[Dim, ...]
    rows: tuple[Dim, ...]
    kept: tuple[Dim, ...]
    again: tuple[Dim, ...]
    running: tuple[Dim, ...]
    usual: Mapping[Dim, int]
    sizes: Mapping[Dim, int]
    fewest: Mapping[Dim, int]

    @staticmethod
    def of(bare: Scheduled) -> Roles:
        """Those of a program before the first move."""
        program = bare.draft
        units = program.units
        fewest: dict[Dim, int] = {}
        for nest in program.nests:
            for dim, lanes in least_lanes(nest, units).items():
                fewest[dim] = max(lanes, fewest.get(dim, 1))
        dots = tuple(fewest)
        cut = dict.fromkeys(d for n in program.nests for d in dims_in(n))
        fixed = {d for n in program.nests for d in unlooped(n, units)}
        free = [d for d in dots or cut if size_class(d) not in units and d not in fixed]
        results = _results(program)
        rows, kept = (tuple(d for d in free if d in found) for found in results)
        again, running = repeated_dims(program), _running(program)
        usual = dict.fromkeys(cut, 0)
        return Roles(
            tuple(free), dots, rows, kept, again, running, usual, bare.sizes, fewest
        )

    def least(self, dim: Dim) -> int:
        """Lanes of a dim, at least."""
        if dim not in self.dots:
            return 1
        if dim in self.again:
            return min(PRIORS.whole_lanes, self.most(dim))
        if dim in self.rows:
            return self.fewest[dim]
        running, narrowest = PRIORS.running_lanes, PRIORS.narrowest_dot_lanes
        return min(running if dim in self.running else narrowest, self.most(dim))

    def least_alone(self, dim: Dim, now: int) -> int:
        """The same where a single kernel is cut by itself, and has ``now``."""
        return min(PRIORS.rows_cut_alone, now) if dim in self.rows else self.least(dim)

    def alone(self, nest: Nest) -> Iterator[dict[Dim, int]]:
        """Other lanes of one dim of a kernel that is cut by itself: twice, half, or all."""
        blocks = {block.dim: block.lanes for block in nest.blocks if not block.whole}
        for dim, now in ((dim, blocks[dim]) for dim in self.varying if dim in blocks):
            for other in dict.fromkeys((2 * now, now // 2, self.most(dim))):
                if self.least_alone(dim, now) <= other <= self.most(dim) and other != now:
                    yield {dim: other}

    def most(self, dim: Dim) -> int:
        """Lanes of a dim, at most."""
        dot = dim in self.dots
        size = power_of_two(self.sizes[size_class(dim)], self.fewest.get(dim, 1))
        return min(size, PRIORS.widest_dot_lanes if dot else PRIORS.widest_row_lanes)

    def wide(self, lanes: Sequence[tuple[Dim, int]]) -> tuple[tuple[Dim, int], ...]:
        """The lanes of a second start; the first ones where no dim would have more than one."""
        wide = tuple((dim, self.wider(dim, count)) for dim, count in lanes)
        return wide if any(count > 1 for _, count in wide) else tuple(lanes)

    def wider(self, dim: Dim, lanes: int) -> int:
        """Lanes to start from, too: of dots, twice those of results; else single rows, whole."""
        if dim in self.dots:
            return min(2 * lanes, self.most(dim)) if dim in self.kept else lanes
        return min(self.most(dim), PRIORS.first_row_lanes) if dim in self.kept else 1


def _running(program: TileProgram) -> tuple[Dim, ...]:
    """The dims of loops that rescale what they accumulated."""
    loops = (s for nest in program.nests for s in statements(nest.body) if isinstance(s, For))
    folds = ((loop, stmt) for loop in loops for stmt in loop.body if isinstance(stmt, Fold))
    return tuple(dict.fromkeys(loop.dim for loop, fold in folds if fold.members))


def _results(program: TileProgram) -> tuple[dict[Dim, None], dict[Dim, None]]:
    """The rows of dots, and all dims of their results; without dots none, and last axes."""
    tiling, rows, found = Tiling({}, program.units), dict[Dim, None](), dict[Dim, None]()
    lets = [s for n in program.nests for s in statements(n.body) if isinstance(s, Let)]
    dots = [let for let in lets if is_matrix_dot(let, tiling)]
    for let in dots or lets:
        lanes = tiling.lanes(let.target)
        rows.update(dict.fromkeys(lanes[:1] if dots else ()))
        found.update(dict.fromkeys(lanes if dots else lanes[1:]))
    return rows, found
