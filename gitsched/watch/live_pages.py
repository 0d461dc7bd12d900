"""The pages of the watch process: the fleet after the last run at /, its history at /history, and the event of a change at /events."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from html import escape
from threading import Lock

from gitsched.forge.web_links import find_web_links
from gitsched.git import Repository
from gitsched.git.urls import identify_repository, is_url
from gitsched.model.errors import GitschedError, Temporary
from gitsched.model.fault import describe_fault
from gitsched.model.fleet_status import Freeze, LastReport
from gitsched.model.history import SourceChange
from gitsched.model.time import EPOCH, format_time
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile import RunResult
from gitsched.reconcile.incremental.planned_clusters import changes_clusters, locate_placed, read_applied, read_planned_clusters
from gitsched.reconcile.output.output_history import OutputHistory
from gitsched.reconcile.source.source_commits import find_source_commit
from gitsched.report.history import add_drained_reasons
from gitsched.report.lines import escape_unprintable
from gitsched.report.page import FleetView, write_page, write_waiting_page
from gitsched.report.page.history import HistoryPage, write_history_page
from gitsched.report.page.live import LiveView
from gitsched.report.review import DeliveryChanges, Review
from gitsched.watch.health import FAILS
from gitsched.watch.http_routes import EVENTS_PATH, FLEET_PATH
from gitsched.watch.http_server import Headers, HttpResponse, HttpStream, RequestBody
from gitsched.watch.loop import read_clock

_log = logging.getLogger("gitsched.watch")
HISTORY_ENTRIES = 50
"""The number of commits on the page of the history."""
_HOSTS = frozenset((b"localhost", b"127.0.0.1", b"[::1]"))
_LAST_RUN = "(when the last run was)"
"""Stands in a rendered page for what is said about the last run to browsers without JavaScript: runs that change nothing keep the page."""
_RUN_TIME = "(time of the last run)"
"""Stands there for the time alone, which the script replaces after later runs."""
_HEADERS = (
    ("Cache-Control", "no-cache"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Frame-Options", "DENY"),
)


class _Location(NamedTuple):
    """Where the output is: its branch, and its directory inside of that."""

    branch: str
    prefix: str


class _State(NamedTuple):
    """The result of the last run that had one, and its version, which changes when a page does. `changed` is the last one with
    moves, None if there was none yet, and `changed_at` when that run ended."""

    version: str
    location: _Location
    review: Review
    fleet: FleetView
    fleet_digest: str
    changed: Review | None = None
    changed_at: datetime = EPOCH


class _Rendered(NamedTuple):
    """A page with the version of the state that it shows."""

    version: str
    response: HttpResponse
    tag: str


class LivePages:
    """Answers GET with the pages, rendered when they are requested, and sends an event when they change.

    `source` is the Git directory of the source, `open_history` returns the history of a branch with a head and a directory, for the thread
    of the pages, and `url` is where the source is, None for a local one. With `local_only`, requests need the name of
    this machine as their host: a page of another site whose name leads to this machine (DNS rebinding) cannot read them. `list_freezes`
    returns who froze placements, `list_requests` which source commits ask for what a run has withheld, and `list_observed` when clusters
    were observed; they are called in the thread of the runs.
    """

    def __init__(
        self,
        source: Callable[[], str],
        open_history: Callable[[str, str, str], OutputHistory],
        *,
        local_only: bool,
        url: str | None = None,
        list_freezes: Callable[[RunResult], tuple[Freeze, ...]] = lambda _: (),
        list_requests: Callable[[RunResult], tuple[SourceChange, ...]] = lambda _: (),
        list_observed: Callable[[RunResult], Mapping[str, datetime]] = lambda _: {},
    ) -> None:
        self._source, self._local_only, self._list_freezes, self._list_requests = source, local_only, list_freezes, list_requests
        self._list_observed, self._open_history = list_observed, open_history
        self._observed: tuple[Mapping[str, str], Mapping[str, datetime]] = {}, {}
        self._repository, self._web = identify_repository(url) if url and is_url(url) else "", find_web_links(url)
        self._state: _State | None = None
        self._ran_at, self._succeeded_at, self._ended = 0.0, 0.0, EPOCH
        self._failure = ""
        self._rendered: dict[bytes, _Rendered] = {}
        self._lock = Lock()
        self._executor = ThreadPoolExecutor(1, "pages")

    def update(self, run: RunResult, review: Review) -> None:
        """Show the result of a run from now on."""
        earlier, self._ran_at, self._ended, self._failure = self._state, time.monotonic(), _read_time(), ""
        self._succeeded_at = self._ran_at
        if earlier is not None and not (review.moves or earlier.review.moves or changes_clusters(run)):
            fleet, fleet_digest = earlier.fleet, earlier.fleet_digest
        else:
            clusters = read_planned_clusters(run, review.moves)
            fleet = FleetView(clusters.facts, {}, clusters.sites, self._web)
            fleet_digest = _digest(fleet)
        reports = read_applied(run, Repository(run.git_directory), fleet.facts)
        if run.facts != self._observed[0]:
            self._observed = run.facts, self._list_observed(run)
        observed = self._observed[1]
        version = _compute_version(review, fleet_digest, reports, observed)
        if earlier is not None and earlier.version == version and run.update is not None:
            return  # the pages stay the same, so the outcomes need not be read
        if earlier is None or earlier.review.source != review.source or fleet is not earlier.fleet:
            written = locate_placed(run)
            fleet = fleet._replace(places=written.workloads, policies=written.policies)
        fleet = fleet._replace(
            reports=reports, observed=observed, freezes=self._list_freezes(run), requests=self._list_requests(run)
        )
        # A cluster without a document still has a directory while workloads stay on it.
        removed = sorted(fleet.facts.keys() - fleet.sites.keys()) if fleet.sites else []
        # The outcomes of an incremental plan come from a cache file that only the thread of the runs may use.
        shown = review._replace(
            moves=add_drained_reasons(review.moves, fleet.drained),
            withheld=review.withheld._replace(moves=add_drained_reasons(review.withheld.moves, fleet.drained)),
            comparison=review.comparison._replace(delivery=DeliveryChanges(), removed_clusters=removed),
            output_repository="",
            outcomes=tuple(review.outcomes),
        )
        # The plan itself is not kept: its memory would be occupied while the next one is made.
        location = _Location(run.branch, run.prefix)
        changed, changed_at = (earlier.changed, earlier.changed_at) if earlier is not None else (None, EPOCH)
        if shown.moves or shown.record_changes:
            changed, changed_at = shown, self._ended
        self._state = _State(version, location, shown, fleet, fleet_digest, changed, changed_at)

    def report_failure(self, error: GitschedError) -> None:
        """Show that a run failed; the reason is told only to this machine, since it may name a repository."""
        reason = "a repository cannot be reached" if isinstance(error, Temporary) else FAILS
        self._failure = str(error) if self._local_only else f"{reason}; see the log"
        self._ran_at, self._ended = time.monotonic(), _read_time()

    def close(self) -> None:
        """Stop rendering."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def handle(self, method: bytes, path: bytes, headers: Headers) -> HttpResponse | RequestBody | HttpStream:
        """Return the response to a request for a page, or the events."""
        if method not in (b"GET", b"HEAD"):
            return HttpResponse(405, b"only GET, HEAD\n", headers=(("Allow", "GET, HEAD"),))
        if self._local_only and not _is_local(headers):
            return HttpResponse(421, b"use localhost or 127.0.0.1 as the host, or start gitsched watch with --pages\n")
        if path == EVENTS_PATH:
            last = _find_header(headers, b"last-event-id").decode("latin-1")
            return (
                _EventStream(self._read_event, self._read_run, last)
                if method == b"GET"
                else HttpResponse(200, b"", "text/event-stream")
            )
        if self._state is None:
            name = "fleet" if path == FLEET_PATH else "history"
            html = write_waiting_page(LiveView("", name, failure=escape_unprintable(self._failure)))
            page = _make_page("", html).response
            return page._replace(status=503, headers=(*page.headers, ("Retry-After", "5")))
        known = _find_header(headers, b"if-none-match")
        rendered = self._rendered.get(path)
        if rendered is not None and rendered.version == self._state.version:
            return self._respond(rendered, known)
        return _PageRequest(self._executor.submit(self._render, path, known))

    def _read_run(self, last: float) -> tuple[float, bytes]:
        """Return when the last run ended, by the monotonic clock, and the event to send to a client that knows of an earlier one."""
        ran_at = self._ran_at
        if ran_at == last:
            return last, b""
        data: dict[str, object] = {"age": round(time.monotonic() - ran_at, 1), "time": format_time(self._ended)}
        if self._failure:
            data["error"] = self._failure
            if self._state is not None:
                data["succeeded"] = round(time.monotonic() - self._succeeded_at, 1)
        return ran_at, f"event: run\ndata: {json.dumps(data)}\n\n".encode()

    def _read_event(self, last: str) -> tuple[str, bytes]:
        """Return the version of the pages, and the event to send to a client that knows another one."""
        state = self._state
        if state is None or state.version == last:
            return last, b""
        head = state.review.after or state.review.before or ""
        data = json.dumps(
            {"version": state.version, "head": head, "source": state.review.source, "time": format_time(state.review.time)}
        )
        return state.version, f"id: {state.version}\nevent: change\ndata: {data}\n\n".encode()

    def _render(self, path: bytes, known: bytes) -> HttpResponse:
        with self._lock:
            state, rendered = self._state, self._rendered.get(path)
            assert state is not None, "a page is rendered only after a run"
            if rendered is None or rendered.version != state.version:
                try:
                    html = self._write_fleet(state) if path == FLEET_PATH else self._write_history(state)
                except Exception as error:  # noqa: BLE001 - a page is a report: a bug in it does not end the service
                    text = str(error) if isinstance(error, GitschedError) else f"this is a bug: {describe_fault(error)}"
                    _log.warning("the page %s cannot be made: %s", path.decode(), text)
                    return HttpResponse(503, b"the page cannot be made; see the log\n", headers=(("Retry-After", "30"),))
                rendered = self._rendered[path] = _make_page(state.version, html)
        return self._respond(rendered, known)

    def _respond(self, rendered: _Rendered, known: bytes) -> HttpResponse:
        return _select_response(rendered, known, self._describe_last_run(), format_time(self._ended))

    def _describe_last_run(self) -> str:
        """Return when the last run was, and why it failed."""
        failed = f" and failed: {escape_unprintable(self._failure)}" if self._failure else ""
        return f"Last run at {format_time(self._ended)}{failed}. Reload this page to see later ones, which it follows only with JavaScript."

    def _write_fleet(self, state: _State) -> str:
        review, changed = state.review, state.changed
        live = LiveView(state.version, "fleet", self._repository, last_run=_LAST_RUN, run_time=_RUN_TIME)
        commits = {review.source: find_source_commit(Repository(self._source()), review.source)}
        fleet = state.fleet._replace(commits=commits)
        if changed is None or changed is review:
            return write_page(review, fleet, live)
        live = live._replace(changed=format_time(state.changed_at))
        return write_page(review._replace(moves=changed.moves, record_changes=changed.record_changes), fleet, live)

    def _write_history(self, state: _State) -> str:
        location, head = state.location, state.review.after or state.review.before
        live = LiveView(state.version, "history", last_run=_LAST_RUN)
        if head is None:
            return write_history_page(HistoryPage(location.branch, "", ()), live)
        history = self._open_history(location.branch, head, location.prefix)
        entries = list(history.read_entries(HISTORY_ENTRIES))
        return write_history_page(HistoryPage(location.branch, head, entries, (), history.next, history.end, self._web), live)


