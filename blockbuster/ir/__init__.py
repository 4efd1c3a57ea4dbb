"""Block programs: dims, types, ops, graphs, verification and the text form."""
