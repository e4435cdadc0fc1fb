"""Sort tests into tiers by what they use, so that `make quick` can leave out what takes long.

A test gets a mark for each of `process`, `browser`, `database` and `screen` that its function, its
fixtures or a helper of this folder that they refer to makes use of. What only a helper's other
functions use does not count. A test that is slow for another reason is marked `slow` by hand.
"""

import inspect
import sys
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

TESTS = Path(__file__).parent
MARKS = ("process", "browser", "database", "screen", "slow")

_MODULES = {  # the mark of whatever refers to one of these
    "subprocess": "process",
    "multiprocessing": "process",
    "pty": "process",
    "nursery": "process",
    "lent": "process",
    "node": "process",  # tests/node
    "playwright": "browser",
    "psycopg": "database",
}
_NAMES = {  # ... or to something of this name
    "create_subprocess_exec": "process",
    "create_subprocess_shell": "process",
    "fork": "process",
    "postgres_server": "database",
    "executable": "process",  # sys.executable
    "ClaudeCodeAgent": "process",
    "run_test": "screen",
}


def marks_of(item):
    """Return the marks of a collected test."""
    fixtures = item._fixtureinfo.name2fixturedefs.values()
    functions = [item.function, *(fixture.func for found in fixtures for fixture in found)]
    marks = set().union(*(_marks(inspect.unwrap(function)) for function in functions))
    for parameter in getattr(getattr(item, "callspec", None), "params", {}).values():
        if _is_ours(parameter):
            marks |= _marks(inspect.unwrap(parameter))
        elif isinstance(parameter, str) and parameter == "postgres":
            marks.add("database")
    return marks


def _marks(function):
    marks, seen, todo = set(), set(), [function]
    while todo:
        one = todo.pop()
        if id(one) not in seen:
            seen.add(id(one))
            own, more = _uses(one)
            marks |= own
            todo += more
    return marks


@cache
def _uses(thing):
    """Return the marks of a function or class itself, and what of this folder it refers to."""
    if inspect.isclass(thing):
        members = [getattr(one, "fget", None) or inspect.unwrap(one) for one in _members(thing)]
        ours = [*members, *(base for base in thing.__bases__ if _is_ours(base))]
        outside = {_MODULES.get(_root(base)) for base in thing.__bases__}
        return outside - {None}, [one for one in ours if isinstance(one, type | FunctionType)]
    marks, more = set(), []
    names = _names(thing.__code__)
    for name in names:
        marks |= {_MODULES.get(name), _NAMES.get(name)}
        value = thing.__globals__.get(name)
        if isinstance(value, ModuleType):
            marks.add(_MODULES.get(value.__name__.partition(".")[0]))
            if str(TESTS) in str(getattr(value, "__file__", "")):
                found = (getattr(value, name, None) for name in names)
                more += [one for one in found if _is_ours(one)]
        elif value is not None:
            marks.add(_MODULES.get(_root(value)))
            more += [inspect.unwrap(one) for one in _items(value) if _is_ours(one)]
            if any(one == sys.executable for one in _items(value)):
                marks.add("process")
    return marks - {None}, more


def _items(value):
    """Return the value itself, or what a container of functions or classes holds."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple) else (value,)


def _members(cls):
    for one in vars(cls).values():
        if isinstance(one, staticmethod | classmethod):
            yield one.__func__
        elif isinstance(one, property | FunctionType):
            yield one


def _names(code):
    found = {*code.co_names, *code.co_varnames[: code.co_argcount]}  # fixtures are arguments
    for one in code.co_consts:
        if isinstance(one, CodeType):
            found |= _names(one)
    return found


def _root(thing):
    return str(getattr(thing, "__module__", "")).partition(".")[0]


def _is_ours(thing):
    """Is it a function or class of the tests?"""
    if not isinstance(thing, type | FunctionType):
        return False
    try:
        return TESTS in Path(inspect.getfile(inspect.unwrap(thing))).parents
    except TypeError:
        return False
