"""Random reductions that depend on one to three others, as block programs."""

from dataclasses import dataclass
from random import Random

TABLE, SOLVER, REFUSED = "by the table", "solved for", "refused"

# what is folded, by which monoid: the names of values that are never negative begin with p
LEADS = {
    "p_max": ("abs(x)", "max"), "p_sum": ("abs(x)", "+"), "p_squares": ("square(x)", "+"),
    "p_least": ("abs(x) + 1", "min"), "top": ("x", "max"), "least": ("x", "min"), "sum": ("x", "+"),
}  # fmt: skip
POSITIVE = [name for name in LEADS if name.startswith("p_")]
ELEMENTS = (
    "y_1",
    "square(x_1)",
    "abs(x_1) * y_1",
    "relu(y_1)",
    "x_1 - y_1",
    "tanh(y_1)",
    "3 * y_1",
)
ROWS = {"+": "row_sum", "max": "row_max", "min": "row_min"}


@dataclass(frozen=True)
class Case:
    """A program in which the fold ``monoid`` of ``g`` waits for ``leads``, and what is expected."""

    kind: str
    leads: tuple[str, ...]
    g: str
    monoid: str

    def __str__(self):
        return f"{self.monoid} of {self.g}, waiting for {', '.join(self.leads)}: {self.kind}"

    def text(self):
        """The block program: two loops, the second of which waits for the first."""
        folds, yields = [], []
        for at, lead in enumerate(self.leads):
            summand, monoid = LEADS[lead]
            value = "x" if summand == "x" else f"f{at}"
            folds += [f"f{at} = {summand}"] if summand != "x" else []
            folds += [f"q{at} = {ROWS[monoid]}({value})"]
            yields += [f"yield +q{at}" if monoid == "+" else f"yield {monoid} q{at}"]
        names = ", ".join(f"r{at}" for at in range(len(self.leads)))
        passed = ", ".join(f"r{at} = r{at}" for at in range(len(self.leads)))
        sign = "+" if self.monoid == "+" else f"{self.monoid} "
        return f"""graph(X: N[M,N] = X(M,N), Y: N[M,N] = Y(M,N), P: [M] = P(M)) {{
  {names} = map N (x in !X) {{
    {chr(10).join([*folds, *yields])}
  }}
  s = map N (x_1 in !X, y_1 in !Y, p = P, {passed}) {{
    h = {self.g.replace("y_1", "(x_1 + y_1)")} over [M,N]
    t = {ROWS[self.monoid]}(h)
    yield {sign}t
  }}
  return s
}}"""


def cases(count, seed=0):
    """Reductions of all kinds in turn, told apart by what has to be found for each."""
    random = Random(seed)
    kinds = (_by_table, _solved, _refused)
    return [kinds[at % 3](random, at // 3) for at in range(count)]


def _positive(random, at):
    """A function of lead ``at``, which is not negative, without zeros."""
    r = f"r{at}"
    return random.choice((
        f"({r} + 1)", f"1 / ({r} + 2)", f"square({r} + 1)", f"1 / (square({r}) + 1)",
        f"rsqrt({r} + 1)", f"sqrt({r} + 0.5)",
    ))  # fmt: skip


def _leads(random, among, least=1, most=3):
    return tuple(random.sample(among, random.randint(least, most)))


def _by_table(random, turn):
    if turn % 4 == 0:
        lead = random.choice(("top", "least", "sum"))
        g = random.choice(("y_1 - r0", "x_1 + 2 * r0", "(y_1 - r0) / p", "y_1 * x_1 - r0 / 2"))
        return Case(TABLE, (lead,), g, random.choice(("max", "min")))
    if turn % 4 == 1:
        g = random.choice(("square(x_1 / r0)", "abs(x_1) / r0", "x_1 * square(x_1) / (r0 * r0)"))
        return Case(TABLE, (random.choice(("p_max", "p_sum")),), g, "+")
    if turn % 4 == 2:
        g = random.choice(("exp(x_1 - r0)", "y_1 * exp(x_1 - r0)", "exp((x_1 - r0) * 2)"))
        return Case(TABLE, ("top",), g, "+")
    leads = _leads(random, POSITIVE)
    factors = " * ".join(_positive(random, at) for at in range(len(leads)))
    return Case(
        TABLE, leads, f"({random.choice(ELEMENTS)}) * {factors}", random.choice(("+", "max"))
    )


def _solved(random, turn):
    kind = turn % 3
    if kind == 0:
        leads = _leads(random, POSITIVE, 2, 3)
        c = random.choice(ELEMENTS)
        total = " + ".join(f"({c}) * r{at}" for at in range(len(leads)))
        return Case(SOLVER, leads, total, random.choice(("+", "max", "min")))
    if kind == 1:
        c, d = random.choice((("x_1", "top"), ("x_1", "least")))
        k = random.choice(("1", "2", "0.5"))
        return Case(SOLVER, (d,), f"{k} * abs({c} - r0)", "max" if random.random() < 0.5 else "min")
    c, k = random.choice(ELEMENTS), random.choice((1, 2, 3))
    leads = _leads(random, POSITIVE, 1, 2)
    own = " + ".join(
        [f"({c}) * square(r0 + {k})", *(f"({c}) * r{a}" for a in range(1, len(leads)))]
    )
    return Case(SOLVER, leads, f"{own} + ({c}) * r0", random.choice(("+", "max", "min")))


REFUSALS = (
    ("square(y_1 - r0)", ("top", "least", "sum", "p_max"), "+", "only a factor distributes"),
    ("x_1 + r0", ("top", "least", "sum"), "+", "leaves s times the number of elements"),
    ("exp(y_1 * r0)", ("top", "sum", "p_max"), "+", "only a factor distributes"),
    ("tanh(y_1 - r0)", ("top", "sum", "least"), "+", "only a factor distributes"),
    ("y_1 * r0", ("top", "sum", "least"), "max", "order of elements changes"),
    ("abs(y_1 - r0)", ("sum", "top"), "max", "order of elements changes"),
    ("y_1 / r0", ("sum", "top", "least"), "+", "0 before the last element"),
    ("square(x_1) * r0 + abs(y_1)", ("p_max", "sum"), "+", "only a factor distributes"),
    ("where(y_1 < r0, y_1, 0)", ("top", "sum"), "+", "has no where of SymPy"),
    ("maximum(x_1, r0 * y_1)", ("p_max", "p_sum"), "min", "order of elements changes"),
    ("x_1 * r0 + y_1 * r1", ("p_max", "p_sum", "p_squares"), "+", "only a factor distributes"),
    ("(x_1 + r0) * (y_1 + r1)", ("top", "p_sum", "sum"), "+", "only a factor distributes"),
)
"""Functions, the leads that they may wait for, their folds, and a part of the reason."""


def _refused(random, turn):
    g, among, monoid, _ = REFUSALS[turn % len(REFUSALS)]
    count = 2 if "r1" in g else 1
    return Case(REFUSED, _leads(random, among, count, count), g, monoid)


def reason_of(case):
    """What a refusal has to say."""
    return next(why for g, _, monoid, why in REFUSALS if (g, monoid) == (case.g, case.monoid))
