"""A plan as a pull request comment in Markdown, shortened to the forge's size limit.

What does not fit is omitted in this order, and the last line of the comment lists it: the text of manifests, the names of manifests,
additional reasons, existing findings, all but the most severe new findings, the changes per cluster, the resilience table except its
summary, all but 20 recorded decisions, the ends of long causes, and finally the least important moves. Only complete blocks
are omitted, so every code fence and every `<details>` is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gitsched.report.markdown_moves import MIN_LINE
from gitsched.report.markdown_sections import DetailLevel, collect_comment_data, write_sections
from gitsched.report.review import Review

COMMENT_LIMIT = 65_536
"""GitHub's limit for the body of a comment, in characters; GitLab's limit is higher."""
RESERVED_LENGTH = 512
"""Characters reserved for a line that the program posting the comment may add."""
MIN_COMMENT_LIMIT = 16_384
"""The smallest supported limit."""


def write_markdown(review: Review, limit: int = COMMENT_LIMIT - RESERVED_LENGTH, identity: str = "default") -> str:
    """Return the comment with at most `limit` characters, counted as Unicode code points or UTF-16 code units, whichever are more.

    The first line is a hidden HTML comment by which a later run finds this comment; `identity` distinguishes several comments.
    """
    data = collect_comment_data(review)

    def write(detail: DetailLevel) -> str:
        return write_sections(data, detail, identity)

    def fits(detail: DetailLevel) -> bool:
        return fits_limit(write(detail), limit)

    # An entry of a move has at least 24 characters.
    most = DetailLevel(
        len(review.comparison.delivery.rendered), 200, True, 200, True, 200, 50, 5, 20, 100, min(len(data.groups), limit // 24)
    )
    if fits(most):
        return write(most)
    levels = list(_list_detail_levels(most))
    found = next((level for level in levels if fits(level)), None)
    if found == levels[0]:  # only the text of manifests is too long: show as many manifests as fit
        return write(most._replace(manifests=_find_largest(most.manifests, lambda n: fits(most._replace(manifests=n)))))
    if found is not None:
        return write(found)
    # Even short lists can exceed the limit if names have the maximum length and need escaping.
    last = (
        levels[-1]
        if fits(levels[-1]._replace(rows=0))
        else levels[-1]._replace(findings=0, clusters=0, retained=0, unplaced=0, records=0)
    )
    return write(last._replace(rows=_find_largest(last.rows, lambda n: fits(last._replace(rows=n)))))


def fits_limit(text: str, limit: int) -> bool:
    """Return whether a text has at most `limit` UTF-16 code units, and so at most as many Unicode code points."""
    return len(text.encode("utf-16-le", "surrogatepass")) <= 2 * limit


def _list_detail_levels(most: DetailLevel) -> Iterator[DetailLevel]:
    """Yield detail levels from most to least detail, in the order documented in docs/review.md."""
    detail = most._replace(manifests=0)
    yield detail
    yield (detail := detail._replace(names=50))
    yield (detail := detail._replace(names=0))
    yield (detail := detail._replace(reasons=False, retained=5))
    yield (detail := detail._replace(known_findings=False))
    yield (detail := detail._replace(findings=20))
    yield (detail := detail._replace(clusters=20))
    yield (detail := detail._replace(losses=0))
    yield (detail := detail._replace(records=20))
    yield detail._replace(line=MIN_LINE)


def _find_largest(most: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number up to `most` that fits, by bisection; 0 is assumed to fit."""
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if fits(middle) else (least, middle - 1)
    return least
