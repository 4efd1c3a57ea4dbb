"""Functions that printed texts define themselves, taken from a text that holds several."""

import re

_FUNCTION = re.compile(r"^def (\w+)\(.*\n(?:(?: .*)?\n)*", re.MULTILINE)


def functions_in(text: str) -> dict[str, str]:
    """The functions of a text by name, without the comments in front of them."""
    return {found[1]: f"{found[0].strip()}\n" for found in _FUNCTION.finditer(text)}
