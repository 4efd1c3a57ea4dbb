"""Values of tile programs are hashed once, alike where they are equal, and each process anew."""

import pickle
import subprocess
import sys
from dataclasses import replace

import pytest

import blockbuster as bb
from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.hashed import HashedOnce
from blockbuster.emit.tile.program import Block, For, Nest, Tile


@pytest.fixture
def loop():
    return For("M", True, (For("N", False, ()),))


def test_equal_loops_have_equal_hashes(loop):
    other = For("M", True, (For("N", False, ()),), origin="elsewhere")

    assert loop == other
    assert hash(loop) == hash(other)


@pytest.mark.parametrize("change", [{"dim": "K"}, {"body": ()}, {"full": True}, {"chunk": "C"}])
def test_another_loop_has_another_hash(loop, change):
    assert hash(loop) != hash(replace(loop, **change))


def test_a_changed_copy_does_not_keep_the_hash(loop):
    nest = Nest((loop,), warps=4)
    known = hash(nest)

    assert hash(replace(nest, blocks=(Block("M", 64),))) != known == hash(replace(nest))


@pytest.mark.parametrize("parts", [{}, {"dtype": "float16"}, {"axes": (), "hint": "x"}])
def test_a_changed_copy_is_what_dataclasses_make(parts):
    tile = Tile("t1", ("M", "N"), hint="scores")
    hash(tile)
    made, expected = changed(tile, **parts), replace(tile, **parts)

    assert (made, made.hint, hash(made)) == (expected, expected.hint, hash(expected))
    assert vars(made).keys() == vars(expected).keys()


def test_a_changed_copy_leaves_behind_what_was_computed(loop):
    assert loop.statements == loop.body

    assert changed(loop, body=()).statements == ()


def test_a_part_that_is_no_field_is_refused(loop):
    with pytest.raises(TypeError, match="For has no step"):
        changed(loop, step=2)


def test_the_body_is_hashed_once(loop, monkeypatch):
    hash(loop)
    monkeypatch.setattr(sys.modules[HashedOnce.__module__], "fields", None)  # asked for no more

    assert hash(loop) == hash(loop)


def test_another_process_hashes_anew(tmp_path):
    """Names have other hashes there: a hash that travelled would find nothing in a dict."""
    graph = bb.fuse(bb.lower(bb.trace(bb.softmax, x="M N"))).final
    kernel = bb.emit(graph, dict(M=64, N=64))
    nest = kernel.tile_program.nests[0]
    hash(nest)
    path = tmp_path / "nest"
    path.write_bytes(pickle.dumps(nest))
    code = (
        "import pickle, sys; from dataclasses import replace;"
        "nest = pickle.loads(open(sys.argv[1], 'rb').read());"
        "assert hash(nest) == hash(replace(nest)); assert nest in {replace(nest): 1}"
    )

    subprocess.run([sys.executable, "-c", code, str(path)], check=True, env={"PYTHONHASHSEED": "7"})
