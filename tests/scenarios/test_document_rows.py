"""Documents of a kind are stored in parts, of which a change stores only those that differ."""

from __future__ import annotations

from typing import Any

import pytest

from gitsched.model.document import Document, Key
from gitsched.reconcile.cache.document_rows import MIN_DIVIDED, PARTS, list_changed_rows, list_rows, read_rows

KIND = ("cluster.karmada.io", "Cluster")


def make(count: int) -> tuple[Document, ...]:
    return tuple(Document(Key(*KIND, "", f"c{number:04}"), "v1", {"number": number}) for number in range(count))


@pytest.mark.parametrize(("before", "after"), [(0, 3), (3, 500), (500, 3), (500, 501), (MIN_DIVIDED, MIN_DIVIDED - 1), (500, 0)])
def test_rows_that_change_lead_to_the_documents_after_the_change(before: int, after: int) -> None:
    documents = make(max(before, after))
    rows: dict[str, Any] = dict(list_rows(KIND, documents[:before]))
    for name, value in list_changed_rows(KIND, documents[:before], documents[:after]).items():
        rows.pop(name, None)
        rows |= {name: value} if value is not None else {}
    assert read_rows(KIND, rows.get) == documents[:after]
    assert rows.keys() == (dict(list_rows(KIND, documents[:after])).keys() if after else set())


def test_a_changed_document_is_stored_with_a_part_of_the_others() -> None:
    documents = make(500)
    changed = (documents[0]._replace(body={}), *documents[1:])
    ((name, part),) = list_changed_rows(KIND, documents, changed).items()
    assert name.startswith("cluster.karmada.io\nCluster\n")
    assert changed[0] in part
    assert len(part) < 3 * len(documents) // PARTS
