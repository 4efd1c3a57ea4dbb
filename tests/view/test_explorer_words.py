"""What the explorer's page says of masks, integers and what follows the moves."""

import blockbuster as bb
from blockbuster.view.explorer.data import explorer_data
from blockbuster.view.explorer.setting import Setting
from tests.view.explorer_cases import (
    data,
)


def test_masks_and_integers_count_with_their_own_bytes():
    def nearest(x, c, seen):
        d = bb.where(seen, x @ c.T, float("inf"))
        return bb.argmin(d, axis=-1), bb.sum(seen, axis=-1)

    program = bb.trace(nearest, x="M D", c="C D", seen="bool: M C")
    shown = explorer_data(bb.fuse(bb.lower(program)), Setting(), prove=False)
    tensors = shown["states"][-1]["tensors"]
    own = {t["hint"]: t["own"] for t in tensors if t["kind"] == "input"}
    outputs = [t for t in tensors if t["kind"] == "output"]

    assert (own["x"], own["c"], own["seen"]) == ("", "", "bool")
    assert [t["own"] for t in outputs] == ["int64", "int64"]
    assert (shown["own_bytes"]["bool"], shown["own_bytes"]["int64"]) == (1, 8)


def test_what_follows_the_moves_is_said_without_names_of_code():
    last = data("attention")["moves"]["steps"][-1]

    assert last["move"] == "close"
    assert "`" not in last["why"]
    assert last["why"].startswith("Before printing")
