"""Array programs, the ways into them (tracing and adapters) and lowering to block programs."""
