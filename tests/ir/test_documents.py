"""Documents are read as they were written, or refused: other versions, other files, damage."""

import json
from functools import reduce

import pytest

from blockbuster.ir.documents import AnotherVersion, digest, document, read_document
from blockbuster.ir.reading import Wrong, items, number, text

SCHEMA = "blockbuster.something/2"
READS = dict(name=text, counts=items(number(0)))


def written(schema=SCHEMA, **changes):
    made = document(schema, name="a", counts=(1, 2))
    return json.loads(json.dumps({**made, **changes}))


def test_a_document_is_read_as_it_was_written():
    assert read_document(written(), SCHEMA, **READS) == dict(name="a", counts=(1, 2))
    assert digest(dict(a=1, b=(2,))) == digest(dict(b=[2], a=1))


def test_another_version_is_told_from_another_kind():
    with pytest.raises(AnotherVersion, match="another version of Blockbuster wrote it: its schema"):
        read_document(written("blockbuster.something/1"), SCHEMA, **READS)
    for other in (written("blockbuster.something"), written("blockbuster.some/2"), [], None):
        with pytest.raises(Wrong, match=r"^its schema is") as found:
            read_document(other, SCHEMA, **READS)
        assert not isinstance(found.value, AnotherVersion)


@pytest.mark.parametrize("changes", [dict(name="b"), dict(counts=[1]), dict(sha256="0"), dict(x=1)])
def test_damage_is_found(changes):
    with pytest.raises(Wrong, match="checksum" if "x" not in changes else "nothing that a file"):
        read_document(written(**changes), SCHEMA, **READS)


def test_what_is_nested_too_deep_is_damage():
    deep = reduce(lambda inside, _: [inside], range(100_000), [])
    with pytest.raises(Wrong, match="nested deeper"):
        read_document({**written(), "counts": deep}, SCHEMA, **READS)
