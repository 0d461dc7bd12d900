"""Findings that say the same of many places or objects, as one with the number and the first names of the others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from gitsched.model.document import Key
from gitsched.model.finding import Finding, format_count, format_names
from gitsched.named_tuples import NamedTuple
from gitsched.report.lines import format_key

PLACES_SHOWN: Final = 3
"""The number of findings with the same text that are printed, and of places or objects that are named of the others."""
_NUMBER: Final = re.compile(r"(?<![\w./:-])[0-9]+(?![\w./:-])")
"""A number that is a word of its own, not part of a name, a version or a place."""
_OBJECT: Final = re.compile(r"(?<![\w/.-])(\w+)(?:\.[\w.-]+)?/(?:([\w.-]+)/)?([\w.-]*\w)(?![\w/-])")
"""Kind, namespace and name of an object, as in "Deployment.apps/shop/web" and "Cluster/fra"."""


class AlikeFindings(NamedTuple):
    """A finding to print, and the `others` that say the same, besides their objects and numbers, and come in its line."""

    finding: Finding
    others: tuple[Finding, ...] = ()

    @property
    def note(self) -> str:
        """What is said of the others; "" without any."""
        if not self.others:
            return ""
        number = len(self.others)
        if all(other.message == self.finding.message for other in self.others):
            places = [str(other.location) for other in self.others if other.location is not None]
            listed = f": {format_names(places, PLACES_SHOWN)}" if places else ""
            return f"the same in {format_count(number, 'more place')}{listed}"
        same = {_name_no_object(finding) for finding in (self.finding, *self.others)}
        numbers = "" if len(same) == 1 else ", with other numbers,"
        names = [format_key(Key("", *other.resource)) for other in self.others if other.resource is not None]
        return f"the same{numbers} of {format_count(number, 'more object')}: {format_names(names, PLACES_SHOWN)}"


def fold_alike(findings: Sequence[Finding]) -> list[AlikeFindings]:
    """Return the findings in order, with the others of many alike ones at the last of them that is printed: one of those about different
    objects, and the first PLACES_SHOWN of those with the same text."""
    counts = Counter(finding.code for finding in findings)
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        if counts[finding.code] > PLACES_SHOWN + 1:
            general = _name_no_object(finding)
            # Without its name, a number may be all that tells what a finding is about.
            message = general if general == finding.message else mask_numbers(general)
            groups.setdefault((finding.severity, finding.code, message), []).append(finding)
    folded: dict[int, tuple[Finding, ...]] = {}
    for group in groups.values():
        shown = PLACES_SHOWN if all(finding.message == group[0].message for finding in group) else 1
        if len(group) > PLACES_SHOWN + 1:
            folded[id(group[shown - 1])] = tuple(group[shown:])
    left_out = {id(finding) for others in folded.values() for finding in others}
    return [AlikeFindings(finding, folded.get(id(finding), ())) for finding in findings if id(finding) not in left_out]


def mask_numbers(text: str) -> str:
    """Return a text without its numbers, as alike ones have it."""
    return _NUMBER.sub("#", text)


def _name_no_object(finding: Finding) -> str:
    """Return the message without the name of the object that it is about."""
    own = finding.resource

    def replace(match: re.Match[str]) -> str:
        kind, namespace, name = match.groups("")
        return "<object>" if (kind, namespace, name) == own else match[0]

    return _OBJECT.sub(replace, finding.message)
