"""Recurrent layers of torch as a function of whole arrays: cuDNN's on a GPU, loops in NumPy.

A state waits for the one before it, so that steps in kernels of ours would be a launch each and
read all weights again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from blockbuster.frontend.torch import is_tensor, recurrent_on_tensors

GATES: Mapping[str, int] = {"rnn_tanh": 1, "rnn_relu": 1, "gru": 3, "lstm": 4}
"""The layers of each kind in one step, whose weights lie one below the other."""


@dataclass(frozen=True)
class Recurrent:
    """``torch.lstm`` and its kin for (steps, batch, features); weights in torch's order.

    ``biases``: each layer has two rows beside its two weights.
    The result is one array: the states of all steps, (steps * directions, batch, hidden), then the
    last state of each layer and direction, then the last memory of each.
    """

    kind: str
    layers: int
    directions: int
    biases: bool

    @property
    def memory(self) -> bool:
        """True if a second state is handed on."""
        return self.kind == "lstm"

    @property
    def weights(self) -> int:
        """The number of weights and biases of all layers."""
        return self.layers * self.directions * (4 if self.biases else 2)

    def __str__(self) -> str:
        return f"torch.{self.kind}[{self.layers} x {self.directions}]"

    def __call__(self, x: Any, *rest: Any) -> Any:
        count = 1 + self.memory
        states, weights = rest[:count], rest[count:]
        if is_tensor(x):
            return recurrent_on_tensors(
                self.kind, x, states, weights, self.biases, self.layers, self.directions == 2
            )
        wide = [np.asarray(w, dtype=np.float64) for w in (x, *states, *weights)]
        made = self._on_host(wide[0], wide[1 : count + 1], wide[count + 1 :])
        return made.astype(x.dtype, copy=False)

    def _on_host(self, x: Any, states: Sequence[Any], weights: Sequence[Any]) -> Any:
        size, steps, last = 4 if self.biases else 2, len(x), []
        for layer in range(self.layers):
            found = []
            for back in range(self.directions):
                at = layer * self.directions + back
                own, order = weights[at * size : (at + 1) * size], slice(None, None, 1 - 2 * back)
                ends = [*self._states(x[order], [state[at] for state in states], own)]
                found.append(np.stack([end[0] for end in ends])[order])
                last.append(ends[-1])
            x = np.concatenate(found, -1)
        hidden = x.shape[-1] // self.directions
        apart = x.reshape(steps, -1, self.directions, hidden).swapaxes(1, 2)
        kept = [np.stack(each) for each in zip(*last, strict=True)]
        return np.concatenate((apart.reshape(-1, *apart.shape[2:]), *kept))

    def _states(
        self, x: Any, state: Sequence[Any], weights: Sequence[Any]
    ) -> Iterator[tuple[Any, ...]]:
        """The states behind each step of one layer in one direction."""
        of_input, of_state = weights[:2]
        row, more = weights[2:] if self.biases else (0.0, 0.0)
        now = tuple(state)
        for given in x @ of_input.T + row:
            kept = now[0] @ of_state.T + more
            gates = (np.split(each, GATES[self.kind], -1) for each in (given, kept))
            now = STEPS[self.kind](*gates, *now)
            yield now


def _sigmoid(x: Any) -> Any:
    return 0.5 * (1 + np.tanh(0.5 * x))


def _lstm(given: Any, kept: Any, state: Any, memory: Any) -> tuple[Any, Any]:
    del state
    write, keep, new, show = (a + b for a, b in zip(given, kept, strict=True))
    memory = _sigmoid(keep) * memory + _sigmoid(write) * np.tanh(new)
    return _sigmoid(show) * np.tanh(memory), memory


def _gru(given: Any, kept: Any, state: Any) -> tuple[Any]:
    reset, update = (_sigmoid(a + b) for a, b in zip(given[:2], kept[:2], strict=True))
    new = np.tanh(given[2] + reset * kept[2])
    return (new + update * (state - new),)


STEPS: Mapping[str, Callable[..., tuple[Any, ...]]] = {
    "rnn_tanh": lambda given, kept, _: (np.tanh(given[0] + kept[0]),),
    "rnn_relu": lambda given, kept, _: (np.maximum(given[0] + kept[0], 0),),
    "gru": _gru,
    "lstm": _lstm,
}
"""The next states: of the gates of the input, the gates of the state, and the states."""
