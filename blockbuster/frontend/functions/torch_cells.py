"""torch's recurrent cells: one step in time of nn.RNNCell, nn.GRUCell and nn.LSTMCell.

A weight has the rows of all gates one below the other, in torch's order.
"""

from __future__ import annotations

from collections.abc import Sequence

from blockbuster.frontend.functions.joins import chunk
from blockbuster.frontend.functions.pointwise import relu, sigmoid, tanh
from blockbuster.frontend.functions.row import Array, torch_rows
from blockbuster.frontend.functions.torch_layers import linear


def rnn_tanh_cell(
    input: Array, hx: Array, w_ih: Array, w_hh: Array,
    b_ih: Array | None = None, b_hh: Array | None = None,
) -> Array:  # fmt: skip
    """The next state: the tanh of a layer of the input plus a layer of the state."""
    return tanh(linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh))


def rnn_relu_cell(
    input: Array, hx: Array, w_ih: Array, w_hh: Array,
    b_ih: Array | None = None, b_hh: Array | None = None,
) -> Array:  # fmt: skip
    """The next state: the relu of a layer of the input plus a layer of the state."""
    return relu(linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh))


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


ROWS = torch_rows(
    "torch.nn: cells", rnn_tanh_cell, rnn_relu_cell, gru_cell, lstm_cell, modules=("",)
)
