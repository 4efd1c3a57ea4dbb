"""A derivation as plain data: everything that the explorer's page shows and computes with.

Repeated items (lines of text, polynomials, pictures) are stored once and referred to by number. A
*state* is a program between steps: state 0 the start, state i the result of step i (frames.py). The
kernels' moves follow; they have states of their own (moves.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from blockbuster.emit.target.targets import chosen_by
from blockbuster.emit.tile.dtypes import MEMORY, dtype_of
from blockbuster.errors import DrawError, message
from blockbuster.ir.dtypes import OWN
from blockbuster.ir.graph import Graph
from blockbuster.ir.types import Dim
from blockbuster.rules import Derivation, explain
from blockbuster.rules.faults import FaultNotes
from blockbuster.selection.plans.stored import stored
from blockbuster.view.explorer.chosen import Chosen, chosen
from blockbuster.view.explorer.costs import Table
from blockbuster.view.explorer.frames import Frame, final_state, frames
from blockbuster.view.explorer.kernel import KernelText, kernel_text
from blockbuster.view.explorer.milestones import milestones
from blockbuster.view.explorer.moves import moves_data
from blockbuster.view.explorer.pictures import pictures_data
from blockbuster.view.explorer.setting import Setting, dims_data, rules_of_sizes, sizes_of
from blockbuster.view.explorer.simulation import simulation_data
from blockbuster.view.explorer.source import Source, source_of
from blockbuster.view.explorer.states import Strings, states_data, text_data
from blockbuster.view.explorer.steps import left_data, proofs_data, rules_data, steps_data

SCHEMA = "blockbuster.explorer/3"
DTYPES = ("float16", "bfloat16", "float32")  # what a kernel is written for
MOST_LINES = 250_000  # steps times operators: minutes to make, and as much as a browser can show

Data = dict[str, Any]


def explorer_data(
    derivation: Derivation,
    setting: Setting,
    *,
    title: str = "",
    prove: bool = True,
    choice: Chosen | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Data:
    """The data of the page. ``progress`` is called with a message before each long part.

    ``choice``: what becomes kernels, where somebody has chosen it already. Raises
    ValueError for sizes and blocks that do not fit the program, DrawError for a derivation too long
    for one page.
    """
    _check_length(derivation)
    sizes = sizes_of(derivation.start, setting)
    if choice is None:
        progress("choosing what costs least")
        choice = chosen(derivation, sizes, setting.dtype, chosen_by(setting.machine))
    progress("rewriting")
    found = frames(derivation, choice.derivation)
    graphs = [derivation.start, *(frame.after for frame in found)]
    final = final_state(choice.derivation, found)
    with ThreadPoolExecutor(1) as beside:  # pictures are drawn by other processes
        pictures = beside.submit(pictures_data, graphs, found)
        parts = _texts(derivation, found, graphs, sizes, choice, setting, prove, progress)
        progress("drawing")
        drawn = pictures.result()
    left = explain(graphs[final], on_fault=FaultNotes().keep)
    dims = dims_data(derivation.start, sizes, {**choice.blocks(sizes), **setting.blocks})
    return {
        **_heading(derivation.start, dims, setting, title),
        **parts,
        "snapshots": list(derivation.snapshots_after),
        "rules": rules_data(dict.fromkeys(f.application.rule for f in found if f.application)),
        "chosen": _chosen_data(choice, final, sizes),
        "left": left_data(graphs[final], left, choice.passed_over),
        "pictures": drawn,
    }


def _texts(
    derivation: Derivation,
    found: Sequence[Frame],
    graphs: Sequence[Graph],
    sizes: Mapping[Dim, int],
    choice: Chosen,
    setting: Setting,
    prove: bool,
    progress: Callable[[str], None],
) -> Data:
    """Everything on the page that is text or number."""
    strings, table = Strings(), Table([*sizes])
    states, changes = states_data(graphs, [frame.start for frame in found], strings, table)
    final = choice.derivation.final
    proofs: list[Data] = []
    whole: Data | None = None
    if prove:
        proofs, whole = proofs_data(found, derivation.start, final, setting, progress)
    progress("writing the kernel")
    kernel = kernel_text(choice, derivation.start, setting.dtype)
    progress("simulating")
    simulation = simulation_data(kernel.kernel, setting.machine)
    moves = moves_data(kernel.derivation, strings, setting, prove=prove, progress=progress)
    born = milestones(found, sizes, choice.blocks(sizes))
    return {
        "states": states,
        "steps": steps_data(found, states, changes, proofs, born),
        "proof": whole,
        "kernel": _kernel_data(kernel, strings),
        "simulation": simulation,
        "moves": moves,
        "strings": list(strings.numbers),
        "polynomials": table.data(),
    }


def _chosen_data(choice: Chosen, final: int, sizes: Mapping[Dim, int]) -> Data:
    """What becomes kernels: its state, its name, how many kernels, why, and what they store."""
    considered = choice.considered
    kept = stored(considered, sizes) if considered else ()
    return {
        "state": final,
        "name": considered.best.name if considered else "",
        "kernels": choice.kernels,
        "words": choice.words,
        "stored": [*map(str, kept)],
        "sizes": dict(sizes),
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
        "own_bytes": {name: MEMORY[name].bytes for name in OWN},
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
