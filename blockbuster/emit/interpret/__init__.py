"""Running tile programs under any semantics, and proofs by running them."""
