# %% [markdown]
# # What a fusion costs
#
# Fusing saves bytes. Does it save time? Mostly, but not always, and a GPU is not needed to find out
# why. Blockbuster knows what a kernel does, and what a machine can do, so it can compute how long
# the kernel takes before it exists: `kernel.cost(machine)`. This notebook asks it about every form
# of attention between three lines of NumPy and Flash Attention, looks for the places where fusing
# stops paying, changes the machine, and at the end compares the answers with times that were
# measured on an H200.

# %%
import json
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean, median

import matplotlib.pyplot as plt
import numpy as np

import blockbuster as bb
from blockbuster.costs import cost, work_of

# %% [markdown]
# ## The cost of one kernel
#
# Attention over 16 heads, with 4096 queries and 4096 keys of 128 numbers each, in float16.


# %%
def attention(q, k, v):
    s = (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    return bb.softmax(s, axis=-1) @ v


graph = bb.lower(bb.trace(attention, q="H M D", k="H N D", v="H N L"))
derivation = bb.fuse(graph)
sizes = dict(H=16, M=4096, N=4096, D=128, L=128)
kernel = bb.emit(derivation.final, sizes)
print(kernel.schedule)
print(kernel.cost("h200", launch="graph", warm=True))

# %% [markdown]
# The report is a closed form: it counts bytes and operations from the program's loops, and divides
# them by the machine's rates. `busy` is the fraction of the time in which a resource works. Global
# memory (`hbm`) is nearly idle here, because Flash Attention reads little from it; every block of
# `k` and `v` that a program asks for comes from the cache (`l2`). The schedule gives each program
# two blocks of queries (`jam`), for which it loads every block of `k` and `v` once.
#
# `launch="graph"` says that the kernel is called in a recorded CUDA graph, and `warm=True` that the
# cache holds what was used last, as in a benchmark that repeats one call.
#
# ## Every form on the roof
#
# The derivation from the unfused program to Flash Attention has 23 steps, and each program between
# two of them can be emitted, as one kernel or as several. (What each step does is told in
# [03](03_flash_attention_step_by_step.ipynb).)

# %%
FORMS = [graph, *(step.after for step in derivation.steps)]


def works(kernel):
    """What each GPU kernel of an emitted program does."""
    return work_of(kernel.tile_program, kernel.sizes, kernel.target)


def products(kernel):
    """Operations on the matrix units."""
    return sum(
        n for w in works(kernel) for (unit, _), n in w.operations.items() if unit == "matrix"
    )


kernels = [bb.emit(form, sizes) for form in FORMS]
reports = [each.cost("h200", launch="graph", warm=True) for each in kernels]
times = np.array([report.time_us for report in reports])
moved = np.array([report.bytes["hbm"] for report in reports])

print("after step          kernels  GB moved  ops/byte        us  limited by")
for at, (each, report) in enumerate(zip(kernels, reports, strict=True)):
    if at == 0 or at > 12:
        name = f"{at} {derivation.steps[at - 1].rule}" if at else "0 (unfused)"
        count = len(works(each))
        gb, intensity = moved[at] / 1e9, products(each) / moved[at]
        print(f"{name:20}{count:7}{gb:10.2f}{intensity:10.0f}{times[at]:10.0f}  {report.critical}")

assert {products(each) for each in kernels} == {4 * 16 * 4096 * 4096 * 128}
assert times[-1] == min(times) and times[0] > 10 * times[-1]

# %% [markdown]
# All forms multiply the same numbers, so they differ in what they move. (Steps 1 to 12 merge outer
# loops. Their programs are still printed as seven or eight kernels each, and cost about the same.)
#
# A *roofline* shows both. To the right: operations for each byte that moves to or from global
# memory. Upwards: operations a second. No program can be above the roof: on its slope memory is
# always busy, and on its flat part the matrix units are.

# %%
h200 = bb.machine("h200")
peak = h200.rate("matrix", "float16")
work = products(kernels[0])
intensity, speed = work / moved, work / (times * 1e-6)

fig, axes = plt.subplots(figsize=(8, 4.8))
x = np.geomspace(3, 6000, 200)
roof = np.minimum(x * h200.memory.bandwidth, peak)
axes.plot(x, roof / 1e12, color="black", label="H200: memory, matrix units")
colors = axes.scatter(intensity, speed / 1e12, c=range(len(FORMS)), cmap="viridis", s=40, zorder=3)
for at in (0, 16, 17, 21, 22, 23):
    point = (intensity[at], speed[at] / 1e12)
    side, offset = ("right", (-7, -3)) if at in (0, 21) else ("left", (7, -3))
    axes.annotate(str(at), point, textcoords="offset points", xytext=offset, ha=side, fontsize=9)
axes.set(xscale="log", yscale="log", ylim=(2, 1500))
axes.set_xlabel("operations per byte of global memory")
axes.set_ylabel("TFLOP/s of matrix products")
axes.set_title("Attention after each step of its derivation, 4096 x 4096 scores")
fig.colorbar(colors, label="steps done")
axes.legend(frameon=False, loc="lower right")
fig.tight_layout()
plt.show()

assert (speed < np.minimum(intensity * h200.memory.bandwidth, peak)).all()

# %% [markdown]
# The derivation climbs along the slope and leaves it at the end. The first forms are far below it:
# they store one number for each block of the sum side by side, so that each store of four bytes
# touches a whole line of the cache. A roofline knows bytes and operations; the closed form knows
# lines, launches, waiting and the size of programs as well.
#
# It also knows schedules. Here is the last form again, with 4 and with 8 warps for its 64 rows.

# %%
by_warps = {}
for warps in (4, 8):
    schedule = f"block M 64, D 128 whole, N 64, L 128 whole\nwarps {warps}\nstage nest 1 N 2"
    report = bb.emit(derivation.final, sizes, schedule=schedule).cost(
        "h200", launch="graph", warm=True
    )
    by_warps[warps] = report.time_us
    print(f"{warps} warps: {report.time_us:.0f} us, limited by {report.critical}")

assert by_warps[8] > 1.2 * by_warps[4]

# %% [markdown]
# The same program, and far slower. So a form and its schedule are chosen together, and that is what
# a cost model is for. In the rest of this notebook each form gets the best of a few block sizes,
# and the closed form picks it.

# %%
OPTIONS = (
    dict(),  # the default blocks, and loops in chunks where there are few programs
    dict(chunks={}),  # no chunks
    *(dict(tiles=dict(M=m, N=n)) for m in (16, 64, 128) for n in (64, 128)),
)


def microseconds(works, machine="h200", launch="graph"):
    return cost(works, machine, launch=launch, warm=True).time_us


def best(form, sizes, machine=h200):
    """The works of the fastest kernel of ``form`` among a few choices."""
    found = []
    for options in OPTIONS:
        each = works(bb.emit(form, sizes, target=machine.target, **options))
        try:
            found.append((microseconds(each, machine), each))
        except ValueError:
            continue  # its tiles are too large for this machine
    return min(found, key=lambda pair: pair[0])[1]


# %% [markdown]
# ## The rival: three kernels
#
# An eager framework runs attention as three kernels, each a good one: scores, softmax, and the
# product with `v`. Scores and weights go through memory in between.


# %%
def scores(q, k):
    return (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5


def weights(s):
    return bb.softmax(s, axis=-1)


def mix(p, v):
    return p @ v


def fused(function, **inputs):
    return bb.fuse(bb.lower(bb.trace(function, **inputs))).final


PARTS = {
    "HMND": fused(scores, q="H M D", k="H N D"),
    "HMN": fused(weights, s="H M N"),
    "HMNL": fused(mix, p="H M N", v="H N L"),
}


def one_kernel(sizes, machine=h200):
    """Flash Attention."""
    return best(derivation.final, sizes, machine)


def three_kernels(sizes, machine=h200):
    """Scores, softmax and product, one after the other."""
    parts = ({dim: sizes[dim] for dim in dims} for dims in PARTS)
    chosen = (best(part, own, machine) for part, own in zip(PARTS.values(), parts, strict=True))
    return [work for works in chosen for work in works]


# %% [markdown]
# ## Where fusing stops paying
#
# First the length of the sequence, from 64 to 4096. Two kinds of launch: each kernel called from
# the host, and all of them in a recorded graph.

# %%
lengths = (64, 128, 256, 512, 1024, 2048, 4096)
print("            one kernel               three kernels")
print("keys     us  launches  programs     us  launches   gain")
by_length = {}
for keys in lengths:
    own = dict(sizes, M=keys, N=keys)
    one, three = one_kernel(own), three_kernels(own)
    gain = {way: microseconds(three, launch=way) / microseconds(one, launch=way)
            for way in ("plain", "graph")}  # fmt: skip
    by_length[keys] = gain
    (a, b) = (cost(each, "h200", launch="graph", warm=True) for each in (one, three))
    print(
        f"{keys:4}{a.time_us:7.1f}{a.busy['launch']:10.0%}{one[0].programs:10}"
        f"{b.time_us:7.1f}{b.busy['launch']:10.0%}{gain['graph']:7.2f}"
    )

gain = {keys: gains["graph"] for keys, gains in by_length.items()}
least = min(gain, key=gain.get)
assert least in (256, 512)
assert gain[4096] > 1.2 * gain[least] and gain[64] > 1.2 * gain[least]

# %% [markdown]
# At 4096 fusing halves the time: the weights alone are half a gigabyte, which no cache holds. At
# 256 it matters least, for two reasons. The weights fit into the cache, so storing them is
# cheap. And one kernel has *few programs*: its parallelism comes from blocks of queries alone, so
# it either leaves some of the 132 processors without work, or cuts the queries into small blocks
# that load the keys more often. Three kernels spread blocks of queries *and* keys.
#
# At 64 and 128 fusing gains again, but for another reason. A kernel takes a launch, a start, and
# the latency of its first loads, however little it computes. Three kernels pay that three times.
# So the usual story, bytes, is the story of long sequences only.
#
# By this model fusing never loses along this line. Along others it does:
#
# - **Few queries and many keys**, as when a language model writes the next word. One program walks
#   through all keys, and the other processors watch. The remedy is to cut the keys into chunks, and
#   to let a second kernel merge them ("Flash-Decoding"); `bb.emit` does so by default.
# - **Wide values**: the last fusion computes the scores again for every block of columns of `v`.

# %%
lines = {"one kernel": {}, "cut into chunks": {}}
for keys in (256, 1024, 4096, 16384):
    own = dict(sizes, H=1, M=64, N=keys)
    rival = microseconds(three_kernels(own))
    plain = bb.emit(derivation.final, own, chunks={})
    lines["one kernel"][keys] = rival / microseconds(works(plain))
    lines["cut into chunks"][keys] = rival / microseconds(one_kernel(own))
wide = {}
for columns in (64, 128, 256, 512, 1024):
    own = dict(sizes, M=2048, N=2048, L=columns)
    wide[columns] = microseconds(three_kernels(own)) / microseconds(one_kernel(own))

fig, panels = plt.subplots(1, 3, figsize=(10, 3.4), sharey=True)
for way, color in (("plain", "tab:gray"), ("graph", "tab:blue")):
    gains = [by_length[keys][way] for keys in lengths]
    panels[0].plot(lengths, gains, marker="o", color=color, label=f"launch: {way}")
panels[0].set(title="16 heads", xlabel="queries = keys")
for (name, gains), color in zip(lines.items(), ("tab:red", "tab:blue"), strict=True):
    panels[1].plot(gains.keys(), gains.values(), marker="o", color=color, label=name)
panels[1].set(title="one head, 64 queries", xlabel="keys")
panels[2].plot(wide.keys(), wide.values(), marker="o", color="tab:blue")
panels[2].set(title="16 heads, 2048 queries and keys", xlabel="columns of v")
for panel in panels:
    panel.set_xscale("log", base=2)
    ticks = list(panel.lines[0].get_xdata())
    panel.set_xticks(ticks, [f"{tick:.0f}" for tick in ticks], fontsize=8)
    panel.axhspan(0, 1, color="tab:red", alpha=0.12, linewidth=0)
    panel.axhline(1, color="black", linewidth=0.8)
panels[0].legend(frameon=False)
panels[1].legend(frameon=False)
panels[0].set(ylabel="time of three kernels / of fused", ylim=(0, 4.5))
fig.suptitle("Fusing pays above 1, and loses in the red part")
fig.tight_layout()
plt.show()

assert lines["one kernel"][16384] < 0.7 < 1 < lines["cut into chunks"][16384]
assert wide[64] > 2 and wide[1024] < 1

# %% [markdown]
# This is why Blockbuster keeps all snapshots of a derivation and does not just take the last one.
#
# ## Other machines
#
# A machine's *balance* is the number of operations that its matrix units do while memory moves one
# byte. Where it is high, bytes are dear, and fusing pays.

# %%
print("machine     ops/byte  one kernel  three kernels  gain  limited by")
gains = {}
for name in ("rtx3080", "a100", "mi300x", "h200", "h100", "rtx6000ada"):
    machine = bb.machine(name)
    balance = machine.rate("matrix", "float16") / machine.memory.bandwidth
    one, three = one_kernel(sizes, machine), three_kernels(sizes, machine)
    a, b = microseconds(one, machine), microseconds(three, machine)
    critical = cost(one, machine, launch="graph", warm=True).critical
    gains[name] = b / a
    print(f"{name:12}{balance:8.0f}{a:9.0f} us{b:12.0f} us{b / a:6.1f}  {critical}")

assert min(gains.values()) > 1
assert gains["rtx6000ada"] > 2 * gains["rtx3080"]

# %% [markdown]
# The two RTX cards make the point: the memory of the newer one is hardly faster, its matrix units
# are several times as fast, and so it gains most from fusing.
#
# A machine that cannot run a kernel says so. The CPU of this project runs NumPy, not Triton:

# %%
try:
    kernel.cost("cpu")
except ValueError as error:
    print(error)
else:
    raise AssertionError("kernels are for GPUs")

# %% [markdown]
# ## Your own machine
#
# A machine is a value. Take one, change a number, and ask again. What would faster memory give?


# %%
def faster(machine, name, factor=2):
    """The machine with one tier of memory that moves so many times as much."""
    tiers = (
        replace(tier, bandwidth=tier.bandwidth * factor) if tier.name == name else tier
        for tier in machine.tiers
    )
    return replace(machine, tiers=tuple(tiers))


machines = {
    "H200": h200,
    "memory x 2": faster(h200, "hbm"),
    "cache x 2": faster(h200, "l2"),
    "both x 2": faster(faster(h200, "hbm"), "l2"),
}
one, three = one_kernel(sizes), three_kernels(sizes)
times = {}
for name, machine in machines.items():
    times[name] = a, b = microseconds(one, machine), microseconds(three, machine)
    print(f"{name:10}  one kernel {a:4.0f} us, three kernels {b:4.0f} us, gain {b / a:.2f}")

assert times["memory x 2"][0] > 0.98 * times["H200"][0]
assert times["memory x 2"][1] < 0.95 * times["H200"][1]

# %% [markdown]
# Memory that is twice as fast gives Flash Attention next to nothing: it hardly uses memory. Three
# kernels gain, until something else decides. A machine can also be a file of numbers with their
# sources ([targets and machines](../docs/targets_and_machines.md)), and `blockbuster calibrate`
# measures yours.
#
# ## Predicted and measured
#
# All of this came from a model. How far can it be trusted?
# [pairs.jsonl](../bench/results/2026-11-22-h200-costs/pairs.jsonl) has times that were measured on
# an H200: 24 schedules each of many programs. We take two: attention of 1024 queries with heads
# of 64, on which no number of the model was fitted, and attention of this notebook, which took part
# in the fit.

# %%
records = {}
for line in Path("../bench/results/2026-11-22-h200-costs/pairs.jsonl").read_text().splitlines():
    record = json.loads(line)
    records.setdefault(record["key"], {}).update(record)


def compared(workload):
    """Predicted and measured microseconds, schedule, and if registers spill."""
    found = []
    for record in records.values():
        if record["workload"] == workload:
            form = derivation.snapshots[record["snapshot"]]
            made = bb.emit(form, record["sizes"], record["dtype"], schedule=record["schedule"])
            try:
                predicted = made.cost("h200", launch="graph", warm=True).time_us
            except ValueError:
                continue  # the closed form says that no program fits; it guesses registers
            spills = any(each["spilled"] for each in record["kernels"])
            warm = median(record["warm"])
            found.append((predicted, warm, record["schedule"], spills))
    return found


def rank_correlation(pairs):
    ranks = (np.argsort(np.argsort([pair[at] for pair in pairs])) for at in (0, 1))
    return float(np.corrcoef(*ranks)[0, 1])


fig, axes = plt.subplots(figsize=(6.2, 5.2))
ends = np.array([9, 6000])
axes.plot(ends, ends, color="black", linewidth=0.8)
axes.fill_between(ends, ends / 1.25, ends * 1.25, color="gray", alpha=0.2, label="within 25%")
clean = {}
for workload, color in (("attention-1024", "tab:blue"), ("attention-4096", "tab:orange")):
    pairs = compared(workload)
    clean[workload] = [pair for pair in pairs if not pair[3]]
    spilled = [pair for pair in pairs if pair[3]]
    for some, marker, word in ((clean[workload], "o", ""), (spilled, "x", ", registers spill")):
        x, y = [pair[0] for pair in some], [pair[1] for pair in some]
        axes.scatter(x, y, color=color, marker=marker, s=30, label=workload + word)
axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
axes.set(xlabel="predicted, microseconds", ylabel="measured on an H200, microseconds")
axes.set_title("Two programs, 24 schedules each")
axes.legend(frameon=False, fontsize=8)
fig.tight_layout()
plt.show()

# %%
for workload, pairs in clean.items():
    ratios = [pair[0] / pair[1] for pair in pairs]
    chosen, fastest = min(pairs)[1], min(pair[1] for pair in pairs)
    print(
        f"{workload}: {len(pairs)} schedules without spills\n"
        f"  predicted / measured: {geometric_mean(ratios):.2f} on average,"
        f" from {min(ratios):.2f} to {max(ratios):.2f}\n"
        f"  rank correlation {rank_correlation(pairs):.2f};"
        f" the model's choice is {chosen / fastest - 1:.0%} slower than the best"
    )
    assert rank_correlation(pairs) > 0.6
    assert chosen < 1.25 * fastest
    ordered = sorted(pairs, key=lambda pair: pair[0] / pair[1])
    for predicted, warm, schedule, _ in (*ordered[:2], *ordered[-2:]):
        text = schedule.strip().replace("\n", "; ")
        print(f"  {predicted:5.0f} us predicted, {warm:5.0f} measured: {text}")

# %% [markdown]
# So the model orders schedules well enough to choose one, and is about right on average. The time
# that it gives for a single schedule can be wrong by three quarters. Where it errs:
#
# - **Few rows to a block, or many warps,** are slower than predicted, and many rows with short
#   steps (16 keys) are faster: the closed form guesses instructions and waits from the program, and
#   the assembler arranges them in its own way.
# - **Spilled registers** (crosses) are not modelled; one schedule takes several times as long as
#   predicted. A compiler finds them without a GPU, in a second for each kernel. So a tuner lets the
#   closed form keep a few of many schedules, and compiles only those ([costs](../docs/costs.md)).
# - The comparisons above are between schedules that the model chose, each with its own error. A
#   gain of 1.2 may be none. The large ones, and their reasons, are safe: bytes and operations are
#   counted, not guessed.
#
# What happens *during* a kernel, program by program, is the subject of
# [08](08_watching_waves.ipynb).
