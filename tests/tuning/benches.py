"""A bench that measures nothing: what it says of plans is a plain function of their texts."""

import json
from dataclasses import dataclass, field

import blockbuster as bb
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import replayed
from blockbuster.emit.target.disk import Folder
from blockbuster.frontend.arguments import shape_from_names
from blockbuster.runtime.given import family_of as made_of
from blockbuster.selection.plans.asked import rescheduled
from blockbuster.tuning.bench import Bench
from blockbuster.tuning.known import KnownResults
from blockbuster.tuning.measuring import Measuring
from blockbuster.tuning.setting import saved_with
from blockbuster.tuning.store import Store
from blockbuster.tuning.tuner import Tuner

DEVICE, TARGET = "NVIDIA H200", "sm_90"
VERSIONS = "3.6.0", "13.0.88"
WARPS = (1, 2, 8, 16)


def matmul(x, w):
    return x @ w


def product(dims=("M", "K", "N")):
    """A matrix product with dims of these names."""
    m, k, n = dims
    return bb.trace(matmul, x=f"{m} {k}", w=f"{k} {n}")


def warps_of(text):
    """With how many warps a scheduled kernel, or an emitted text, is."""
    return next(line.split()[-1] for line in text.split("\n") if line.startswith("warps "))


def with_warps(choice, count):
    """A choice with another number of warps."""
    made = choice.scheduled
    text = made.schedule.replace(f"warps {warps_of(made.schedule)}", f"warps {count}")
    return rescheduled(choice, replayed(unscheduled(made.start, made.known, made.target), text))


def choose(asked):
    """The model's choice with other numbers of warps."""
    return [with_warps(asked.considered.best, count) for count in WARPS]


@dataclass
class Benches:
    """Judges and times plans by the warps of their kernels; ``checked``, ``timed``: which were."""

    wrong: tuple[str, ...] = ()
    times: dict[str, tuple[float, ...] | str] = field(default_factory=dict)
    checked: list[str] = field(default_factory=list)
    timed: list[str] = field(default_factory=list)

    def bench(self):
        return Bench(self.check, self.time)

    def check(self, path, until):
        warps = warps_in(path)
        self.checked.append(warps)
        return "its results are wrong" if warps in self.wrong else ""

    def time(self, paths, until):
        warps = [*map(warps_in, paths)]
        self.timed += warps
        return [self.times.get(one, (99.0,)) for one in warps]


def warps_in(path):
    """With how many warps the kernel of a plan in a file is."""
    steps = json.loads(path.read_text(encoding="utf-8"))["plan"]["steps"]
    (text,) = (step["file"]["text"] for step in steps)
    lines = [line for line in text.split("\n") if '"num_warps": ' in line]
    return lines[0].split('"num_warps": ')[1].split(",")[0].rstrip("}")


def store(path):
    """A store in a folder of the test's."""
    return Store(Folder("tuned", path))


def known(path, **changes):
    """What is known, in such a store."""
    given = dict(device=DEVICE, target=TARGET, store=store(path))
    return KnownResults(**given | {"versions": lambda target: VERSIONS} | changes)


def tuner(path, benches, *, choose=choose, **changes):
    """A tuner that measures with these benches."""
    return Tuner(known(path), Measuring(benches.bench(), choose, **changes))


def family_of(program, known=None, dtype="float16"):
    return made_of(program, dtype, TARGET, known, library=False)


def tuned(tuner, program, sizes, dtype="float16"):
    """The plan of a program that this tuner tunes."""
    family = family_of(program, tuner.known, dtype)
    shape = shape_from_names([output.name for output in program.outputs])
    return tuner.tuned(family, lambda: family.at(sizes), saved_with(shape, program))
