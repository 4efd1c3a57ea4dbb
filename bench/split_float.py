"""Dots of float32 as three products of tf32 (the move split-float): accuracy and time.

    python -m bench.split_float                    errors of an emulation, on the CPU, in a minute
    python -m bench.split_float --gpu --out $OUT   errors and times beside eager, in two minutes

The emulation takes operands apart as Triton does, and adds products as matrix units do: those of
``DEPTH`` elements and the total are aligned to the largest, cut off ``EXTRA`` binary digits behind
those of float32, and the sum is rounded toward zero (Fasi et al., Numerical behavior of NVIDIA
tensor cores, 2021, find one to three such digits). Beside it stand one float32 sum in order, as
cuBLAS makes without matrix units, and float64.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = Any
Floats = NDArray[np.float32]

DEPTH, EXTRA, BLOCK = 8, 2, 32
DIGITS = 24  # binary digits of float32
DEPTHS = (16, 64, 256, 1024, 8192)
RANDOM = {
    "normal": lambda random, shape: random.standard_normal(shape),
    "above zero": lambda random, shape: random.random(shape),
    "of 12 decades": lambda random, shape: (
        random.standard_normal(shape) * 10.0 ** random.uniform(-6, 6, shape)
    ),
}


def rounded(x: Floats) -> Floats:
    """``x`` in tf32: 11 binary digits, to nearest, ties away from zero; not infinities and NaN."""
    bits = x.view(np.uint32)
    finite = np.isfinite(x)
    return np.where(finite, (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000), bits).view(
        np.float32
    )


def cut(x: Floats) -> Floats:
    """``x`` as matrix units read it: without its last 13 binary digits."""
    return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def multiplied(a: Floats, b: Floats, total: Floats) -> Floats:
    """total + a @ b as matrix units make it, of operands in tf32."""
    for at in range(0, a.shape[1], DEPTH):
        left, right = a[:, at : at + DEPTH, None], b[None, at : at + DEPTH]
        terms = np.concatenate([np.float64(left) * right, np.float64(total)[:, None]], 1)
        _, exponent = np.frexp(np.abs(terms).max(1))
        unit = np.ldexp(1.0, exponent - DIGITS - EXTRA)[:, None]
        total = _toward_zero((np.trunc(terms / unit) * unit).sum(1))
    return total


def _toward_zero(x: NDArray[np.float64]) -> Floats:
    near = x.astype(np.float32)
    return np.where(np.abs(near) > np.abs(x), np.nextafter(near, np.float32(0)), near)


def split_product(a: Floats, b: Floats) -> Floats:
    """a @ b of three products a block, as Triton makes it; blocks are added in float32."""
    left, right = rounded(a), rounded(b)
    left_rest, right_rest = cut(a - left), cut(b - right)
    total = np.zeros((len(a), b.shape[1]), np.float32)
    for at in range(0, a.shape[1], BLOCK):
        here = slice(at, at + BLOCK)
        part = multiplied(left_rest[:, here], right[here], np.zeros_like(total))
        part = multiplied(left[:, here], right_rest[here], part)
        part = np.where(np.isnan(part), np.float32(0), part)
        total = total + multiplied(left[:, here], right[here], part)
    return total


def one_sum(a: Floats, b: Floats) -> Floats:
    """a @ b as one sum of float32 in order, products not rounded."""
    total = np.zeros((len(a), b.shape[1]), np.float32)
    for at in range(a.shape[1]):
        total = (total + np.float64(a[:, at, None]) * b[None, at]).astype(np.float32)
    return total


def emulated() -> str:
    """A table of errors, relative to the norm of the result, of both and their ratio."""
    random = np.random.default_rng(0)
    lines = ["| numbers | summands | split | one float32 sum | ratio |", "|" + " --- |" * 5]
    for name, draw in RANDOM.items():
        for depth in DEPTHS:
            size = 48 if depth <= 1024 else 24
            a = draw(random, (size, depth)).astype(np.float32)
            b = draw(random, (depth, size)).astype(np.float32)
            exact = np.float64(a) @ np.float64(b)
            split, usual = (
                float(np.linalg.norm(made - exact) / np.linalg.norm(exact))
                for made in (split_product(a, b), one_sum(a, b))
            )
            lines.append(f"| {name} | {depth} | {split:.1e} | {usual:.1e} | {split / usual:.2f} |")
    return "\n".join(lines)


# on a GPU -------------------------------------------------------------------------

MATMULS = (
    "block M 128, N 128, K 32; {split} warps 8; stage nest 1 K 3",
    "block M 128, N 64, K 32; {split} warps 8; stage nest 1 K 3",
    "block M 128, N 64, K 32; {split} warps 4; stage nest 1 K 3",
    "block M 64, N 64, K 32; {split} warps 4; stage nest 1 K 3",
    "block M 64, N 64, K 64; {split} warps 4; stage nest 1 K 2",
)
ATTENTIONS = (
    "block M 64, N 32, D {D} whole, L {D} whole; {split} warps 4; stage nest 1 N 2",
    "block M 64, N 64, D {D} whole, L {D} whole; {split} warps 4; stage nest 1 N 2",
    "block M 128, N 32, D {D} whole, L {D} whole; {split} warps 8; stage nest 1 N 2",
    "block M 128, N 64, D {D} whole, L {D} whole; {split} warps 8; stage nest 1 N 2",
)
LINEAR = dict(x="M K", w="K N", b="N")
HEADS = dict(q="H M D", k="H N D", v="H N L")
SIZES: tuple[tuple[str, dict[str, int]], ...] = (
    ("linear", dict(M=2048, K=1024, N=1024)),
    ("linear", dict(M=4096, K=4096, N=4096)),
    ("attention", dict(H=8, M=2048, N=2048, D=64, L=64)),
    ("attention", dict(H=8, M=2048, N=2048, D=128, L=128)),
)


def linear(x: Array, w: Array, b: Array) -> Array:
    return x @ w + b


def attention(q: Array, k: Array, v: Array) -> Array:
    from blockbuster.frontend import functions as bb

    s = (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    return bb.softmax(s, axis=-1) @ v


def plain_attention(q: Array, k: Array, v: Array) -> Array:
    import torch

    return torch.softmax((q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5, -1) @ v


PROGRAMS: Mapping[str, tuple[Any, Any, Mapping[str, str], tuple[str, ...]]] = {
    "linear": (linear, linear, LINEAR, MATMULS),
    "attention": (attention, plain_attention, HEADS, ATTENTIONS),
}


def schedules(name: str, sizes: Mapping[str, int]) -> dict[str, str | None]:
    """The schedules that are tried: the default, and each text, whole and split."""
    texts = [text.format(split="{split}", **sizes) for text in PROGRAMS[name][3]]
    found: dict[str, str | None] = {"default": None}
    for text in texts:
        found[text.replace("{split} ", "")] = text.replace("{split} ", "")
        found[text.replace("{split}", "split-float;")] = text.replace("{split}", "split-float;")
    return found


def emitted(name: str, sizes: Mapping[str, int], text: str | None) -> Any:
    """The kernel of a schedule, for an H200."""
    import blockbuster as bb

    fn, _, dims, _ = PROGRAMS[name]
    graph = bb.fuse(bb.lower(bb.trace(fn, **dims))).final
    return bb.emit(graph, sizes, "float32", "sm_90", schedule=text)


def measured(name: str, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Errors and times of all schedules and of eager torch, with tf32 off and on."""
    import torch

    from bench.timing import medians

    _, plain, dims, _ = PROGRAMS[name]
    random = torch.Generator(device="cuda").manual_seed(1)
    inputs = {
        key: torch.randn([sizes[d] for d in words.split()], generator=random, device="cuda")
        for key, words in dims.items()
    }
    exact = plain(*(x.double() for x in inputs.values()))
    runs: dict[str, Callable[[], Any]] = {}
    errors, failed = {}, {}

    def note(word: str, run: Callable[[], Any], result: Array) -> None:
        run()
        errors[word] = float((result() - exact).norm() / exact.norm())
        runs[word] = run

    call = partial(plain, *inputs.values())
    note("eager", call, call)
    for word, text in schedules(name, sizes).items():
        try:
            kernel, out = emitted(name, sizes, text), torch.empty_like(exact, dtype=torch.float32)
            outputs = dict.fromkeys(kernel.outputs, out.fill_(float("nan")))
            note(word, partial(kernel, **inputs, **outputs), lambda out=out: out)
        except Exception as error:  # one that fails must not hide the others
            failed[word] = f"{type(error).__name__}: {error}"[:300]
    return {
        "program": name, "sizes": dict(sizes), "errors": errors, "failed": failed,
        "times": medians(runs, rounds=5),
    }  # fmt: skip


