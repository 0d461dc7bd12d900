"""The head of the page of a plan, as it is without a browser."""

from __future__ import annotations

import re

from gitsched.model.finding import Finding, Location
from gitsched.report.page import FleetView, write_page
from gitsched.report.review import ComparisonBase, Review


def test_what_counts_in_place_of_an_invalid_document_stands_with_its_error() -> None:
    error = Finding("error", "wrong-type", "'replicas' must be an integer", Location("pay.yaml", 7, 13))
    notes = [
        Finding("info", "last-valid-used", f"{path} has errors: it is used as of commit abc", Location(path, 1, 1))
        for path in ("pay.yaml", "other.yaml")
    ]
    review = Review("c0ffee", "placements", before="beef", findings=[error, *notes], base=ComparisonBase(findings=[notes[1]]))
    head = write_page(review, FleetView({}, {})).partition('id="changes"')[0]
    assert notes[0].message in re.sub("<[^>]*>", "", head)
    assert notes[1].message not in re.sub("<[^>]*>", "", head)
