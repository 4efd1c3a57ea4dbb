"""No text from outside breaks out of the comment, string, name or page that it is put in."""

import ast
import contextlib
import importlib.util
import io
import json
import random
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emission import emit
from blockbuster.emit.print.numpy.reference import reference_text
from blockbuster.emit.print.numpy.text import numpy_text
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.errors import message, quoted, quoted_lines, shown, shown_lines
from blockbuster.ir.ops import Map
from blockbuster.ir.origin import Origin, SourceLine
from blockbuster.ir.show import show
from blockbuster.ir.tokens import unquoted
from blockbuster.ir.types import Type
from blockbuster.rules.restore import restore
from blockbuster.view.cli import main
from blockbuster.view.draw import draw
from blockbuster.view.terminal import Screen, say, warn
from tests.emit.numpy_runs import run_numpy
from tests.outside import NAMES, TEXTS, WORST, is_one_line, shape_of_code

# the function --------------------------------------------------------------------------


@given(TEXTS)
def test_shown_is_one_line_of_characters_that_are_seen(text):
    assert is_one_line(shown(text))
    assert shown(shown(text)) == shown(text)
    assert len(shown(text, 40)) <= 40
    assert all(map(is_one_line, shown_lines(text)))


@given(TEXTS)
def test_quoted_reads_back(text):
    assert is_one_line(quoted(text))
    assert ast.literal_eval(quoted(text)) == text
    assert unquoted(quoted(text)) == text
    assert ast.literal_eval(quoted_lines(text)) == text
    assert all(line.isprintable() for line in quoted_lines(text).split("\n"))


@pytest.mark.parametrize("literal", [r'"\q"', r'"\x4"', r'"\u12"', r'"\U99999999"', r'"\N{DIGIT}"'])
def test_other_escapes_are_refused(literal):
    assert unquoted(literal) is None
    with pytest.raises(bb.ParseError, match="has an escape that is none"):
        bb.parse(f"graph(x: [M]) {{ y = misc {literal} : [M] (x) return y }}")


@given(TEXTS)
def test_messages_are_lines_of_characters_that_are_seen(text):
    made = message(text, value=text, listing=text, origin=text, hint=text)

    assert all(line.isprintable() for line in made.split("\n"))


# block programs ------------------------------------------------------------------------

GRAPH = """graph(X: M,N[M,N]) {
  R = map M (x in !X) {
    s = map N (a in x) { c = exp(a)  d = row_sum(c)  yield +d }
    yield s
  }
  return out = R
}"""


def told(graph, text):
    """``graph`` as a user would have made it whose files, rules and variables are called so."""

    def node(given):
        op = given.op
        if isinstance(op, Map):
            op = replace(op, body=told(op.body, text))
        origin = Origin(text, (), SourceLine(text, 7))
        return replace(given, op=op, origin=origin, hints=(text,) * len(given.types))

    inputs = tuple(replace(given, hint=text) for given in graph.inputs)
    return replace(graph, inputs=inputs, nodes=tuple(map(node, graph.nodes)))


@given(TEXTS)
def test_programs_parse_back(text):
    graph = bb.parse(GRAPH)
    strange = told(graph, text)
    for types in (False, True):
        for origin in (False, True):
            printed = show(strange, types=types, origin=origin)
            assert all(line.isprintable() for line in printed.split("\n"))
            if not types:
                assert bb.parse(printed) == graph
    assert all(line.isprintable() for line in strange.listing().split("\n"))


@given(TEXTS)
def test_custom_functions_have_any_name(text):
    def fn(array):
        return array * 2

    fn.__name__ = text
    program = bb.trace(lambda x: bb.custom(fn, bb.exp(x), shape=x.shape) + 1, x="M N")
    graph = bb.lower(program)

    assert bb.parse(str(graph), {text: fn}) == graph
    assert len(str(graph).splitlines()) == len(str(graph).split("\n")) - 1
    assert all(line.isprintable() for line in program.listing().split("\n"))
    made = bb.fuse(graph)
    assert restore(made.to_json(), bb.RULES, {text: fn}) == made
    compiled = bb.compile(program, {"M": 2, "N": 3}, "float32", "cpu")
    assert all(line.isprintable() for line in str(compiled.report).split("\n"))
    np.testing.assert_allclose(compiled(np.zeros((2, 3), np.float32)), 3)


@pytest.mark.parametrize("name", ["a b", "x\nreturn", "", "1a", 'x"""', "x: [M]", "\u2028"])
def test_inputs_have_names(name):
    with pytest.raises(bb.TraceError, match="is no name of an input"):
        bb.trace(lambda **arrays: next(iter(arrays.values())) + 1, **{name: "M"})
    with pytest.raises(bb.ParseError, match=r"is no name of an array|expected"):
        bb.parse(f"graph(X: M[M] = {quoted(name)}(M)) {{ return X }}")


