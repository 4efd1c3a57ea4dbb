"""Random programs that change arrays in place, as Python text; every line runs while it is drawn.

Names are bound to new arrays, to other names, to views and to copies; operators, slices, masks,
list items, attributes and an inner function change them. The program returns all of them. Most
lines spare what shares memory with the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

LIBRARIES = {"numpy": np, "torch": torch}
SHAPES = ((3, 4), (2, 2), (1, 3), (4, 1), (3, 3), (2, 6))
OPERATORS = ("+=", "-=", "*=")

VIEWS = {
    "numpy": (
        "{}.T", "{}.swapaxes(0, -1)", "{}.ravel()", "{}.flatten()", "np.squeeze({})",
        "{}[..., None]", "np.flip({}, 0)", "np.broadcast_to({0}, (2, *{0}.shape))",
        "np.split({}, 1)[0]", "{}.copy()", "np.copy({})", "+{}", "np.tile({}, 1)",
        "{}.astype(np.float64, copy=False)", "{}.astype(np.float32).astype(np.float64)",
        "np.roll({}, 0, 0)", "{} ** 1", "{}.sum(axis=0)", "{}.sum()",
        "np.where({0} > 0, {0}, -{0})",
    ),
    "torch": (
        "{}.mT", "{}.swapaxes(0, -1)", "{}.ravel()", "{}.flatten()", "torch.squeeze({})",
        "{}[..., None]", "torch.flip({}, (0,))", "{0}.expand(2, *{0}.shape)",
        "torch.chunk({}, 1)[0]", "{}.clone()", "{}.detach()", "+{}", "{}.double()",
        "{}.float().double()", "torch.tile({}, (1,))", "torch.roll({}, 0, 0)", "{}.contiguous()",
        "{} ** 1", "{}.sum(0)", "{}.sum()", "torch.where({0} > 0, {0}, -{0})",
    ),
}  # fmt: skip
"""Arrays made of one: views, copies, and functions."""

CHANGES = {
    "numpy": (
        "{}.fill(3.0)", "np.exp({0} * 0.0, out={0})", "np.add({0}, 1.0, {0})",
        "np.clip({0}, -4.0, 9.0, out={0})", "np.copyto({0}, 2.0 * {0})",
        "np.multiply({0}, {0}, out={0}[...])",
    ),
    "torch": (
        "{}.fill_(3.0)", "{}.zero_()", "{0}.copy_({0} * 2.0)", "{}.add_(1.0).mul_(2.0)",
        "{}.clamp_(-4.0, 9.0)", "{0}.masked_fill_({0} > 3.0, -1.0)", "torch.relu_({})",
        "F.relu({}, inplace=True)", "F.leaky_relu({}, 0.5, True)", "torch.exp({0} * 0.0, out={0})",
        "F.dropout({}, 0.5, training=False, inplace=True)", "{0}.sub_({0}, alpha=3)",
    ),
}  # fmt: skip
"""Statements that change one array."""


@dataclass
class Program:
    """A program of ``library``, and what it gave for the arguments that it was drawn for."""

    library: str
    shape: tuple[int, int]
    lines: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    @property
    def source(self) -> str:
        """The text of ``f``, which returns all names but those of the arguments."""
        body = "\n".join(f"    {line}" for line in self.lines)
        return f"def f(x, y):\n{body}\n    return {', '.join(self.names)},\n"

    @property
    def function(self) -> Callable[..., Any]:
        """The function ``f``."""
        space = _space(self.library)
        exec(self.source, space)
        return space["f"]

    def arguments(self) -> tuple[Any, Any]:
        """Two arrays of whole numbers, the same at each call."""
        count = self.shape[0] * self.shape[1]
        x = np.arange(1.0, count + 1).reshape(self.shape)
        y = np.arange(4.0, 4 - count, -1).reshape(self.shape)
        return (x, y) if self.library == "numpy" else (torch.from_numpy(x), torch.from_numpy(y))


def _space(library: str) -> dict[str, Any]:
    def change(array: Any, other: Any) -> None:
        array += other

    held = SimpleNamespace()
    return {"np": np, "torch": torch, "F": torch.nn.functional, "change": change, "held": held}


def drawn(random: Random, library: str) -> Program:
    """A program of up to twelve lines, each of which NumPy or torch runs."""
    program = Program(library, random.choice(SHAPES))
    space = _space(library) | dict(zip("xy", program.arguments(), strict=True))
    for line in ("a = x * 1.0", "b = y + 2.0"):
        _run(program, space, line)
    for _ in range(random.randint(2, 10)):
        _run(program, space, _line(random, program, space))
    return program


def _run(program: Program, space: dict[str, Any], line: str) -> None:
    """Add a line. One that the library refuses, as torch does overlapping memory, is left out."""
    try:
        exec(line, space)
    except (ValueError, TypeError, RuntimeError, IndexError):
        return
    program.lines.append(line)
    name = line.partition(" = ")[0]
    if name.isidentifier() and name not in program.names:
        program.names.append(name)


def _line(random: Random, program: Program, space: dict[str, Any]) -> str:
    names = [*program.names, "x", "y"]
    if random.random() < 0.45:
        return f"{'cdefghijkl'[len(program.names) - 2]} = {_made(random, program, space, names)}"
    spared = [n for n in program.names if not any(_shared(space[n], space[a]) for a in "xy")]
    name = random.choice(spared if spared and random.random() < 0.97 else names)
    array, other = space[name], _operand(random, space, names, space[name].shape)
    operator, key = random.choice(OPERATORS), _key(random, program, array.shape)
    item = f"{name}[{key or '...'}]"
    mask = f"{name}[{name} {random.choice('<>')} {random.randint(-2, 6)}.0] = 5.0"
    return random.choice((
        f"{name} {operator} {other}", f"{name} {operator} {other}", f"{name} {operator} {other}",
        f"{item} {operator} {random.choice((1.0, 2.0))}",
        f"{item} = {random.choice((7.0, f'{item} * 2.0', f'{item}'))}",
        f"change({name}, {other})", f"held.l = [{name}]; held.l[0] {operator} {other}",
        f"held.h = {name}; held.h {operator} {other}", mask if array.shape else f"{name} = +{name}",
        random.choice(CHANGES[program.library]).format(name),
    ))  # fmt: skip


def _made(random: Random, program: Program, space: dict[str, Any], names: list[str]) -> str:
    name = random.choice(names)
    shape = space[name].shape
    key = _key(random, program, shape)
    count = int(np.prod(shape))
    shapes = [f"({d}, {count // d})" for d in (1, 2, 3) if count % d == 0]
    return random.choice((
        name, f"{name}[{key}]" if key else name, f"{name}[{key}]" if key else name,
        f"{name} * 2.0", f"{name}.reshape({random.choice(shapes)})",
        *random.sample(VIEWS[program.library], 4),
    )).format(name)  # fmt: skip


def _operand(random: Random, space: dict[str, Any], names: list[str], shape: Any) -> str:
    fitting = [n for n in names if space[n].shape in (shape, shape[1:])]
    return random.choice(("1.0", "2.0", "-1.0", *fitting))


def _key(random: Random, program: Program, shape: Any) -> str:
    """The text between the brackets of an index: positions, slices, steps, new axes."""
    parts = [*_entries(random, program, shape[: random.randint(0, len(shape))])]
    if random.random() < 0.15:
        parts.insert(random.randint(0, len(parts)), "None")
    if random.random() < 0.2:
        parts.append("...")
    return ", ".join(parts)


def _entries(random: Random, program: Program, shape: Any) -> Iterator[str]:
    for extent in shape:
        start = random.randrange(extent)
        stop = random.randint(start + 1, extent)
        back = "::-1" if program.library == "numpy" else ":"
        yield random.choice((
            str(start), str(start - extent), ":", f"{start}:", f"{start}:{stop}",
            f"{start - extent}:", f"{start}::2", "::2", back,
        ))  # fmt: skip


def _shared(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
    return isinstance(one, np.ndarray) and bool(np.shares_memory(one, other))
