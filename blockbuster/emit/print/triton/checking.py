"""The check that all emitted files share: what inputs are drawn, and which results are right.

This text is copied into stand-alone files, so it is written for the readers of those files.
"""

DRAWS = '''
LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float8_e4m3fn": 448.0}
FLOAT32_LARGEST = 3.4028234663852886e38
LARGE = 10_000  # the size of the inputs of the second draw


def sizes_to_check(changes):
    """Sizes that touch every edge in few iterations, where ``changes`` says nothing."""
    size = {}
    for dim, usual in SIZES.items():
        if dim in EXACTLY or dim in AT_MOST or dim in FIXED or LENGTHS or has_gpu():
            size[dim] = usual
        elif dim in MULTIPLES:
            size[dim] = min(usual, 2 * MULTIPLES[dim])
        else:
            size[dim] = min(usual, BLOCKS.get(dim, 1) * 3 // 2 + 1)
    for dim, only in FIXED.items():
        if changes.get(dim, only) != only:
            raise ValueError(f"{dim} is {changes[dim]}: the function was traced for {only}")
    return check_lengths(size | changes)


def integers(rng, dtype, shape, scale, positive, zero):
    """Random integers of both signs if the dtype has them; without 0 unless that may be drawn."""
    limits = np.iinfo(dtype)
    top = int(min(LARGE if scale > 1 else 8, limits.max))
    if positive or limits.min == 0:
        return rng.integers(0 if zero else 1, top, shape)
    numbers = rng.integers(-top, top, shape)
    return numbers if zero else numbers + (numbers >= 0)


def drawn(rng, name, shape, size, scale, positive):
    """Random values of the kind that an input has (KINDS, TRUTH, DTYPES)."""
    kind, top = KINDS.get(name, ("", 0))
    top = size.get(top, top)
    if kind == "truth" or name in TRUTH:
        return rng.standard_normal(shape) > 0
    if kind in ("index", "wrapped"):
        return rng.integers(-top if kind == "wrapped" else 0, max(top, 1), shape)
    if kind == "count":
        return rng.integers(min(top, 1), top + 1, shape)
    if "int" in DTYPES[name]:
        return integers(rng, DTYPES[name], shape, scale, positive, kind != "divisor")
    most = LARGEST.get(DTYPES[name], FLOAT32_LARGEST)
    numbers = np.clip(min(scale, most / 8) * rng.standard_normal(shape), -most, most)
    return np.abs(numbers) if positive else numbers


def in_numpy():
    """True if NumPy has the dtypes of all arrays."""
    return not any(word in name for name in DTYPES.values() for word in ("bfloat16", "float8"))


def random_inputs(size, seed=0, scale=1.0, positive=False):
    """Inputs of the right kinds, as NumPy arrays; as torch tensors for a GPU, if there is one, and
    for dtypes that NumPy lacks.

    Numbers are normally distributed; labels are below their number of classes, lengths between 1
    and the length of their axis, masks 0 or 1, and integers that the program divides by are not 0.
    """
    rng = np.random.default_rng(seed)
    arrays = {}
    for name, axes in INPUTS.items():
        shape = [1 if axis == 1 else size[axis] for axis in axes]
        array = drawn(rng, name, shape, size, scale, positive)
        arrays[name] = array.astype(np.float32) if "float" in DTYPES[name] else array
    if has_gpu() or not in_numpy():
        import torch

        device = "cuda" if has_gpu() else "cpu"
        tensors = {name: torch.from_numpy(a).to(device) for name, a in arrays.items()}
        return {n: t.to(getattr(torch, DTYPES[n])) for n, t in tensors.items()}
    return {n: a.astype(DTYPES[n]) for n, a in arrays.items()}


def poisoned(size, like, turn=0):
    """Outputs full of NaN, or of 0 in turn 1: elements that a kernel does not write show."""
    arrays = {}
    for name, axes in OUTPUTS.items():
        shape = [1 if axis == 1 else size[axis] for axis in axes]
        arrays[name] = empty(shape, DTYPES[name], like)
        arrays[name][...] = float("nan") if "float" in DTYPES[name] and not turn else not turn
    return arrays


def on_host(array):
    """An array in NumPy: floats in float64, others in their dtype."""
    if not isinstance(array, np.ndarray):
        array = (array.double() if array.is_floating_point() else array).cpu().numpy()
    return array.astype(np.float64) if array.dtype.kind == "f" else array
'''

