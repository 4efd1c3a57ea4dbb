"""Places whose hints no case tries: how many in each file, and why."""

UNTRIED = {
    "they need a GPU": {
        "runtime/kernel_call.py": 1,
        "runtime/tensors.py": 1,
    },
    "they say that Blockbuster has a bug, or that a file was damaged since it was saved": {
        "runtime/saved.py": 1,
    },
    "they are about kernels that are made by hand": {
        "emit/print/triton/text.py": 1,
        "emit/schedule/drop_unit_loops.py": 1,
        "emit/tile/lower.py": 1,
    },
    "no short program is known that leads there": {
        "frontend/in_place.py": 1,
        "frontend/kinds.py": 1,
        "frontend/memory.py": 1,
    },
}
