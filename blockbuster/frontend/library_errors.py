"""Turn an error of NumPy or torch about a stand-in into a TraceError with the user's line.

torch, and sometimes NumPy, checks the arguments of a call before it asks the stand-ins among them
what to do. So such an error comes from the library, and names neither the line nor a remedy. NumPy
also raises errors of its own, for ours: where an element of one of its arrays is set.
"""

from __future__ import annotations

import re
import sys
from types import TracebackType

from blockbuster.errors import TraceError
from blockbuster.frontend.source import is_ours, trace_error
from blockbuster.ir.origin import SourceLine

_STAND_INS = ("SizeExpr", "ElementCount", "TracedArray")
_SEVERAL = re.compile(r"(\w+)\(\) takes \d+ positional arguments? but \d+ (?:was|were) given$")
_HINT = 'sizes take part in arithmetic, and bb.arange, bb.full take them; or fix one: "M=64"'

_TRANSFORMED = (
    "for torch.vmap, write the axis, x.sum(-1) for x.sum(); take gradients outside of the function"
)
_MASK = (
    "let the module hold the mask, self.mask = torch.ones(n, n).triu(1).bool(), or call"
    " F.scaled_dot_product_attention(q, k, v, attn_mask=mask), whose masks say what to keep"
)


def of_stand_ins(error: TypeError | RuntimeError | ValueError) -> TraceError | None:
    """The error of tracing where a library could not take a stand-in; None for another error."""
    if isinstance(error.__cause__, TraceError):
        return error.__cause__
    words = str(error).split("\n")[0]
    line = _line_of(error.__traceback__)
    if words.startswith(("vmap(", "Thing passed to transform API")):
        reason = "torch.func transforms tensors, and a traced one is none"
        return trace_error(reason, hint=_TRANSFORMED, where=line)
    if any(name in words for name in _STAND_INS):
        return trace_error(f"a size or an array has no value yet: {words}", hint=_HINT, where=line)
    if words.startswith("input to _none_or_dtype()"):
        reason = "nn.MultiheadAttention asks whether its mask is a tensor, and a traced one is not"
        return trace_error(reason, hint=_MASK, where=line)
    found = _SEVERAL.match(words)
    made = getattr(sys.modules.get("torch"), found[1], None) if found else None
    if found is None or type(made).__name__ != "builtin_function_or_method":
        return None
    hint = f"write the extents as one tuple, torch.{found[1]}((n, m)), and sizes may be among them"
    return trace_error(f"torch.{words}", hint=hint, where=line)


def _line_of(traceback: TracebackType | None) -> SourceLine | None:
    """The innermost line outside of this package and the libraries."""
    found: SourceLine | None = None
    while traceback is not None:
        if not is_ours(traceback.tb_frame):
            found = SourceLine(traceback.tb_frame.f_code.co_filename, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found
