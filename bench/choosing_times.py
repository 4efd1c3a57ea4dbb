"""The processor time of choosing kernels for whole models: layers, blocks, unrolled cells.

    python -m bench.choosing_times [--only decoder,llama] [--machine h100] [--out FILE]
    python -m bench.choosing_times --compare BEFORE AFTER

No GPU. Tracing and choosing are counted, compiling is not. The seconds are those of the processor,
so that other work on the machine counts less. ``--out`` gets a line of JSON for each case, with the
kernels, the predicted microseconds and a digest of the plan's text; ``--compare`` prints where two
such files differ (also two of bench.outside.predict).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

import blockbuster as bb
from bench.choosing_growth import array, cell
from bench.outside.attention import decoder_block, gated_network, heads, merged, network, rotated

CONTEXT, HEAD = 4096, 128
Array = torch.Tensor
Program = tuple[Callable[..., Any], list[Array]]


def cached_block(
    x: Array, g: Array, w_q: Array, w_k: Array, w_v: Array, cos: Array, sin: Array,
    keys: Array, values: Array, w_out: Array, g2: Array, w_gate: Array, w_up: Array, w_down: Array,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """A layer of Llama whose new positions see a context of earlier keys and values."""
    n = F.rms_norm(x, (x.shape[-1],), g)
    count = x.shape[-1] // HEAD
    q, k = heads(F.linear(n, w_q), count), heads(F.linear(n, w_k), count // 4)
    v, k = heads(F.linear(n, w_v), count // 4), rotated(k, cos, sin)
    groups = rotated(q, cos, sin).unflatten(1, (count // 4, 4))
    scores = torch.einsum("bhgsd,bhtd->bhgst", groups, keys) * HEAD**-0.5
    y = torch.einsum("bhgst,bhtd->bhgsd", torch.softmax(scores, -1), values).flatten(1, 2)
    return gated_network(x + F.linear(merged(y), w_out), g2, w_gate, w_up, w_down), k, v


def weights(width: int) -> list[Array]:
    """Those of one layer of Llama: g1, w_q, w_k, w_v, w_out, g2, w_gate, w_up, w_down."""
    few, inner = width // 4, width * 7 // 2
    return [
        array(width), array(width, width), array(few, width), array(few, width),
        array(width, width), array(width), array(inner, width), array(inner, width),
        array(width, inner),
    ]  # fmt: skip


def decoder(rows: int, width: int) -> Program:
    own, turns = weights(width), [array(rows, HEAD), array(rows, HEAD)]
    if rows == 2048:
        return decoder_block, [array(1, rows, width), *own[:4], *turns, *own[4:]]
    cache = [array(1, width // HEAD // 4, CONTEXT, HEAD) for _ in range(2)]
    return cached_block, [array(1, rows, width), *own[:4], *turns, *cache, *own[4:]]


def llama(layers: int) -> Program:
    """The layers of Llama-3-8B, each with its own weights."""

    def function(x: Array, cos: Array, sin: Array, *given: Array) -> Array:
        for at in range(0, len(given), 9):
            own = given[at : at + 9]
            x = decoder_block(x, *own[:4], cos, sin, *own[4:])
        return x

    rows, width = 2048, 4096
    turns = [array(rows, HEAD), array(rows, HEAD)]
    own = (one for _ in range(layers) for one in weights(width))
    return function, [array(1, rows, width), *turns, *own]


def gpt(
    x: Array, g: Array, h: Array, w: Array, b: Array, w_out: Array, b_out: Array,
    g2: Array, h2: Array, w1: Array, b1: Array, w2: Array, b2: Array,
) -> Array:  # fmt: skip
    n = F.layer_norm(x, (x.shape[-1],), g, h)
    q, k, v = (heads(one, 12) for one in F.linear(n, w, b).chunk(3, -1))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return network(x + F.linear(merged(y), w_out, b_out), g2, h2, w1, b1, w2, b2)


def gpt_block() -> Program:
    e = 768
    shapes = [(8, 1024, e), (e,), (e,), (3 * e, e), (3 * e,), (e, e), (e,), (e,), (e,),
              (4 * e, e), (4 * e,), (e, 4 * e), (e,)]  # fmt: skip
    return gpt, [array(*shape) for shape in shapes]


def mlp(layers: int) -> Program:
    def function(x: Array, *given: Array) -> Array:
        for at in range(0, len(given), 2):
            x = F.relu(F.linear(x, given[at], given[at + 1]))
        return x

    own = [array(1024, 1024), array(1024)]
    return function, [array(256, 1024), *own * layers]


def cases() -> Iterator[tuple[str, Program]]:
    """All cases, by name."""
    for width in (2048, 4096):
        for rows in (1, 16, 128, 2048):
            yield f"decoder-{width}-{rows}", decoder(rows, width)
    yield "gpt-block", gpt_block()
    yield "mlp-16", mlp(16)
    for steps in (8, 64):
        yield f"cell-{steps}", cell(steps)
    for layers in (2, 8, 32):
        yield f"llama-{layers}", llama(layers)


def chosen(program: Program, machine: str) -> dict[str, Any]:
    """What choosing for a program takes, and what is chosen."""
    function, arrays = program
    begun, began = time.process_time(), time.perf_counter()
    with torch.no_grad():
        plan = bb.jit(function, machine=machine).plan_for(*arrays)
    taken = time.process_time() - begun, time.perf_counter() - began
    text = "\n".join(getattr(step, "text", "") or repr(step) for step in plan.steps)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return {
        "seconds": round(taken[0], 2), "wall": round(taken[1], 2), "kernels": plan.kernels,
        "predicted_us": round(plan.total_us, 3), "digest": digest,
    }  # fmt: skip


def compare(before: Path, after: Path) -> None:
    """Print seconds beside each other, and plans that differ."""
    old, new = ({r["key"]: r for r in map(json.loads, one.read_text().splitlines())}
                for one in (before, after))  # fmt: skip
    for key in (key for key in new if key in old):
        a, b = old[key], new[key]
        same = ("state", "kernels", "predicted_us", "digest", "calls")
        differ = [f"{n} {a.get(n)} -> {b.get(n)}" for n in same if a.get(n) != b.get(n)]
        print(f"{key:40} {a.get('seconds')} -> {b.get('seconds')}  {'; '.join(differ)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", default="", help="beginnings of names, with commas between")
    parser.add_argument("--machine", default="h100")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"))
    asked = parser.parse_args()
    if asked.compare:
        compare(*asked.compare)
        return
    x = array(256, 256)
    bb.jit(lambda x: torch.softmax(x @ x, -1), machine=asked.machine).plan_for(x)  # imports
    for key, program in cases():
        if key.startswith(tuple(asked.only.split(","))):
            line = json.dumps({"key": key, **chosen(program, asked.machine)})
            print(line, flush=True)
            if asked.out:
                with asked.out.open("a") as file:
                    file.write(line + "\n")


if __name__ == "__main__":
    main()
