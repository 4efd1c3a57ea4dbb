"""Records of compiled kernels on a device, and the precautions before a new one's first launch.

A kernel is identified by the hash of its binary. Disk records tell which kernels passed a
comparison of their results (check/first_result.py) and which failed. They also tell when a launch
has begun, so that the next process knows if this one did not come back from it.

A kernel first runs in another process (trial.py) after a launch that did not come back, and where
this package's random programs never ran with the present device, Triton and assembler.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from blockbuster.emit.target.compiler import Compilation, Refusal
from blockbuster.emit.target.disk import Folder, cache_folder
from blockbuster.emit.target.gpu import Gpu, same_bits
from blockbuster.errors import NOT_TAKEN, EmitError, LaunchError, message, shown, shown_lines
from blockbuster.ir.reading import Wrong, one_of, parse_json, record, text
from blockbuster.runtime.room import NoRoom, room, taken, too_much
from blockbuster.runtime.trial import fault_in_trial

if TYPE_CHECKING:
    from blockbuster.selection.plans.pieces import Call
    from blockbuster.selection.plans.plan import File, Sizes

Tensor = Any

UNEQUAL = "results differ from run to run, or depend on memory that no kernel has written"
LONGEST = 1000  # characters of a reason that are told
PASSED, WRONG, BEGUN, UNKNOWN = "passed", "wrong", "begun", ""


class Refused(EmitError):
    """Files that Triton does not compile, or that gave wrong results, and why; or calls of a
    library that it refuses.

    ``wrong``: it is compiled, and must not be run; ``evidence``: the file that shows it.
    """

    def __init__(
        self,
        files: tuple[File | Call, ...],
        reason: str,
        *,
        wrong: bool = False,
        evidence: str = "",
    ) -> None:
        names = ", ".join(name for file in files for name in file.writes)
        hint = "compile the program again here: where a kernel is refused, another one is chosen"
        origin = f"to reproduce it: {evidence}" if evidence else ""
        super().__init__(message(f"no kernel for {names}: {reason}", origin=origin, hint=hint))
        self.files, self.reason = files, reason
        self.wrong, self.evidence = wrong, evidence


@dataclass(frozen=True)
class Binary:
    """A compiled kernel: ``key`` tells it from others, on a device of a name."""

    name: str
    key: str
    texts: Mapping[str, Any]

    @classmethod
    def of(cls, name: str, compiled: Any, device: str) -> Binary:
        """The binary in Triton's output."""
        digest = hashlib.sha256(bytes(compiled.kernel) + device.encode()).hexdigest()
        return cls(name, digest[:40], compiled.asm)


def together(binaries: Sequence[Binary]) -> Binary:
    """One record for several binaries of which any may be wrong; a single one is its own record."""
    if len(binaries) == 1:
        return binaries[0]
    keys = " ".join(sorted(binary.key for binary in binaries))
    names = " with ".join(binary.name for binary in binaries)
    return Binary(names, hashlib.sha256(keys.encode()).hexdigest()[:40], {})


@dataclass(frozen=True)
class Known:
    """The record of a binary: its state, and what was wrong."""

    state: str = UNKNOWN
    reason: str = ""


class Memory:
    """The records of binaries, in a folder of the user's cache."""

    def __init__(self, folder: Folder | None = None) -> None:
        self._folder = folder or cache_folder("checked")

    def read(self, binary: Binary) -> Known:
        """The record of a binary; unknown if the entry cannot be read."""
        try:
            data = parse_json(self._folder.read(f"{binary.key}.json") or b"")
            states = one_of((PASSED, WRONG, BEGUN, UNKNOWN))
            found = record(data, kernel=text, state=states, reason=text)
        except Wrong:
            return Known()
        return Known(found["state"], shown(found["reason"], LONGEST))

    def write(self, binaries: Iterable[Binary], state: str, reason: str = "") -> None:
        """Remember one thing of several binaries."""
        for binary in binaries:
            entry = {"kernel": binary.name, "state": state, "reason": reason}
            self._folder.write(f"{binary.key}.json", json.dumps(entry).encode())


