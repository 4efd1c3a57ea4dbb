"""How the optional parts of this package are installed: each is an extra in pyproject.toml.

On PyPI, the name ``blockbuster`` belongs to a package of other people. So every message and page
names our distribution, or the place that it was installed from.
"""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from shlex import quote

DISTRIBUTION = "blockbuster-fusion"
"""The name of this package where packages are installed from; it is imported as blockbuster."""

HERE = Path(__file__).parents[1]
"""The checkout, where this is one; else where all packages are installed."""


def install_hint(extra: str) -> str:
    """The command that installs an extra of this package, from where the package came."""
    if _is_checkout():
        return f"pip install -e {quote(f'{HERE}[{extra}]')}"
    source = _source()
    asked = f"{DISTRIBUTION}[{extra}]" + (f" @ {source}" if source else "")
    return f"pip install {quote(asked)}"


def _is_checkout() -> bool:
    try:
        project = (HERE / "pyproject.toml").read_text(encoding="utf-8")
    except OSError:
        return False
    return f'name = "{DISTRIBUTION}"' in project


def _source() -> str:
    """The address that pip was given, as a requirement has it; empty if an index had the package.

    pip writes it into a file of the installation: https://peps.python.org/pep-0610.
    """
    try:
        told = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return ""
    address, vcs = told.get("url", ""), told.get("vcs_info")
    return f"{vcs['vcs']}+{address}@{vcs['commit_id']}" if vcs else str(address)
