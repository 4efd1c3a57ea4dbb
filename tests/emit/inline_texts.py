"""Tile programs for the move inline: what is made again, and what its preconditions are about."""

ARRAYS = "inputs X: [H, C], V: [H, N]\n  outputs Y: [H, N]\n  workspaces I1: [H]"
TOP = """
    forall H {
      t1: [] = init max
      for C {
        t2: [] = load X[H, C]
        t1 max= t2
      }
      store I1[H] = t1
    }"""
AT_ONCE = """
    forall H {
      t1: [C] = load X[H, C]
      t2: [] = row_max(t1)
      store I1[H] = t2
    }"""
SCALED = """
    forall H {
      forall N {
        t1: [] = load I1[H]
        t2: [N] = load V[H, N]
        t3: [N] = t1 * t2 over [N]
        store Y[H, N] = t3
      }
    }"""


def text(*nests, arrays=ARRAYS, dims="units H, C", dtypes=""):
    """A program of these nests."""
    numbered = enumerate(nests, start=1)
    listed = "".join(f"\n  nest {at} {{{nest}\n  }}" for at, nest in numbered)
    return f"\ntiles {{{dtypes}\n  {arrays}\n  {dims}{listed}\n}}\n"


BY_CHUNK = text(TOP, SCALED)
IN_ONE_TILE = text(AT_ONCE, SCALED, dims="units H\n  whole C")

# a group and a sum, of which one reader takes the group, in and before a loop, another the sum
GROUP = text(
    """
    forall M {
      t1: [M] = init max
      t2: [M] = init +
      t3: [M] = init +
      for C {
        t4: [M] = load A[M, C]
        t5: [M] = load B[M, C]
        t1 max= t4
          with t2 += t5 by x * exp(sub0(r, r2))
        t6: [M] = load D[M, C]
        t3 += t6
      }
      store I1[M] = t1
      store I2[M] = t2
      store I3[M] = t3
    }""",
    """
    forall M {
      t1: [M] = load I1[M]
      for N {
        t2: [M, N] = load V[M, N]
        t3: [M] = load I2[M]
        t4: [M, N] = x2 * exp(x1) + x3 of (t1, t2, t3)
        store Y[M, N] = t4
      }
    }""",
    """
    forall M {
      t1: [M] = load I3[M]
      store Z[M] = t1
    }""",
    arrays="inputs A: [M, C], B: [M, C], D: [M, C], V: [M, N]\n"
    "  outputs Y: [M, N], Z: [M]\n  workspaces I1: [M], I2: [M], I3: [M]",
    dims="units C",
)

# sums of columns, read in two loops over them
COLUMNS = text(
    """
    forall N {
      t1: [N, C] = load X[N, C]
      t2: [N] = row_sum(t1)
      t3: [N] = t2 * 2
      store I1[N] = t3
    }""",
    """
    forall M {
      t1: [M] = init +
      for N {
        t2: [M, N] = load V[M, N]
        t3: [N] = load I1[N]
        t4: [M, N] = x1 * x2 over [M, N] of (t2, t3)
        t5: [M] = row_sum(t4)
        t1 += t5
      }
      for N {
        t6: [N] = load I1[N]
        t7: [M, N] = x1 * x2 over [M, N] of (t1, t6)
        store Y[M, N] = t7
      }
    }""",
    arrays="inputs X: [N, C], V: [M, N]\n  outputs Y: [M, N]\n  workspaces I1: [N]",
    dims="whole C",
)

# nothing but loads and arithmetic inside the grid
AT_PLACES = text(
    AT_ONCE,
    """
    forall H {
      t1: [] = load I1[H]
      t2: [N] = load V[H, N]
      t3: [N] = t1 * t2 over [N]
      store Y[H, N] = t3
    }""",
    dims="units H\n  whole C, N",
)
# one number for all rows, read in the loop over them
WHOLE_ROWS = text(
    """
    t1: [C] = load X[C]
    t2: [] = row_max(t1)
    store I1[] = t2""",
    """
    t1: [] = init +
    for N {
      t2: [N] = load V[N]
      t3: [] = load I1[]
      t4: [N] = x1 * x2 over [N] of (t2, t3)
      t5: [] = row_sum(t4)
      t1 += t5
    }
    store Y[] = t1""",
    arrays="inputs X: [C], V: [N]\n  outputs Y: []\n  workspaces I1: []",
    dims="whole C",
)

# what each precondition is about -----------------------------------------------------