@dataclass(frozen=True)
class Finding:
    """The result of a comparison of first results: what is ``wrong``, and a note on it."""

    wrong: str = ""
    note: str = ""


Run = Callable[[Sequence[Tensor]], list[Tensor]]
Compare = Callable[[Run, Sequence[Tensor], Sequence[Tensor]], Finding]
"""Compares what a plan gave for arrays with what is right; it may run the plan on others."""


class Faulty(Exception):
    """A compiled kernel that must not run, and why."""


Trial = Callable[[], str]
"""Runs a file in another process; says how that failed, "" if it did not."""


def admit(
    binaries: Sequence[Binary],
    memory: Memory,
    *,
    probed: bool,
    trial: Trial,
) -> list[Binary]:
    """The binaries of a file whose results have to be compared before they are returned.

    Raises Faulty for what is known to be wrong, alone or together, or what fails its trial.
    """
    known = [memory.read(binary) for binary in binaries]
    new = [b for b, entry in zip(binaries, known, strict=True) if entry.state != PASSED]
    for one in (*new, together(new)) if new else ():
        entry = memory.read(one)
        if entry.state == WRONG:
            raise Faulty(f"{one.name} failed its check earlier: {entry.reason}")
    if new and not (probed and all(entry.state != BEGUN for entry in known)):
        reason = trial()
        if reason:
            memory.write([together(new)], WRONG, reason)
            raise Faulty(reason)
    memory.write(new, BEGUN)
    return new


def keep_evidence(text: str, binaries: Iterable[Binary], reason: str, versions: str) -> str:
    """Write what reproduces a wrong result into the cache: the path of the file, "" without a disk.

    The file stands alone: ``python FILE --check`` runs its kernels and compares.
    """
    folder = cache_folder("refused")
    found = list(binaries)
    stem = hashlib.sha256(text.encode()).hexdigest()[:16]
    for binary in found:
        for kind in ("ttgir", "ptx", "cubin"):
            data = binary.texts.get(kind)
            if data:
                raw = data if isinstance(data, bytes) else str(data).encode()
                folder.write(f"{stem}-{binary.key[:8]}.{kind}", raw)
    said = [f"# {shown(line)}" for line in (*shown_lines(reason), versions)]
    path = folder.write(f"{stem}.py", "\n".join([*said, text]).encode())
    return str(path or "")


class PoisonedRun(Protocol):
    """A runner of a plan (replay.py), also in memory full of a pattern that no kernel writes."""

    def __call__(self, tensors: Sequence[Tensor]) -> list[Tensor]: ...
    def poisoned(self, tensors: Sequence[Tensor]) -> list[Tensor]: ...


