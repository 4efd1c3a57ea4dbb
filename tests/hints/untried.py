"""Places whose hints no case tries: how many in each file, and why."""

UNTRIED = {
    "they need a GPU, a compiler, or a process of their own": {
        "calibration/gpu_device.py": 2,
        "check/kernel_process.py": 1,
        "emit/target/assembler.py": 1,
        "emit/target/compiler.py": 1,
        "machines/catalog.py": 1,
        "runtime/first_launch.py": 2,
        "runtime/graphs.py": 1,
        "runtime/kernel_call.py": 1,
        "runtime/launch.py": 1,
        "runtime/tensors.py": 1,
        "tuning/store.py": 1,
    },
    "they are about files that were saved, and damaged since": {
        "interp/recheck.py": 1,
        "runtime/saved.py": 1,
    },
    "they are about kernels that are made by hand": {
        "emit/print/triton/text.py": 1,
        "emit/schedule/drop_unit_loops.py": 1,
        "emit/tile/lower.py": 1,
    },
    "they are printed by the command line, whose tests are in tests/view": {
        "view/explorer/data.py": 1,
        "view/gantt.py": 1,
        "view/render.py": 1,
    },
    "no short program is known that leads there": {
        "frontend/functions/windows.py": 1,
        "frontend/in_place.py": 2,
        "frontend/kinds.py": 1,
        "frontend/memory.py": 1,
    },
    "their words are made before the error; cases try them, or tests/compile and tests/check do": {
        "check/arguments.py": 1,
        "check/call.py": 1,
        "costs/footprint.py": 2,
        "frontend/arguments.py": 1,
        "selection/plans/report.py": 1,
    },
}
