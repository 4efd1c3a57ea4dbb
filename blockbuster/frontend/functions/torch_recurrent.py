"""torch's recurrent layers: what nn.RNN, nn.GRU and nn.LSTM call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.functions.row import Array, Row, named
from blockbuster.frontend.functions.shapes import reshape, swapaxes
from blockbuster.frontend.functions.torch_activations import expect_no_dropout
from blockbuster.frontend.recurrent import GATES, Recurrent
from blockbuster.frontend.source import trace_error
from blockbuster.ir.lengths import whole


def _layers(
    kind: str, input: Array, hx: Array | Sequence[Array], params: Sequence[Array],
    has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool,
    batch_first: bool,
) -> tuple[Array, ...]:  # fmt: skip
    """All states of the last layer, then the last state (and memory) of each layer."""
    if num_layers > 1:  # dropout is between layers
        expect_no_dropout(dropout, train)
    layer = Recurrent(kind, num_layers, 1 + bidirectional, has_biases)
    states = tuple(hx) if isinstance(hx, list | tuple) else (hx,)
    if not isinstance(params, list | tuple) or len(states) != 1 + layer.memory:
        reason = f"torch.{kind} of packed sequences"
        raise trace_error(reason, hint="pad them: (batch, steps, features)")
    if len(params) != layer.weights:
        reason = f"torch.{kind} with {len(params)} weights, not {layer.weights}"
        raise trace_error(reason, hint="proj_size=0: states are not projected")
    trace = next(a for a in (input, *states, *params) if isinstance(a, TracedArray)).trace
    x, *rest = (trace.array(a) for a in (input, *states, *params))
    x = swapaxes(x, 0, 1) if batch_first else x
    trace.checked(lambda: _as_one(layer, x, rest), str(layer), x)
    steps, batch, hidden = trace.dims.length(x.axes[0]), x.axes[1], rest[0].axes[2]
    ends = layer.layers * layer.directions
    count = steps * whole(layer.directions) + whole(ends * len(states))
    shape = (trace.dims.derived(count, "recurrent", count), batch, hidden)
    packed = trace.custom(layer, (x, *rest), shape, str(layer))
    last = [packed[-ends * at : (-ends * (at - 1)) or None] for at in range(len(states), 0, -1)]
    made = packed[: -ends * len(states)]
    if bidirectional:
        apart = swapaxes(reshape(made, (x.shape[0], 2, x.shape[1], -1)), 1, 2)
        made = reshape(apart, (x.shape[0], x.shape[1], -1))
    return (swapaxes(made, 0, 1) if batch_first else made, *last)


def _as_one(layer: Recurrent, x: TracedArray, rest: Sequence[TracedArray]) -> None:
    """Tell which axes are the same, as far as each step needs it. Raises Refused."""
    states, weights = rest[: 1 + layer.memory], rest[1 + layer.memory :]
    dims = x.trace.dims
    for state in states:
        dims.unify(state.axes[1], x.axes[1])
        dims.unify(state.axes[2], states[0].axes[2])
    size = 4 if layer.biases else 2
    for at in range(layer.layers * layer.directions):
        of_input, of_state = weights[at * size : at * size + 2]
        dims.unify(of_state.axes[1], states[0].axes[2])
        if at < layer.directions:
            dims.unify(of_input.axes[1], x.axes[2])


def _row(kind: str) -> Row:
    function = named(partial(_layers, kind), kind, _layers.__doc__ or "")
    note = "A library's function runs between kernels."
    return Row(function, "torch.nn: cells", torch=(kind,), public=False, note=note)


ROWS = tuple(map(_row, GATES))