RESULT = text(TOP, SCALED, arrays="inputs X: [H, C], V: [H, N]\n  outputs Y: [H, N], I1: [H]")
IN_A_LOOP = text(
    """
    forall H {
      t1: [] = init max
      for C {
        t2: [] = load X[H, C]
        t1 max= t2
        store I1[H] = t1
      }
    }""",
    SCALED,
)
AHEAD = text(
    """
    forall H {
      t1: [] = init max
      for C {
        issue X 1 ahead of 2: t2: [] = load X[H, C]
        t2 = await X
        t1 max= t2
      }
      store I1[H] = t1
    }""",
    """
    forall H {
      t1: [] = load I1[H]
      for C {
        issue X 1 ahead of 2: t2: [] = load X[H, C]
        t2 = await X
        t3: [] = t1 * t2
        store Y[H, C] = t3
      }
    }""",
    arrays="inputs X: [H, C]\n  outputs Y: [H, C]\n  workspaces I1: [H]",
)
LOADED_AGAIN = text(
    """
    forall H {
      t1: [] = load W[H]
      store I2[H] = t1
      t2: [] = load I2[H]
      store I1[H] = t2
    }""",
    SCALED,
    arrays="inputs V: [H, N], W: [H]\n  outputs Y: [H, N]\n  workspaces I1: [H], I2: [H]",
)
FOLDED_SINCE = text(
    """
    forall H {
      t1: [] = init max
      for C {
        t2: [] = load X[H, C]
        t1 max= t2
      }
      store I1[H] = t1
      t3: [] = load W[H]
      t1 max= t3
    }""",
    SCALED,
    arrays="inputs X: [H, C], V: [H, N], W: [H]\n  outputs Y: [H, N]\n  workspaces I1: [H]",
)
STORED_TWICE = text(TOP, TOP.replace("t1 max= t2", "t3: [] = t2 * 2\n        t1 max= t3"), SCALED)
READ_AHEAD = text(
    """
    forall N {
      t1: [N] = load X[N]
      t2: [N] = x1 * x2 of (t1, t1)
      store I1[N] = t2
    }""",
    """
    t1: [] = init +
    for N {
      issue I1 1 ahead of 2: t2: [N] = load I1[N]
      t2 = await I1
      t3: [] = row_sum(t2)
      t1 += t3
    }
    store Y[] = t1""",
    arrays="inputs X: [N]\n  outputs Y: []\n  workspaces I1: [N]",
    dims="",
)
OTHER_DIMS = text(
    """
    t1: [M, M'] = load X[M, M']
    store I1[M, M'] = t1""",
    """
    t1: [M, M'] = load I1[M', M]
    store Y[M, M'] = t1""",
    arrays="inputs X: [M, M]\n  outputs Y: [M, M]\n  workspaces I1: [M, M]",
    dims="whole M, M'",
)
OTHER_AXES = text(
    """
    t1: [M, M'] = load X[M, M']
    store I1[M, M'] = t1""",
    """
    t1: [M', M] = load I1[M, M']
    t2: [M'] = row_sum(t1)
    store Y[M'] = t2""",
    arrays="inputs X: [M, M]\n  outputs Y: [M]\n  workspaces I1: [M, M]",
    dims="whole M, M'",
)
OTHER_KIND = text(
    """
    forall N {
      t1: f32[N] = load X[N]
      store I1[N] = t1
    }""",
    """
    forall N {
      t1: bool[N] = load I1[N]
      t2: f32[N] = load V[N]
      t3: f32[N] = t1 * t2 over [N]
      store Y[N] = t3
    }""",
    arrays="inputs X: f32[N], V: f32[N]\n  outputs Y: f32[N]\n  workspaces I1: bool[N]",
    dims="",
    dtypes="\n  dots in f32",
)
ALL_AT_ONCE = text(
    """
    forall N {
      t1: [N] = load X[N]
      t2: [] = row_max(t1)
      t3: [N] = x1 * x2 over [N] of (t1, t2)
      store I1[N] = t3
    }""",
    """
    forall M {
      t1: [N] = load I1[N]
      t2: [M, N] = load V[M, N]
      t3: [M, N] = x2 * x1 over [M, N] of (t1, t2)
      t4: [M] = row_sum(t3)
      store Y[M] = t4
    }""",
    arrays="inputs X: [N], V: [M, N]\n  outputs Y: [M]\n  workspaces I1: [N]",
    dims="",
)
WALKED_AROUND = text(
    """
    t1: [C] = load X[C]
    t2: [] = row_max(t1)
    store I1[] = t2""",
    """
    forall C {
      t1: [] = load I1[]
      t2: [C] = load V[C]
      t3: [C] = x1 * x2 over [C] of (t1, t2)
      store Y[C] = t3
    }""",
    arrays="inputs X: [C], V: [C]\n  outputs Y: [C]\n  workspaces I1: []",
    dims="",
)
CUT_OTHERWISE = text(
    """
    blocks N 4?
    forall N {
      t1: [N 4?] = load X[N]
      t2: [] = row_max(t1)
      t3: [N 4?] = x1 * x2 over [N] of (t1, t2)
      store I1[N] = t3
    }""",
    """
    blocks N 8?
    forall N {
      t1: [N 8?] = load I1[N]
      store Y[N] = t1
    }""",
    arrays="inputs X: [N]\n  outputs Y: [N]\n  workspaces I1: [N]",
    dims="",
)
TWO_NAMES = text(
    """
    blocks N 16?
    forall N {
      t1: [N 16?] = load X[N]
      t2: [] = row_sum(t1)
      store I1[N] = t2
    }""",
    """
    blocks N' 16?
    t1: [] = init +
    for N' {
      t2: [] = load I1[N']
      t1 += t2
    }
    store I2[] = t1""",
    """
    blocks N 32?
    forall N {
      t1: [] = load I2[]
      t2: [N 32?] = load X[N]
      t3: [N 32?] = x1 * x2 over [N] of (t1, t2)
      store Y[N] = t3
    }""",
    arrays="inputs X: [N]\n  outputs Y: [N]\n  workspaces I1: [N blocks], I2: []",
    dims="",
)
COPIED = """
    forall H {
      for C {
        t1: [] = load {array}[H, C]
        store I2[H, C] = t1
      }
    }"""
STORED_SINCE = text(
    COPIED.replace("{array}", "X"),
    TOP.replace("X", "I2"),
    COPIED.replace("{array}", "W"),
    SCALED,
    arrays="inputs X: [H, C], W: [H, C], V: [H, N]\n  outputs Y: [H, N]\n"
    "  workspaces I1: [H], I2: [H, C]",
)
