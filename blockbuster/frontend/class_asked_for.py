"""The class that a traced array shows to ``isinstance`` in the user's code.

A function that takes tensors and numbers asks ``isinstance(x, torch.Tensor)``; if that were false
of the stand-in of a tensor, the other branch would be recorded. So the stand-in shows the class of
the argument there, and in ``torch.is_tensor``. To anything else it shows its own class: torch's
functions in C read the memory of what they take for a tensor, and a stand-in has none.
"""

from __future__ import annotations

import dis
import sys
from types import FrameType

import numpy as np

from blockbuster.frontend.source import is_ours


def shown_class(own: type, *, of_tensors: bool, of_arrays: bool) -> type:
    """The class that the caller's caller finds as ``x.__class__``."""
    frame = sys._getframe(2)
    torch = sys.modules.get("torch")
    asks_torch = torch is not None and frame.f_code is torch.is_tensor.__code__
    if not asks_torch and (is_ours(frame) or not _is_in_isinstance(frame)):
        return own
    if of_tensors and torch is not None:
        shown: type = torch.Tensor
        return shown
    return np.ndarray if of_arrays else own


def _is_in_isinstance(frame: FrameType) -> bool:
    """True if the call that a frame is at is one of ``isinstance``, by that name.

    The code of a call and of the name that it calls begin at the same place in the source.
    """
    steps = list(dis.get_instructions(frame.f_code))
    call = next((step for step in steps if step.offset == frame.f_lasti), None)
    if call is None or not call.opname.startswith("CALL") or call.positions is None:
        return False
    place = call.positions.lineno, call.positions.col_offset
    if None in place:  # Python was started without places of code
        return False
    return any(
        step.argval == "isinstance"
        for step in steps
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
        and step.positions is not None
        and (step.positions.lineno, step.positions.col_offset) == place
    )
