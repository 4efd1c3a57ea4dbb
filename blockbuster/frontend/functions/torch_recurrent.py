"""torch's recurrent cells, one step in time, and layers: what nn.RNN, nn.GRU and nn.LSTM call.

A weight has the rows of all gates one below the other, in torch's order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.functions.joins import chunk
from blockbuster.frontend.functions.pointwise import relu, sigmoid, tanh
from blockbuster.frontend.functions.row import Array, Row, named, torch_rows
from blockbuster.frontend.functions.shapes import reshape, swapaxes
from blockbuster.frontend.functions.torch_activations import expect_no_dropout
from blockbuster.frontend.functions.torch_layers import linear
from blockbuster.frontend.recurrent import GATES, Recurrent
from blockbuster.frontend.source import trace_error
from blockbuster.ir.lengths import whole


def _rnn_cell(name: str, function: Callable[[Array], Array]) -> Callable[..., Array]:
    """torch's cell of this name, such as ``rnn_tanh_cell``."""

    def cell(
        input: Array, hx: Array, w_ih: Array, w_hh: Array,
        b_ih: Array | None = None, b_hh: Array | None = None,
    ) -> Array:  # fmt: skip
        return function(linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh))

    what = f"the {function.__name__} of a layer of the input plus a layer of the state"
    return named(cell, name, f"The next state: {what}.")


def gru_cell(
    input: Array, hx: Array, w_ih: Array, w_hh: Array,
    b_ih: Array | None = None, b_hh: Array | None = None,
) -> Array:  # fmt: skip
    """The next state: between the old one and a new one, as far as the update gate says."""
    reset_in, update_in, new_in = chunk(linear(input, w_ih, b_ih), 3, 1)
    reset_of, update_of, new_of = chunk(linear(hx, w_hh, b_hh), 3, 1)
    reset, update = sigmoid(reset_in + reset_of), sigmoid(update_in + update_of)
    new = tanh(new_in + reset * new_of)
    return new + update * (hx - new)


def lstm_cell(
    input: Array, hx: Sequence[Array], w_ih: Array, w_hh: Array,
    b_ih: Array | None = None, b_hh: Array | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """The next state and the next memory."""
    state, memory = hx
    gates = chunk(linear(input, w_ih, b_ih) + linear(state, w_hh, b_hh), 4, 1)
    write, keep, new, show = gates
    memory = sigmoid(keep) * memory + sigmoid(write) * tanh(new)
    return sigmoid(show) * tanh(memory), memory


# layers -----------------------------------------------------------------------------


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
    return Row(function, _GROUP, torch=(kind,), public=False, note=note)


_GROUP = "torch.nn: cells"

ROWS = (
    *torch_rows(
        _GROUP, _rnn_cell("rnn_tanh_cell", tanh), _rnn_cell("rnn_relu_cell", relu), gru_cell,
        lstm_cell, modules=("",),
    ),
    *map(_row, GATES),
)  # fmt: skip
