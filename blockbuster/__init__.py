"""Blockbuster: array programs become fused kernels, step by step, each step proved and costed.

>>> import blockbuster as bb
>>> def gelu_of_product(x, w):
...     return bb.gelu(x @ w)
>>> graph = bb.lower(bb.trace(gelu_of_product, x="M K", w="K N"))
>>> derivation = bb.fuse(graph)
>>> [step.rule for step in derivation.steps]
['fuse-maps', 'fuse-maps', 'fuse-reduction']
"""

from blockbuster.check.kernel import check_kernel
from blockbuster.check.loading import load
from blockbuster.check.report import KernelReport
from blockbuster.compile import Jitted, compile, jit
from blockbuster.emission import check_schedule, emit
from blockbuster.emit.kernel import Kernel
from blockbuster.errors import (
    BlockbusterError,
    DrawError,
    EmitError,
    FusionError,
    LaunchError,
    ParseError,
    RuleError,
    TraceError,
    VerifyError,
)
from blockbuster.frontend import (
    ArrayProgram,
    abs,
    arange,
    astype,
    concat,
    custom,
    erf,
    exp,
    gelu,
    layer_norm,
    log,
    log_softmax,
    logsumexp,
    lower,
    matmul,
    max,
    maximum,
    mean,
    merge_heads,
    min,
    minimum,
    reciprocal,
    relu,
    rms_norm,
    rsqrt,
    sigmoid,
    silu,
    softmax,
    split_heads,
    sqrt,
    square,
    sum,
    tanh,
    trace,
    transpose,
    where,
)
from blockbuster.interp import (
    Float16,
    Float32,
    Float64,
    GraphTraffic,
    Proof,
    evaluate,
    prove_equal,
)
from blockbuster.ir import Graph, parse, verify
from blockbuster.machines import Machine, machine
from blockbuster.rules import (
    PAPER_RULES,
    RULES,
    Derivation,
    Rule,
    explain,
    fuse,
    overflowing,
    reasons,
    safe,
)
from blockbuster.rules.materialize import materialize
from blockbuster.runtime.compiled import Compiled
from blockbuster.selection import Traffic, traffic
from blockbuster.selection.plan import Plan
from blockbuster.simulation import simulate
from blockbuster.testing.check import check_rule
from blockbuster.testing.report import RuleReport
from blockbuster.version import VERSION

__version__ = VERSION

__all__ = [
    # array programs
    "trace", "lower", "ArrayProgram",
    "matmul", "transpose", "where", "arange", "astype", "custom",
    "concat", "split_heads", "merge_heads",
    "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "silu", "gelu", "relu", "erf", "abs",
    "maximum", "minimum", "square", "reciprocal",
    "sum", "max", "min", "mean", "softmax", "log_softmax", "logsumexp", "layer_norm", "rms_norm",
    # block programs, rules
    "Graph", "parse", "verify", "Rule", "PAPER_RULES", "RULES", "fuse", "Derivation", "safe",
    "materialize", "overflowing", "explain", "reasons",
    # meaning and proof
    "evaluate", "Float16", "Float32", "Float64", "prove_equal", "Proof", "GraphTraffic",
    "check_rule", "RuleReport",
    # cost
    "traffic", "Traffic", "machine", "Machine", "simulate",
    # kernels
    "emit", "Kernel", "check_schedule", "check_kernel", "KernelReport",
    "jit", "compile", "load", "Jitted", "Compiled", "Plan",
    # errors
    "BlockbusterError", "TraceError", "VerifyError", "ParseError", "RuleError", "FusionError",
    "EmitError", "LaunchError", "DrawError",
]  # fmt: skip
