"""Functions of whole arrays between kernels: a library's are called as they are from the second
call on, where nothing is left to do to what they give.
"""

import pytest

from blockbuster.frontend.library_calls import LibraryProduct
from blockbuster.runtime import device_call
from blockbuster.runtime.device_call import DeviceCall
from blockbuster.runtime.first_launch import Refused
from blockbuster.selection.plans.pieces import Call, Seen

SIZES = {"M": 3, "K": 4, "N": 5}
PLAIN = LibraryProduct((0, 1), (0, 1))


def product(torch, fn=PLAIN, x=("x", (0, 1)), w=("w", (0, 1))):
    call = Call("product", fn, (Seen(*x), Seen(*w)), ("y",), (("M", "N"),))
    return DeviceCall(call, SIZES, [torch.float32])


@pytest.fixture
def checked(monkeypatch):
    """How often shapes of results were checked."""
    calls = []
    check = device_call.check_results
    monkeypatch.setattr(device_call, "check_results", lambda *a: (calls.append(a), check(*a)))
    return calls


def arrays(torch, first=0.0):
    made = torch.arange(32, dtype=torch.float32) + first
    return made[:12].reshape(3, 4), made[12:].reshape(4, 5)


def test_a_librarys_product_is_looked_at_once(torch, checked):
    call = product(torch)
    for first in range(3):
        x, w = arrays(torch, first)
        (made,) = (call.play if first else call.first)([x, w])
        assert torch.equal(made, x @ w)
    assert len(checked) == 1


def test_turned_operands_are_turned_in_every_call(torch, checked):
    call = product(torch, w=("w", (1, 0)))
    x, w = arrays(torch)
    turned = w.T.contiguous()
    for play in (call.first, call.play):
        (made,) = play([x, turned])
        assert torch.equal(made, x @ w)
    assert len(checked) == 2


def test_an_array_that_is_read_twice_is_given_twice(torch):
    call = Call("square", PLAIN, (Seen("x", (0, 1)),) * 2, ("y",), (("M", "M"),))
    called = DeviceCall(call, SIZES, [torch.float32])
    x = arrays(torch)[0][:, :3]
    for play in (called.first, called.play):
        (made,) = play([x])
        assert torch.equal(made, x @ x)


def test_results_that_lie_otherwise_are_copied(torch, monkeypatch):
    """A setting of torch may change how a library's result lies; kernels read the first layout."""
    call = product(torch)
    x, w = arrays(torch)
    call.first([x, w])
    monkeypatch.setattr(LibraryProduct, "__call__", lambda self, x, w: (w.T @ x.T).T)
    (made,) = call.play([x, w])
    assert made.is_contiguous()
    assert torch.equal(made, x @ w)


def test_functions_of_users_are_checked_in_every_call(torch, checked):
    call = product(torch, fn=lambda x, w: x @ w)
    x, w = arrays(torch)
    for play in (call.first, call.play):
        play([x, w])
    assert len(checked) == 2


def refusing(*_):
    raise RuntimeError("no kernel for such operands\nand more")


def test_a_library_that_refuses_leaves_its_place_to_another_plan(torch, monkeypatch):
    monkeypatch.setattr(LibraryProduct, "__call__", refusing)
    call = Call("product", PLAIN, (Seen("x", (0, 1)), Seen("w", (0, 1))), ("y",), (("M", "N"),))
    refused = DeviceCall(call, SIZES, [torch.float32], has_others=True)
    with pytest.raises(Refused, match="product: no kernel for such operands") as error:
        refused.first([*arrays(torch)])
    assert error.value.files == (call,)
    assert not refused.note


def test_without_another_plan_it_is_tried_on_the_host(torch, monkeypatch):
    plain = LibraryProduct.__call__

    def on_host_only(self, x, w):
        return refusing() if isinstance(x, torch.Tensor) else plain(self, x, w)

    monkeypatch.setattr(LibraryProduct, "__call__", on_host_only)
    call, (x, w) = product(torch), arrays(torch)
    assert torch.equal(call.first([x, w])[0], x @ w)
    assert call.note == (
        "product runs on the host, with copies there and back: no kernel for such operands"
    )


def test_users_functions_run_on_the_host_where_there_are_other_plans(torch):
    call = Call("mine", refusing, (Seen("x", (0, 1)),), ("y",), (("M", "K"),))
    with pytest.raises(RuntimeError, match="no kernel"):
        DeviceCall(call, SIZES, [torch.float32], has_others=True).first([arrays(torch)[0]])


def test_axes_of_one_element_that_a_library_leaves_out(torch):
    given = Seen("x", (0, 1)), Seen("w", (0, 1))
    call = DeviceCall(
        Call("product", PLAIN, given, ("y",), ((None, "M", None, "N"),)), SIZES, [torch.float32]
    )
    for first in range(3):
        x, w = arrays(torch, first)
        (made,) = (call.play if first else call.first)([x, w])
        assert torch.equal(made, (x @ w)[None, :, None])
