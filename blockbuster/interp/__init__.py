"""The reference interpreter, its semantics and observers, and exact equality proofs."""

from blockbuster.interp.equal import Proof, prove_equal
from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.semantics import Float16, Float32, Float64
from blockbuster.interp.traffic import GraphTraffic

__all__ = [
    "Float16",
    "Float32",
    "Float64",
    "GraphTraffic",
    "Proof",
    "evaluate",
    "prove_equal",
]
