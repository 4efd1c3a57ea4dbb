"""What models of language need, in plain torch: attention, caches, masks, lookups."""

import pytest

import blockbuster as bb

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch.nn.functional import embedding, scaled_dot_product_attention  # noqa: E402

from blockbuster.torch_graphs.joins import leave_out_empty_parts  # noqa: E402
from tests.torch_graphs.test_backend import assert_same, compiled, run  # noqa: E402
from tests.torch_graphs.test_division import captured, pieces_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

Q = torch.randn(1, 4, 3, 4, generator=torch.Generator().manual_seed(1))
WORDS = torch.tensor([[2, 0, 1]])
TABLE = torch.arange(12.0).reshape(3, 4)


class AsItIs:
    """In the place of ``jit``: how graphs are divided is tested here, not their kernels."""

    def __init__(self, function, **_):
        self.function, self.report_for = function, lambda *_: "as it is"

    def __call__(self, *given):
        return [made.contiguous() for made in self.function(*given)]


@pytest.fixture(autouse=True)
def _nothing_captured(monkeypatch):
    monkeypatch.setattr("blockbuster.torch_graphs.compiled_piece.jit", AsItIs)
    torch._dynamo.reset()


def with_cache(q):
    """The change of the cache sends the graph through internal operators."""
    k, hidden = q[:, ::2], torch.ones(3, 3).tril() > 0
    cache = torch.zeros(1, 2, 3, 4)
    cache[:, :, :3] = k
    seen = scaled_dot_product_attention(q, cache, k, attn_mask=hidden, scale=0.3, enable_gqa=True)
    return scaled_dot_product_attention(q, seen, seen, is_causal=True)


@pytest.mark.parametrize(
    "context", [torch.no_grad, lambda: torch.autocast("cpu")], ids=["as it is", "autocast"]
)
def test_attention_stays_one_operator_where_a_graph_changes_something(context):
    ours, told = compiled(with_cache, strict=True)
    found, wanted = run(ours, Q, context)[0], run(with_cache, Q, context)[0]
    assert (found.dtype, found.stride()) == (wanted.dtype, wanted.stride())
    torch.testing.assert_close(found, wanted, rtol=2e-2, atol=2e-2)
    assert "compiled piece\n" in told[0]


def test_attention_that_drops_or_needs_gradients_is_torchs():
    def attend(q):
        q = q * 2
        return scaled_dot_product_attention(q, q, q)

    def dropping(q):
        q[0].add_(1)
        return scaled_dot_product_attention(q, q, q, dropout_p=0.5)

    given, eagers = (Q.clone().requires_grad_() for _ in range(2))
    ours, told = compiled(attend)
    ours(given).sum().backward()
    attend(eagers).sum().backward()
    torch.testing.assert_close(given.grad, eagers.grad)
    assert "_scaled_dot_product_flash_attention_for_cpu" in told[0]
    assert_same(run(compiled(dropping)[0], Q), run(dropping, Q))


def test_calls_without_effect_leave_a_graph_as_it_was_written():
    layers = torch.nn.ModuleList([torch.nn.Softmax(-1), torch.nn.Tanh()])

    def sliced(x):
        for layer in layers[:1]:
            x = layer(x)
        with torch.autocast("cpu", enabled=False):
            return x * 2

    ours, told = compiled(sliced)
    assert_same(run(ours, Q), run(sliced, Q))
    assert told[0].startswith("captured graph: 2 of 2 operators in 1 compiled piece\n")


def test_what_reads_no_result_of_a_piece_runs_in_front_of_it():
    def looked_up(words, table, x):
        first = x.exp() * 2
        return embedding(words, table) + first.sum() + embedding(words, first)

    order = [name for name, _ in pieces_of(looked_up, WORDS, TABLE, TABLE)]
    assert order == ["embedding", "exp mul sum_1 add", "embedding_1", "add_1"]


def test_parts_without_elements_are_left_out():
    def cached(x):
        return torch.cat([x.new_zeros(0), x.exp()], 0), torch.cat((x.int()[0, :0], x[0]))

    graph = captured(cached, TABLE).graph
    leave_out_empty_parts(graph)
    joins = graph.find_nodes(op="call_function", target=torch.cat)
    assert [len(node.args[0]) for node in joins] == [1, 2]  # the other one changes the dtype


def test_pieces_that_are_refused_give_what_views_are_made_of(monkeypatch):
    def refusing(*_, **__):
        def call(*_):
            raise bb.EmitError("too large")

        return call

    def function(q):
        return (q.transpose(1, 2).contiguous() * 2).transpose(1, 2).contiguous().view(4, 12)

    monkeypatch.setattr("blockbuster.torch_graphs.compiled_piece.jit", refusing)
    assert_same(run(compiled(function)[0], Q), run(function, Q))
