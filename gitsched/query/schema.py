"""The inputs, queries and relations of a database, in the order of the steps in which they are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from gitsched.named_tuples import NamedTuple
from gitsched.query.canonical import Codec, Key, digest

Function = Callable[[Any, Key], Any]
"""A query: a pure function of what it reads through a `gitsched.query.reader.Reader`, and of its key."""
MAX_TABLES = 255
"""The largest number of queries: numbers of pages have eight bits for the query whose results they hold."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query. `function` may be given as "package.module:name", which is imported when the query is first computed.

    Without `each`, it is computed for the keys that others ask for. With the name of an input, it is computed for every key of that input;
    with the name of a relation of an earlier step, for every group that has a row. Only such queries emit rows.
    A result that is not `stored` is kept in memory alone, needs no canonical bytes, and counts as changed whenever a read of it changed.
    """

    name: str
    function: Function | str
    each: str = ""
    stored: bool = True

    def load(self) -> Function:
        """Return the function."""
        return _import_function(self.function) if isinstance(self.function, str) else self.function


class Relation(NamedTuple):
    """Rows that queries of a step emit, for queries of later steps. Rows are tuples of strings; those of one group, which are read
    together, are alike in their first `prefix` strings."""

    name: str
    prefix: int = 1


class Step(NamedTuple):
    """Queries that read inputs and results of earlier steps, and in a `recursive` step those of the same step as well."""

    name: str
    queries: tuple[Query, ...]
    relations: tuple[Relation, ...] = ()
    recursive: bool = False

    def list_names(self) -> tuple[str, ...]:
        """Return the names of the step's queries and relations."""
        return (*(query.name for query in self.queries), *(relation.name for relation in self.relations))


class Schema:
    """The inputs and steps of a database. `version` identifies the code of the queries: a state of another version is not used.
    `page_size` is the largest number of results on a page; it has an effect on time and size alone."""

    def __init__(
        self, inputs: Iterable[str], steps: Iterable[Step], codec: Codec | None = None, version: str = "", page_size: int = 64
    ) -> None:
        self.inputs, self.steps, self.page_size = tuple(inputs), tuple(steps), page_size
        self.codec = codec or Codec()
        self.queries: Mapping[str, Query] = {query.name: query for step in self.steps for query in step.queries}
        self.relations: Mapping[str, Relation] = {relation.name: relation for step in self.steps for relation in step.relations}
        self.step_of: Mapping[str, int] = {name: number for number, step in enumerate(self.steps) for name in step.list_names()}
        self.tables: tuple[str, ...] = tuple(self.queries)
        self.followers: Mapping[str, tuple[Query, ...]] = {
            name: tuple(query for query in self.queries.values() if query.each == name) for name in (*self.inputs, *self.relations)
        }
        """The queries that are computed for each key of an input or each group of a relation."""
        self._check()
        parts = [(step.name, step.recursive, [(one.name, one.each, one.stored) for one in step.queries]) for step in self.steps]
        relations = [tuple(relation) for relation in self.relations.values()]
        self.identity = digest(Codec().encode((version, self.inputs, parts, relations)))

    def _check(self) -> None:
        names = [*self.inputs, *(name for step in self.steps for name in step.list_names())]
        if len(names) != len(set(names)):
            raise ValueError(f"names of inputs, queries and relations must differ: {sorted(names)}")
        if len(self.tables) > MAX_TABLES:
            raise ValueError(f"a database has at most {MAX_TABLES} queries")
        for query in self.queries.values():
            step = self.step_of[query.name]
            if query.each and query.each not in self.inputs and self.step_of.get(query.each, step) >= step:
                raise ValueError(
                    f"{query.name} is computed for each {query.each}, which is no input and no relation of an earlier step"
                )
            if query.each and not query.stored:
                raise ValueError(f"{query.name} is computed for each {query.each}, so its results must be stored")


@cache
def _import_function(path: str) -> Function:
    module, _, name = path.partition(":")
    function: Function = getattr(import_module(module), name)
    return function
