"""Compare how gitsched and Kubernetes read manifests: `python -m tests.fuzz.reader_agreement --documents N DIRECTORY...`.

A document that gitsched accepts is accepted by kubectl and by kustomize, and all three read the same value. The texts are those of
`yaml_agreement` and mutations of them. Exits with 1 after a difference, which is printed with its text.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from gitsched.decide.validation import validate_source_document
from gitsched.manifests.parser import parse_file
from gitsched.model.document import Body

from .kubernetes_readers import Identity, Reading, read_identity, read_with_kubectl, read_with_kustomize
from .yaml_agreement import generate, read_texts

_BATCH = 400
_UNPRINTED = ("annotations", "namespace")
"""Members that kubectl does not print if they are empty."""
_VALIDATE = partial(validate_source_document, ignored=frozenset(), strictness="protective")


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
    data = text.encode("utf-8", "surrogatepass")
    file = parse_file(data, path="a.yaml", validate=_VALIDATE)
    if file.unreadable or any(issue.severity == "error" or issue.code == "ambiguous-text" for issue in file.issues):
        return []
    file = parse_file(data, path="a.yaml", validate=None)  # without defaults
    return [
        Accepted(text if document.spans.whole_file else text[document.spans.start : document.spans.end], document.body)
        for document in file.documents
        if document.item < 0 and document.spans.end and "apiVersion" in document.body
    ]


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
    """Return a value in which 1 and true differ, and 1 and 1.0 do not, without what kubectl does not print."""
    if isinstance(value, dict):
        return {
            name: _normalize(inner)
            for name, inner in value.items()
            if name != "managedFields" and (inner or name not in _UNPRINTED)
        }
    if isinstance(value, list):
        return [_normalize(inner) for inner in value]
    return ("number", float(value)) if isinstance(value, int | float) and not isinstance(value, bool) else (type(value), value)


def find_disagreements(texts: Iterator[str], limit: int) -> Iterator[tuple[int, list[Disagreement]]]:
    """Yield the number of documents compared so far, and what was found since then."""
    compared = 0
    while compared < limit and (batch := list(islice(texts, _BATCH * 3))):
        documents = [document for text in batch for document in list_accepted(text)]
        compared += len(documents)
        yield compared, find_other_values(documents)


def main() -> int:
    """Compare until the number of documents is reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("directories", nargs="+", type=Path)
    options = parser.parse_args()
    texts = generate(read_texts(options.directories), Random(options.seed))
    total = differing = 0
    for compared, found in find_disagreements(texts, options.documents):
        total = compared
        differing += len(found)
        for text, reader, other in found:
            print(f"{text!r}\n{text}\n--- {reader}: {other}\n", flush=True)
    print(f"{total} documents, {differing} differences")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
