"""MCFuser: tiling expressions of operator chains, their pruned space, its cost model and searches.

Source: MCFuser, "High-Performance and Rapid Fusion of Memory-Bound Compute-Intensive Operators".
"""

from blockbuster.tiling.candidate import Body, Candidate, candidate
from blockbuster.tiling.chain import Chain, Operator, Tensor, gemm_chain, self_attention
from blockbuster.tiling.expression import Expression, deep, expressions, parse_expression
from blockbuster.tiling.model import Estimate, estimate
from blockbuster.tiling.pruning import Counts, Space, pruned

__all__ = [
    "Body", "Candidate", "Chain", "Counts", "Estimate", "Expression", "Operator", "Space", "Tensor",
    "candidate", "deep", "estimate", "expressions", "gemm_chain", "parse_expression", "pruned",
    "self_attention",
]  # fmt: skip
