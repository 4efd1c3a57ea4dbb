"""Reads compiled programs from the files that ``Compiled.save`` wrote."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from blockbuster.check.first_result import compare_first
from blockbuster.frontend.arguments import shape_again
from blockbuster.frontend.program import ArrayProgram
from blockbuster.frontend.saved_program import read_program
from blockbuster.ir.reading import Wrong
from blockbuster.runtime.compiled import SAVED, Compiled
from blockbuster.runtime.first_launch import Compare
from blockbuster.runtime.saved import read_plan
from blockbuster.selection.candidates.candidate import CPU
from blockbuster.selection.plans.pieces import Axes
from blockbuster.selection.plans.plan import Plan

UNCHECKED = "first results are not compared: the file holds no array program"


def load(path: str | Path, check: bool = True) -> Compiled:
    """The compiled program that ``Compiled.save`` wrote.

    Loading runs no code: the file is read as data. Calling the program runs what the file contains,
    as an import does: the emitted modules in it, and the functions of whole arrays that it names.
    Load and call only files that you trust; their checksum detects damage, not who wrote them.
    Raises LaunchError, with the file and the place in it, for a file that cannot be read or was not
    written by ``Compiled.save``. If its code fails when it is called, that is a LaunchError, too.

    ``check`` has the meaning that it has in ``jit``: the file holds the array program, too. It
    holds no other kernels, so a wrong first result is an EmitError, which names the file that
    reproduces it.
    """
    plan, shape, program = read_plan(Path(path), SAVED, program=program_for)
    made = shape_again(shape["kind"], shape["keys"])
    if program is None:
        said = (UNCHECKED,) if check and plan.target != CPU else ()
        return Compiled(plan, made, said=said, file=str(path))
    compare = comparison(program) if check else None
    return Compiled(plan, made, compare=compare, program=program, file=str(path))


def program_for(data: Any, plan: Plan) -> ArrayProgram | None:
    """The array program of a file, if it is one that ``plan`` may compute. Raises Wrong."""
    if data is None:
        return None
    program = read_program(data, SAVED)
    if axes_of(program) != plan.inputs or [*axes_of(program)] != [*plan.inputs]:
        raise Wrong("has other inputs than the plan", ".inputs")
    if tuple(output.name for output in program.outputs) != plan.names:
        raise Wrong("has other outputs than the plan", ".outputs")
    if not {*program.rules} <= {*plan.rules}:
        raise Wrong("has other rules than the plan", ".rules")
    return program


def axes_of(program: ArrayProgram) -> dict[str, Axes]:
    """The dims of the inputs' axes, as plans have them."""
    return {
        given.name: tuple(axis if isinstance(axis, str) else None for axis in given.shape)
        for given in program.inputs
    }


def comparison(program: ArrayProgram) -> Compare:
    """A function that compares first results with those of the array program."""
    return functools.partial(compare_first, program)
