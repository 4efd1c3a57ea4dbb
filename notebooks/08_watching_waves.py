# %% [markdown]
# # Watching waves
#
# A GPU has many processors, and a kernel has many programs that wait for them. How long the kernel
# takes depends on how they fit together: who runs first, who shares a processor with whom, who is
# left over at the end. `bb.simulate(kernel, machine)` plays this on a machine that is nothing but
# numbers, event by event, so that you can watch a kernel on an H200 from your laptop.

# %%
# %matplotlib inline
from collections import defaultdict
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

import blockbuster as bb
from blockbuster.costs import work_of

# %% [markdown]
# ## The kernel
#
# Flash Attention with the blocks that experts choose on Hopper: a program takes 64 queries and
# walks through all keys, 64 at a time. `stage ... 2` says that the next block of keys and values is
# on its way while a step computes.


# %%
def attention(q, k, v):
    s = (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    return bb.softmax(s, axis=-1) @ v


INPUTS = dict(q="H M D", k="H N D", v="H N L")
BLOCKS = "block M 64, D 128 whole, N 64, L 128 whole\nwarps 4\n"
fused = bb.fuse(bb.lower(bb.trace(attention, **INPUTS)))


def sizes(heads, length):
    return dict(H=heads, M=length, N=length, D=128, L=128)


def emitted(heads, length, *, stages=2, target="sm_90"):
    """The kernel of attention over so many heads and queries."""
    schedule = BLOCKS + (f"stage nest 1 N {stages}" if stages > 1 else "")
    return bb.emit(fused, sizes(heads, length), target=target, schedule=schedule)


def simulated(kernel, machine="h200"):
    return bb.simulate(kernel, machine, launch="graph", warm=True)


def places(kernel, machine):
    """How many programs the machine runs at once."""
    (work,) = work_of(kernel.tile_program, kernel.sizes, kernel.target)
    return bb.machine(machine).processors * work.footprint.resident(bb.machine(machine))


ten = emitted(10, 2048)
report = simulated(ten)
print(report)
print(f"{10 * 2048 // 64} programs, and the H200 runs {places(ten, 'h200')} at once")
assert places(ten, "h200") == 2 * 132

# %% [markdown]
# `report.plot()` draws what each processor does, and below it how busy each resource is. Every bar
# is a part of a program, in the colour of the resource that it needs longest.

# %%
report.plot()

# %% [markdown]
# There are two *waves*. In the first, all processors run two programs each. The few programs that
# are left make a second one, the *tail*. It takes nearly as long as the first, though it holds a
# fifth of the work: a program that has a processor for itself is not twice as fast, since it was
# waiting for its own results before, too.
#
# ## A staircase
#
# So time grows in steps: a few programs more may cost a whole wave. The simulator shows it, and so
# does the closed form, `kernel.cost`, which knows rounds of programs but not who meets whom.

# %%
heads = range(1, 17)
kernels = {count: emitted(count, 2048) for count in heads}
closed = {
    count: kernel.cost("h200", launch="graph", warm=True).time_us
    for count, kernel in kernels.items()
}
watched = {count: simulated(kernels[count]).time_us for count in (2, 4, 8, 9, 12, 16)}

fig, axes = plt.subplots(figsize=(7, 3.8))
axes.step([32 * count for count in heads], closed.values(), where="mid", label="closed form")
axes.plot([32 * count for count in watched], watched.values(), "o", label="simulated")
for wave in (1, 2):
    axes.axvline(wave * places(ten, "h200"), color="gray", linestyle="--", linewidth=0.8)
axes.set(
    xlabel="programs (32 for each head of 2048 queries)", ylabel="microseconds", ylim=(0, None)
)
axes.set_title("H200: places for 264 programs (dashed), then another wave")
axes.legend(frameon=False)
fig.tight_layout()
plt.show()

print(f"8 heads {watched[8]:.0f} us, 9 heads {watched[9]:.0f}, 16 heads {watched[16]:.0f}")
assert watched[9] > 1.4 * watched[8]
assert watched[16] / 16 < watched[9] / 9

# %% [markdown]
# Nine heads take far longer than eight, and per head, sixteen are cheaper than nine. If you may
# choose a batch size, choose one at the right end of a step.
#
# ## The same kernel on an A100
#
# An A100 has 108 processors. With two stages, two programs fit on each, as on the H200.

# %%
older = emitted(10, 2048, target="sm_80")
report = simulated(older, "a100")
print(f"the A100 runs {places(older, 'a100')} programs at once")
report.plot()

# %% [markdown]
# The waves are longer and the tail is fuller. What if we let loads run further ahead, in three
# stages? Each stage needs shared memory, of which an A100 has less than an H200.

# %%
print("machine  stages  programs at once    us")
taken = {}
for machine in ("h200", "a100"):
    for stages in (1, 2, 3):
        kernel = emitted(10, 2048, stages=stages, target=bb.machine(machine).target)
        taken[machine, stages] = time = simulated(kernel, machine).time_us
        print(f"{machine:7}{stages:8}{places(kernel, machine):18}{time:6.0f}")

assert taken["h200", 3] < 0.9 * taken["h200", 2] < 0.9 * taken["h200", 1]
assert taken["a100", 2] < 0.95 * taken["a100", 1]
assert taken["a100", 3] > taken["a100", 2]

# %% [markdown]
# With one stage a program waits for each block of keys before it computes. Loads run ahead from
# the end of one iteration to the beginning of another: the second stage hides a part of the wait
# on both machines. The third hides the rest on the H200, and makes the A100 slower: only one
# program fits on a processor then, and while it waits for its own results, no other one computes.
# The best schedule of one machine need not be that of another.
#
# ## Unequal programs
#
# With a causal mask a query sees only the keys before it. Blocks that are masked whole are skipped
# (`narrow`), so the last queries have 64 times as much to do as the first ones. Now the order
# matters in which programs start.


# %%
def causal(q, k, v):
    s = (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    seen = bb.arange(q.shape[-2])[:, None] >= bb.arange(k.shape[-2])
    return bb.softmax(bb.where(seen, s, -float("inf")), axis=-1) @ v


masked = bb.fuse(bb.lower(bb.trace(causal, **INPUTS))).final


def ordered(order):
    schedule = f"{BLOCKS}narrow nest 1 N\n{order}stage nest 1 N 2"
    return bb.emit(masked, sizes(6, 4096), schedule=schedule)


def programs(report):
    """For each processor its programs, as starts and ends."""
    found = defaultdict(dict)
    for event in report.timeline:
        if event.processor >= 0:
            start, end = found[event.processor].get(event.program, (event.start, event.end))
            found[event.processor][event.program] = min(start, event.start), max(end, event.end)
    return {processor: sorted(own.values()) for processor, own in found.items()}


def idle(report):
    """The fraction of all places' time in which no program is there."""
    spans = [end - start for own in programs(report).values() for start, end in own]
    return 1 - sum(spans) / (2 * 132 * report.time_us)


def lanes(spans):
    """Each span with the first of two places that is free."""
    free = [0.0, 0.0]
    for start, end in spans:
        lane = 0 if free[0] <= start + 1e-9 else 1
        free[lane] = end
        yield lane, start, end


orders = {
    "first to last": simulated(ordered("")),
    "last first": simulated(ordered("order nest 1 M last first\n")),
}
longest = max(end - start for r in orders.values() for own in programs(r).values()
              for start, end in own)  # fmt: skip
fig, panels = plt.subplots(1, 2, figsize=(10, 4.6), sharex=True, sharey=True, layout="constrained")
colors = plt.get_cmap("viridis")
for panel, (name, report) in zip(panels, orders.items(), strict=True):
    bars = [
        (processor + lane / 2, start, end - start)
        for processor, own in programs(report).items()
        for lane, start, end in lanes(own)
    ]
    rows, starts, lengths = np.array(bars).T
    panel.barh(rows, lengths, left=starts, height=0.5, color=colors(lengths / longest))
    panel.set(title=f"{name}: {report.time_us:.0f} us", xlabel="microseconds")
panels[0].set_ylabel("processor, two places each")
scale = plt.cm.ScalarMappable(plt.Normalize(0, longest), colors)
fig.colorbar(scale, ax=panels, label="time that a program takes, microseconds")
fig.suptitle("Causal attention, 6 heads of 4096 queries, H200")
plt.show()

for name, report in orders.items():
    print(f"{name:13} {report.time_us:4.0f} us, places empty for {idle(report):.0%} of the time")
first, last = orders.values()
assert last.time_us < 0.95 * first.time_us
assert idle(last) < idle(first)
assert first.bytes["l2"] == last.bytes["l2"]

# %% [markdown]
# First to last, the longest programs of the last head start when others are done, and the kernel
# waits for them. Last first, long programs start early, and short ones fill the gaps: the same
# work, the same bytes, and a shorter end. One packs a suitcase by the same rule. `bb.emit`
# applies it by itself if programs differ:

# %%
print(bb.emit(masked, sizes(6, 4096)).schedule)
assert "last first" in bb.emit(masked, sizes(6, 4096)).schedule

# %% [markdown]
# ## A smaller cache
#
# The H200 has 60 MB of L2 cache. What if it had less? We compare Flash Attention with the snapshot
# before it, which stores the exponentials of all scores and reads them in a second kernel.

# %%
h200 = bb.machine("h200")


def with_cache(megabytes):
    """The H200 with so much L2."""
    tiers = (
        replace(tier, bytes=megabytes * 2**20) if tier.name == "l2" else tier for tier in h200.tiers
    )
    return replace(h200, name=f"H200 with {megabytes} MB of L2", tiers=tuple(tiers))


caches = (64, 32, 16, 8, 4, 2)
forms = {"exponentials stored": fused.snapshots[0], "Flash Attention": fused.final}
small = sizes(16, 512)
results = {
    name: {size: simulated(bb.emit(form, small), with_cache(size)) for size in caches}
    for name, form in forms.items()
}
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for name, reports in results.items():
    moved = [report.bytes["hbm"] / 1e6 for report in reports.values()]
    left.plot(caches, moved, marker="o", label=name)
    right.plot(caches, [report.time_us for report in reports.values()], marker="o", label=name)
left.set(ylabel="MB to and from global memory", title="bytes")
right.set(ylabel="microseconds", ylim=(0, None), title="time")
for panel in (left, right):
    panel.set_xscale("log", base=2)
    panel.set_xticks(caches, [str(size) for size in caches])
    panel.invert_xaxis()
    panel.set_xlabel("MB of L2 cache")
left.legend(frameon=False)
fig.suptitle("16 heads of 512 queries and keys, called again and again")
plt.show()

stored, flash = (
    {size: report.bytes["hbm"] for size, report in reports.items()} for reports in results.values()
)
assert flash[2] < stored[2] / 2
assert stored[64] < stored[8] / 4

# %% [markdown]
# As long as everything fits, both run from the cache: nothing comes from memory. The exponentials
# take 8 MB, and are the first to be pushed out. Flash Attention needs only what all programs read
# at the moment: programs of one head walk through the same keys in step, so that a block comes from
# memory once, even with a tiny cache. That is the deeper reason why it travels well.
#
# ## How far to trust it
#
# The simulator shares bandwidth among all that are active, keeps a cache of blocks, and lets staged
# loads overlap with arithmetic. It knows the same instructions as the closed form, and inherits its
# errors ([07](07_what_a_fusion_costs.ipynb)); what it adds is who meets whom. Here are both for the
# staircase:

# %%
for count, time in watched.items():
    print(f"{count:2} heads: simulated {time:5.1f} us, closed form {closed[count]:5.1f}")
assert all(0.6 < time / closed[count] < 1.6 for count, time in watched.items())

# %% [markdown]
# They agree on the steps, and not on every microsecond: read differences between two simulations,
# and not the last digit of one. [simulator](../docs/simulator.md) says what is simulated, and how
# near it came to kernels on an H200.
