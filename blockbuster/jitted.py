"""A function that compiles itself: each call finds what earlier ones traced and compiled."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import MethodType
from typing import Any

from blockbuster.check.loading import comparison
from blockbuster.emit.target.targets import architecture
from blockbuster.errors import EmitError
from blockbuster.frontend import ArrayProgram
from blockbuster.frontend.arguments import (
    Leaf,
    fixed_values,
    held_leaves,
    leaves,
    program_key,
    trace_call,
)
from blockbuster.frontend.merged_axes import merged
from blockbuster.frontend.random_numbers import Draws
from blockbuster.frontend.reads import Reads, reads_of
from blockbuster.frontend.size_facts import SizeFacts
from blockbuster.frontend.trees import holds
from blockbuster.frontend.users_frames import UsersFrames
from blockbuster.ir.types import Dim
from blockbuster.machines import CPU, Machine
from blockbuster.runtime.compiled import SAVED, Compiled, keep
from blockbuster.runtime.first_launch import Refused
from blockbuster.runtime.given import (
    beside,
    call_key,
    constants_of,
    family_of,
    in_common_of,
    is_traced,
    kind_of_call,
    sizes_of,
)
from blockbuster.runtime.known_calls import MOST, KnownCall, ReadyCall, never
from blockbuster.runtime.machines import device_for
from blockbuster.runtime.merged_arrays import Regrouping
from blockbuster.runtime.tensors import Arrays, in_common
from blockbuster.selection.decision import Memory
from blockbuster.selection.decisions.empty_blocks import constant_masks
from blockbuster.selection.plans.plan import Plan, Sizes
from blockbuster.selection.plans.report import Report
from blockbuster.tuning.memory import decisions_for
from blockbuster.tuning.setting import tuning_for
from blockbuster.tuning.traced import Traced


class Jitted:
    """A function that is traced, fused and compiled when it is called; see ``jit``.

    ``choosing``: how kernels are chosen, as ``family_of`` takes it.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        one_kernel: bool,
        tune: str,
        machine: str,
        check: bool,
        graph: bool,
        constant: Sequence[str],
        **choosing: Any,
    ) -> None:
        functools.update_wrapper(self, fn)
        self._fn = fn
        self._one_kernel, self._tune, self._machine = one_kernel, tune, machine
        self._check, self._graph, self._constant = check, graph, constant
        self._choosing = choosing
        self._ready: dict[Any, ReadyCall] = {}
        self._latest: ReadyCall | None = None  # the latest whose arguments are told quickly
        self._known: dict[Any, list[KnownCall[Traced]]] = {}
        self._traced: dict[Any, Traced] = {}
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<jit of {getattr(self._fn, '__name__', 'a function')}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result for these arguments."""
        latest = self._latest
        if latest is not None and not kwargs and latest.is_same(args) and latest.reads.unchanged():
            return latest.run(args, kwargs)
        try:
            known = self._ready.get(key := call_key(args, kwargs))
        except (TypeError, RuntimeError):  # no hash, or no strides: say which argument
            found = leaves(self._fn, args, kwargs)
            in_common({leaf.shown: leaf.value for leaf in found if leaf.is_array})
            raise
        if known is not None and known.reads.unchanged():
            if known.plain:
                known.seen(args)
            if known.is_same is not never:
                self._latest = known
            return known.run(args, kwargs)
        kind = kind_of_call(args, kwargs, key)
        for traced in self._known.get(kind, ()):
            again = traced.found(key, args, kwargs)
            if again is not None:
                return self._run(key, traced, *again, checks=False)
        with UsersFrames():
            return self._traced_call(key, kind, args, kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """As a method: the instance is the first argument, a fixed one whose state is watched."""
        return self if instance is None else MethodType(self, instance)

    def compiled_for(self, *args: Any, **kwargs: Any) -> Compiled:
        """The compiled program that a call with these arguments would run; nothing is run."""
        return self._compiled(leaves(self._fn, args, kwargs))[0]

    def plan_for(self, *args: Any, **kwargs: Any) -> Plan:
        """The plan for these arguments: the kernels, and the calls between them."""
        return self.compiled_for(*args, **kwargs).plan

    def sizes_for(self, *args: Any, **kwargs: Any) -> Sizes:
        """The size of each dim for these arguments; the plan is made for sizes of their class."""
        return self._compiled(leaves(self._fn, args, kwargs))[1]

    def source_for(self, *args: Any, **kwargs: Any) -> str:
        """The emitted text for these arguments."""
        return self.compiled_for(*args, **kwargs).source

    def report_for(self, *args: Any, **kwargs: Any) -> Report:
        """The report for these arguments: what did not fuse, the number of kernels, other calls."""
        found = leaves(self._fn, args, kwargs)
        reads = self._reads(found)
        compiled, sizes, drawn = self._compiled(found)
        unknown = reads.unknown or drawn
        traced = f"traced again at each call, because {unknown}" if unknown else ""
        return compiled.report_with(*filter(None, [traced]), sizes=sizes)

    def clear_constants(self) -> None:
        """Forget what was computed of constants: for changes that torch does not count."""
        with self._lock:
            for traced in self._traced.values():
                for compiled in (one for form in traced.forms for one in form.compiled):
                    compiled.clear_constants()

    def _traced_call(
        self, key: Any, kind: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A call that cannot be told to be like an earlier one: the function is traced.

        A later one is like it if its arguments have the same key, or are of the same kind and of
        sizes that give the same trace, and nothing has changed of what the function reads.
        """
        leaves_of = leaves(self._fn, args, kwargs)
        if any(holds(leaf.value, is_traced) for leaf in leaves_of):
            return self._fn(*args, **kwargs)  # inside another trace: a part of it
        self._let_go()
        reads = self._reads(leaves_of)  # before the trace, which may change what it reads
        with self._lock:
            traced, facts, arrays, drawn = self._traced_for(leaves_of)
        reads = Reads((), drawn) if drawn else reads
        kept, family = [leaf.kept() for leaf in arrays], traced.family
        axes = tuple(family.inputs.values())
        known = KnownCall(traced, facts, reads, kept, len(args), axes, family.rules)
        values = [leaf.value for leaf in arrays]
        layout, sizes = known.layout(key, values), sizes_of(traced.family, values)
        results = self._run(key, known, values, layout, sizes, checks=True)
        if not reads.unknown:
            with self._lock:
                others = [k for k in self._known.get(kind, ()) if k.reads.unchanged()]
                keep(self._known, kind, [known, *others][:MOST])
        return results

    def _run(
        self,
        key: Any,
        known: KnownCall[Traced],
        found: list[Any],
        layout: tuple[Any, ...],
        sizes: dict[Dim, int],
        *,
        checks: bool,
    ) -> Any:
        """What a traced call gives for the arrays that were found; it is ready from then on.

        ``checks``: it is not known of arrays of this kind that they fit.
        """
        traced = known.traced
        if traced.merged is None:
            compiled = self._compiled_at(traced, sizes)
        else:
            compiled = self._compiled_for(traced, sizes, found)
        run, results = (
            compiled.prepared(layout, found) if checks else compiled.sized(layout, found, sizes)
        )
        if not known.reads.unknown:
            with self._lock:
                keep(self._ready, key, known.ready(key, run, compiled.shaped))
        return compiled.shaped(results)

    def _let_go(self) -> None:
        """Keep nothing of earlier calls alive that the function would find to be gone."""
        with self._lock:
            earlier = [ready.reads for ready in self._ready.values()]
            earlier += [known.reads for kind in self._known.values() for known in kind]
            for reads in earlier:
                reads.let_go()

    def _reads(self, found: Sequence[Leaf]) -> Reads:
        return reads_of(self._fn, fixed_values(found))

    def _compiled(self, found: Sequence[Leaf]) -> tuple[Compiled, Sizes, str]:
        """What runs, traced for these very sizes and values; the sizes; and a sentence if the trace
        drew random numbers.
        """
        with self._lock, UsersFrames():
            traced, _, leaves_of, drawn = self._traced_for(found)
            arrays = [leaf.value for leaf in leaves_of]
            sizes = sizes_of(traced.family, arrays)
            compiled = self._compiled_for(traced, sizes, arrays)
            return compiled, compiled.plan.bind(compiled.shapes_taken(arrays)), drawn

    def _traced_for(self, found: Sequence[Leaf]) -> tuple[Traced, SizeFacts, list[Leaf], str]:
        """The trace for these very sizes and values, all arrays that it takes, and the reason if
        the next trace may be another by chance; equal traces are one, and compiled once.
        """
        given = [leaf for leaf in found if leaf.is_array]
        device = device_for(self._machine, in_common_of(given))
        draws = Draws()
        program, shape, facts = trace_call(self._fn, found, for_cpu=device == CPU)
        drawn = draws.reason()
        taken = [*given, *(beside(leaf, given[0].value) for leaf in held_leaves(program))]
        arrays = in_common_of(taken)
        program = program.without_held()
        others = tuple(arrays.others.items())
        constants = (*constants_of(self._constant, taken), *constant_masks(program))
        key = (program_key(program, shape), arrays.dtype, others, device, constants)
        traced = self._traced.get(key)
        if traced is None:
            index = arrays.device.index if arrays.on_gpu else None
            tuning = tuning_for(self._tune, self._machine, architecture(device), index)

            def made(program: ArrayProgram) -> Traced:
                given = tuning.known, arrays.others, constants
                memory = self._memory(program, arrays, device, constants)
                family = family_of(
                    program, arrays.dtype, device, *given, memory=memory, **self._choosing
                )
                compare = comparison(program) if self._check else None
                return Traced(family, shape, program, compare, tuning)

            traced, fewer = made(program), merged(program, constants)
            traced = replace(traced, merged=(fewer, made(fewer.program)) if fewer else None)
            keep(self._traced, key, traced)
        return traced, facts, taken, drawn

    def _memory(
        self, program: ArrayProgram, arrays: Arrays, device: str | Machine, constants: Sequence[str]
    ) -> Memory | None:
        """What other processes decided for arrays on a GPU; kernels of fusers are chosen anew."""
        if not arrays.on_gpu or device == CPU or self._choosing.get("fusers"):
            return None
        others = sorted(arrays.others.items())
        return decisions_for(
            program, SAVED, dtype=arrays.dtype, others=others, device=device,
            constants=tuple(constants), **self._choosing,
        )  # fmt: skip

    def _compiled_for(self, traced: Traced, sizes: Sizes, arrays: Sequence[Any]) -> Compiled:
        """What a trace was compiled to for arrays: with merged axes where their strides allow."""
        form, bound, regrouping = traced.form_for(arrays, sizes, self._compiled_at)
        try:
            return self._compiled_at(form, bound, regrouping)
        except EmitError:  # fewer axes make larger tiles, which may be more than a target holds
            if form is traced:
                raise
            return self._compiled_at(traced, sizes)

    def _compiled_at(
        self, traced: Traced, sizes: Sizes, regrouping: Regrouping | None = None
    ) -> Compiled:
        """What a trace was compiled to for the class of these sizes: once for equal plans."""
        with self._lock:
            plan = traced.plan(sizes, one_kernel=self._one_kernel)
            for compiled in reversed(traced.compiled):  # growing sizes ask for the newest
                if compiled.plan is plan:
                    return compiled
            instead = functools.partial(self._instead, traced)
            traced.compiled.append(
                Compiled(
                    plan, traced.shape, instead=instead, compare=traced.compare,
                    program=traced.program, graph=self._graph, regrouping=regrouping,
                )
            )  # fmt: skip
            return traced.compiled[-1]

    def _instead(self, traced: Traced, plan: Plan, refused: Refused, sizes: Sizes) -> Plan:
        with self._lock:
            traced.family.refuse(plan, refused.files, refused.reason)
            return traced.plan(sizes, one_kernel=self._one_kernel)
