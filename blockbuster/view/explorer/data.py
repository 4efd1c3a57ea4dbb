"""A derivation as plain data: everything that the explorer's page shows and computes with.

What occurs again (lines of text, polynomials, pictures) is stored once and named by its number.
A *state* is a program between steps: state 0 the start, state i what step i made; where the
numerically safe form differs from the last snapshot, it is one more step and state. The kernel's
moves follow: they have states of their own (moves.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from blockbuster.emit.tile.dtypes import dtype_of
from blockbuster.errors import DrawError, message
from blockbuster.ir.graph import Graph
from blockbuster.rules import Derivation, explain
from blockbuster.view.explorer.costs import Table
from blockbuster.view.explorer.frames import frames
from blockbuster.view.explorer.kernel import KernelText, kernel_text
from blockbuster.view.explorer.moves import moves_data
from blockbuster.view.explorer.pictures import pictures_data
from blockbuster.view.explorer.setting import Setting, dims_data, rules_of_sizes
from blockbuster.view.explorer.simulation import simulation_data
from blockbuster.view.explorer.source import Source, source_of
from blockbuster.view.explorer.states import Strings, states_data, text_data
from blockbuster.view.explorer.steps import left_data, proofs_data, rules_data, steps_data

SCHEMA = "blockbuster.explorer/2"
DTYPES = ("float16", "bfloat16", "float32")  # what a kernel is written for
MOST_LINES = 250_000  # steps times operators: minutes to make, and as much as a browser can show

Data = dict[str, Any]


def explorer_data(
    derivation: Derivation,
    setting: Setting,
    *,
    title: str = "",
    prove: bool = True,
    progress: Callable[[str], None] = lambda _: None,
) -> Data:
    """What the page shows. ``progress`` is told what comes before each long part.

    Raises ValueError for sizes and blocks that do not fit the program, DrawError for a derivation
    too long for one page.
    """
    _check_length(derivation)
    dims = dims_data(derivation.start, setting)
    progress("rewriting")
    found = frames(derivation)
    graphs = [derivation.start, *(frame.after for frame in found)]
    strings, table = Strings(), Table([dim["name"] for dim in dims])
    states = states_data(graphs, strings, table)
    proofs, whole = proofs_data(derivation, found, setting, progress) if prove else ([], None)
    progress("drawing")
    pictures = pictures_data(graphs)
    kernel = _kernel(graphs[-1], derivation.start, dims, setting, progress)
    progress("simulating")
    simulation = simulation_data(kernel.kernel, setting.machine)
    return {
        **_heading(derivation.start, dims, setting, title),
        "states": states,
        "steps": steps_data(derivation, found, states, proofs),
        "snapshots": list(derivation.snapshots_after),
        "rules": rules_data(dict.fromkeys(a.rule for a in derivation.applications)),
        "proof": whole,
        "left": left_data(derivation.final, explain(derivation.final)),
        "kernel": _kernel_data(kernel, strings),
        "simulation": simulation,
        "moves": moves_data(kernel.derivation, strings, setting, prove=prove, progress=progress),
        "strings": list(strings.numbers),
        "polynomials": table.data(),
        "pictures": pictures,
    }


def _heading(start: Graph, dims: list[Data], setting: Setting, title: str) -> Data:
    """What is known before anything is rewritten."""
    source = source_of(start)
    return {
        "schema": SCHEMA,
        "title": title or (source.function if source else "block program"),
        "source": _source(source),
        "dims": dims,
        "rules_of_sizes": rules_of_sizes(start),
        "element_bytes": {name: dtype_of(name).bytes for name in DTYPES},
        "dtype": setting.dtype,
    }


def _check_length(derivation: Derivation) -> None:
    """The page holds the whole program after every step."""
    steps, operators = len(derivation.applications), derivation.start.size
    if steps * operators > MOST_LINES:
        what = f"the page would show {steps} steps of a program of {operators} operators"
        hint = (
            "print(derivation) lists the steps, derivation.to_json() keeps them, and\n"
            "draw(derivation.final) is a picture of the result; or explore a part of the program"
        )
        raise DrawError(message(what, hint=hint))


def _kernel(
    graph: Graph,
    reference: Graph,
    dims: list[Data],
    setting: Setting,
    progress: Callable[[str], None],
) -> KernelText:
    progress("emitting the kernel")
    sizes = {dim["name"]: dim["size"] for dim in dims}
    return kernel_text(graph, reference, sizes, setting.dtype, setting.target)


def _kernel_data(kernel: KernelText, strings: Strings) -> Data:
    return {
        **text_data(kernel.text, strings),
        "kernels": [list(span) for span in kernel.kernels],
        "tiles": dict(kernel.tiles or {}),
        "target": kernel.target,
    }


def _source(source: Source | None) -> Data | None:
    if source is None:
        return None
    return {"file": source.file, "first": source.first, "lines": list(source.lines)}
