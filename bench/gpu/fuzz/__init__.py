"""Random array programs on a GPU: every result against float64, beside torch eager, twice."""
