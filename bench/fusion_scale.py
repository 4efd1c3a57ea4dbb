"""The growth of fusing time with program size: a table, exponents, JSON in bench/results.

    python bench/fusion_scale.py [--families decoder,elementwise] [--sizes 10,100,1000] [--repeat 3]

CPU only, one process; seconds are those of its processor, so that other work on the machine counts
less. The exponent is the slope of log(seconds) over log(operators) from 100 to
1000 operators (for decoder blocks: from the smallest to the largest).
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import platform
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import blockbuster as bb

RESULTS = Path(__file__).parent / "results" / "fusion_scale.json"


def with_inputs(function: Callable[..., Any], shapes: dict[str, str]) -> Any:
    """The block program of ``function(**arrays)``."""

    def traced(*arrays: Any) -> Any:
        return function(**dict(zip(shapes, arrays, strict=True)))

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    traced.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in shapes])
    return bb.lower(bb.trace(traced, **shapes))


def elementwise(count: int) -> Any:
    def chain(x: Any) -> Any:
        for i in range(count):
            x = bb.tanh(x) if i % 2 else x * 1.5
        return x

    return with_inputs(chain, {"x": "M N"})


def matmuls(count: int) -> Any:
    def chain(x: Any, **weights: Any) -> Any:
        for weight in weights.values():
            x = x @ weight
        return x

    weights = {f"w{i}": f"D{i} D{i + 1}" for i in range(count)}
    return with_inputs(chain, {"x": "M D0", **weights})


def mixed(count: int) -> Any:
    """RMS norm, matmul, silu, product, again and again: four operators a round."""

    def chain(x: Any, **weights: Any) -> Any:
        for weight in weights.values():
            y = bb.silu(bb.rms_norm(x) @ weight)
            x = y * y
        return x

    weights = {f"w{i}": f"D{i} D{i + 1}" for i in range(count // 4)}
    return with_inputs(chain, {"x": "M D0", **weights})


def decoder(count: int) -> Any:
    def blocks(h: Any, wq: Any, wk: Any, wv: Any, wo: Any, w1: Any, w2: Any, w3: Any) -> Any:
        for _ in range(count):
            x = bb.rms_norm(h)
            q, k, v = x @ wq, x @ wk, x @ wv
            h = h + (bb.softmax((q @ k.T) * 0.1) @ v) @ wo
            x = bb.rms_norm(h)
            h = h + (bb.silu(x @ w1) * (x @ w2)) @ w3
        return h

    shapes = {"h": "S D", "wq": "D E", "wk": "D E", "wv": "D L", "wo": "L D", "w1": "D K"}
    return with_inputs(blocks, {**shapes, "w2": "D K", "w3": "K D"})


def stacked(count: int) -> Any:
    """Decoder blocks with weights of their own: about 27 operators a block."""

    def blocks(h: Any, **weights: Any) -> Any:
        flat = iter(weights.values())
        for wq, wk, wv, wo, w1, w2, w3 in zip(*[flat] * 7, strict=True):
            x = bb.rms_norm(h)
            h = h + (bb.softmax(((x @ wq) @ (x @ wk).T) * 0.1) @ (x @ wv)) @ wo
            x = bb.rms_norm(h)
            h = h + (bb.silu(x @ w1) * (x @ w2)) @ w3
        return h

    shapes = {"h": "S D"}
    for i in range(count // 27):
        shapes |= dict.fromkeys((f"wq{i}", f"wk{i}"), f"D E{i}")
        shapes |= {f"wv{i}": f"D L{i}", f"wo{i}": f"L{i} D"}
        shapes |= {f"w1_{i}": f"D K{i}", f"w2_{i}": f"D K{i}", f"w3_{i}": f"K{i} D"}
    return with_inputs(blocks, shapes)


def wide(count: int) -> Any:
    """Branches of four operators from one input, added up: five operators a branch."""

    def branches(x: Any) -> Any:
        total = x
        for i in range(count // 5):
            total = total + bb.exp(bb.tanh(x * float(i + 2)) + 1.0)
        return total

    return with_inputs(branches, {"x": "M N"})


def outputs(count: int) -> Any:
    """A chain in which every fifth value is a result."""

    def chain(x: Any) -> Any:
        results = []
        for i in range(count):
            x = bb.tanh(x) if i % 2 else x * 1.5
            if i % 5 == 4:
                results.append(x)
        return tuple(results)

    return with_inputs(chain, {"x": "M N"})


FAMILIES: dict[str, tuple[Callable[[int], Any], tuple[int, ...]]] = {
    "elementwise": (elementwise, (10, 30, 100, 300, 1000)),
    "matmuls": (matmuls, (10, 30, 100, 300, 1000)),
    "mixed": (mixed, (12, 40, 100, 300, 1000)),
    "decoder": (decoder, (1, 2, 4, 16)),
    "stacked": (stacked, (27, 108, 432, 999)),
    "wide": (wide, (10, 30, 100, 300, 1000)),
    "outputs": (outputs, (10, 30, 100, 300, 1000)),
}
RULE_SETS = {"paper": bb.PAPER_RULES, "default": bb.RULES}


def measured(graph: Any, rules: Any, repeat: int) -> tuple[float, Any]:
    """The shortest of ``repeat`` runs in seconds of this process, and the derivation.

    None begins when 10 seconds are spent.
    """
    shortest, begin = math.inf, time.process_time()
    for _ in range(repeat):
        start = time.process_time()
        derivation = bb.fuse(graph, rules)
        shortest = min(shortest, time.process_time() - start)
        if time.process_time() - begin > 10:
            break
    return shortest, derivation


def exponent(seconds: dict[int, float]) -> float | None:
    """The slope from 100 operators, or the smallest size if all are below, to the largest."""
    first, last = min((n for n in seconds if n >= 100), default=min(seconds)), max(seconds)
    if first == last:
        return None
    return math.log(seconds[last] / seconds[first]) / math.log(last / first)


def run(family: str, sizes: tuple[int, ...], rules: str, repeat: int) -> dict[str, Any]:
    make = FAMILIES[family][0]
    seconds: dict[int, float] = {}
    rows = []
    for size in sizes:
        graph = make(size)
        seconds[size], derivation = measured(graph, RULE_SETS[rules], repeat)
        row = {
            "size": size,
            "nodes": len(graph.nodes),
            "steps": len(derivation.steps),
            "buffered_edges_left": len(derivation.final.buffered_edges()),
            "seconds": round(seconds[size], 4),
        }
        rows.append(row)
        print(
            f"{family:12} {rules:8}" + "".join(f"{value:>10}" for value in row.values()), flush=True
        )
    slope = exponent(seconds)
    if slope is not None:
        print(f"{family:12} {rules:8} exponent {slope:.2f}", flush=True)
    return {"family": family, "rules": rules, "exponent": slope and round(slope, 3), "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--families", default=",".join(FAMILIES), help="comma-separated")
    parser.add_argument("--rules", choices=(*RULE_SETS, "both"), default="both")
    parser.add_argument("--sizes", help="comma-separated sizes instead of each family's own")
    parser.add_argument("--repeat", type=int, default=3, help="the shortest run counts")
    parser.add_argument("--output", type=Path, default=RESULTS)
    args = parser.parse_args()
    chosen = RULE_SETS if args.rules == "both" else (args.rules,)
    print(" " * 21 + "".join(f"{t:>10}" for t in ("size", "nodes", "steps", "edges", "seconds")))
    results = []
    for rules in chosen:
        for family in args.families.split(","):
            sizes = tuple(map(int, args.sizes.split(","))) if args.sizes else FAMILIES[family][1]
            results.append(run(family, sizes, rules, args.repeat))
    machine = {"machine": platform.machine(), "python": platform.python_version()}
    data = {"date": date.today().isoformat(), **machine, "results": results}
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
