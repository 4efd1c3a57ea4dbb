"""Graph traffic, arithmetic and local footprint of block programs, in closed form."""