JUDGEMENT = '''
ROUNDING = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float8_e4m3fn": 2.0**-4}
NEARBY = 8  # how many sets of slightly other inputs show what rounding may do
ROOM = 2**31  # bytes that the reference may hold at once


def expected(arrays, size, **options):
    """The reference's results; computed in parts where whole arrays would take too much memory."""
    growth = math.prod(size[dim] / max(usual, 1) for dim, usual in SIZES.items())
    return in_parts(arrays, size, math.ceil(HELD * growth / ROOM), APART, options)


def in_parts(arrays, size, parts, dims, options):
    """The same in about so many ``parts``, cut along ``dims``."""
    if parts <= 1 or not dims:
        free = {dim: size[dim] for dim in FREE}
        found = reference(*arrays.values(), **free, **options)
        return found if isinstance(found, tuple) else (found,)
    dim, *rest = dims
    step = max(-(-size[dim] // parts), 1)
    left = -(-parts * step // max(size[dim], 1))
    made = []
    for start in range(0, max(size[dim], 1), step):
        part = slice(start, start + step)
        cut = {
            name: array[tuple(part if axis == dim else slice(None) for axis in INPUTS[name])]
            for name, array in arrays.items()
        }
        made.append(in_parts(cut, size, left, rest, options))
    return tuple(
        np.concatenate(column, axes.index(dim)) if dim in axes else column[0]
        for axes, column in zip(OUTPUTS.values(), zip(*made))
    )


class Expected:
    """What the reference gives for one set of inputs, and for others nearby."""

    def __init__(self, given, size, seed):
        self.given, self.size, self.seed = given, size, seed
        self.arrays = {name: on_host(array) for name, array in given.items()}
        self.right = expected(self.arrays, size)

    @np.errstate(all="ignore")
    def lost(self):
        """How many elements are no numbers of their dtype."""
        most = [LARGEST.get(DTYPES[name], FLOAT32_LARGEST) for name in OUTPUTS]
        return sum(np.count_nonzero(~(np.abs(a) <= m)) for a, m in zip(self.right, most))

    @functools.cached_property
    def single(self):
        """The results of the same operators in float32."""
        return expected(self.arrays, self.size, dtype=np.float32) if EAGER else self.right

    @functools.cached_property
    def eager(self):
        """The results of the same operators in the dtype of the inputs."""
        dtype = getattr(np, EAGER) if EAGER else None
        return expected(self.arrays, self.size, dtype=dtype) if EAGER else self.right

    @functools.cached_property
    def other(self):
        """The results where integers over 0, which have no quotient, are something else."""
        return expected(self.arrays, self.size, over_zero=7) if OVER_ZERO else self.right

    @functools.cached_property
    def nearby(self):
        """The results for inputs that differ by a few roundings."""
        rng, found = np.random.default_rng(self.seed), [self.right]
        for _ in range(NEARBY):
            moved = {
                name: array * (1 + 4 * ROUNDING.get(DTYPES[name], 2.0**-24)
                               * rng.uniform(-1, 1, array.shape))
                if "float" in DTYPES[name] and name not in KINDS else array
                for name, array in self.arrays.items()
            }  # fmt: skip
            found.append(expected(moved, self.size))
        return [*zip(*found)]

    def defined(self, at):
        """The elements of an output that do not depend on a quotient over 0."""
        one, two = self.right[at], self.other[at]
        return (one == two) | ((one != one) & (two != two))


def unlike(name, ours, right, allowed):
    """The elements that are not right: too far off, or no number where the reference has one.

    Where the reference has no number, a number will do: a kernel may be more stable. Numbers in the
    upper half of the range may be infinite, those beyond it have to be.
    """
    if "float" not in DTYPES[name]:
        return ours != right
    most = LARGEST.get(DTYPES[name], FLOAT32_LARGEST)
    near = (np.abs(ours - right) <= allowed) & (np.abs(right) <= 2 * most)
    overflown = (np.abs(right) > most / 2) & (ours == np.sign(right) * np.inf)
    alike = (ours == right) | ((ours != ours) & (right != right))
    unknown = ~np.isfinite(right) & (np.isfinite(ours) | alike)
    return ~(near | overflown | unknown)


def within(ours, results, allowed):
    """The elements that a few roundings of the inputs explain: rounding decides at a jump."""
    low, high = np.minimum.reduce(results), np.maximum.reduce(results)
    if ours.dtype.kind != "f":
        return low != high
    room = high - low + allowed
    return (ours >= low - room) & (ours <= high + room)


def judged(name, at, ours, wanted, allowed):
    """The wrong elements of an output, and words about those that are right for another reason."""
    right, words = wanted.right[at], []
    wrong = unlike(name, ours, right, allowed) & wanted.defined(at)
    if not wrong.any():
        return wrong, words
    single, eager = wanted.single[at], wanted.eager[at]
    if ours.dtype.kind == "f":
        most = LARGEST.get(DTYPES[name], FLOAT32_LARGEST)
        apart = np.abs(single - right)[np.isfinite(single) & (np.abs(right) <= most)]
        allowed = max(allowed, 4 * float(apart.max(initial=0)))
        wrong &= unlike(name, ours, right, allowed)
        same = np.isfinite(right) | (ours == eager) | (eager != eager)
        lost = wrong & ~np.isfinite(ours) & ~np.isfinite(eager) & same
        if lost.any():
            where = f"in {EAGER}, operator by operator" if EAGER else "in the reference"
            words.append(f"{lost.sum()} are no numbers, as {where}")
            wrong &= ~lost
    if wrong.any():
        explained = wrong & within(ours, wanted.nearby[at], allowed)
        for other in (single, eager):
            explained |= wrong & np.isfinite(other) & ~unlike(name, ours, other, allowed)
        if explained.any():
            words.append(f"{explained.sum()} differ where rounding decides")
        wrong &= ~explained
        if wrong.sum() <= explained.sum() / 20:  # that NEARBY sets of inputs did not show
            wrong[...] = False
    return wrong, words


@np.errstate(all="ignore")
def is_close(name, at, ours, wanted, where=""):
    """Whether an output agrees with the reference, and a line about it."""
    right = wanted.right[at]
    if ours.shape != right.shape:
        print(f"{name}{where}: shape {ours.shape}, expected {right.shape}: FAIL")
        return False
    most = LARGEST.get(DTYPES[name], FLOAT32_LARGEST)
    numbers = np.isfinite(ours) & (np.abs(right) <= most) & wanted.defined(at)
    largest = float(np.abs(right[numbers]).max(initial=0))
    wrong, words = judged(name, at, ours, wanted, TOLERANCE * max(largest, 1e-3))
    close = not wrong.any()
    if "float" in DTYPES[name]:
        plain = numbers & ~unlike(name, ours, right, TOLERANCE * max(largest, 1e-3)) | wrong
        error = np.abs(ours - right)[plain & numbers].max(initial=0)
        of = f"largest value {largest:.3g}, tolerance {TOLERANCE:g} of it"
        words.insert(0, f"max error {error:.3g}, {of}")
        lost = np.count_nonzero(wrong & ~numbers)
        words += [f"{lost} are no numbers"] * bool(lost)
    else:
        words.insert(0, f"{np.count_nonzero(ours != right)} of {right.size} entries differ")
    print(f"{name}{where}: {'; '.join(words)}: {'PASS' if close else 'FAIL'}")
    return close


def same_bits(one, other):
    """True if two results are equal; one NaN is as good as another."""
    return bool(((one == other) | ((one != one) & (other != other))).all())


@np.errstate(all="ignore")
def run_kernels(arrays, size, turn):
    """The kernels' outputs in NumPy, written over a poison; in the interpreter without warnings."""
    free = {dim: size[dim] for dim in FREE}
    outputs = poisoned(size, next(iter(arrays.values())), turn)
    launch(**arrays, **free, **outputs)
    return {name: on_host(array) for name, array in outputs.items()}


def compare(wanted, where=""):
    """True if every output is as ``wanted``, whatever was in the outputs before."""
    first, again = (run_kernels(wanted.given, wanted.size, turn) for turn in (0, 1))
    found = []
    for at, (name, ours) in enumerate(first.items()):
        if same_bits(ours, again[name]):
            found.append(is_close(name, at, ours, wanted, where))
        else:
            print(f"{name}{where}: changes from run to run, or is not written entirely: FAIL")
            found.append(False)
    return all(found)


def better(plain):
    """Smaller or positive inputs for which the reference has more numbers, and words; or None."""
    best, most, size, seed = None, plain.lost(), plain.size, plain.seed
    for positive, scale in ((False, 0.25), (False, 0.0625), (True, 1.0), (True, 0.25)):
        if most:
            other = Expected(random_inputs(size, seed, scale, positive), size, seed)
            if other.lost() < most:
                best, most = (other, positive, scale), other.lost()
    return best


def check(size, seed=0):
    """True if the kernels are right on random inputs: of usual size, and large ones."""
    plain = Expected(random_inputs(size, seed), size, seed)
    right, positive = compare(plain), False
    if found := better(plain):
        other, positive, scale = found
        right &= compare(other, f", {'positive ' if positive else ''}inputs of {scale:g}")
        positive &= 2 * plain.lost() > sum(array.size for array in plain.right)
    large = Expected(random_inputs(size, seed + 1, LARGE, positive), size, seed)
    right &= compare(large, f", inputs of {LARGE:,}")
    for note in NOTES:
        print(f"note: {note}")
    return right
'''
