"""Edits of JSON data, such as damage or an attacker makes: of a field's type, range, place."""

from copy import deepcopy

STRANGE = (
    None, True, False, 0, 1, -1, 7, 10**30, -(10**30), 1.5, "", "x", "no such", "os", "\ud800",
    "__import__('os')",
    "cpu", "sm_90", "a\u2028b", [], {}, [[]], [None], {"import": ["os", "system"]},
    {"import": ["antigravity", "x"]}, {"class": "Plan", "fields": {}}, [0, 0, 0],
    {"class": ["subprocess", "Popen"], "fields": {"args": ["touch", "evil"]}},
    {"class": "AlongAxis", "fields": {"name": "fromfile", "axis": 0}},
)  # fmt: skip


def places(value, path=()):
    yield path
    if not isinstance(value, dict | list):
        return
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield from places(item, (*path, key))


def changed(content, path, change):
    content = deepcopy(content)
    at = content
    for key in path[:-1]:
        at = at[key]
    change(at, path[-1])
    return content


def put(value):
    return lambda at, key: at.__setitem__(key, value)


def random_change(choose):
    """An edit such as an attacker makes: of another type, out of range, missing, repeated, moved.

    It changes nothing where it does not fit.
    """

    def another(value):
        if type(value) is int:
            return value + choose.choice((-1, 1, 2**40))
        return choose.choice((value[: len(value) // 2], value[::-1]))

    def edit(at, key):
        value = at[key]
        ways = [lambda: put(choose.choice(STRANGE)), lambda: at.__class__.__delitem__]
        if type(value) is int or isinstance(value, str | list):
            ways += 3 * [lambda: put(another(value))]
        if isinstance(at, list):
            ways += [lambda: lambda at, _: at.append(value)]
        others = list(at.values()) if isinstance(at, dict) else at
        ways += [lambda: put(choose.choice(others))]
        choose.choice(ways)()(at, key)

    return edit
