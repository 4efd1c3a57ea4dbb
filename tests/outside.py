"""Texts that come from outside: everything that some reader takes for more than a character."""

import ast

from hypothesis import strategies as st

LINE_ENDS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
CONTROLS = "\x00\x07\x08\t\x1a\x1b\x7f\x9b"
DIRECTIONS = "\u200e\u200f\u202a\u202b\u202d\u202e\u2066\u2067\u2069\ufeff"
SIGNS = "\"'\\#{}[]()<>&|;:%$`!-"
HALVES = "\ud800\udbff\udc00\udfff"
PIECES = (
    '"""', "'''", '\\"""', '"""\nINJECTED = 1\n"""', "\nINJECTED = 1\n", "\x0cINJECTED = 1\x0c",
    "\u2028INJECTED = 1\u2028", "\x0bimport os\x0b", "</script><script>alert(1)</script>", "<!--",
    "]]>", "[bold]", "[/]", "[link=x]", ":x:", "\x1b[2J", "\x1b]0;title\x07", "\\N", "\\", "\\\\",
    "{0}", "{name}", "%s", "# ", "import os", "yield", "lambda", "\ud83d\ude00", "😀", "e\u0301",
    "x" * 3000, "[[data]]", "\\u2028", "\\x41", "graph(", '" : [M] (x)',
)  # fmt: skip

TEXTS = st.lists(
    st.one_of(
        st.sampled_from([*LINE_ENDS, *CONTROLS, *DIRECTIONS, *SIGNS, *HALVES, *PIECES]),
        st.characters(codec=None),
    ),
    max_size=8,
).map("".join)

WORST = "".join((*LINE_ENDS, *CONTROLS, *DIRECTIONS, *SIGNS, *HALVES, *PIECES[:-6]))

TAKEN = (
    "tl", "triton", "np", "launch", "main", "INPUTS", "reference", "float", "range", "print", "map",
    "index", "port", "inputs", "sizes", "dtype", "order", "empty", "run", "lambda", "None", "match",
    "in", "yield", "graph", "exp", "max", "self", "KERNELS", "pid", "grid", "__name__", "__file__",
    "t1", "t2_new", "x_ptr", "BLOCK_M", "offs_m", "stride_x_m", "size", "torch",
    "ﬁ", "fi", "ª", "a", "größe", "größe_", "\u210c", "H", "M", "m", "B", "BM",
    "µ", "μ", "\u017f", "s", "İ", "i",
)  # fmt: skip
NAMES = st.one_of(
    st.sampled_from(TAKEN),
    st.text("aAbB_1ﬁªµ\u017f日本", min_size=1, max_size=5).filter(str.isidentifier),
)


def shape_of_code(source):
    """The kinds of all nodes of a module, but for its docstring's text: what it does, nameless."""
    return [type(node).__name__ for node in ast.walk(ast.parse(source))]


def is_one_line(text):
    return text.isprintable() and len(text.splitlines()) <= 1
