"""A device's numbers stand in its data file, and nowhere else in the package."""

import ast
import re
from pathlib import Path

import pytest

from blockbuster.machines import NAMES, built_in
from blockbuster.machines.data_file import numbers_of

PACKAGE = Path(__file__).parents[2] / "blockbuster"
IN_WORDS = re.compile(r"\d ?(TFLOP|[TG]B/s)")


def is_distinctive(number: float) -> bool:
    """Whether a number tells of a device: three digits, and near no small multiple of 2^n.

    255 is the largest number of 8 bits, and would stand in many places.
    """
    digits = f"{number:.15e}".partition("e")[0].replace(".", "").rstrip("0")
    if len(digits) < 3 or number != int(number):
        return len(digits) >= 3
    return all(odd_part(whole) >= 8 for whole in (int(number), int(number) + 1))


def odd_part(number: int) -> int:
    while number % 2 == 0:
        number //= 2
    return number


DISTINCTIVE = {
    n for name in NAMES for n in numbers_of(built_in(name)).values() if is_distinctive(n)
}


def told_in(source: str) -> list[str]:
    """The numbers of devices in a module: as such, or in a text."""
    found = []
    for node in ast.walk(ast.parse(source)):
        value = getattr(node, "value", None)
        if not isinstance(node, ast.Constant):
            continue
        if type(value) in (int, float) and value in DISTINCTIVE:
            found.append(f"{node.lineno}: {value}")
        if isinstance(value, str) and IN_WORDS.search(value):
            found.append(f"{node.lineno}: {IN_WORDS.search(value)[0]}")
    return found


def test_what_is_distinctive():
    assert {132, 108, 148, 232_448, 166_912, 1.98e9, 1307.4e12 / 2} <= DISTINCTIVE
    assert not any(is_distinctive(n) for n in (32, 255, 1024, 2048, 65_536, 1e-6, 4.3e12))


@pytest.mark.parametrize("source", ["X = 232448", "f(1.98e9)", '"""A copy moves 4.3 TB/s."""'])
def test_a_number_of_a_device_is_found(source):
    assert told_in(source)


def test_no_other_module_holds_numbers_of_devices():
    found = [
        f"{path.relative_to(PACKAGE)}:{told}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.parent != PACKAGE / "machines"
        for told in told_in(path.read_text(encoding="utf-8"))
    ]

    assert not found, "they belong in machines/data:\n" + "\n".join(found)
