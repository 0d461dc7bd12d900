"""Find objects that no policy selects because what should choose their policy is a label, or an annotation with a misspelled name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gitsched.apis.policy_api import PolicyEngine
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.registry import policy_apis
from gitsched.model.document import Document, read_annotations, read_labels
from gitsched.model.finding import Finding, locate_document, locate_field
from gitsched.model.similar_names import find_similar

UNREAD_CODE = "annotation-unread"
_SIMILARITY = 0.8


def list_unread_annotations(decisions: DecisionSet) -> Iterator[Finding]:
    """Yield a warning for each object that no policy selects and that nearly has an annotation by which an API in use selects."""
    wanted = list_selecting_annotations(decisions.engines)
    templates = decisions.catalog.templates
    for key in decisions.list_unclaimed() if wanted else ():
        yield from find_unread_annotations(templates[key], wanted)


def list_selecting_annotations(engines: Iterable[PolicyEngine]) -> list[str]:
    """Return the annotations by which the APIs of engines select."""
    found = [api.selecting_annotation for engine in engines if (api := policy_apis.get(engine.name)) is not None]
    return [name for name in found if name]


def find_unread_annotations(document: Document, wanted: Iterable[str]) -> Iterator[Finding]:
    """Yield a warning for each annotation that an object that no policy selects nearly has."""
    for name in wanted:
        found = _find_similar(document, name)
        if found is not None:
            yield found


def _find_similar(document: Document, wanted: str) -> Finding | None:
    """Return the finding about a label with the name of an annotation, or about an annotation with a similar name."""
    key = document.key
    if wanted in read_labels(document.body):
        message = f"{key} has the label {wanted}, which chooses nothing: make it an annotation"
        return _make_finding(document, message, ("metadata", "labels", wanted))
    similar = _match(read_annotations(document.body), wanted)
    if not similar:
        return None
    message = f"{key} has the annotation {similar[:200]}, which chooses nothing; did you mean {wanted}?"
    return _make_finding(document, message, ("metadata", "annotations", similar))


def _match(annotations: Mapping[str, object], wanted: str) -> str:
    """Return the annotation whose name is similar: its prefix or the rest equals that of the one that is wanted."""
    prefix, _, name = wanted.rpartition("/")
    for written in sorted(annotations):
        own_prefix, _, own_name = written[:200].rpartition("/")
        if own_prefix == prefix and find_similar(own_name, [name], _SIMILARITY):
            return written
        if own_name == name and find_similar(own_prefix, [prefix], _SIMILARITY):
            return written
    return ""


def _make_finding(document: Document, message: str, pointer: tuple[str, ...]) -> Finding:
    field = locate_field(document.origin, pointer)
    return Finding("warning", UNREAD_CODE, message, locate_document(document), document.key.resource, field)
