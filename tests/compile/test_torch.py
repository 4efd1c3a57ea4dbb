"""bb.jit and bb.compile on torch's tensors on the CPU, and as a custom operator of torch."""

import pytest

import blockbuster as bb
from tests.compile.functions import attention, close, doubled, normal, several, with_custom

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def tensors(torch):
    def make(*shapes, dtype="float32"):
        return [torch.from_numpy(a).to(getattr(torch, dtype)) for a in normal(*shapes)]

    return make


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_tensors_in_and_out(torch, tensors, dtype):
    q, k, v = tensors((9, 8), (7, 8), (7, 5), dtype=dtype)

    out = bb.jit(attention)(q, k, v)

    assert out.dtype == getattr(torch, dtype)
    exact = torch.softmax(q.double() @ k.double().T * 8**-0.5, -1) @ v.double()
    tolerance = {"float16": 2e-3, "bfloat16": 2e-2}.get(dtype, 1e-5)
    close(out.double().numpy(), exact, tolerance)


def test_memory_is_not_copied_in(torch, tensors):
    (x,) = tensors((4, 4))
    seen = []

    def look(array):
        seen.append(array.ctypes.data)
        return array * 2

    bb.jit(lambda x: bb.custom(look, x, shape=x.shape))(x)
    assert seen == [x.data_ptr()]


def test_strides_and_structure(torch, tensors):
    x, w = tensors((8, 6), (8, 5))

    results = bb.jit(several)(x.t(), w)

    y = torch.exp(x.t()) @ w
    close(results["turned"].numpy(), y.t())
    close(results["sorted"].numpy(), y.t().sort(-1).values)
    assert bb.jit(lambda x, y: x > y)(x, x * 2).dtype == torch.bool
    assert bb.jit(with_custom(doubled))(x).shape == x.shape
    assert bb.jit(lambda x: x.sum())(x).shape == ()
    assert bb.jit(attention)(x[:0], x, x).shape == (0, 6)


def test_casts_and_mixed_dtypes(torch, tensors):
    (x,) = tensors((4, 4))

    assert bb.jit(lambda x: bb.astype(x, "bfloat16"))(x).dtype == torch.bfloat16
    assert bb.jit(lambda x, y: x + y)(x, x.bfloat16()).dtype == torch.float32
    assert bb.jit(lambda x, y: x + y)(x.half(), x.bfloat16()).dtype == torch.float32


def test_gradients_are_refused(torch, tensors):
    (x,) = tensors((4, 4))
    weight = torch.nn.Parameter(x.clone())
    jitted = bb.jit(lambda x, w: x @ w)

    with pytest.raises(
        bb.LaunchError, match="w requires a gradient: Blockbuster compiles inference"
    ):
        jitted(x, weight)
    with torch.no_grad():
        close(jitted(x, weight).numpy(), x @ x)
    with pytest.raises(bb.LaunchError, match="w requires a gradient"):
        jitted(x, weight)


def test_arrays_that_do_not_go_together(torch, tensors):
    (x,) = tensors((4, 4))
    jitted = bb.jit(lambda x, y: x + y)

    with pytest.raises(bb.LaunchError, match="y is a NumPy array, x is a tensor on cpu"):
        jitted(x, x.numpy())
    known = r"(?s)y holds complex64; known are .*two arrays: y.real, y.imag"
    with pytest.raises(bb.LaunchError, match=known):
        jitted(x, x.to(torch.complex64))
    with pytest.raises(bb.LaunchError, match=r"y is torch\.sparse_coo"):
        jitted(x, x.to_sparse())
    with pytest.raises(bb.LaunchError, match="x is on meta"):
        jitted(x.to("meta"), x)
    with pytest.raises(bb.LaunchError, match=r"(?s)x is a tensor without memory.*as_custom_op"):
        torch.vmap(jitted)(x, x)
    z = torch.complex(x, x)
    close(jitted(x, z.imag).numpy(), 2 * x)
    with pytest.raises(bb.LaunchError, match=r"(?s)y is a view that negates.*y.resolve_neg\(\)"):
        jitted(x, z.conj().imag)


def test_compiled_programs_take_tensors(tensors, tmp_path):
    compiled = bb.compile(
        bb.trace(attention, q="M D", k="N D", v="N L"),
        dict(M=9, N=7, D=8, L=5),
        dtype="bfloat16",
        machine="cpu",
    )
    arrays = tensors((9, 8), (7, 8), (7, 5), dtype="bfloat16")

    out = bb.load(compiled.save(tmp_path / "a"))(*arrays)

    assert (out == compiled(*arrays)).all()


@pytest.mark.parametrize("function", [attention, lambda q, k, v: (q @ k.T, bb.exp(v).T)])
def test_as_a_custom_operator(torch, tensors, function):
    program = bb.trace(function, q="M D", k="N D", v="N L")
    compiled = bb.compile(program, dict(M=9, N=7, D=8, L=5), dtype="float32", machine="cpu")
    arrays = tensors((9, 8), (7, 8), (7, 5))
    name = f"blockbuster_tests::{'one' if function is attention else 'two'}"

    operator = compiled.as_custom_op(name)

    torch.library.opcheck(operator, tuple(arrays))
    pairs = zip(operator(*arrays), compiled(*arrays), strict=True)  # rows, or results
    assert all(torch.equal(got, right) for got, right in pairs)


def test_a_custom_operator_with_slices(torch, tensors):
    (x,) = tensors((6, 4))
    program = bb.trace(lambda x: (x[1:] - x[:-1], x[:, : x.shape[1] // 2].T * 2), x="M N")
    compiled = bb.compile(program, dict(M=6, N=4), dtype="float32", machine="cpu")

    torch.library.opcheck(compiled.as_custom_op("blockbuster_tests::slices"), (x,))


@pytest.mark.parametrize("name", ["product", "a::b::c", "", "1::2"])
def test_names_of_custom_operators(name):
    compiled = bb.compile(bb.trace(bb.exp, x="M"), dict(M=3), dtype="float32", machine="cpu")

    with pytest.raises(ValueError, match=r"(?s)names no operator.*mine::attention"):
        compiled.as_custom_op(name)