@pytest.mark.parametrize("place", ["M[M]", "return out ="])
def test_verify_asks_for_names(place):
    graph = bb.parse("graph(X: M[M]) { Y = map M (x in !X) { y = exp(x) yield y } return out = Y }")
    if place == "M[M]":
        source = replace(graph.inputs[0].view, source="a b")
        wrong = replace(graph, inputs=(replace(graph.inputs[0], view=source),))
    else:
        wrong = replace(graph, outputs=(replace(graph.outputs[0], name="a\nb"),))
    with pytest.raises(bb.VerifyError, match="is no name"):
        bb.verify(wrong)


# emitted files -------------------------------------------------------------------------


def emitted(graph, sizes):
    yield emit(graph, sizes, "float32").source
    yield numpy_text(lower_to_tiles(graph))
    yield reference_text(graph)


@given(TEXTS)
@settings(max_examples=25)
def test_emitted_files_do_what_they_did(text):
    graph = bb.parse(GRAPH)
    for usual, strange in zip(
        emitted(graph, {"M": 64, "N": 64}),
        emitted(told(graph, text), {"M": 64, "N": 64}),
        strict=True,
    ):
        compile(strange, "emitted", "exec")
        assert shape_of_code(strange) == shape_of_code(usual)
        assert all(line.isprintable() for line in strange.split("\n"))


def with_names(m, n, x, out):
    source = quoted(x) if x in ("port", "index") else x
    return bb.parse(
        f"graph(a: {m},{n}[{m},{n}] = {source}({m},{n})) {{ R = map {m} (r in !a) {{"
        f" s = map {n} (a in r) {{ c = exp(a) d = row_sum(c) yield +d }} yield s }}"
        f" return {out} = R }}"
    )


@given(st.lists(NAMES, min_size=4, max_size=4).filter(lambda n: n[0] != n[1]))
@settings(max_examples=40)
def test_names_that_are_taken_or_look_alike(names):
    usual = bb.parse(GRAPH)
    m, n, x, _ = names
    strange = with_names(*names)
    for before, after in zip(
        emitted(usual, {"M": 64, "N": 64}), emitted(strange, {m: 64, n: 64}), strict=True
    ):
        compile(after, "emitted", "exec")
        assert shape_of_code(after) == shape_of_code(before)
    array = np.arange(12.0).reshape(3, 4) / 12
    (found,) = run_numpy(lower_to_tiles(strange), {x: array}, None, {m: 2, n: 3}).values()
    np.testing.assert_allclose(found, np.exp(array).sum(-1))


def with_any_names(graph, dims, x):
    """``graph`` as only a builder can make it, with dims and arrays that have no names."""

    def typed(type):
        return Type(tuple(dims[d] for d in type.lists), tuple(dims[d] for d in type.axes))

    def node(given):
        op = given.op
        if isinstance(op, Map):
            op = replace(op, dim=dims[op.dim], body=with_any_names(op.body, dims, x))
        return replace(given, op=op, types=tuple(map(typed, given.types)))

    def view(given):
        return given and replace(given, source=x, axes=tuple(dims[d] for d in given.axes))

    inputs = (replace(i, type=typed(i.type), view=view(i.view)) for i in graph.inputs)
    outputs = (replace(o, name=o.name and x, axes=None) for o in graph.outputs)
    nodes = tuple(map(node, graph.nodes))
    return replace(graph, inputs=tuple(inputs), nodes=nodes, outputs=tuple(outputs))


@given(TEXTS, TEXTS, TEXTS)
@settings(max_examples=25)
def test_files_of_programs_that_no_check_has_seen(first, second, x):
    m, n = (f"a{first}".rstrip("'"), f"b{second}".rstrip("'"))
    usual, strange = bb.parse(GRAPH), with_any_names(bb.parse(GRAPH), {"M": m, "N": n}, x)
    for before, after in zip(
        emitted(usual, {"M": 64, "N": 64}), emitted(strange, {m: 64, n: 64}), strict=True
    ):
        compile(after, "emitted", "exec")
        assert shape_of_code(after) == shape_of_code(before)
        assert all(line.isprintable() for line in after.split("\n"))


STRANGE_FILES = (
    "a\x0cimport this\x0c#.py", "a\u2028import this\u2028#.py", "a\x85import this\x85#.py",
    "a\x0cINJECTED = 1\x0c#.py", "a\x0bINJECTED = 1\x0b#.py", "a\u2028INJECTED = 1\u2028#.py",
    "a\nINJECTED = 1\n#.py", "a\rINJECTED = 1\r#.py", "a\x85INJECTED = 1\x85#.py",
    'a"""\nINJECTED = 1\n""".py', "a\x1b[2J[bold]:x:.py", "a\udc80.py", "a\\.py",
)  # fmt: skip


