"""The part that all emitted files share: arrays, checks, command line.

These texts are copied into stand-alone files, so they are written for the readers of those files.
"""

START = '''
def has_gpu():
    """True if torch sees a GPU."""
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


if __name__ == "__main__" and not has_gpu():
    os.environ["TRITON_INTERPRET"] = "1"  # Triton reads it when it is imported
'''

ARRAYS = '''
class HostArray:
    """A NumPy array as an argument of a kernel that runs in Triton's interpreter."""

    class Storage:
        def __init__(self, array):
            self.array = array

        def data_ptr(self):
            return self.array.ctypes.data

        def cpu(self):
            return self

        def copy_(self, other):
            pass

    class Dtype(str):
        itemsize = 0

    def __init__(self, array):
        self.array, self.shape = array, array.shape
        self.dtype = HostArray.Dtype(array.dtype.name)
        self.dtype.itemsize = array.itemsize

    def data_ptr(self):
        return self.array.ctypes.data

    def stride(self):
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def size(self):
        return self.shape

    def storage_offset(self):
        return 0

    def untyped_storage(self):
        return HostArray.Storage(self.array)

    def new_empty(self, *_, device=None):
        return HostArray(self.array)

    def set_(self, *_):
        return self


def dtype_name(array):
    return str(array.dtype).removeprefix("torch.")


def argument(array):
    """What a kernel takes for an array; truth values are bytes."""
    if dtype_name(array) == "bool":
        host = isinstance(array, np.ndarray)
        array = array.view(np.uint8 if host else sys.modules["torch"].uint8)
    return HostArray(array) if isinstance(array, np.ndarray) else array


def strides(array):
    """Strides in elements."""
    return argument(array).stride()


def empty(shape, dtype, like):
    """A new array on the device of ``like``."""
    if isinstance(like, np.ndarray):
        return np.empty(shape, dtype)
    import torch

    return torch.empty(shape, dtype=getattr(torch, dtype), device=like.device)


def index_type(*arrays):
    """64-bit offsets where an array spans 2**31 elements or more."""
    spans = (
        sum(abs(step) * (size - 1) for step, size in zip(strides(a), a.shape))
        for a in arrays
        if 0 not in a.shape
    )
    return tl.int64 if max(spans, default=0) >= 2**31 else tl.int32


def on_device(array):
    """Launches inside run on the device of ``array``."""
    if isinstance(array, np.ndarray) or not array.is_cuda:
        return contextlib.nullcontext()
    import torch

    return torch.cuda.device(array.device)


def check_array(name, array, axes, like, size):
    """Raise ValueError unless an array has the axes, dtype and device that the kernels read."""
    torch = sys.modules.get("torch")
    if not isinstance(array, np.ndarray) and not (torch and isinstance(array, torch.Tensor)):
        kind = type(array).__name__
        raise TypeError(f"{name} is a {kind}, expected a torch tensor or a NumPy array")
    if isinstance(array, np.ndarray) is not isinstance(like, np.ndarray):
        raise ValueError(f"{name} is a {type(array).__name__}, others are {type(like).__name__}")
    if dtype_name(array) != DTYPES[name]:
        raise ValueError(f"{name} has dtype {dtype_name(array)}, expected {DTYPES[name]}")
    if isinstance(array, np.ndarray):
        if not triton.knobs.runtime.interpret:
            raise ValueError("NumPy arrays need TRITON_INTERPRET=1 set before Triton is imported")
        if any(step % array.itemsize for step in array.strides):
            raise ValueError(f"{name} has strides {array.strides} that are no whole elements")
    elif array.device != like.device:
        raise ValueError(f"{name} is on {array.device}, expected {like.device}")
    elif not array.is_cuda and not triton.knobs.runtime.interpret:
        raise ValueError(f"{name} is on {array.device}, expected a GPU")
    if len(array.shape) != len(axes):
        raise ValueError(f"{name} has shape {tuple(array.shape)}, expected the axes {axes}")
    for axis, length in zip(axes, array.shape):
        expected = 1 if axis == 1 else size.setdefault(axis, length)
        if length != expected:
            raise ValueError(f"{name} has shape {tuple(array.shape)}: {axis} is {expected}")


def check_lengths(size):
    """``size`` with what follows from it. Raise ValueError where slices or heads do not fit."""
    for dim, exact, terms, divisor in LENGTHS:
        length, rest, number = quotient_of(terms, divisor, size)
        if rest or exact and length < 0:
            raise ValueError(f"{dim} would be {number:g} for {size}")
        known = size.setdefault(dim, length)
        if known < length or exact and known != length:
            least = "" if exact else "at least "
            raise ValueError(f"{dim} is {known}: for {size} it has to be {least}{length}")
    return size


def quotient_of(terms, divisor, size):
    """A sum of products over a number, or over another sum: rounded down, the rest, as a float."""
    number = total_of(terms, size)
    divisor = divisor if isinstance(divisor, int) else total_of(divisor, size)
    if divisor < 1:
        raise ValueError(f"a length is divided by {divisor} for {size}")
    return *divmod(number, divisor), number / divisor


def total_of(terms, size):
    """The sum of multiples of products. A factor is a size, or a sum over a number that counts what
    a slice takes: 0 where it is negative, rounded up, or it has to be whole.
    """
    number = 0
    for times, factors in terms:
        for factor in factors:
            if isinstance(factor, str):
                times *= size[factor]
                continue
            inner, divisor, rounds = factor
            length, rest, _ = quotient_of(inner, divisor, size)
            if rest and not rounds:
                raise ValueError(f"a slice would have {length} and a part elements for {size}")
            times *= max(length + (rest > 0), 0)
        number += times
    return number


def check_sizes(size):
    """Raise ValueError for sizes that these kernels were not written for."""
    for dim, multiple in MULTIPLES.items():
        if size[dim] % multiple:
            raise ValueError(f"{dim} is {size[dim]}: it has to be a multiple of {multiple}")
    for dim, most in AT_MOST.items():
        if size[dim] > most:
            raise ValueError(f"{dim} is {size[dim]}: it is one block of at most {most}")
    for dim, only in EXACTLY.items():
        if size[dim] != only:
            raise ValueError(f"{dim} is {size[dim]}: it has to be {only}")
'''