class FirstChecks:
    """The binaries of a plan that are new on a device, until their results are compared."""

    def __init__(self, gpu: Gpu, compare: Compare) -> None:
        self.note = ""
        self._gpu, self._compare = gpu, compare
        self._new: list[tuple[File, list[Binary]]] = []
        self._compilations: list[Compilation] = []

    @cached_property
    def _memory(self) -> Memory:
        return Memory()

    def expect_no_capture(self, what: str) -> None:
        """Raise LaunchError where launches become part of a CUDA graph: nothing can be compared.

        It is asked before anything is compiled or loaded, which would spoil the graph.
        """
        if self._gpu.is_capturing():
            raise LaunchError(
                message(
                    f"{what} is captured in a CUDA graph before its first result was checked",
                    hint="call it once before, with arrays of this layout; or check=False",
                )
            )

    def admit(
        self, file: File, made: Sequence[Compilation], tensors: Sequence[Tensor], sizes: Sizes
    ) -> None:
        """Raises Refused for a file that must not run; new binaries are kept for ``judge``.

        What another file of the plan has begun with is no binary that a process died of.
        """
        found = [Binary.of(one.name, one.compiled, self._gpu.name) for one in made]
        begun = {binary.key for _, binaries in self._new for binary in binaries}
        binaries = list({one.key: one for one in found if one.key not in begun}.values())
        try:
            new = admit(
                binaries,
                self._memory,
                probed=self._gpu.is_probed([one.assembler for one in made]),
                trial=lambda: self._trial(file, made, tensors, sizes),
            )
        except Faulty as fault:
            raise self._shown([(file, binaries)], str(fault)) from fault
        if new or len(binaries) < len({binary.key for binary in found}):
            self._new.append((file, new))
            self._compilations += made

    def _trial(
        self, file: File, made: Sequence[Compilation], tensors: Sequence[Tensor], sizes: Sizes
    ) -> str:
        """How a file fails in another process, when nothing is found in its machine code."""
        for one in made:
            one.look()
        try:
            return fault_in_trial(file.text, tensors, sizes)
        except NoRoom as error:
            self.note = f"the first launch was not tried in another process: {error}"
            return ""

    @property
    def is_waiting(self) -> bool:
        """True if there are new binaries, whose results ``judge`` has to see."""
        return bool(self._new)

    def judge(self, run: PoisonedRun, tensors: Sequence[Tensor], results: list[Tensor]) -> None:
        """Compare the first results of new binaries. Raises Refused if they are wrong."""
        new, self._new = self._new, []
        if not new:
            return
        self._check_device()
        repeated = self._repeated(run, tensors, results)
        finding = repeated if repeated.wrong else self._compared(run, tensors, results)
        wrong = self._wrong_code()
        if wrong:
            raise self._refused(new, wrong)
        if finding.wrong:
            raise self._refused(new, finding.wrong)
        self.note = "; ".join(filter(None, (self.note, repeated.note, finding.note)))
        state = UNKNOWN if self.note else PASSED  # the note says what was not compared
        self._memory.write([b for _, binaries in new for b in binaries], state)

    def _repeated(
        self, run: PoisonedRun, tensors: Sequence[Tensor], results: Sequence[Tensor]
    ) -> Finding:
        """What a second run finds, in memory that no kernel has written."""
        needed, allowed = taken(results), room(results[0].device) if results else 0
        if needed > allowed:
            return Finding(note=f"the first run was not repeated: {too_much(needed, allowed)}")
        equal = all(map(same_bits, results, run.poisoned(tensors)))
        return Finding("" if equal else UNEQUAL)

    def _wrong_code(self) -> str:
        """What is wrong in the machine code, which was looked at meanwhile; "" if nothing is."""
        made, self._compilations = self._compilations, []
        try:
            for one in made:
                one.look()
        except Refusal as refusal:
            return str(refusal)
        return ""

    def _compared(
        self, run: PoisonedRun, tensors: Sequence[Tensor], results: Sequence[Tensor]
    ) -> Finding:
        """What comparing finds; a note where torch cannot compute what to compare with."""
        try:
            return self._compare(run, tensors, results)
        except NOT_TAKEN as error:  # CUDA's faults among them
            self._check_device()
            reason = shown_lines(str(error) or type(error).__name__)[0]
            return Finding(note=f"first results were not compared: {reason}")

    def _check_device(self) -> None:
        """Raise LaunchError if a launch has failed: nothing works on this device any more."""
        fault = self._gpu.fault()
        if fault:
            hint = "start Python anew: it then tries these kernels in a process of their own first"
            raise LaunchError(message(f"the first launch failed: {fault}", hint=hint))

    def _refused(self, new: Sequence[tuple[File, list[Binary]]], reason: str) -> Refused:
        """What to raise; a file's new binaries are remembered, of several files any may be wrong.

        So are several binaries together: each alone, in another file, is compared again.
        """
        self._memory.write([b for _, found in new for b in found], UNKNOWN, reason)
        if len(new) == 1:
            self._memory.write([together(found) for _, found in new], WRONG, reason)
        return self._shown(new, reason)

    def _shown(self, new: Sequence[tuple[File, list[Binary]]], reason: str) -> Refused:
        """What to raise, with the evidence on disk; nothing else is remembered."""
        path = ""
        for file, found in new:
            path = keep_evidence(file.text, found, reason, self._gpu.versions) or path
        return Refused(tuple(file for file, _ in new), reason, wrong=True, evidence=path)
