"""A plan as a pull request comment in Markdown, shortened to the forge's size limit.

What does not fit is left out in this order, and the end says so: the text of manifests, then their names, further reasons, findings that
stood before and then all but the worst ones, the balance of each cluster, what losses would do but for one sentence, and last the rows
of the least important moves. Only whole blocks are left out, so every fence and every `<details>` that is opened is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gitsched.report.markdown_sections import DetailLevel, collect_comment_data, write_sections
from gitsched.report.review import Review

COMMENT_LIMIT = 65_536
"""What GitHub takes as the body of a comment, in characters; GitLab takes more."""
RESERVED_LENGTH = 512
"""Characters of it that are left to whoever posts the comment, for a line of their own."""
MIN_COMMENT_LIMIT = 16_384
"""No limit below this can be kept."""


def write_markdown(review: Review, limit: int = COMMENT_LIMIT - RESERVED_LENGTH, identity: str = "default") -> str:
    """The comment, at most `limit` characters of it, counted as both Unicode and UTF-16 do, whichever are more.

    The first line is a comment that does not show: whoever posts this finds the last one by it. `identity` tells several apart.
    """
    facts = collect_comment_data(review)

    def write(detail: DetailLevel) -> str:
        return write_sections(facts, detail, identity)

    def suits(detail: DetailLevel) -> bool:
        return fits_limit(write(detail), limit)

    # No row is shorter than its bars and quotes.
    most = DetailLevel(len(review.delivery.rendered), 200, True, 200, True, 200, 50, 5, 20, min(len(facts.moves), limit // 24))
    if suits(most):
        return write(most)
    steps = list(_list_detail_levels(most))
    found = next((step for step in steps if suits(step)), None)
    if found == steps[0]:  # only the text of manifests is too much: as many of them as fit
        return write(most._replace(manifests=_find_largest(most.manifests, lambda n: suits(most._replace(manifests=n)))))
    if found is not None:
        return write(found)
    # With names as long as they may be, and escaped, lists of a few can be too much.
    last = steps[-1] if suits(steps[-1]._replace(rows=0)) else steps[-1]._replace(findings=0, clusters=0, retained=0, unplaced=0)
    return write(last._replace(rows=_find_largest(last.rows, lambda n: suits(last._replace(rows=n)))))


def fits_limit(text: str, limit: int) -> bool:
    """Whether a text is no longer than a limit, however a forge counts its characters."""
    return len(text) + sum(c > "\uffff" for c in text) <= limit


def _list_detail_levels(most: DetailLevel) -> Iterator[DetailLevel]:
    """Less and less, in the documented order."""
    detail = most._replace(manifests=0)
    yield detail
    yield (detail := detail._replace(names=50))
    yield (detail := detail._replace(names=0))
    yield (detail := detail._replace(reasons=False, retained=5))
    yield (detail := detail._replace(known_findings=False))
    yield (detail := detail._replace(findings=20))
    yield (detail := detail._replace(clusters=20))
    yield detail._replace(losses=0)


def _find_largest(most: int, suits: Callable[[int], bool]) -> int:
    """The largest number up to `most` that suits, 0 being taken to."""
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if suits(middle) else (least, middle - 1)
    return least