ASSEMBLER = '''
def check_assembler():
    """Raise RuntimeError if Triton assembles with ptxas 12.8 for a Hopper GPU.

    Dots of several widths follow each other in a kernel. That ptxas loses an address between them.
    """
    torch = sys.modules.get("torch")
    if triton.knobs.runtime.interpret or not torch or torch.version.hip:
        return
    if torch.cuda.get_device_capability()[0] != 9:
        return
    from triton.backends.nvidia.compiler import get_ptxas

    ptxas = get_ptxas(90)
    if ptxas.version == "12.8":
        raise RuntimeError(
            f"{ptxas.path} is ptxas 12.8, which breaks these kernels: set TRITON_PTXAS_PATH to"
            " a newer one, such as the ptxas-blackwell beside it"
        )
'''

COMMANDS = '''
def bench(size):
    """Print the time of one call."""
    arrays = random_inputs(size)
    free = {dim: size[dim] for dim in FREE}
    outputs = poisoned(size, next(iter(arrays.values())))
    low, middle, high = triton.testing.do_bench(
        lambda: launch(**arrays, **free, **outputs), quantiles=[0.2, 0.5, 0.8]
    )
    moved = sum(a.numel() * a.element_size() for a in (*arrays.values(), *outputs.values()))
    print(
        f"{middle * 1e3:.1f} us (middle of 20%..80%: {low * 1e3:.1f}..{high * 1e3:.1f}),"
        f" {moved / middle / 1e6:.0f} GB/s of inputs and outputs"
    )


def sizes_asked(parser, options):
    """The sizes to check and to time; a usage error for sizes that these kernels do not take."""
    changes = {}
    for text in options.sizes:
        dim, _, number = text.partition("=")
        fits = number.isdecimal() and len(number) <= 10 and int(number) < 2**31
        if dim not in SIZES or not fits:
            known = f"numbers below 2**31 of the dims {', '.join(SIZES)}"
            parser.error(f"--sizes takes {known}, as in {next(iter(SIZES), 'M')}=64; got {text!r}")
        changes[dim] = int(number)
    try:
        to_check, to_time = sizes_to_check(changes), check_lengths(SIZES | changes)
        for size in [to_check] * options.check + [to_time] * options.bench:
            check_sizes(size)
    except ValueError as error:
        parser.error(f"--sizes: {error}")
    return to_check, to_time


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare with the reference")
    parser.add_argument("--bench", action="store_true", help="time it (needs a GPU)")
    parser.add_argument("--sizes", nargs="*", default=[], metavar="DIM=N", help="other sizes")
    parser.add_argument("--seed", type=int, default=0, help="of the random inputs")
    options = parser.parse_args()
    if not (options.check or options.bench):
        parser.error("say --check or --bench")
    if options.seed < 0:
        parser.error(f"--seed takes 0 or more; got {options.seed}")
    to_check, to_time = sizes_asked(parser, options)
    try:
        if options.check and not check(to_check, options.seed):
            return 1
    except MemoryError as error:
        parser.error(f"--sizes: {error or 'not enough memory'}")
    if options.bench:
        if not has_gpu():
            print("--bench needs a GPU that torch sees")
            return 2
        bench(to_time)
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''
