"""The search for dead cycles is off inside, and afterwards as it was."""

import gc

import pytest

from blockbuster.ir.garbage import collection_paused


def test_off_inside_and_on_again_afterwards():
    assert gc.isenabled()
    with collection_paused():
        assert not gc.isenabled()
        with collection_paused():
            pass
        assert not gc.isenabled()  # the outermost ends the pause

    assert gc.isenabled()


def test_on_again_after_an_error():
    with pytest.raises(KeyError), collection_paused():
        raise KeyError

    assert gc.isenabled()


def test_left_off_where_it_was_off():
    gc.disable()
    try:
        with collection_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
