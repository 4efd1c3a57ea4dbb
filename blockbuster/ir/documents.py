"""Documents: JSON objects with a schema, and a checksum over all their other fields.

The checksum detects damage, not intent: whoever changes a file on purpose can compute it anew.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from blockbuster.errors import shown
from blockbuster.ir.reading import Read, Wrong, record, text


class AnotherVersion(Wrong):
    """A document of the same kind that another version of ours has written."""


def digest(content: Any) -> str:
    """A hash of JSON data, the same whatever the order of names in its objects."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def document(schema: str, **fields: Any) -> dict[str, Any]:
    """The fields as a document."""
    return {"schema": schema, "sha256": digest(fields), **fields}


def read_document(data: Any, schema: str, **reads: Read[Any]) -> dict[str, Any]:
    """The fields of a document, each read by its reader.

    Raises AnotherVersion, or Wrong for a document of another kind, or a damaged one.
    """
    check_schema(data, schema)
    try:
        made = digest({name: data.get(name) for name in reads})
    except RecursionError as error:
        raise Wrong("it is nested deeper than any file of ours") from error
    if data.get("sha256") != made:
        raise Wrong("its content does not have the checksum that it was written with")
    found = record(data, schema=text, sha256=text, **reads)
    return {name: found[name] for name in reads}


def check_schema(data: Any, schema: str) -> None:
    """Raise AnotherVersion or Wrong if the schema of ``data`` is not ``schema``."""
    found = data.get("schema") if isinstance(data, dict) else None
    if found == schema:
        return
    other = f"its schema is {shown(repr(found), 80)}, expected {schema!r}"
    if isinstance(found, str) and found.startswith(f"{schema.rpartition('/')[0]}/"):
        raise AnotherVersion(f"another version of Blockbuster wrote it: {other}")
    raise Wrong(other)
