"""New sizes on a GPU, through the whole call of a jitted function: little work, the same starts."""

import gc
import sys

import pytest

import blockbuster as bb
from tests.compile.functions import attention, normal, several
from tests.compile.stand_ins import starts
from tests.compile.test_file_launches import appended


def views_and_casts(x, w):
    results = several(x, w.T)
    return {**results, "narrow": bb.astype(results["twice"], "float16")}


FUNCTIONS = {
    "attention": (attention, lambda n: [(16, 64), (n, 64), (n, 64)]),
    "appended": (appended, lambda n: [(4, 64), (n, 64), (3, 64)]),
    "views and casts": (views_and_casts, lambda n: [(n, 64), (32, 64)]),
}


def forms(results):
    found = results.values() if isinstance(results, dict) else [results]
    return [(result.shape, result.stride(), result.dtype) for result in found]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_new_size_starts_what_a_function_compiled_for_it_starts(name, on_gpu, torch):
    function, shapes = FUNCTIONS[name]

    def started(jitted, n):
        given = [torch.from_numpy(array) for array in normal(*shapes(n))]
        first = forms(jitted(*given))
        on_gpu.clear()
        assert forms(jitted(*given)) == first
        return starts(on_gpu), first

    jitted = bb.jit(function, machine="h100")
    for n in (1000, 1001, 1003, 1008, 1009, 999):
        assert started(jitted, n) == started(bb.jit(function, machine="h100"), n), n


@pytest.mark.parametrize(
    ("name", "most"), [("attention", 120), ("appended", 126)], ids=["attention", "appended"]
)
def test_a_new_size_takes_few_calls_more_than_a_known_layout(name, most, on_gpu, torch):
    function, shapes = FUNCTIONS[name]
    jitted = bb.jit(function, machine="h100")

    def events(n):
        given = [torch.from_numpy(array) for array in normal(*shapes(n))]
        seen = []
        gc.disable()
        sys.setprofile(lambda frame, event, argument: seen.append(event))
        try:
            jitted(*given)
        finally:
            sys.setprofile(None)
            gc.enable()
        return sum(event in ("call", "c_call") for event in seen)

    for n in (1001, 1003, 1005):  # the first use of a name of bb loads it, which is traced again
        events(n)
    new = events(1007)
    assert new - events(1007) <= most
