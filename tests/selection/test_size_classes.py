"""A plan is chosen once for a class of sizes, and serves every size in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.ir.lengths import Rule, completed, share_of, size, whole
from blockbuster.ir.types import size_class
from blockbuster.runtime.given import family_of
from blockbuster.selection.nearby.edits import pairs_in
from blockbuster.selection.plans.size_classes import class_of, representative, rounded_up

LANES = st.sets(st.sampled_from((16, 32, 64, 128))).map(lambda found: tuple(sorted(found)))


def attention(q, k, v):
    return bb.softmax((q @ k.T) * q.shape[-1] ** -0.5) @ v


def appended(q, k, new):
    keys = bb.concat([k, new], axis=0)
    return bb.softmax(q @ keys.T) @ keys


def shifted(x, w):
    return bb.sum(bb.exp(x[1:]) @ w, axis=0)


PROGRAMS = {
    "attention": (bb.trace(attention, q="M D", k="N D", v="N L"), {"M": 1, "D": 80, "L": 128}),
    "appended": (bb.trace(appended, q="M D", k="N D", new="T D"), {"M": 1, "D": 64, "T": 1}),
    "shifted": (bb.trace(shifted, x="N K", w="K L"), {"K": 64, "L": 64}),
    "softmax": (bb.trace(lambda x: bb.softmax(x), x="M N"), {"M": 64}),
}


def family(name, target):
    program, others = PROGRAMS[name]
    made = family_of(program, "float32" if target == "cpu" else "float16", target)
    return made, lambda n: completed({**others, "N": n}, program.rules)


def kernels(plan):
    """What is chosen: snapshots, schedules, and what they assume of sizes.

    A file on whole arrays serves all sizes: it is its text.
    """
    return [file.considered.best.key if file.considered else file.text for file in plan.files]


def not_served(choice, sizes):
    """Why a kernel does not serve these sizes, in words; "" if it does."""
    for nest in choice.scheduled.draft.nests if choice.scheduled else ():
        for block in nest.blocks:
            count = sizes.get(size_class(block.dim))
            if count is None:
                continue  # chunks: the kernel's own
            if block.whole and not (count <= block.lanes if block.ragged else count == block.lanes):
                return f"{block.dim} is {count}: it is one block of {block.lanes}"
            if not block.whole and not block.ragged and count % block.lanes:
                return f"{block.dim} is {count}: it has to be a multiple of {block.lanes}"
    for dim, lanes in pairs_in(choice.scheduled) if choice.scheduled else ():
        if sizes[dim] % lanes:
            return f"{dim} is {sizes[dim]}: it has to be a multiple of {lanes}"
    return ""


def test_sizes_round_up_to_few_numbers():
    marks = sorted({rounded_up(n) for n in range(1, 4097)})

    assert marks == sorted({1, *(2**k for k in range(1, 13)), *(3 * 2**k for k in range(11))})
    for n in range(1, 4097):
        assert n <= rounded_up(n) == rounded_up(rounded_up(n)) < max(1.5 * n, 2)


@given(st.integers(1, 5000), st.integers(1, 5000), LANES, LANES)
def test_what_stands_for_a_class_is_in_it_and_the_same_for_all_members(m, n, of_m, of_n):
    blocks = {"M": of_m, "N": of_n}
    sizes = {"M": m, "N": n}
    stands = representative(sizes, (), blocks)

    assert class_of(stands, blocks) == class_of(sizes, blocks)
    assert representative(stands, (), blocks) == stands
    assert stands["M"] >= m
    assert stands["N"] >= n


RULES = (
    Rule("T", size("N") + whole(1)),
    Rule("S", size("N") * share_of(4)),
    Rule("R", size("N") - whole(3)),
    Rule("Q", size("N") + size("M")),
)


@given(st.integers(1, 3000), st.integers(1, 300), st.sampled_from(RULES), LANES)
def test_sizes_that_follow_are_in_their_classes_too(n, m, rule, lanes):
    try:
        sizes = completed({"M": m, "N": n}, [rule])
    except ValueError:
        return  # this length is no size
    blocks = {"N": lanes, rule.dim: lanes}
    stands = representative(sizes, [rule], blocks)

    if stands is not None:
        assert completed({"M": stands["M"], "N": stands["N"]}, [rule]) == stands
        assert class_of(stands, blocks) == class_of(sizes, blocks)
        assert representative(stands, [rule], blocks) == stands


@pytest.mark.parametrize(
    ("name", "target", "ns"),
    [
        ("attention", "cpu", (3000, 700)),
        ("attention", "sm_90", (1217, 1536)),
        ("appended", "sm_90", (100,)),
        ("shifted", "cpu", (65,)),
        ("shifted", "sm_90", (641, 200)),
        ("softmax", "sm_90", (4096, 77)),
    ],
)
def test_a_plan_is_what_a_family_chooses_that_never_saw_another_size(name, target, ns):
    known, sizes = family(name, target)
    for n in (2, 64, 3):
        known.like(sizes(n))
    for n in ns:
        fresh, _ = family(name, target)
        plan, again = known.like(sizes(n)), fresh.like(sizes(n))

        assert kernels(plan) == kernels(again)
        assert class_of(again.sizes, {}) == class_of(sizes(n), {})
        alone = fresh.at(again.sizes)  # chosen for these sizes, not for those of their group
        assert [key[0] for key in kernels(alone)] == [key[0] for key in kernels(again)]


@pytest.mark.parametrize(
    ("name", "target", "most"),
    [
        ("attention", "cpu", 4),
        ("attention", "sm_90", 24),
        ("appended", "cpu", 4),
        ("shifted", "sm_90", 24),
        ("softmax", "sm_90", 30),
    ],
)
def test_every_size_up_to_4096_is_served_by_few_plans(name, target, most):
    known, sizes = family(name, target)
    plans = {}
    for n in range(2, 4097):
        plan = known.like(sizes(n))
        plans.setdefault(id(plan), plan)
        for file in plan.files:
            if file.considered is not None:  # a file on whole arrays serves all sizes
                assert not_served(file.considered.best, sizes(n)) == "", n
    assert 1 <= len(plans) <= most


def test_a_plan_of_another_class_does_not_serve():
    known, sizes = family("attention", "sm_90")
    (aligned,) = known.like(sizes(2048)).files
    (ragged,) = known.like(sizes(2047)).files
    lanes = aligned.considered.best.blocks["N"]

    assert lanes in (64, 128)
    assert not_served(aligned.considered.best, sizes(2047)) == (
        f"N is 2047: it has to be a multiple of {lanes}"
    )
    assert not_served(ragged.considered.best, sizes(2048)) == ""
    assert not_served(ragged.considered.best, {**sizes(2047), "D": 129}) == (
        "D is 129: it is one block of 128"
    )


def test_odd_rows_have_a_choice_of_their_own():
    """Lanes load one element at a time there: what is best of even rows need not be."""
    known = family_of(bb.trace(lambda x: bb.sum(x, axis=1), x="A B C"), "float16", "h100")
    _, odd = (known.like(dict(A=32, B=4096, C=size)) for size in (4096, 4095))

    def blocks(plan):
        return [file.considered.best.blocks for file in plan.files]

    assert blocks(odd) == blocks(known.at(dict(A=32, B=4096, C=4095)))


def test_what_a_compiler_refuses_is_chosen_anew_in_every_class():
    known, sizes = family("attention", "sm_90")
    plan = known.like(sizes(1000))
    known.refuse(plan, plan.files, "it says no")

    assert known.like(sizes(1000)).source != plan.source
    assert known.like(sizes(1001)).source != plan.source