def on_gpu(out: Path) -> int:
    """Measure all, print a table, keep the records. The exit code is 1 if one is too far off."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    out.mkdir(parents=True, exist_ok=True)
    records, wrong = [], 0
    with torch.no_grad():
        for name, sizes in SIZES:
            record = measured(name, sizes)
            records.append(record)
            times, errors = record["times"], record["errors"]
            print(f"\n{name} {sizes}; eager {times['eager']:.1f} us, error {errors['eager']:.1e}")
            for word, us in sorted(times.items(), key=lambda pair: pair[1]):
                far = errors[word] / errors["eager"]
                wrong += not far <= 1.5 and "split" in word
                ratio = times["eager"] / us
                print(f"{us:9.1f} us  eager / this {ratio:.2f}  error / eager's {far:.2f}  {word}")
            for word, why in record["failed"].items():
                print(f"  failed: {word}: {' '.join(why.split())[:200]}")
            lines = json.dumps(records, indent=1) + "\n"
            (out / "split_float.json").write_text(lines, encoding="utf-8")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gpu", action="store_true", help="measure on a GPU")
    parser.add_argument("--out", type=Path, default=Path("build/split_float"))
    options = parser.parse_args()
    if options.gpu:
        return on_gpu(options.out)
    print(emulated())
    return 0


if __name__ == "__main__":
    sys.exit(main())
