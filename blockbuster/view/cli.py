"""The command line: `blockbuster COMMAND ...`.

Exit codes: 0 it worked, 1 the program was refused or a check failed, 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from blockbuster import examples
from blockbuster.errors import BlockbusterError
from blockbuster.rules import explain, overflowing, safe
from blockbuster.view import calibrate, check_rule, explore, simulate, tune
from blockbuster.view.demo import demo
from blockbuster.view.doctor import doctor
from blockbuster.view.draw import draw, draw_step
from blockbuster.view.emitting import add_kernel, add_program, add_rules, derived, emitted
from blockbuster.view.load import parse_sizes
from blockbuster.view.prove import prove
from blockbuster.view.terminal import say, warn

FUSE_EXAMPLES = """examples:
  blockbuster fuse model.py:attention --dims q="M D" k="N D" v="N L"
  blockbuster fuse model.py:mlp --dims x="B M D" w="D K" --rules paper --json steps.json
  blockbuster fuse model.py:mlp --dims x="B M D" w="D K" --html mlp.html --sizes M=4096
"""
EXPLAIN_EXAMPLES = """examples:
  blockbuster explain model.py:block --dims x="M D" w="D K"
  blockbuster explain model.py:block --dims x="M D" w="D K" --sizes M=4096,D=512,K=512
"""
PROVE_EXAMPLES = """examples:
  blockbuster prove model.py:attention --dims q="M D" k="N D" v="N L"
  blockbuster prove model.py:mlp --dims x="M D" w="D K" --trials 32 --json
"""
EMIT_EXAMPLES = """examples:
  blockbuster emit model.py:attention --dims q="M D" k="N D" v="N L" \\
      --sizes M=4096,N=4096,D=128,L=128 -o flash.py
  python flash.py --check
"""
DRAW_EXAMPLES = """examples:
  blockbuster draw model.py:attention --dims q="M D" k="N D" v="N L" -o fused.svg
  blockbuster draw model.py:mlp --dims x="B M D" w="D K" --step 3 -o step3.png
"""
DEMO_EXAMPLES = """examples:
  blockbuster demo
  blockbuster demo layernorm-matmul --sizes M=200,K=96,N=33
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except (BlockbusterError, ValueError, TypeError) as error:
        notes = "".join(f"\n  {note}" for note in getattr(error, "__notes__", ()))
        warn(f"blockbuster: {type(error).__name__}: {error}{notes}")
        return 2 if isinstance(error, ValueError | TypeError) else 1
    except OSError as error:
        warn(f"blockbuster: {error.filename}: {error.strerror}")
        return 1
    except BrokenPipeError:
        return 0


