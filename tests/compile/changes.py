"""Functions that read something beside their arguments, and changes of what they read."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import math
import os
import sys
import types

import numpy as np

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.25, -4.0]])

SCALE = 2.0
NUMBERS = [1.0, 2.0]
TABLE = {"scale": 2.0}
WEIGHT = np.array([2.0])
MODULE = types.ModuleType("settings")
OTHER = types.ModuleType("more_settings")


class Layer:
    shared = 1.0
    doubled = property(lambda self: self.scale * 2.0)

    def __init__(self, scale):
        self.scale = scale
        self.inner = types.SimpleNamespace(bias=1.0)
        self.parts = [self.inner]

    def forward(self, x):
        return x * self.scale + self.inner.bias

    def by_property(self, x):
        return x * self.doubled

    def by_class(self, x):
        return x * self.shared

    def by_part(self, x):
        return x * self.parts[0].bias

    def by_name(self, x):
        return x * getattr(self, "sca" + "le")

    def by_missing(self, x):
        return x * getattr(self, "extra", 1.0)

    def by_dict(self, x):
        return x * self.__dict__["scale"]

    def __call__(self, x):
        return self.forward(x)


class Slots:
    __slots__ = ("scale",)


class Dynamic:
    def __init__(self):
        self.held = {"scale": 2.0}

    def __getattr__(self, name):
        return self.held[name]


class Settings(dict):
    @property
    def scale(self):
        return self["scale"]


class Mode(enum.Enum):
    SMALL = 1.0
    LARGE = 10.0


@dataclasses.dataclass(frozen=True)
class Frozen:
    scale: float


@dataclasses.dataclass
class Plain:
    scale: float


class Alike:
    """Equal to every other one, whatever it holds."""

    def __init__(self, scale):
        self.scale = scale

    def __eq__(self, other):
        return isinstance(other, Alike)

    def __hash__(self):
        return 1


def reads_global(x):
    return x * SCALE


def calls_reader(x):
    return reads_global(x) + 1.0


def with_default(x, scale=2.0):
    return x * scale


def with_keyword(x, *, scale=2.0):
    return x * scale


def of_attribute(x):
    return x * of_attribute.scale


def steps(x):
    for number in NUMBERS:
        x = x * number
    return x


def asks_for_missing(x):
    return x + (MODULE.extra if hasattr(MODULE, "extra") else 1.0)


def catches_missing(x):
    try:
        return x + MODULE.caught
    except AttributeError:
        return x


def decorated(fn):
    @functools.wraps(fn)
    def inner(*args):
        return fn(*args) * TABLE["scale"]

    return inner


def local_state(value):
    def fn(x):
        return x * value

    def change(new):
        nonlocal value
        value = new

    return fn, change


def setter(target, name, value):
    return lambda: setattr(target, name, value)


def here(name, value):
    return lambda: globals().__setitem__(name, value)


def cases():
    """(name, function, changes): after every change the function may give something else."""
    yield "global", reads_global, [here("SCALE", 5.0), here("SCALE", -0.0), here("SCALE", 0.0)]
    yield "global type", reads_global, [here("SCALE", 3), here("SCALE", np.float32(3.1))]
    yield "through a call", calls_reader, [here("SCALE", 6.0)]
    yield "a function", calls_reader, [here("reads_global", lambda x: x - 9.0)]
    yield "its code", calls_reader, [setter(reads_global, "__code__", (lambda x: x * 7.0).__code__)]
    yield "lambda", lambda x: x * SCALE, [here("SCALE", 8.0)]
    yield "in a nested function", lambda x: sum([x * SCALE for _ in range(2)]), [here("SCALE", 9.0)]
    yield "default", with_default, [setter(with_default, "__defaults__", (4.0,))]
    yield (
        "keyword",
        with_keyword,
        [
            setter(with_keyword, "__kwdefaults__", {"scale": 4.0}),
            lambda: with_keyword.__kwdefaults__.update(scale=5.0),
        ],
    )
    of_attribute.scale = 2.0
    yield "attribute of a function", of_attribute, [setter(of_attribute, "scale", 3.0)]
    fn, change = local_state(2.0)
    yield "closure", fn, [lambda: change(3.0), lambda: change(4)]
    yield "list", steps, [
        lambda: NUMBERS.append(3.0), lambda: NUMBERS.__setitem__(0, 5.0), NUMBERS.pop,
        NUMBERS.reverse, lambda: NUMBERS.__setitem__(0, 5),
    ]  # fmt: skip
    yield "dict", lambda x: x * TABLE["scale"] + len(TABLE), [
        lambda: TABLE.update(scale=3.0), lambda: TABLE.update(more=1.0),
    ]  # fmt: skip
    yield "decorator", decorated(reads_global), [lambda: TABLE.update(scale=4.5)]
    yield "element", lambda x: x * WEIGHT, [lambda: WEIGHT.fill(3.0)]
    yield "number of an array", lambda x: x * float(WEIGHT[0]), [lambda: WEIGHT.fill(4.0)]
    MODULE.scale, MODULE.inner, OTHER.scale = 2.0, OTHER, 2.0
    yield "module", lambda x: x * MODULE.scale, [setter(MODULE, "scale", 3.0)]
    yield "module in a module", lambda x: x * MODULE.inner.scale, [setter(OTHER, "scale", 3.0)]
    yield (
        "a module passed on",
        lambda x: (lambda m: x * m.scale)(MODULE),
        [setter(MODULE, "scale", 4.0)],
    )
    yield "missing", asks_for_missing, [setter(MODULE, "extra", 7.0)]
    yield "caught", catches_missing, [setter(MODULE, "caught", 7.0)]
    yield "library", lambda x: x * math.pi, [setter(math, "pi", 3.0), setter(math, "pi", math.pi)]
    yield "imported here", imports_settings, [
        lambda: sys.modules.__setitem__("settings_of_tests", OTHER),
    ]  # fmt: skip
    yield from cases_of_objects()
    yield "partial", functools.partial(with_default, scale=3.0), []
    yield "environment", lambda x: x * float(os.environ.get("SCALE_OF_TESTS", "1")), [
        lambda: os.environ.update(SCALE_OF_TESTS="3"), lambda: os.environ.pop("SCALE_OF_TESTS"),
    ]  # fmt: skip
    yield "by globals()", lambda x: x * globals()["SCALE"], [here("SCALE", 11.0)]
    yield "by eval", lambda x: x * eval("SCALE"), [here("SCALE", 12.0)]
    yield "enum", lambda x: x * MODULE.mode.value, [setter(MODULE, "mode", Mode.LARGE)]
    remembered = functools.lru_cache(lambda: MODULE)
    yield "cache", lambda x: x * remembered().scale, [setter(MODULE, "scale", 21.0)]
    queue = collections.deque([1.0])
    yield "deque", lambda x: x * queue[0], [lambda: queue.appendleft(5.0)]


def imports_settings(x):
    import settings_of_tests

    return x * settings_of_tests.scale


sys.modules["settings_of_tests"] = MODULE
MODULE.mode = Mode.SMALL


def cases_of_objects():
    layer = Layer(2.0)
    yield "method", layer.forward, [
        setter(layer, "scale", 3.0), setter(layer, "inner", types.SimpleNamespace(bias=4.0)),
        setter(layer.parts[0], "bias", 5.0), setter(Layer, "forward", Layer.by_class),
    ]  # fmt: skip
    yield "property", layer.by_property, [
        setter(layer, "scale", 4.0), setter(Layer, "doubled", property(lambda self: 8.0)),
    ]  # fmt: skip
    yield "class attribute", layer.by_class, [
        setter(Layer, "shared", 3.0), setter(layer, "shared", 4.0),
    ]  # fmt: skip
    yield (
        "part",
        layer.by_part,
        [
            setter(layer.parts[0], "bias", 7.0),
            lambda: layer.parts.insert(0, types.SimpleNamespace(bias=9.0)),
        ],
    )
    yield "getattr", layer.by_name, [setter(layer, "scale", 6.0)]
    yield "no attribute yet", layer.by_missing, [
        setter(layer, "extra", 6.0), lambda: delattr(layer, "extra"), setter(Layer, "extra", 5.0),
    ]  # fmt: skip
    yield "dict of an object", layer.by_dict, [
        setter(layer, "scale", 7.0), setter(layer, "__dict__", {"scale": 8.0}),
    ]  # fmt: skip
    callable_layer = Layer(3.0)
    yield "object", callable_layer, [setter(callable_layer, "scale", 5.0)]
    other = Layer(2.0)
    yield (
        "class of an object",
        lambda x: other.by_class(x),
        [setter(other, "__class__", type("Sub", (Layer,), {"shared": 12.0}))],
    )
    slots = Slots()
    slots.scale = 2.0
    yield "slot", lambda x: x * slots.scale, [setter(slots, "scale", 3.0)]
    dynamic = Dynamic()
    yield "__getattr__", lambda x: x * dynamic.scale, [lambda: dynamic.held.update(scale=3.0)]
    settings = Settings(scale=2.0)
    yield "dict of one's own", lambda x: x * settings.scale, [lambda: settings.update(scale=3.0)]
    plain = Plain(2.0)
    yield "dataclass", lambda x: x * plain.scale, [setter(plain, "scale", 3.0)]
