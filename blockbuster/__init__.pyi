"""Where each public name comes from: `__init__.py` loads a name when it is first used."""

from .check.kernel import check_kernel as check_kernel
from .check.loading import load as load
from .check.report import KernelReport as KernelReport
from .choosing import select as select
from .compile import compile as compile, jit as jit, tune as tune
from .emission import check_schedule as check_schedule, emit as emit
from .emit.kernel import Kernel as Kernel
from .errors import (
    BlockbusterError as BlockbusterError,
    DrawError as DrawError,
    EmitError as EmitError,
    FusionError as FusionError,
    LaunchError as LaunchError,
    ParseError as ParseError,
    RuleError as RuleError,
    TraceError as TraceError,
    VerifyError as VerifyError,
)
from .frontend.functions.choices import (
    diagonal as diagonal,
    one_hot as one_hot,
    take_along_axis as take_along_axis,
)
from .frontend.functions.creation import (
    arange as arange,
    custom as custom,
)
from .frontend.functions.cuts import roll as roll
from .frontend.functions.filled import (
    eye as eye,
    full as full,
    full_like as full_like,
    ones as ones,
    ones_like as ones_like,
    tril as tril,
    triu as triu,
    zeros as zeros,
    zeros_like as zeros_like,
)
from .frontend.functions.joins import (
    chunk as chunk,
    concat as concat,
    concatenate as concatenate,
    diff as diff,
    embedding as embedding,
    flip as flip,
    fliplr as fliplr,
    flipud as flipud,
    hstack as hstack,
    repeat as repeat,
    split as split,
    stack as stack,
    take as take,
    tile as tile,
    unbind as unbind,
    vstack as vstack,
)
from .frontend.functions.normalizations import (
    layer_norm as layer_norm,
    log_softmax as log_softmax,
    rms_norm as rms_norm,
    softmax as softmax,
)
from .frontend.functions.orders import sort as sort
from .frontend.functions.pads import pad as pad
from .frontend.functions.pointwise import (
    abs as abs,
    astype as astype,
    atan as atan,
    ceil as ceil,
    clip as clip,
    cos as cos,
    erf as erf,
    exp as exp,
    exp2 as exp2,
    expm1 as expm1,
    floor as floor,
    gelu as gelu,
    hypot as hypot,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    log as log,
    log10 as log10,
    log1p as log1p,
    log2 as log2,
    logaddexp as logaddexp,
    maximum as maximum,
    minimum as minimum,
    reciprocal as reciprocal,
    relu as relu,
    round as round,
    rsqrt as rsqrt,
    sigmoid as sigmoid,
    sign as sign,
    silu as silu,
    sin as sin,
    sqrt as sqrt,
    square as square,
    tan as tan,
    tanh as tanh,
    trunc as trunc,
    where as where,
)
from .frontend.functions.products import (
    dot as dot,
    einsum as einsum,
    inner as inner,
    matmul as matmul,
    norm as norm,
    outer as outer,
    tensordot as tensordot,
    vdot as vdot,
)
from .frontend.functions.ranks import topk as topk
from .frontend.functions.reductions import (
    all as all,
    any as any,
    average as average,
    count_nonzero as count_nonzero,
    cumprod as cumprod,
    cummax as cummax,
    cummin as cummin,
    cumsum as cumsum,
    logsumexp as logsumexp,
    max as max,
    mean as mean,
    min as min,
    prod as prod,
    ptp as ptp,
    std as std,
    sum as sum,
    var as var,
)
from .frontend.functions.searches import (
    argmax as argmax,
    argmin as argmin,
)
from .frontend.functions.shapes import (
    broadcast_to as broadcast_to,
    expand_dims as expand_dims,
    flatten as flatten,
    merge_heads as merge_heads,
    moveaxis as moveaxis,
    ravel as ravel,
    reshape as reshape,
    split_heads as split_heads,
    squeeze as squeeze,
    swapaxes as swapaxes,
    transpose as transpose,
    unflatten as unflatten,
)
from .frontend.lower import lower as lower
from .frontend.program import ArrayProgram as ArrayProgram
from .frontend.trace import trace as trace
from .interp.equal import prove_equal as prove_equal
from .interp.evaluate import evaluate as evaluate
from .interp.proof import Proof as Proof
from .interp.semantics import Float16 as Float16, Float32 as Float32, Float64 as Float64
from .interp.traffic import GraphTraffic as GraphTraffic
from .ir import Graph as Graph, parse as parse, verify as verify
from .jitted import Jitted as Jitted
from .machines import Machine as Machine, machine as machine
from .rules import (
    PAPER_RULES as PAPER_RULES,
    RULES as RULES,
    Derivation as Derivation,
    Rule as Rule,
    explain as explain,
    fuse as fuse,
    overflowing as overflowing,
    reasons as reasons,
    safe as safe,
)
from .rules.materialize import materialize as materialize
from .rules.repair import Repair as Repair, repair as repair
from .runtime.compiled import Compiled as Compiled
from .selection import Traffic as Traffic, traffic as traffic
from .selection.plans.fusers import Fuser as Fuser
from .selection.plans.plan import Plan as Plan
from .simulation import simulate as simulate
from .testing.check import check_rule as check_rule
from .testing.report import RuleReport as RuleReport
from .torch_graphs.backend import torch_backend as torch_backend

__version__: str
__all__: list[str]
