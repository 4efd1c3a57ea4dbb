"""Instructions of Python's bytecode by which a function reads names, and names that say no more."""

from __future__ import annotations

import dis
from collections.abc import Sequence

ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM")
GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
VARIABLES = ("LOAD_FAST", "LOAD_DEREF", "LOAD_NAME", "LOAD_FAST_BORROW")
CELLS = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
BESIDE = ("EXTENDED_ARG", "PUSH_NULL", "CACHE", "NOP")
BY_NAME = ("getattr", "hasattr", "vars", "dir", "__dict__", "attrgetter", "__getattribute__")
UNSEEN = ("globals", "eval", "exec", "compile", "input", "open", "__import__")


def plain_name(steps: Sequence[dis.Instruction]) -> str:
    """The name in ``getattr(self.layers, "0")``, of which ``steps`` come behind getattr; or none.

    Its first argument is a variable, or an attribute of one.
    """
    at = 1
    if not steps or steps[0].opname not in VARIABLES:
        return ""
    while at < len(steps) and steps[at].opname in ATTRIBUTES:
        at += 1
    name, call = (*steps[at : at + 2], None, None)[:2]
    is_call = call is not None and call.opname in ("PRECALL", "CALL")
    if name is None or not is_call or name.opname != "LOAD_CONST":
        return ""
    return name.argval if isinstance(name.argval, str) else ""
