"""Tile programs about the move spread: what needs all of a dim, and what does not."""

# all of N is in the tiles of a loop over M: sums of columns need no N whole
COLUMN_SUMS = """
tiles {
  inputs X: [M, N]
  outputs Y: [N]
  nest 1 {
    t1: [N] = init +
    for M {
      t2: [N, M] = load X[M, N]
      t3: [N] = row_sum(t2)
      t1 += t3
    }
    store Y[N] = t1
  }
}
"""
# lengths of rows need it
LENGTHS = """
tiles {
  inputs X: [M, N]
  outputs Y: [M, N]
  nest 1 {
    for M {
      t1: [M, N] = load X[M, N]
      t2: [M] = row_sum(t1)
      t3: [M, N] = t1 * t2 over [M, N]
      store Y[M, N] = t3
    }
  }
}
"""
# a store that each block of N would make again
ONE_STORE = """
tiles {
  inputs X: [M, N], W: [M]
  outputs Y: [M, N], Z: [M]
  nest 1 {
    for M {
      t1: [M, N] = load X[M, N]
      store Y[M, N] = t1
      t2: [M] = load W[M]
      store Z[M] = t2
    }
  }
}
"""
# one dim under two names
SQUARE = """
tiles {
  inputs X: [K, M]
  outputs Y: [K, M]
  units K
  nest 1 {
    for K {
      t1: [M] = load X[K, M]
      t2: [M'] = relabel M -> M' (t1)
      store Y[K, M'] = t2
    }
  }
}
"""
