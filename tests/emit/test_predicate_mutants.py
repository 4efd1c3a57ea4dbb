"""Every part of the predicates on compiled kernels matters: broken, it is caught by a case."""

import sys
import types
from pathlib import Path

import pytest

from blockbuster.emit.target import exchanged_rows, sass, shared_base, unwritten
from tests.emit.test_inspection import NARROW, PTX, WIDE, dots, reshaped, signed
from tests.emit.test_sass import code

FOLDER = Path(sass.__file__).parent
TWO = [("or.b64", "%rd1", WIDE), ("or.b64", "%rd1", signed(NARROW))]
CHOSEN = [("or.b64", "%rd1", WIDE), ("or.b64", "%rd5", signed(NARROW))]
STEPS = [("add.s64", "%rd1", WIDE), ("add.s64", "%rd5", WIDE)]
BASES = [
    (PTX, 1),
    (dots(*TWO), 1),
    (dots(("or.b64", "%rd1", WIDE), ("add.s64", "%rd10", 2)), 0),
    (dots(("or.b64", "%rd1", WIDE), ("or.b64", "%rd2", signed(NARROW))), 0),
    (dots(("or.b64", "%rd1", WIDE), ("add.s64", "%rd1", WIDE + 128)), 0),
    (f"{dots(TWO[0])}\n{dots(TWO[1], start=20)}", 0),
    (dots(*CHOSEN, before=["mov.b64 \t%rd5, %rd2", "mov.b64 \t%rd5, %rd1"]), 0),
    (dots(*STEPS, before=["add.s64 \t%rd5, %rd1, 2"]), 0),
    (dots(*TWO).replace("}\n}", "}\n\tadd.s64 \t%rd1, %rd1, 64;\n}"), 1),
]
ROWS = [
    (reshaped(256, 8), 1),
    (reshaped(128, 8), 0),
    (reshaped(256, 8, warps=(8, 1)), 0),
    (reshaped(256, 8, size=(4, 1), warps=(2, 2)), 0),
    (reshaped(1024, 8, size=(4, 1)), 1),
    (reshaped(256, 8).replace("[2, 0, 1]", "[0, 1, 2]"), 0),
]
READS = [
    (code("UIADD3 UR4, UR4, 0x1, URZ", "EXIT"), 1),
    (code("UMOV UR4, 0x1", "LDG.E R2, desc[UR4][R4.64]", "EXIT"), 1),
    (code("ULDC.64 UR4, c[0x0][0x210]", "LDG.E R2, desc[UR4][R4.64]", "EXIT"), 0),
    (code("@P0 BRA `(.L_x_0)", "UMOV UR4, 0x1", ".L_x_0:", "IMAD R1, R2, UR4, RZ", "EXIT"), 0),
    (code("BRA `(.L_x_0)", "UMOV UR4, 0x1", ".L_x_0:", "IMAD R1, R2, UR4, RZ", "EXIT"), 1),
    (code("UMOV UR14, 0x1", "UMOV UR15, 0x1", "HGMMA.64x16x16.F32 R8, R4, gdesc[UR12], R8"), 0),
    (code("UMOV UR14, 0x1", "UMOV UR15, 0x1", "HGMMA.64x16x16.F32 R8, gdesc[UR12], R8"), 1),
]
MUTANTS = [
    (shared_base, "offset >> LOW", "offset", BASES),
    (shared_base, "offset >> LOW", "0", BASES),
    (shared_base, "len(high) > 1", "len(high) > 0", BASES),
    (shared_base, "None if name in made else _made_from(line)", "_made_from(line)", BASES),
    (shared_base, "total += constant", "total = constant", BASES),
    (shared_base, "or\\.b64|add", "add", BASES),
    (shared_base, 're.split(r"^\\.(?:visible )?', 're.split(r"^never', BASES),
    (exchanged_rows, "old[:-1] != new[:-2] or ", "", ROWS),
    (exchanged_rows, "if not keeps_rows", "if keeps_rows", ROWS),
    (exchanged_rows, "r * b + e for r, b, e", "r + b + e for r, b, e", ROWS),
    (exchanged_rows, "len(set(held.values())) == math.prod(shape)", "False", ROWS),
    (sass, "tuple(range(first, first + self._width()))", "(first,)", READS),
    (sass, "range(2, 4) if from_registers else range(4)", "range(2, 4)", READS),
    (sass, "range(2, 4) if from_registers else range(4)", "range(4)", READS),
    (sass, '"gdesc[", "desc[", "cx["', '"cx["', READS),
    (sass, "if place == result:", "if False:", READS),
    (sass, "yield self.labels[at.target]", "pass", READS),
    (sass, 'if self.stem in ("BRA", "JMP"):', "if False:", READS),
    (unwritten, "given = known | writes[number]", "given = known", READS),
    (unwritten, "given | (old or 0)", "given & (old if old is not None else given)", READS),
]
COUNTS = {
    shared_base: "bases_of_two_swizzles",
    exchanged_rows: "exchanged_rows",
    unwritten: "unwritten_reads",
}


def loaded(module, old="", new=""):
    """The module, with a piece of its text replaced."""
    text = (FOLDER / f"{module.__name__.rpartition('.')[2]}.py").read_text(encoding="utf-8")
    assert old in text, f"no {old!r} in {module.__name__}"
    made = types.ModuleType(module.__name__)
    exec(compile(text.replace(old, new), module.__file__, "exec"), vars(made))
    return made


def counted(monkeypatch, module, old, new, cases):
    """How much the module, changed, finds in each case; None if it raises."""
    with monkeypatch.context() as patch:
        made = loaded(module, old, new)
        patch.setitem(sys.modules, module.__name__, made)
        if module is sass:
            patch.setattr(unwritten, "functions", made.functions)
            made = unwritten
        count = getattr(made, COUNTS[unwritten if made is unwritten else module])
        try:
            return [bool(count(text)) for text, _ in cases]
        except (ValueError, AssertionError, IndexError):
            return None


@pytest.mark.parametrize("module", [shared_base, exchanged_rows, sass, unwritten])
def test_unchanged_they_find_what_is_there(monkeypatch, module):
    cases = next(cases for changed, _, _, cases in MUTANTS if changed is module)
    assert counted(monkeypatch, module, "", "", cases) == [bool(n) for _, n in cases]


@pytest.mark.parametrize(("module", "old", "new", "cases"), MUTANTS)
def test_a_broken_part_is_caught(monkeypatch, module, old, new, cases):
    assert counted(monkeypatch, module, old, new, cases) != [bool(n) for _, n in cases]
