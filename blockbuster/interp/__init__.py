"""The reference interpreter, its semantics and observers, and exact equality proofs."""
