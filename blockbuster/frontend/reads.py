"""The values that a function can read beside its arguments, and whether they have changed.

A trace is one run of the user's function. It may be used again as long as the function would find
the same values: the same globals, closure cells, defaults, attributes, items of containers,
elements of arrays, and the same in every function that it calls. Its code tells which of them it
can find: the names in it, followed through every object that is reached. That is at least what it
reads. If the code cannot tell (``globals()``, an iterator, NumPy's random numbers), nothing is
certain and ``unchanged`` is never true.

A check is a function, a key and the object that ``function(key, ABSENT)`` returned; it holds if the
same call returns that very object again. So a check takes some 40 ns and runs none of the user's
code.
"""

from __future__ import annotations

import dis
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache, partial
from itertools import chain, islice
from typing import Any

from blockbuster.frontend import weak_references
from blockbuster.frontend.code_names import (
    ATTRIBUTES,
    BESIDE,
    BY_NAME,
    CELLS,
    GLOBALS,
    UNSEEN,
    plain_name,
)
from blockbuster.frontend.fixed import is_atom, is_plain, static
from blockbuster.frontend.holders import (
    ABSENT,
    Unknown,
    cell_reader,
    class_reader,
    form_of,
    inside,
    is_array_class,
    is_layer,
    is_leaf,
    is_stateless,
    known_class,
    snapshot,
    user_classes,
)
from blockbuster.ir.formula import function_of

Check = Callable[[Any, Any], Any]

_MOST = 2**14  # checks: 700 us; a layer of torch takes 20 of them, and is traced in 300 us
_AT_ONCE = 512  # checks in one function
_PACKAGE = __name__.partition(".")[0]
_CHANGED: tuple[Check, Any, Any] = (lambda _key, missing: missing, "", None)  # it never holds


class Reads:
    """The values that a function reads, as they were at one time.

    ``unknown`` says what cannot be watched, and is empty if everything can.
    """

    def __init__(
        self, checks: Sequence[tuple[Check, Any, Any]], unknown: str, *, weak: bool = False
    ) -> None:
        self.unknown = unknown
        self._checks, self._weak = tuple(checks), weak

    @cached_property
    def _same(self) -> Callable[[], bool]:
        """Whether every check finds its very object again: made when the first later call asks."""
        parts = [self._checks[at : at + _AT_ONCE] for at in range(0, len(self._checks), _AT_ONCE)]
        held = [_all_of(len(part))(ABSENT, *chain.from_iterable(part)) for part in parts]
        return held[0] if len(held) == 1 else lambda: all(same() for same in held)

    def unchanged(self) -> bool:
        """True if the function would find everything as it was."""
        if self.unknown:
            return False
        try:
            same = self._same() or self._equal()
        except ValueError:  # a closure cell became empty
            same = False
        if not same:
            self._let_go()
        return same

    def let_go(self) -> None:
        """Keep nothing alive that the function reads by weak references, if anything changed: the
        function would find what has died to be gone.
        """
        if self._weak:
            self.unchanged()

    def _let_go(self) -> None:
        if self._weak:
            self.unknown, self._checks = "what it reads has changed", (_CHANGED,)
            self.__dict__.pop("_same", None)

    def _equal(self) -> bool:
        """The same for new objects: a global that was set to the same number again."""
        for read, key, found in self._checks:
            now = read(key, ABSENT)
            plain = is_plain(now) and is_plain(found)
            if now is not found and not (plain and static(now) == static(found)):
                return False
        return True


def reads_of(fn: Callable[..., Any], fixed: Iterable[Any] = ()) -> Reads:
    """The values that ``fn`` can read now; ``fixed`` are arguments that are not arrays."""
    seeker = _Seeker()
    try:
        seeker.root(fn)
        for value in fixed:
            seeker.visit(value)
        seeker.close()
    except Unknown as unknown:
        return Reads((), str(unknown))
    return Reads(tuple(seeker.checks.values()), "", weak=bool(seeker.weak))


