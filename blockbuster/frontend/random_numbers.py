"""Whether a function draws random numbers of torch's generators while it is traced.

Dropout, Gumbel softmax and initialisations draw them for tensors that are not traced, and then only
in training, for a probability above 0 and so on. Their names in the code do not tell whether they
draw, but the states of the generators do. What was drawn is a constant of one trace, so such a
function is traced at each call. (Of a generator that the function holds itself, ``reads`` tells.)
"""

from __future__ import annotations

import sys


class Draws:
    """The random numbers that are drawn from now on.

    Numbers that another thread draws count too; then the function is traced once more.
    """

    def __init__(self) -> None:
        self._before = _states()

    def reason(self) -> str:
        """Why the trace may not be used again; empty if nothing was drawn."""
        return "" if _states() == self._before else "it calls a function that draws random numbers"


def _states() -> tuple[bytes, ...]:
    """The states of torch's generators: of the CPU, and of each GPU once torch uses them.

    While a GPU records a graph, its generator cannot be asked.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return ()
    generators = [torch.default_generator]
    if torch.cuda.is_initialized() and not torch.cuda.is_current_stream_capturing():
        generators += torch.cuda.default_generators
    return tuple(each.get_state().numpy().tobytes() for each in generators)
