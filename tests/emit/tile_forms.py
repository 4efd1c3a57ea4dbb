"""How the forms of tile programs are read: by which words statements begin, and joined axes."""

from collections.abc import Iterator

from blockbuster.emit.tile.forms import STATEMENTS, Maybe, Slot, Words, form_of
from blockbuster.ir.lengths import ONE
from blockbuster.ir.phrases import PhraseReader
from blockbuster.ir.views import Run, Share


def fields_of(kind: type) -> Iterator[str]:
    """The fields that the form of ``kind`` says."""
    for part in form_of(kind):
        for slot in part.parts if isinstance(part, Maybe) else (part,):
            if isinstance(slot, Slot):
                yield from slot.fields


def first_words() -> tuple[dict[str, type], dict[str, type]]:
    """Statements by the word that they begin with, or that follows the tile that they make."""
    beginning: dict[str, type] = {}
    making: dict[str, type] = {}
    for kind in STATEMENTS:
        match form_of(kind):
            case (Words() as first, *_):
                beginning[first.tokens[0]] = kind
            case (Slot(kind="either", words=words), *_):
                beginning |= dict.fromkeys(words, kind)
            case (_, Words() as second, *_) if len(second.tokens) > 1:
                making[second.tokens[1]] = kind
    return beginning, making


class JoinedReader(PhraseReader):
    """A text in which a dim may run along several axes at once."""

    def _run(self) -> Run:
        dim = self._take(kind="name")
        share = self._share() if self._has("as") else None
        size = self._length() if self._has("=") else None
        return Run(dim, size, self._length() if self._has("step") else ONE, share)

    def _share(self) -> Share:
        own = self._take(kind="name")
        self._take("of")
        dims = [self._take(kind="name"), self._take(kind="name")]
        while self._next not in (",", "]", "=", "step", "from", "of", "padded"):
            dims.append(self._take(kind="name"))
        if own not in dims:
            self._refuse(f"{own} is none of the joined {' '.join(dims)}")
        return Share(tuple(dims), dims.index(own))
