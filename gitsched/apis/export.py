"""What `gitsched export NAME` of a policy API reads, and what it prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from gitsched.named_tuples import NamedTuple
from gitsched.render.yaml import dump

if TYPE_CHECKING:
    from gitsched.model.document import Body, Document, Key
    from gitsched.model.finding import Finding
    from gitsched.model.scheduling import Outcome


class ExportOption(NamedTuple):
    """An option of the command: `--NAME VALUE`, one of `choices` if there are any. A `flag` has no value: it is "true" or ""."""

    name: str
    help: str
    choices: tuple[str, ...] = ()
    default: str = ""
    flag: bool = False
    metavar: str = ""


class ExportInput(NamedTuple):
    """The result to export: `records` of the API, its `documents` by group and kind, all `templates`, and the `outcomes` of workloads.

    `options` are the values of the export's options by name.
    """

    records: Sequence[tuple[Key, Body]]
    documents: Mapping[tuple[str, str], tuple[Document, ...]]
    templates: Mapping[Key, Document]
    outcomes: Mapping[Key, Outcome]
    options: Mapping[str, str]


class ExportResult(NamedTuple):
    """The text of the export, its form for `-o json`, and findings about what it does not contain, which are printed to stderr."""

    text: str
    document: Body
    findings: tuple[Finding, ...] = ()


class Export(NamedTuple):
    """An export of a policy API: its line in the list of commands, its help, and the function that makes it."""

    summary: str
    description: str
    make: Callable[[ExportInput], ExportResult]
    options: tuple[ExportOption, ...] = ()


def make_object_list(objects: Iterable[Body], findings: Iterable[Finding] = ()) -> ExportResult:
    """Return an export of Kubernetes objects: a YAML stream as text, and a `List`."""
    items = list(objects)
    return ExportResult("---\n".join(map(dump, items)), {"apiVersion": "v1", "kind": "List", "items": items}, tuple(findings))