class _Seeker:
    """The walk through all that is reached, until no new name and no new object turn up."""

    def __init__(self) -> None:
        self.checks: dict[tuple[Any, ...], tuple[Check, Any, Any]] = {}
        self._names: dict[str, None] = {}  # of attributes in the code that is reached
        self._words: dict[str, None] = {}  # strings there, which may be names
        self._whole = False  # attributes are looked up by names that the code does not show
        self._asks = False  # the code may run on where an attribute is missing
        self._seen: dict[int, Any] = {}
        self._holders: list[Any] = []  # objects whose attributes are read by name
        self.weak: list[Any] = []  # weak references that are reached
        self._ahead: list[Any] = []  # values to be looked into: they may hold each other deep

    def root(self, fn: Any) -> None:
        """The function itself: arrays among its defaults are inputs, only their form is fixed."""
        while isinstance(fn, types.MethodType | types.BuiltinMethodType):
            self.visit(fn.__self__)
            fn = getattr(fn, "__func__", None)
        defaults: list[Any] = []
        if isinstance(fn, types.FunctionType):
            defaults = [*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values()]
        elif hasattr(fn, "keywords"):
            defaults = [*fn.keywords.values()]
        for array in (value for value in defaults if is_array_class(type(value))):
            self._check(("form", id(array)), *form_of(array))
            self._seen[id(array)] = array
        self.visit(fn)

    def close(self) -> None:
        """Follow values and attributes until nothing new is reached."""
        known = None
        while known != (state := (len(self._names), len(self._seen), self._whole, self._asks)):
            known = state
            self._look_ahead()
            for holder in tuple(self._holders):
                self._attributes(holder)
            for reference in self.weak:
                for value in weak_references.lasting(reference):
                    self.visit(value)
        for reference in self.weak:
            self._referent(reference)

    def _referent(self, reference: Any) -> None:
        """Watch an object that a weak reference leads to, and keep it alive for no reason."""
        referent = reference()
        if referent is None:  # a reference stays dead
            return
        if id(referent) in self._seen:
            check = weak_references.lives(reference)
        elif self._whole:
            raise Unknown("it may read what a weak reference leads to by any name")
        else:
            check = weak_references.attributes(reference, self._names_of(referent))
        self._check(("weak", id(reference)), *check)

    def _names_of(self, referent: Any) -> Sequence[str]:
        """The names by which the code may read attributes of an object's own."""
        lasting, read = self._asks, class_reader(type(referent))
        own = getattr(referent, "__dict__", {})
        return [n for n in self._names if lasting or n in own or read(n, ABSENT) is not ABSENT]

    def visit(self, value: Any) -> None:
        """Watch what can change in ``value``."""
        if id(value) in self._seen or is_atom(value):
            return
        self._seen[id(value)] = value
        self._ahead.append(value)

    def _look_ahead(self) -> None:
        while self._ahead:
            self._look_into(self._ahead.pop(0))

    def _look_into(self, value: Any) -> None:
        if isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, weakref.ReferenceType):
            weak_references.expect_plain(value)
            self.weak.append(value)
        elif is_leaf(value):
            return
        elif isinstance(value, types.ModuleType | type):
            self._holders.append(value)
            for cls in user_classes(value):
                self._class(cls)
        else:
            for item in inside(value):
                self.visit(item)
            if is_layer(value):
                self._name("forward")
            check = snapshot(value)
            if check is not None:
                self._check(("items", id(value)), *check)
            if known_class(type(value)):
                self._holders.append(value)
                self.visit(type(value))
                self._read(("class", id(value)), _attribute(value), "__class__")

    def _check(self, place: tuple[Any, ...], read: Check, key: Any, found: Any) -> None:
        self.checks.setdefault(place, (read, key, found))
        if len(self.checks) > _MOST:
            raise Unknown(f"it can read more than {_MOST} values")

    def _read(self, place: tuple[Any, ...], read: Check, key: Any) -> Any:
        """What is found there now, watched from now on."""
        if place not in self.checks:
            self._check(place, read, key, read(key, ABSENT))
        return self.checks[place][2]

    def _function(self, fn: types.FunctionType) -> None:
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        if is_stateless(str(fn.__globals__.get("__name__"))):
            for cell in cells.values():
                self.visit(self._cell(cell))
            return
        self._holders.append(fn)
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            self._read(("fn", id(fn), name), _attribute(fn), name)
        for value in (*(fn.__defaults__ or ()), fn.__kwdefaults__):
            self.visit(value)
        self._code(fn.__code__, fn.__globals__, cells)

    def _cell(self, cell: Any) -> Any:
        return self._read(("cell", id(cell)), cell_reader(cell), "cell_contents")

    def _code(self, code: types.CodeType, names: dict[str, Any], cells: dict[str, Any]) -> None:
        self._asks |= bool(getattr(code, "co_exceptiontable", b""))
        steps = [i for i in dis.get_instructions(code) if i.opname not in BESIDE]
        for position, step in enumerate(steps):
            found: Any = ABSENT
            if step.opname in GLOBALS:
                found = self._global(names, step.argval, plain_name(steps[position + 1 :]))
            elif step.opname in CELLS and step.argval in cells:
                found = self._cell(cells[step.argval])
            elif step.opname == "IMPORT_NAME":
                found = _imported(step.argval)
            elif step.opname in ATTRIBUTES:
                self._name(step.argval)
            if found is not ABSENT:
                self._chain(found, islice(steps, position + 1, None))
        for part in code.co_consts:
            if isinstance(part, types.CodeType):
                own = {n: c for n, c in cells.items() if n not in code.co_cellvars}
                self._code(part, names, own)
            elif isinstance(part, str) and part.isidentifier():
                self._words[part] = None

    def _chain(self, found: Any, steps: Iterable[dis.Instruction]) -> None:
        """``numpy.linalg.norm``: of a module, only what is read of it at once."""
        for step in steps:
            if not isinstance(found, types.ModuleType) or step.opname not in ATTRIBUTES:
                break
            found = self._of_module(found, step.argval)
        if found is not ABSENT:
            self.visit(found)

    def _name(self, name: str) -> None:
        self._names[name] = None
        self._whole |= name in BY_NAME

    def _global(self, names: dict[str, Any], name: str, plain: str = "") -> Any:
        """A global, or a builtin; ``plain``: the name by which getattr reads an attribute here."""
        found = self._read(("global", id(names), name), names.get, name)
        if found is not ABSENT:
            return found
        if name in UNSEEN:
            raise Unknown(f"it calls {name}")
        if name == "getattr" and plain:
            self._name(plain)
        else:
            self._whole |= name in BY_NAME
        builtins = names.get("__builtins__", {})
        held = vars(builtins) if isinstance(builtins, types.ModuleType) else builtins
        return self._read(("global", id(held), name), held.get, name)

    def _of_module(self, module: types.ModuleType, name: str) -> Any:
        if module.__name__ == "numpy" and name in ("random", "geterr", "load", "fromfile"):
            raise Unknown(f"it reads numpy.{name}")
        if module.__name__ == _PACKAGE:
            getattr(module, name, ABSENT)  # loads it now, or the trace would: that is a change
        found = self._read(("module", id(module), name), vars(module).get, name)
        if found is ABSENT and "__getattr__" in vars(module):
            self.visit(vars(module)["__getattr__"])
        return found

    def _attributes(self, holder: Any) -> None:
        """What is read of a module, a class, a function or an instance, by names in the code."""
        if isinstance(holder, types.ModuleType):
            return self._of_names(holder)
        cls = holder if isinstance(holder, type) else type(holder)
        lasting = self._asks or self._whole
        for name in tuple(self._asked_for(cls)):
            if lasting or class_reader(cls)(name, ABSENT) is not ABSENT:
                found = self._read(("type", id(cls), name), class_reader(cls), name)
                self.visit_found(found)
                if isinstance(found, types.MemberDescriptorType) and cls is not holder:
                    slot = self._read(("slot", id(holder), name), _attribute(holder), name)
                    self.visit_found(slot)
        if cls is holder or not hasattr(holder, "__dict__"):
            return
        own = holder.__dict__
        if not (lasting or own) and isinstance(holder, types.FunctionType):
            return
        self._read(("dict", id(holder)), _attribute(holder), "__dict__")
        if self._whole:
            self.visit(own)
        for name in tuple(self._names):
            shadows = class_reader(cls)(name, ABSENT) is not ABSENT
            if lasting or shadows or name in own:
                self.visit_found(self._read(("own", id(holder), name), own.get, name))

    def _of_names(self, module: types.ModuleType) -> None:
        every = self._whole and not is_stateless(module.__name__)
        if every and module.__name__.split(".")[0] == "torch":
            raise Unknown(f"it may read {module.__name__} by a name that its code does not show")
        for name in (*(vars(module) if every else ()), *self._names):
            if self._asks or every or name in vars(module):
                self.visit_found(self._of_module(module, name))

    def visit_found(self, found: Any) -> None:
        """Watch a value that may not be there."""
        if found is not ABSENT:
            self.visit(found)

    def _asked_for(self, cls: type) -> Iterator[str]:
        """The names by which the code may read a class."""
        yield from self._names
        if self._whole:
            yield from self._words
            yield from (name for c in user_classes(cls) for name in vars(c) if name[:2] != "__")

    def _class(self, cls: type) -> None:
        """What Python calls without a name in the code: operators, construction, attributes."""
        for name, value in tuple(vars(cls).items()):
            if name[:2] == "__" and isinstance(value, types.FunctionType):
                self._read(("type", id(cls), name), class_reader(cls), name)
                self.visit(value)
        if not is_stateless(type(cls).__module__):
            self.visit(type(cls))


@lru_cache(maxsize=64)
def _all_of(count: int) -> Callable[..., Callable[[], bool]]:
    """A function that takes ABSENT and ``count`` checks, and makes one that runs them all: without
    a loop, which would take longer than the checks do.
    """
    takes = "".join(f", read{n}, key{n}, found{n}" for n in range(count))
    tests = " and ".join(f"read{n}(key{n}, absent) is found{n}" for n in range(count))
    return function_of(f"lambda absent{takes}: lambda: {tests or True}", "checks of what is read")


def _attribute(holder: Any) -> Check:
    """Reads an attribute that is stored, not computed."""
    return partial(getattr, holder)


def _imported(name: str) -> Any:
    if name not in sys.modules:
        raise Unknown(f"it imports {name}")
    return sys.modules[name]