class _PageRequest:
    """A request for a page that is rendered in another thread."""

    def __init__(self, response: Future[HttpResponse]) -> None:
        self._response = response

    def feed(self, data: bytes) -> None:
        """Ignore a body."""

    def respond(self) -> Future[HttpResponse]:
        """Return the page."""
        return self._response


class _EventStream:
    """The events of one client."""

    content_type = "text/event-stream"

    def __init__(
        self, read: Callable[[str], tuple[str, bytes]], read_run: Callable[[float], tuple[float, bytes]], last: str
    ) -> None:
        self._read, self._read_run, self._last, self._ran_at, self._begun = read, read_run, last, 0.0, False

    def read(self) -> bytes:
        """Return what is new, b"" if nothing is."""
        self._last, event = self._read(self._last)
        self._ran_at, ran = self._read_run(self._ran_at)
        begin = b"" if self._begun else b"retry: 5000\n\n"
        self._begun = True
        return begin + event + ran


def _read_time() -> datetime:
    return read_clock().replace(microsecond=0)


def _compute_version(review: Review, fleet_digest: str, reports: Mapping[str, LastReport], observed: Mapping[str, datetime]) -> str:
    """Return a digest of what the pages show; equal for the same state in another process."""
    findings = [str(finding) for finding in review.findings]
    parts = (
        review.source,
        review.after,
        review.before,
        review.refused,
        review.withheld.digest,
        review.next_wakeup,
        review.time,
        findings,
        fleet_digest,
        sorted(reports.items()),
        sorted(observed.items()),
    )
    return _digest(parts)


