"""torch's products that are added to an array: what a factor of 0 does."""

import pytest

import blockbuster as bb

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")


@pytest.mark.parametrize("name", ["addmm", "baddbmm"])
def test_what_is_added_zero_times_is_not_looked_at(name):
    function = getattr(torch, name)
    b = torch.arange(9.0).reshape(3, 3)[(None,) * (name == "baddbmm")]
    missing = torch.full_like(b, float("nan"))

    made = bb.jit(lambda a, b: function(a, b, b, beta=0))(missing, b)

    torch.testing.assert_close(made, b @ b)


def test_methods_take_the_keywords_of_torch():
    b = torch.ones(1, 3, 3)
    program = bb.trace(lambda a, b: a.baddbmm(batch1=b, batch2=b, beta=0.5), a=b, b=b)
    assert [equation.op for equation in program.equations] == ["matmul", "mul", "add"]
