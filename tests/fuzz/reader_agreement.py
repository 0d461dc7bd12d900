"""Compare how gitsched and Kubernetes read manifests: `python -m tests.fuzz.reader_agreement --documents N DIRECTORY...`.

A document that gitsched accepts is accepted by kubectl and by kustomize, and all three read the same value. The texts are the documents of
the files in the directories, written in other styles and mutated. Prints a line of progress for each batch, and exits with 1 after a
difference, which is printed with its text.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, NamedTuple

from gitsched.decide.validation import validate_source_document
from gitsched.manifests.parser import parse_file
from gitsched.model.document import Body, SourceSpans, remove_server_owned
from gitsched.model.finding import ValidationResult

from .kubernetes_readers import Identity, Reading, read_identity, read_with_kubectl, read_with_kustomize
from .reader_texts import vary
from .yaml_agreement import read_texts

_BATCH = 500
"""Documents that one process reads. Kustomize compares each object with all others, so that more would take longer."""
_MAX_LENGTH = 1_500
_UNPRINTED = ("annotations", "namespace")
"""Members that kubectl does not print if they are empty."""


class Accepted(NamedTuple):
    """The text of a document without an error, and its value."""

    text: str
    body: Body


class Disagreement(NamedTuple):
    """A text that a reader of Kubernetes refuses, or reads otherwise: `found` is the refusal or the other value."""

    text: str
    reader: str
    found: Any


def list_accepted(text: str) -> list[Accepted]:
    """Return the documents of a text that are delivered with their own text, of which no finding says that readers disagree."""
    file = parse_file(text.encode("utf-8", "surrogatepass"), path="a.yaml", validate=_validate)
    if file.unreadable or any(issue.severity == "error" or issue.code == "ambiguous-text" for issue in file.issues):
        return []
    return [
        Accepted(_write_delivered(text, document.spans), remove_server_owned(document.body))
        for document in file.documents
        if document.item < 0 and document.spans.end and document.spans.server_owned is not None and "apiVersion" in document.body
    ]


def _validate(body: Body) -> ValidationResult:
    """Validate a document, without adding defaults."""
    return validate_source_document(body, ignored=frozenset(), strictness="protective")._replace(body=body)


def _write_delivered(text: str, spans: SourceSpans) -> str:
    """Return the text without the fields of a server."""
    first, end = (0, len(text)) if spans.whole_file else (spans.start, spans.end)
    edges = [first, *chain.from_iterable(spans.server_owned or ()), end]
    return "".join(text[start:stop] for start, stop in zip(edges[::2], edges[1::2], strict=True))


def find_other_values(documents: Iterable[Accepted]) -> list[Disagreement]:
    """Return the documents of which a reader of Kubernetes reads another value, or none."""
    everything = list(documents)
    found = list(_compare("kubectl", everything, read_with_kubectl([document.text.encode() for document in everything])))
    for batch in _separate_identities(everything):
        identities = [read_identity(document.body) for document in batch]
        found += _compare("kustomize", batch, read_with_kustomize([document.text.encode() for document in batch], identities))
    return found


def _compare(reader: str, documents: list[Accepted], readings: list[Reading]) -> Iterator[Disagreement]:
    for document, reading in zip(documents, readings, strict=True):
        if reading.refusal:
            yield Disagreement(document.text, reader, reading.refusal)
        elif [_normalize(value) for value in reading.values] != [_normalize(document.body)]:
            yield Disagreement(document.text, reader, (reading.values, document.body))


def _separate_identities(documents: Iterable[Accepted]) -> list[list[Accepted]]:
    """Divide documents into lists without two objects of one identity, which kustomize refuses."""
    batches: list[list[Accepted]] = []
    known: dict[Identity, int] = {}
    for document in documents:
        identity = read_identity(document.body)
        number = known[identity] = known.get(identity, -1) + 1
        while number >= len(batches):
            batches.append([])
        batches[number].append(document)
    return batches


def _normalize(value: Any) -> object:
    """Return a value in which 1 and true differ, and 1 and 1.0 do not, without what kubectl does not print. An annotation or a label
    without a value is empty."""
    if isinstance(value, dict):
        if isinstance(metadata := value.get("metadata"), dict):
            texts = {
                name: {key: "" if text is None else text for key, text in metadata[name].items()}
                for name in ("annotations", "labels")
                if isinstance(metadata.get(name), dict)
            }
            value = {**value, "metadata": {**metadata, **texts}}
        return {
            name: _normalize(inner)
            for name, inner in value.items()
            if name != "managedFields" and (inner or name not in _UNPRINTED)
        }
    if isinstance(value, list):
        return [_normalize(inner) for inner in value]
    return ("number", float(value)) if isinstance(value, int | float) and not isinstance(value, bool) else (type(value), value)


def list_bases(texts: Iterable[str]) -> list[Accepted]:
    """Return the short documents of texts that can be mutated, one of each identity."""
    found = {read_identity(document.body): document for text in texts for document in list_accepted(text)}
    return [document for document in found.values() if len(document.text) <= _MAX_LENGTH]


def generate(bases: list[Accepted], random: Random) -> Iterator[Accepted]:
    """Yield what is accepted of variants of the documents, without end. All documents have their turn before one comes again, so that few
    of a batch have the same identity."""
    while bases:
        for base in random.sample(bases, len(bases)):
            yield from list_accepted(vary(base.text, base.body, random))


def main() -> int:
    """Compare until the number of documents is reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("directories", nargs="+", type=Path)
    options = parser.parse_args()
    bases = list_bases(read_texts(options.directories))
    total = differing = 0
    start = monotonic()
    documents = chain(bases, generate(bases, Random(options.seed)))
    while total < options.documents and (batch := list(islice(documents, _BATCH))):
        for text, reader, other in find_other_values(batch):
            differing += 1
            print(f"{text!r}\n{text}\n--- {reader}: {other}\n", flush=True)
        total += len(batch)
        print(f"{total} documents, {differing} differences, {monotonic() - start:.0f} s", flush=True)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
