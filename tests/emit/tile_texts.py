"""Tile programs for what moves must not do: each is about one precondition."""

from blockbuster.ir.parse import parse

# one array that a loop stores and loads: its load must not leave the loop, nor be merged
STORED = """
tiles {
  inputs X: [K, N]
  outputs Y: [N], Z: [K, N]
  units K
  nest 1 {
    for K {
      t1: [N] = load X[K, N]
      store Y[N] = t1
      t2: [N] = load Y[N]
      store Z[K, N] = t2
    }
  }
}
"""
TWICE = """
tiles {
  inputs X: [N], W: [N]
  outputs Y: [N], Z: [N]
  nest 1 {
    forall N {
      t1: [N] = load X[N]
      store Y[N] = t1
      t2: [N] = load Y[N]
      t3: [N] = load W[N]
      store Y[N] = t3
      t4: [N] = load Y[N]
      t5: [N] = t2 * t4 over [N]
      store Z[N] = t5
    }
  }
}
"""
# an array that another loop stores once more before it is loaded
STORED_SINCE = """
tiles {
  inputs X: [N], W: [K, N]
  outputs Y: [N], Z: [N]
  units K
  nest 1 {
    forall N {
      t1: [N] = load X[N]
      store Y[N] = t1
      for K {
        t2: [N] = load W[K, N]
        store Y[N] = t2
      }
      t3: [N] = load Y[N]
      store Z[N] = t3
    }
  }
}
"""
# a square array that is loaded the other way round
TURNED = """
tiles {
  inputs X: [M, M]
  outputs Y: [M, M], Z: [M, M]
  whole M, M'
  nest 1 {
    t1: [M, M'] = load X[M, M']
    store Y[M, M'] = t1
    t2: [M, M'] = load Y[M', M]
    store Z[M, M'] = t2
  }
}
"""
# entry 0 of an array, stored behind all entries, which are loaded after that
ENTRY = """
tiles {
  inputs X: [K, N], W: [N]
  outputs Y: [K, N], Z: [K, N]
  units K
  nest 1 {
    forall N {
      for K {
        t1: [N] = load X[K, N]
        store Y[K, N] = t1
      }
      t2: [N] = load W[N]
      store Y[K, N] = t2
      for K {
        t3: [N] = load Y[K, N]
        store Z[K, N] = t3
      }
    }
  }
}
"""
# an accumulator that grows behind its store
GROWS = """
tiles {
  inputs X: [M, N], W: [M, K]
  outputs Y: [M], Z: [M]
  nest 1 {
    forall M {
      t1: [M] = init +
      for N {
        t2: [M, N] = load X[M, N]
        t3: [M] = row_sum(t2)
        t1 += t3
      }
      store Y[M] = t1
      for K {
        t4: [M, K] = load W[M, K]
        t5: [M] = row_sum(t4)
        t1 += t5
      }
      t6: [M] = load Y[M]
      t7: [M] = t6 * t1 over [M]
      store Z[M] = t7
    }
  }
}
"""
TOTALS = """
tiles {
  inputs X: [M, N], W: [M, K]
  outputs Y: [M]
  nest 1 {
    forall M {
      t1: [M] = init +
      for N {
        t2: [M, N] = load X[M, N]
        t3: [M] = row_sum(t2)
        t1 += t3
      }
      t4: [M] = t1 * 2 over [M]
      for K {
        t5: [M, K] = load W[M, K]
        t6: [M] = row_sum(t5)
        t1 += t6
      }
      t7: [M] = t1 * 2 over [M]
      t8: [M] = t4 * t7 over [M]
      store Y[M] = t8
    }
  }
}
"""
# an accumulator that is read while the loop adds to it
RUNNING = """
tiles {
  inputs X: [M, N]
  outputs Y: [M], Z: [M, N]
  nest 1 {
    forall M {
      t1: [M] = init +
      for N {
        t2: [M, N] = load X[M, N]
        t3: [M] = row_sum(t2)
        t1 += t3
        t4: [M, N] = t2 * t1 over [M, N]
        store Z[M, N] = t4
      }
      store Y[M] = t1
    }
  }
}
"""
AGAIN = """
tiles {
  inputs X: [M, N]
  outputs Y: [M], Z: [M]
  nest 1 {
    forall M {
      t1: [M] = init +
      t5: [M] = init +
      for N {
        t2: [M, N] = load X[M, N]
        t3: [M] = row_sum(t2)
        t1 += t3
        t4: [M] = t3 * t3 over [M]
        t5 += t4
      }
      store Y[M] = t1
      store Z[M] = t5
    }
  }
}
"""
COUNTED = RUNNING.replace(
    "t1 += t3\n", "t5: [M] = t1 * 2 over [M]\n        t1 += t3\n        t6: [M] = t1 * 2 over [M]\n"
).replace("t2 * t1 over", "t2 * t6 - t5 over")
# an accumulator that starts outside two loops
NESTED = """
tiles {
  inputs X: [K, M, N]
  outputs Y: [M]
  units K
  nest 1 {
    forall M {
      t1: [M] = init +
      for K {
        for N {
          t2: [M, N] = load X[K, M, N]
          t3: [M] = row_sum(t2)
          t1 += t3
        }
      }
      store Y[M] = t1
    }
  }
}
"""
PLAIN = """
tiles {
  inputs X: [N]
  outputs Y: [N]
  nest 1 {
    forall N {
      t1: [N] = load X[N]
      t2: [N] = t1 * 2 over [N]
      store Y[N] = t2
    }
  }
}
"""
# two sums, one after the other
TWO = """
tiles {
  inputs X: [M, N], W: [M, K]
  outputs Y: [M]
  nest 1 {
    forall M {
      t1: [M] = init +
      for N {
        t2: [M, N] = load X[M, N]
        t3: [M] = row_sum(t2)
        t1 += t3
      }
      t4: [M] = init +
      for K {
        t5: [M, K] = load W[M, K]
        t6: [M] = row_sum(t5)
        t4 += t6
      }
      t7: [M] = t1 * t4 over [M]
      store Y[M] = t7
    }
  }
}
"""
INVERSES = """
tiles {
  inputs X: [M, K], W: [N, K]
  outputs Y: [M, N]
  nest 1 {
    forall M {
      forall N {
        t1: [M, N] = init +
        for K {
          t2: [M, K] = load X[M, K]
          t3: [N, K] = load W[N, K]
          t4: [M, K] = reciprocal(t2) over [M, K]
          t5: [M, N] = dot(t4, t3)
          t1 += t5
        }
        store Y[M, N] = t1
      }
    }
  }
}
"""
# a group with a factor that no combine is known for, and one whose lead is read
UNKNOWN = """
tiles {
  inputs X: [M, N]
  outputs Y: [M]
  nest 1 {
    forall M {
      t1: [M] = init max
      t2: [M] = init +
      for N {
        t3: [M, N] = load X[M, N]
        t4: [M] = row_max(t3)
        t5: [M] = row_sum(t3)
        t1 max= t4
          with t2 += t5 by x * (r2 + 1)
      }
      store Y[M] = t2
    }
  }
}
"""
LEAD = """
tiles {
  inputs X: [M, N]
  outputs Y: [M], Z: [M, N]
  nest 1 {
    forall M {
      t1: [M] = init max
      t2: [M] = init +
      for N {
        t3: [M, N] = load X[M, N]
        t4: [M] = row_max(t3)
        t5: [M, N] = sub0(t3, t4) over [M, N]
        t6: [M, N] = exp(t5) over [M, N]
        t7: [M] = row_sum(t6)
        {extra}
        t1 max= t4
          with t2 += t7 by x * exp(sub0(r, r2))
      }
      store Y[M] = t2
      {behind}
    }
  }
}
"""
LEAD_STORED = LEAD.replace("{extra}", "store Z[M, N] = t6").replace("{behind}", "")
LEAD_FOLDED = (
    LEAD_STORED.replace("store Z[M, N] = t6", "t9 += t7\n store Z[M, N] = t3")
    .replace("t2: [M] = init +", "t2: [M] = init +\n t9: [M] = init +")
    .replace("store Y[M] = t2", "t10: [M] = t2 * t9 over [M]\n store Y[M] = t10")
)
LEAD_ODD = LEAD_STORED.replace("store Z[M, N] = t6", "store Z[M, N] = t3").replace(
    "x * exp(sub0(r, r2))", "x * (r2 + 1)"
)
LEAD_SQUARED = (
    LEAD.replace("{extra}", "store Z[M, N] = t3")
    .replace("{behind}", "")
    .replace("t7: [M] = row_sum(t6)", "t9: [M, N] = t6 * t6 over [M, N]\n t7: [M] = row_sum(t9)")
)
FINISHED = """
tiles {
  inputs X: [M, N]
  outputs Y: [M, N], Z: [M]
  nest 1 {
    forall M {
      t1: [M] = init +
      for N {
        t2: [M, N] = load X[M, N]
        t3: [M] = row_sum(t2)
        t1 += t3
      }
      t4: [M] = reciprocal(t1) over [M]
      for N {
        t5: [M, N] = load X[M, N]
        t6: [M, N] = {use} over [M, N]
        store Y[M, N] = t6
      }
      store Z[M] = t1
    }
  }
}
"""
LANES = """
tiles {
  inputs X: [M, N], W: [M]
  outputs Y: [M]
  nest 1 {
    forall M {
      t1: [M] = init +
      for N {
        t2: [M, N] = load X[M, N]
        t5: [M] = load W[M]
        t3: [M, N] = {value} over [M, N]
        t4: [M] = {reduction}(t3)
        t1 += t4
      }
      store Y[M] = t1
    }
  }
}
"""
PLACES = parse("""
graph(X: M,N[M,N], J: N[N] = index(N)) {
  Y = map M (x in !X, j = !J) {
    s = map N (b in !x, i in !j) { m = b * i + i over [M,N]  t = row_sum(m)  yield +t }
    yield s
  }
  return Y
}
""")
