"""Random eager programs through ``bb.jit``, beside NumPy or torch.

    python -m bench.eager_programs --count 20000 --out build/eager.json
    python -m bench.eager_programs --seed 123           # one program, as text, with both results
    python -m bench.eager_programs --device cuda        # torch's programs on a GPU

A verdict is one of

- "equal";
- "dtype as documented": equal, but in another float dtype, in a program with integers (see
  docs/use_jit.md);
- "refused": we raise an error of our own;
- "ill-conditioned": the library's results in this dtype and in float64 differ too much to judge;
- "WRONG": a value, a dtype or a shape differs;
- "CRASHED": an error that is not ours.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import blockbuster as bb
from bench.eager_source import Eager, eager_program

OURS = (bb.BlockbusterError,)
ROUNDING = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-12}
MASKS = ("bool", "<", ">", "==", "!=", "any", "all")
"""What makes masks in the text of a program."""

Record = dict[str, Any]


def drawn(seed: int) -> Eager:
    """The program of a seed: every third one is torch's, every fifth may have empty axes."""
    random = Random(seed)
    return eager_program(random, "torch" if seed % 3 == 2 else "np", empty=seed % 5 == 0)


def judged(seed: int, device: str = "cpu") -> Record:
    """The verdict on the program of one seed; ``device`` is that of tensors."""
    program = drawn(seed)
    record: Record = {"seed": seed, "library": program.library, "verdict": "equal"}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            wanted = _run(program, program.function(), device)
        except RuntimeError as error:  # torch makes arange and the like on the CPU
            return record | {"verdict": "not for a GPU", "reason": str(error)}
        try:
            got = _run(program, bb.jit(program.function()), device)
        except OURS as error:
            return record | {"verdict": "refused", "reason": str(error).splitlines()[0][:200]}
        except Exception as error:
            where = traceback.format_exc(limit=-3)
            reason = f"{type(error).__name__}: {error}"[:300]
            crash = {"verdict": "CRASHED", "reason": reason, "where": where}
            return record | crash | {"text": program.text}
        exact, near = (_wide(program, device, nudged, wanted) for nudged in (False, True))
    least = _rounding(program)
    reasons = [_unlike(*each, least) for each in zip(got, wanted, exact, near, strict=True)]
    reason = next((r for r in reasons if r), "")
    if reason:
        verdict = "ill-conditioned" if reason == "?" else "WRONG"
        return record | {"verdict": verdict, "reason": reason, "text": program.text}
    dtypes = [(str(a.dtype), str(b.dtype)) for a, b in zip(got, wanted, strict=True)]
    unlike = [f"{ours}, not {theirs}" for ours, theirs in dtypes if ours != theirs]
    if not unlike:
        return record
    documented = _has_integers(program) and all(_is_documented(*both, program) for both in dtypes)
    verdict = "dtype as documented" if documented else "WRONG"
    return record | {"verdict": verdict, "reason": unlike[0], "text": program.text}


def _wide(program: Eager, device: str, nudged: bool, otherwise: list[Any]) -> list[Any]:
    """The results in float64; of inputs ``nudged`` by a rounding, which decides comparisons."""
    try:
        return _run(program, program.function(), device, wide=True, nudged=nudged)
    except Exception:
        return otherwise


def _is_documented(ours: str, theirs: str, program: Eager) -> bool:
    """True for dtypes that may differ where integers meet floats, or unsigned ones are summed."""
    if ours == theirs or ("float" in ours and "float" in theirs):
        return True
    unsigned = any(array.dtype.kind == "u" for array in program.arrays.values())
    return unsigned and ours == "int64" and theirs in ("uint64", "float64")


def _has_integers(program: Eager) -> bool:
    made = any(word in program.text for word in (*MASKS, "arange", "arg", "int", "count"))
    return made or any(array.dtype.kind != "f" for array in program.arrays.values())


def _run(
    program: Eager, function: Any, device: str, *, wide: bool = False, nudged: bool = False
) -> list[Any]:
    """The results of a function on copies of the arrays, which it may not change."""
    arrays = {n: _nudged(a) if nudged else a for n, a in program.arrays.items()}
    given = {n: _given(program, a, device, wide=wide) for n, a in arrays.items()}
    results = function(**given)
    for name, array in program.arrays.items():
        kept = np.asarray(_on_host(given[name]))
        assert wide or np.array_equal(kept, array, equal_nan=array.dtype.kind == "f"), name
    return [_on_host(result) for result in (results if isinstance(results, tuple) else (results,))]


