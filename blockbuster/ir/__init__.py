"""Block programs: types, operators, graphs, their builder, verifier and text form."""

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.parse import parse
from blockbuster.ir.verify import verify

__all__ = ["Builder", "Graph", "Value", "parse", "verify"]