def _digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode("utf-8", "replace")).hexdigest()[:16]


def _make_page(version: str, html: str) -> _Rendered:
    body = html.encode("utf-8", "replace")
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    # The same policy as in the page, which a server can make stricter: no frame may show it.
    policy = html.partition('Content-Security-Policy" content="')[2].partition('"')[0].replace("&#39;", "'")
    headers = (*_HEADERS, ("ETag", tag), ("Content-Security-Policy", f"{policy}; frame-ancestors 'none'"))
    return _Rendered(version, HttpResponse(200, body, "text/html; charset=utf-8", headers), tag)


def _select_response(rendered: _Rendered, known: bytes, last_run: str, run_time: str) -> HttpResponse:
    tags = {tag.strip().removeprefix("W/") for tag in known.decode("latin-1").split(",")}
    page, tag = rendered.response, f'{rendered.tag[:-1]}-{_digest(last_run)}"'
    headers = tuple((name, tag if name == "ETag" else value) for name, value in page.headers)
    if tag in tags or "*" in tags:
        return HttpResponse(304, b"", "", headers)
    body = page.body.replace(_LAST_RUN.encode(), escape(last_run).encode("utf-8", "replace"), 1)
    body = body.replace(_RUN_TIME.encode(), run_time.encode(), 2)  # as text and as an attribute
    return page._replace(body=body, headers=headers)


def _find_header(headers: Headers, wanted: bytes) -> bytes:
    return b",".join(value for name, value in headers if name == wanted)


def _is_local(headers: Headers) -> bool:
    host = _find_header(headers, b"host").lower()
    name = host if host.endswith(b"]") else host.rpartition(b":")[0] if b":" in host else host
    return name in _HOSTS