def _nudged(array: np.ndarray) -> np.ndarray:
    """Floats, each off by a random 1e-9 of itself."""
    if array.dtype.kind != "f":
        return array
    noise = np.random.default_rng(0).standard_normal(array.shape)
    return np.asarray(array.astype(float) * (1 + 1e-9 * noise))


def _on_host(array: Any) -> Any:
    return array.cpu() if hasattr(array, "cpu") else array


def _given(program: Eager, array: np.ndarray, device: str, *, wide: bool) -> Any:
    made = array.astype(float) if wide and array.dtype.kind == "f" else array.copy()
    if program.library == "np":
        return made
    import torch

    return torch.from_numpy(made).to(device)


def _rounding(program: Eager) -> float:
    """How far documented dtypes may be from NumPy's where integers meet floats.

    NumPy makes functions of bytes float16, and what integers meet float64; torch makes functions of
    integers float32. Both round what they compute of a cast to float16.
    """
    kinds = {array.dtype.kind + str(array.dtype.itemsize) for array in program.arrays.values()}
    if "float16" in program.text:
        return ROUNDING["float16"]
    if not _has_integers(program):
        return 0.0
    of_numpy = program.library == "np"
    bytes_made = of_numpy and any(word in program.text for word in MASKS)
    narrow = bytes_made or ({"f2", "u1", "b1"} if of_numpy else {"f2"}) & kinds
    single = "f4" in kinds or not of_numpy
    return ROUNDING["float16" if narrow else "float32" if single else "float64"]


def _unlike(got: Any, wanted: Any, exact: Any, near: Any, least: float) -> str:
    """How a result differs from what is wanted; "?" if that cannot be judged; else ""."""
    a, b, c, d = (np.asarray(x) for x in (got, wanted, exact, near))
    if a.shape != b.shape:
        return f"shape {a.shape}, not {b.shape}"
    if b.dtype.kind != "f":
        if np.array_equal(a.astype(b.dtype), b):  # ours of uint64 is int64
            return ""
        decided = all(x.shape == b.shape and np.array_equal(x, b) for x in (c, d))
        return "other integers" if decided else "?"
    if a.dtype.kind != "f":
        same = np.array_equal(a.astype(b.dtype), b)
        return "" if same else f"{a.dtype}, not {b.dtype}"
    rounding = max(least, *(ROUNDING[str(made.dtype)] for made in (a, b)))
    unsure = np.abs(b.astype(float) - c).max(initial=0) if b.shape == c.shape else np.inf
    size = np.abs(b.astype(float)).max(initial=0)
    if not unsure <= 50 * rounding * max(size, 1):
        return "?"
    allowed = 8 * unsure + 16 * rounding * max(size, 1e-3)
    if np.allclose(a.astype(float), b.astype(float), rtol=0, atol=allowed, equal_nan=True):
        return ""
    return f"off by {np.abs(a.astype(float) - b).max()}, allowed {allowed}"


def run(seeds: Sequence[int], workers: int, device: str = "cpu") -> list[Record]:
    """The verdicts on programs, in order, with the count so far on the terminal."""
    from rich.progress import track

    if workers == 1:
        shown = track(seeds, "programs", disable=not sys.stderr.isatty())
        return [judged(seed, device) for seed in shown]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        made = pool.map(partial(judged, device=device), seeds, chunksize=20)
        return [*track(made, "programs", total=len(seeds), disable=not sys.stderr.isatty())]


def main() -> int:
    """Judge programs, print the failures and the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="one program, printed")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--device", default="cpu", help="cuda: torch's programs on a GPU")
    parser.add_argument("--out", type=Path, help="a file for the verdicts that are not equal")
    options = parser.parse_args()
    if options.seed is not None:
        program = drawn(options.seed)
        print(program.text)
        print({name: array.tolist() for name, array in program.arrays.items()})
        print(judged(options.seed, options.device))
        return 0
    seeds = [*range(options.first, options.first + options.count)]
    if options.device != "cpu":
        seeds = [seed for seed in seeds if drawn(seed).library == "torch"]
    records = run(seeds, options.workers, options.device)
    for record in records:
        if record["verdict"] in ("WRONG", "CRASHED"):
            print(record["seed"], record["verdict"], record["reason"])
    counts = Counter(record["verdict"] for record in records)
    print(dict(counts))
    if options.out:
        found = [record for record in records if record["verdict"] != "equal"]
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({"counts": counts, "found": found}, indent=1))
    return 1 if counts["WRONG"] or counts["CRASHED"] else 0


if __name__ == "__main__":
    sys.exit(main())