class Parser(argparse.ArgumentParser):
    """A parser whose messages quote arguments as they are shown."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            say(message, to=file)


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser: argparse.ArgumentParser = Parser(
        prog="blockbuster", description="Array programs become fused kernels, step by step."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_demo(commands)
    _add_fuse(commands)
    _add_explain(commands)
    _add_prove(commands)
    _add_emit(commands)
    _add_draw(commands)
    summary = "check a rule of yours on random programs"
    check_rule.add_arguments(
        _add(commands, "check-rule", summary, check_rule.run, check_rule.EXAMPLES)
    )
    summary = "a program's kernel on a machine, event by event: time, traffic, what limits it"
    simulate.add_arguments(_add(commands, "simulate", summary, simulate.run, simulate.EXAMPLES))
    summary = "the explorer of a derivation that was written as JSON, as one HTML page"
    explore.add_arguments(_add(commands, "view", summary, explore.run, explore.EXAMPLES))
    summary = "measure the GPU or CPU, for the machine 'auto' of the cost models"
    calibrate.add_arguments(_add(commands, "calibrate", summary, calibrate.run, calibrate.EXAMPLES))
    summary = "measure a program's kernels on the GPU ahead of time, for some sizes"
    command = _add(commands, "tune", summary, tune.run, tune.EXAMPLES)
    add_program(command)
    tune.add_arguments(command)
    summary = "what was measured of kernels: list it, clear it, carry it to another computer"
    tune.add_cache_arguments(_add(commands, "cache", summary, tune.run_cache, tune.CACHE_EXAMPLES))
    _add(commands, "doctor", "what is installed and what will be used", run_doctor, "")
    return parser


def _add(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    summary: str,
    run: Callable[[argparse.Namespace], int],
    epilog: str,
) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=run)
    return command


def _add_demo(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    summary = "the main job on an example: trace, fuse, prove, emit, run, compare"
    command = _add(commands, "demo", summary, run_demo, DEMO_EXAMPLES)
    names = [example.name for example in examples.ALL]
    command.add_argument("example", nargs="?", choices=names, default=names[0])
    command.add_argument("--sizes", nargs="+", default=[], metavar="DIM=SIZE", help="other sizes")
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="where the kernel goes")


def _add_fuse(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = _add(commands, "fuse", "show the derivation of a program", run_fuse, FUSE_EXAMPLES)
    add_program(command)
    add_rules(command)
    command.add_argument("--json", type=Path, metavar="FILE", help="write the derivation as JSON")
    command.add_argument("--html", type=Path, metavar="FILE", help="write the explorer, one page")
    explore.add_numbers(command)
    command.add_argument("--text", action="store_true", help="the final program in its text form")


def _add_explain(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    summary = "say why each buffered edge of the fused program is there"
    command = _add(commands, "explain", summary, run_explain, EXPLAIN_EXAMPLES)
    add_program(command)
    add_rules(command)
    command.add_argument(
        "--sizes", nargs="+", default=[], metavar="DIM=SIZE", help="say the bytes at stake"
    )
    command.add_argument("--json", action="store_true", help="print JSON")


def _add_prove(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    summary = "prove every step, snapshot and safe form equal to what it came from"
    command = _add(commands, "prove", summary, run_prove, PROVE_EXAMPLES)
    add_program(command)
    add_rules(command)
    command.add_argument("--trials", type=int, default=8, help="random trials of each (default 8)")
    command.add_argument("--seed", type=int, default=0, help="of the random inputs (default 0)")
    command.add_argument("--json", action="store_true", help="print JSON")


def _add_emit(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    summary = "write the fused program as a stand-alone Triton file"
    command = _add(commands, "emit", summary, run_emit, EMIT_EXAMPLES)
    add_program(command)
    add_rules(command)
    add_kernel(command)
    command.add_argument("--target", default="sm_90", help="sm_80, sm_90 (default), sm_100, gfx942")
    command.add_argument(
        "--show", choices=("source", "schedule", "tiles"), default="source",
        help="what to print: the Triton file (default), its schedule, or its loops over tiles",
    )  # fmt: skip
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: print it")


def _add_draw(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    summary = "draw the fused program, or one step"
    command = _add(commands, "draw", summary, run_draw, DRAW_EXAMPLES)
    add_program(command)
    add_rules(command)
    command.add_argument(
        "--step", type=int, metavar="N", help="before and after step N; 0 is the program unfused"
    )
    command.add_argument(
        "--depth", type=int, metavar="N", help="how many maps deep (default: all; 0: an overview)"
    )
    command.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help=".svg, .png or .dot"
    )


def run_demo(arguments: argparse.Namespace) -> int:
    """`blockbuster demo`."""
    (example,) = (e for e in examples.ALL if e.name == arguments.example)
    return demo(example, parse_sizes(arguments.sizes), arguments.output)


def run_fuse(arguments: argparse.Namespace) -> int:
    """`blockbuster fuse`."""
    program, derivation = derived(arguments)
    if arguments.json:
        arguments.json.write_text(derivation.to_json(), encoding="utf-8")
    if arguments.html:
        setting = explore.setting_of(arguments, program.sizes)
        explore.write_page(derivation, arguments.html, setting, title=program.name)
    say(program.listing() + "\n")
    say(derivation.show() + "\n")
    say(derivation.final.show() if arguments.text else derivation.final.listing())
    left = explain(derivation.final)
    if left:
        say(f"\n{len(left)} buffered edges are left:")
        say("\n".join(map(str, left)))
    return 0


def run_explain(arguments: argparse.Namespace) -> int:
    """`blockbuster explain`."""
    program, derivation = derived(arguments)
    sizes = parse_sizes(arguments.sizes)
    found = explain(derivation.final, {**program.sizes, **sizes} if sizes else None)
    if arguments.json:
        keys = ("level", "producer", "consumer", "type", "reason", "unlock", "elements")
        rows = [{k: getattr(e, k) for k in keys} | {"rule": e.rule and e.rule.name} for e in found]
        say(json.dumps(rows, indent=1))
    elif found:
        say("\n".join(map(str, found)))
    else:
        say("no interior buffered edge is left: the program is one kernel")
    for note in () if arguments.json else overflowing(safe(derivation.final)):
        say(note)
    return 0


def run_prove(arguments: argparse.Namespace) -> int:
    """`blockbuster prove`."""
    _, derivation = derived(arguments)
    report = prove(derivation, trials=arguments.trials, seed=arguments.seed)
    say(report.to_json() if arguments.json else report)
    return 0 if report.equal else 1


def run_emit(arguments: argparse.Namespace) -> int:
    """`blockbuster emit`."""
    kernel = emitted(arguments, arguments.target)
    for note in kernel.notes:
        warn(f"note: {note}")
    if arguments.output is None:
        shown = {"source": kernel.source, "schedule": kernel.schedule}
        say(shown.get(arguments.show) or str(kernel.tile_program))
    else:
        kernel.write(arguments.output)
        say(f"wrote {arguments.output}; check it with: python {arguments.output} --check")
    return 0


def run_draw(arguments: argparse.Namespace) -> int:
    """`blockbuster draw`."""
    _, derivation = derived(arguments)
    steps, number = derivation.steps, arguments.step
    if number is not None and not 0 <= number <= len(steps):
        raise ValueError(f"--step {number}: the derivation has steps 1 to {len(steps)}")
    if number:
        drawing = draw_step(steps[number - 1], depth=arguments.depth)
    else:
        graph = derivation.final if number is None else derivation.start
        drawing = draw(graph, depth=arguments.depth)
    say(f"wrote {drawing.save(arguments.output)}")
    return 0


def run_doctor(_: argparse.Namespace) -> int:
    """`blockbuster doctor`."""
    return doctor()
