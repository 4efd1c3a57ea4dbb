"""The table "Executed block traffic" of the prototype, and what costs nothing."""

import pytest

from blockbuster.interp.binding import dims_of
from blockbuster.ir.parse import parse
from tests.interp import examples
from tests.interp.counted import graph_traffic

PROTOTYPE = [
    ("ATTENTION_START", {}, (472, 232, 128)),
    ("ATTENTION_FIRST", {}, (256, 32, 128)),
    ("ATTENTION_FINAL", {}, (576, 16, 320)),
    ("ATTENTION_START", {"D": 1, "L": 1}, (184, 124, 32)),
    ("ATTENTION_FIRST", {"D": 1, "L": 1}, (64, 20, 32)),
    ("ATTENTION_FINAL", {"D": 1, "L": 1}, (48, 4, 32)),
    ("LAYER_NORM_START", {}, (324, 176, 64)),
    ("LAYER_NORM_FIRST", {}, (144, 16, 64)),
    ("LAYER_NORM_FINAL", {}, (128, 16, 64)),
    ("SWIGLU_START", {}, (696, 328, 192)),
    ("SWIGLU_FIRST", {}, (336, 32, 192)),
    ("SWIGLU_SECOND", {}, (896, 16, 576)),
    ("SWIGLU_FINAL", {}, (832, 16, 576)),
    ("SWIGLU_START", {"N": 1, "K": 1}, (192, 112, 36)),
    ("SWIGLU_FIRST", {"N": 1, "K": 1}, (72, 8, 36)),
    ("SWIGLU_SECOND", {"N": 1, "K": 1}, (68, 4, 36)),
    ("SWIGLU_FINAL", {"N": 1, "K": 1}, (52, 4, 36)),
    ("SWIGLU_START", {"N": 1}, (552, 268, 144)),
    ("SWIGLU_FIRST", {"N": 1}, (240, 20, 144)),
    ("SWIGLU_SECOND", {"N": 1}, (224, 4, 144)),
    ("SWIGLU_FINAL", {"N": 1}, (208, 4, 144)),
]


@pytest.mark.parametrize(("name", "blocks", "expected"), PROTOTYPE)
def test_executed_block_traffic(name, blocks, expected):
    graph = parse(getattr(examples, name))
    sizes = dict.fromkeys(dims_of(graph), 4)

    traffic = graph_traffic(graph, sizes, {**sizes, **blocks})

    assert (traffic.loads, traffic.stores, traffic.dots) == expected


def test_traffic_is_counted_per_tensor():
    traffic = graph_traffic(parse(examples.ATTENTION_FINAL), dict.fromkeys("MNDL", 4))

    counted = {t.name: (m.loads, m.stores, m.stored_elements) for t, m in traffic.tensors.items()}

    assert counted == {"Q": (1, 0, 0), "KT": (1, 0, 0), "VT": (1, 0, 0), "o": (0, 1, 16)}


def count(text, **blocks):
    graph = parse(text)
    traffic = graph_traffic(graph, dict.fromkeys(dims_of(graph), 4), blocks)
    return {t.name: (m.loads, m.stores) for t, m in traffic.tensors.items()}


def test_reduce_loads_every_item():
    text = "graph(S: M[]) { s = reduce + M (!S) return s }"

    assert count(text, M=4) == {"S": (4, 0), "out": (0, 1)}


def test_an_accumulated_input_is_loaded():
    text = "graph(V: M[]) { s = map M (v in !V) { yield +v } return s }"

    assert count(text, M=4) == {"V": (4, 0), "out": (0, 1)}


def test_an_item_is_loaded_once_however_deep_it_is_used():
    text = """graph(X: M,K[M,K], V: M[M]) {
      Y = map M (x in !X, v in !V) {
        y = map K (b in !x, c = v) { s = row_shift(b, c)  t = row_scale(s, c)  yield t }
        yield y
      }
      return Y
    }"""

    assert count(text, M=4, K=2) == {"X": (8, 0), "V": (4, 0), "y": (0, 8)}


def test_index_vectors_and_addressing_cost_nothing():
    text = """graph(i: M[M] = index(M), X: M,K[M,K]) {
      Z = transpose K,M[K,M] (!X)
      Y = map M (a in !i) { y = exp(a)  yield y }
      return Y, Z
    }"""

    assert count(text, M=4, K=4) == {"Y": (0, 4)}


def test_what_is_handed_on_is_not_moved():
    text = "graph(X: M,K[M,K]) { Y = map M (x in !X) { yield x } return Y }"

    assert count(text, M=4) == {}
