"""The classes of `gitsched.named_tuples` behave as those of `typing`, which type checkers see in their place."""

from __future__ import annotations

import ast
import copy
import pickle
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Barrier, Thread
from typing import Any, Generic, TypeVar

import pytest

from gitsched import named_tuples
from tests.syntax_trees import walk_statements

T = TypeVar("T")
SOURCE = Path(named_tuples.__file__).parent


class Ours(named_tuples.NamedTuple):
    """A class with a default, a method and a property."""

    name: str
    count: int = 2
    labels: Mapping[str, str] = {}

    @property
    def title(self) -> str:
        return f"{self.name} × {self.count}"

    @classmethod
    def make(cls, name: str) -> Ours:
        return cls(name, count=7)


class Theirs(typing.NamedTuple):
    """As Ours."""

    name: str
    count: int = 2
    labels: Mapping[str, str] = {}

    @property
    def title(self) -> str:
        return f"{self.name} × {self.count}"

    @classmethod
    def make(cls, name: str) -> Theirs:
        return cls(name, count=7)


class Pair(named_tuples.NamedTuple, Generic[T]):
    """A generic class."""

    first: T
    second: T


class Single(named_tuples.NamedTuple):
    """A class with one field."""

    value: object


class Nothing(named_tuples.NamedTuple):
    """A class without fields."""


class Derived(Ours):
    """A class with the fields of another one."""

    def shout(self) -> str:
        return self.title.upper()


def _attempt(use: Callable[[Any], Any], kind: Any) -> object:
    """Return the result, or the type and text of the error, without the name of the class."""
    try:
        return use(kind)
    except (TypeError, ValueError, AttributeError) as error:
        return type(error), str(error).replace(kind.__name__, "")


USES: dict[str, Callable[[Any], Any]] = {
    "positions": lambda kind: kind("a", 1, {"b": "c"}),
    "names": lambda kind: kind(count=1, name="a"),
    "defaults": lambda kind: kind("a"),
    "too few": lambda kind: kind(),
    "too many": lambda kind: kind(1, 2, 3, 4),
    "unknown name": lambda kind: kind("a", size=1),
    "given twice": lambda kind: kind("a", name="b"),
    "fields": lambda kind: (kind._fields, kind._field_defaults, kind.__match_args__),
    "attributes": lambda kind: [getattr(kind("a", 5), name) for name in (*kind._fields, "title")],
    "set an attribute": lambda kind: setattr(kind("a"), "name", "b"),
    "set another attribute": lambda kind: setattr(kind("a"), "other", "b"),
    "unpack": lambda kind: [*kind("a")],
    "slice": lambda kind: kind("a")[:2],
    "equal": lambda kind: kind("a") == ("a", 2, {}),
    "hash": lambda kind: hash(kind("a", 1, ())) == hash(("a", 1, ())),  # type: ignore[arg-type] # it has to be hashable here
    "sort": lambda kind: sorted([kind("b"), kind("a", 3), kind("a", 1)]),
    "text": lambda kind: repr(kind("a")).replace(kind.__name__, ""),
    "replace": lambda kind: kind("a")._replace(count=3),
    "replace an unknown field": lambda kind: kind("a")._replace(size=3),
    "make": lambda kind: kind._make(["a", 1, {}]),
    "make of too few": lambda kind: kind._make(["a"]),
    "dictionary": lambda kind: kind("a")._asdict(),
    "class method": lambda kind: kind.make("a"),
    "copy": lambda kind: copy.deepcopy(kind("a", labels={"b": "c"})),
    "pickle": lambda kind: pickle.loads(pickle.dumps(kind("a", 3))),
    "annotations": lambda kind: typing.get_type_hints(kind),
    "bases": lambda kind: kind.__mro__[1:],
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_they_do_what_those_of_typing_do(use: Callable[[Any], Any]) -> None:
    found, expected = _attempt(use, Ours), _attempt(use, Theirs)
    assert found == expected
    assert isinstance(found, Ours) == isinstance(expected, Theirs)


def test_generic_ones_take_a_type_and_match_patterns() -> None:
    match Pair[int](1, 2):
        case Pair(first, second):
            assert (first, second) == (1, 2)


def test_one_field_or_none() -> None:
    assert (Single(3), Nothing()) == ((3,), ())
    assert (repr(Single(3)), repr(Nothing())) == ("Single(value=3)", "Nothing()")


def test_a_class_with_the_fields_of_another_one_makes_its_own_instances() -> None:
    made = Derived("a")
    assert (type(made), type(made._replace(count=3)), made.shout()) == (Derived, Derived, "A × 2")
    assert type(Ours("a")) is Ours


def test_threads_that_make_the_first_instance_at_the_same_time() -> None:
    class Late(named_tuples.NamedTuple):
        number: int

    barrier, made = Barrier(8), list[Late]()

    def make(number: int) -> None:
        barrier.wait()
        made.append(Late(number))

    threads = [Thread(target=make, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [(number,) for number in range(8)]


def test_no_other_module_takes_the_one_of_typing() -> None:
    paths = [path for path in SOURCE.rglob("*.py") if path != Path(named_tuples.__file__)]
    imports = [
        (path.name, node)
        for path in paths
        for node in walk_statements(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom)
    ]
    found = [(name, node.module) for name, node in imports for one in node.names if one.name == "NamedTuple"]
    assert {module for _, module in found} == {"gitsched.named_tuples"}, found