@pytest.fixture
def strange_file(name, tmp_path, monkeypatch):
    """A source file of such a name, in the present folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(
        "import blockbuster as bb\n\ndef f(x):\n    y = bb.exp(x)\n    return y + y.sum()\n"
    )


@pytest.mark.usefixtures("strange_file")
@pytest.mark.parametrize("name", STRANGE_FILES)
def test_what_is_emitted_of_a_source_file_of_any_name(name, tmp_path):
    spec = importlib.util.spec_from_file_location("strange", tmp_path / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    graph = bb.fuse(bb.lower(bb.trace(module.f, x="M N"))).final
    for text in emitted(graph, {"M": 64, "N": 64}):
        words = {getattr(n, "id", getattr(n, "name", "")) for n in ast.walk(ast.parse(text))}
        assert not words & {"INJECTED", "this"}
        assert all(line.isprintable() for line in text.split("\n"))


@pytest.mark.slow
@pytest.mark.usefixtures("strange_file")
@pytest.mark.parametrize("name", STRANGE_FILES[::3])
def test_commands_on_a_source_file_of_any_name(name, capsys):
    for command in (
        ["emit", f"{name}:f", "--dims", "x=M N", "--sizes", "M=8", "N=8"],
        ["fuse", f"{name}:f", "--dims", "x=M N", "--json", name.replace(".py", ".json")],
        ["fuse", f"{name}:g", "--dims", "x=M N"],
        ["explain", f"{name}:f", "--dims", "x=M N", "-o", name],
        ["draw", f"{name}:f", "--dims", "x=M N", "-o", name.replace(".py", ".dot")],
        ["view", name.replace(".py", ".json"), "--trials", "0"],
        ["view", f"gone{name}"],
    ):
        with contextlib.suppress(SystemExit):
            main(command)
        said = capsys.readouterr()
        for line in (said.out + said.err).split("\n"):
            assert line.isprintable(), line


# terminals, pictures, pages ------------------------------------------------------------


@given(TEXTS)
def test_a_terminal_shows_texts_as_they_are(text):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        say(text)
        warn(text)
        Screen().print(text, style="bold")
        with Screen(stderr=True).working(text) as update:
            update(text)
    lines = shown_lines(text)
    assert out.getvalue().split("\n") == [*lines, *lines, *lines, ""]


@given(TEXTS)
@settings(max_examples=25)
def test_pictures_have_the_same_statements(text):
    usual, strange = (draw(told(bb.parse(GRAPH), t)).dot for t in ("a", text))

    assert len(strange.split("\n")) == len(usual.split("\n"))
    assert all(line.isprintable() for line in strange.split("\n"))
    assert [line[:12] for line in strange.split("\n")] == [line[:12] for line in usual.split("\n")]


def test_a_picture_of_the_worst_text_is_well_formed():
    def fn(array):
        return array

    fn.__name__ = WORST
    graph = bb.lower(bb.trace(lambda x: bb.custom(fn, x, shape=x.shape) + 1, x="M N"))
    root = ElementTree.fromstring(draw(told(graph, WORST)).svg())

    assert not [element for element in root.iter() if "script" in str(element.tag)]


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found, self.data = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, sorted(name for name, _ in attrs)))
        self.inside = dict(attrs).get("id") == "data"

    def handle_data(self, data):
        if getattr(self, "inside", False):
            self.data += data


def test_a_page_has_the_same_elements(tmp_path):
    pages = []
    for text in ("a", WORST, "</script><script>alert(1)</script>"):
        derivation = bb.fuse(told(bb.parse(GRAPH), text))
        path = tmp_path / "page.html"
        derivation.to_html(path, title=text, prove=False)
        pages.append(path.read_bytes().decode())
    tags = [Tags(page).found for page in pages]

    assert tags[0] == tags[1] == tags[2]
    assert all("\u2028" not in page and "\x1b" not in page for page in pages)


# derivations read back from JSON -------------------------------------------------------


def test_every_change_of_a_derivation_is_refused_or_read():
    text = bb.fuse(bb.lower(bb.trace(lambda x: bb.softmax(x) + 1, x="M N"))).to_json()
    data = text.encode()
    choose = random.Random(0)
    for _ in range(400):
        at = choose.randrange(len(data))
        byte = bytes([choose.randrange(256)])
        for changed in (data[:at] + byte + data[at + 1 :], data[:at], data[:at] + data[at + 1 :]):
            with contextlib.suppress(ValueError, bb.BlockbusterError):  # and nothing else
                restore(changed, bb.RULES)


@pytest.mark.parametrize(
    "change",
    [
        {"start": "graph(" * 50_000},
        {"steps": [[]] * 3},
        {"steps": [{"rule": "fuse-maps"}]},
        {"steps": None},
        {"snapshots_after": [10**30]},
        {"snapshots_after": [True]},
        {"more": 1},
    ],
)
def test_other_data_is_no_derivation(change):
    data = json.loads(bb.fuse(bb.lower(bb.trace(lambda x: bb.exp(x) + 1, x="M N"))).to_json())
    with pytest.raises((ValueError, bb.BlockbusterError)):
        restore(json.dumps({**data, **change}), bb.RULES)


@pytest.mark.parametrize("data", [b"[" * 10**6, b"\xff", b"9" * 10**5, b'{"a":' * 10**5, b"NaN"])
def test_what_is_no_json_is_refused(data):
    with pytest.raises(ValueError, match="a derivation is JSON, and this is not"):
        restore(data, bb.RULES)
