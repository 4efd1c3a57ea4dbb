"""Functions of whole arrays that run between kernels: users' own, copies, and a library's."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any

from blockbuster.errors import NOT_TAKEN, a_kind, shown_lines
from blockbuster.runtime.first_launch import Refused
from blockbuster.runtime.launch import ALIGNED, from_host, to_host
from blockbuster.selection.plans.pieces import Call
from blockbuster.selection.plans.plan import (
    Sizes,
    call_on_host,
    check_results,
    noted,
    shown,
    with_units,
)

Tensor = Any


class DeviceCall:
    """A function of whole arrays, called with tensors if it takes them, else through the host.

    ``has_others``: another plan may take the place of this one, so a library's call that takes no
    tensors raises Refused.
    """

    def __init__(
        self, call: Call, sizes: Sizes, dtypes: Sequence[Any], *, has_others: bool = False
    ) -> None:
        self.note = ""
        self._call, self._sizes, self._dtypes = call, sizes, dtypes
        self._as_it_is, self._is_refused = False, has_others and call.is_library

    def first(self, tensors: list[Tensor]) -> list[Tensor]:
        """The function's results; notes whether it takes tensors."""
        operands = self._operands(tensors)
        made = self._tried(operands)
        results = self._laid_out(made, operands)
        same = len(operands) == len(tensors) and all(map(is_, operands, tensors))
        same = same and all(map(is_, results, made))
        self._as_it_is = same and self._call.is_library and not self.note
        return results

    def play(self, tensors: list[Tensor]) -> list[Tensor]:
        """The function's results, laid out as later kernels were recorded with.

        A library's shapes and dtypes are those of the first call, and its results are new arrays:
        they are looked at no more. How they lie may depend on settings of torch.
        """
        if self._as_it_is:
            made = noted(self._call, self._call.fn, tensors)
            if made.is_contiguous():
                return with_units(self._call, [made])
        operands = self._operands(tensors)
        results = self._on_host(operands) if self.note else self._on_device(operands)
        return self._laid_out(results, operands)

    def _operands(self, tensors: list[Tensor]) -> list[Tensor]:
        known = dict(zip(self._call.reads, tensors, strict=True))
        return [shown(known[seen.array], seen) for seen in self._call.operands]

    def _tried(self, operands: list[Tensor]) -> list[Tensor]:
        try:
            return self._on_device(operands)
        except NOT_TAKEN as refusal:
            name = self._call.name
            reason = shown_lines(str(refusal) or type(refusal).__name__)[0]
            if self._is_refused:
                raise Refused((self._call,), f"{name}: {reason}") from refusal
            self.note = f"{name} runs on the host, with copies there and back: {reason}"
            try:
                return self._on_host(operands)
            except NOT_TAKEN as error:
                error.add_note(f"{name} was tried with tensors first: {reason}")
                raise

    def _on_device(self, operands: list[Tensor]) -> list[Tensor]:
        made = noted(self._call, self._call.fn, operands)
        results = list(made) if isinstance(made, tuple) else [made]
        for result in results:
            if not hasattr(result, "data_ptr") or result.device != operands[0].device:
                raise TypeError(f"{self._call.name} gave {a_kind(result)}, not a tensor")
        results = with_units(self._call, results)
        check_results(self._call, results, self._sizes)
        return results

    def _on_host(self, operands: list[Tensor]) -> list[Tensor]:
        arrays = [to_host(tensor) for tensor in operands]
        made = call_on_host(self._call, arrays, self._sizes)
        pairs = zip(made, self._dtypes, strict=True)
        return [from_host(array, dtype, operands[0].device) for array, dtype in pairs]

    def _laid_out(self, results: list[Tensor], operands: list[Tensor]) -> list[Tensor]:
        used = [operand.untyped_storage().data_ptr() for operand in operands]
        pairs = zip(results, self._dtypes, strict=True)
        return [_own(result.to(dtype).contiguous(), used) for result, dtype in pairs]


def _own(result: Tensor, used: list[int]) -> Tensor:
    """An aligned tensor whose memory is none of ``used``."""
    shared = result.untyped_storage().data_ptr() in used
    return result.clone() if shared or result.data_ptr() % ALIGNED else result
