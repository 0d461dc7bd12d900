"""The live pages of the watch process over HTTP: caching, headers, events and their limits; and in a browser."""

from __future__ import annotations

import json
import logging
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

import pytest
import yaml
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect, sync_playwright

from gitsched.cli.run_log import RunLog
from gitsched.model.errors import Permanent, Temporary
from gitsched.reconcile import Reconciler, RunSettings
from gitsched.reconcile.facts.observation_times import read_run_observation_times
from gitsched.reconcile.output.freeze import set_freeze
from gitsched.reconcile.output.output_history import open_run_history
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.reconcile.review.freezes import list_run_freezes
from gitsched.reconcile.review.withheld_changes import list_run_requests
from gitsched.reconcile.run import make_review
from gitsched.watch import Wakeup, http_server
from gitsched.watch.health import FAILS, WatchHealth
from gitsched.watch.http_routes import HttpRoutes
from gitsched.watch.http_server import HttpServer, listen
from gitsched.watch.live_pages import LivePages, _PageRequest
from gitsched.watch.prometheus_metrics import PrometheusMetrics
from tests.cli.conftest import CLUSTER, POLICY, WORKLOAD
from tests.local import PATIENCE
from tests.programs import find_program
from tests.scenarios.conftest import Fleet
from tests.scenarios.facts_histories import commit_branch

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class Site:
    """A fleet in a repository, and a server with its pages."""

    def __init__(self, base: Path, *, local_only: bool = True) -> None:
        self.fleet = base / "fleet"
        self.fleet.mkdir()
        self._git("init", "-q", "-b", "main")
        self.commit(one=CLUSTER.format(name="one", owner="private"), policy=POLICY, web=WORKLOAD)
        self.settings = RunSettings(now=NOW, location=str(self.fleet), cache=base / "cache")
        self.restart()
        self.pages = LivePages(
            lambda: self._reconciler.source.repository.path,
            partial(open_run_history, self.settings),
            local_only=local_only,
            list_freezes=lambda run: tuple(list_run_freezes(self._reconciler.context, run)),
            list_requests=lambda run: list_run_requests(self._reconciler.context, run),
            list_observed=lambda run: read_run_observation_times(self._reconciler.context, run),
        )
        wakeup = Wakeup()
        health = WatchHealth(wakeup)
        sockets = listen("127.0.0.1:0")
        self.host, self.port = sockets[0].getsockname()
        routes = HttpRoutes(health, PrometheusMetrics(health), secret=None, request_run=wakeup.request_run, pages=self.pages)
        self.server = HttpServer(sockets, routes)

    def commit(self, **files: str) -> None:
        for name, text in files.items():
            (self.fleet / f"{name}.yaml").write_text(text)
        self._git("add", "-A")
        self._git("commit", "-qm", "Change <b>")

    def read_fleet(self) -> str:
        """Return the page of the fleet without the time of the last run."""
        text = re.sub("Last run at [0-9TZ:-]+", "Last run", self.get("/")[1])
        return re.sub('<time id="run-time" [^<]+</time>', "", text)

    def write_facts(self, files: dict[str, str], hour: float) -> None:
        """Set the content of the branch of facts."""
        commit_branch(Fleet(self.fleet, self.fleet), "facts", files, hour)

    def last_commit(self) -> str:
        """Return the id of the last commit as pages show it."""
        command = ["git", "rev-parse", "--short=10", "HEAD"]
        return subprocess.run(command, cwd=self.fleet, check=True, capture_output=True, text=True).stdout.strip()

    def _git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.fleet, check=True)

    def run(self) -> None:
        """Reconcile, and show the result."""
        self.last = self._reconciler.run(NOW)
        self.pages.update(self.last, make_review(self.last))

    def show_complete_plan(self) -> None:
        """Show the result of the last run, as a complete plan with the same changes."""
        found = Reconciler(self.settings._replace(output=None)).run(NOW, preview=True, complete=True)
        self.pages.update(found, make_review(self.last))

    def restart(self) -> None:
        """Continue with what an earlier process has left in the cache."""
        self._reconciler = Reconciler(self.settings)

    def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, str, dict[str, str]]:
        connection = HTTPConnection(self.host, self.port, timeout=PATIENCE)
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        answer = response.status, response.read().decode(), dict(response.headers)
        connection.close()
        return answer

    def open_events(self, last: str = "") -> socket.socket:
        """Connect to the events."""
        opened = socket.create_connection((self.host, self.port), PATIENCE)
        known = f"Last-Event-ID: {last}\r\n" if last else ""
        opened.sendall(f"GET /events HTTP/1.1\r\nHost: localhost\r\n{known}\r\n".encode())
        return opened

    def close(self) -> None:
        self.server.close()
        self.pages.close()


@pytest.fixture
def open_site(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    opened: list[Site] = []

    def start(**options: bool) -> Site:
        opened.append(Site(tmp_path, **options))
        return opened[-1]

    yield start
    for site in opened:
        site.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=find_program("browser"), args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def browser(open_site: Callable[..., Site], chromium: Browser) -> Iterator[Browser]:
    """A browser whose pages are closed before the site is."""
    yield chromium
    for context in chromium.contexts:
        context.close()


def read_until(stream: socket.socket, text: bytes) -> bytes:
    data = b""
    end = time.monotonic() + PATIENCE
    while text not in data and time.monotonic() < end:
        part = stream.recv(65536)
        if not part:
            break
        data += part
    return data


def test_pages_are_read_only_cached_by_content_and_load_nothing(open_site: Callable[..., Site]) -> None:
    site = open_site()
    assert site.get("/")[0] == 503
    site.run()
    for path, title in (("/", "1 workload placed on 1 cluster"), ("/history", "History of branch placements")):
        status, text, headers = site.get(path)
        assert (status, f"<title>{title}" in text) == (200, True)
        assert site.get(path, If_None_Match=headers["ETag"])[:2] == (304, "")
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert 'href="http' not in text
        assert " src=" not in text
        assert str(site.fleet) not in text
        assert site.get(path, "HEAD")[:2] == (200, "")
        assert site.get(path, "POST")[0] == 405
        assert site.get(path, Host="evil.example")[0] == 421
    assert "Change &lt;b&gt;" in site.get("/history")[1]
    before = site.get("/")[2]["ETag"]
    site.commit(web=WORKLOAD.replace("replicas: 2", "replicas: 3"))
    site.run()
    assert site.get("/", If_None_Match=before)[0] == 200
    assert site.get("/history")[1].count('class="entry"') == 2


def test_pages_of_a_plan_from_the_cache_leave_the_cache_alone(
    open_site: Callable[..., Site], caplog: pytest.LogCaptureFixture
) -> None:
    """The file of the cache belongs to the thread of the runs."""
    site = open_site()
    site.run()
    site.restart()
    site.run()
    status, text, _ = site.get("/")
    assert (status, "web" in text, caplog.messages) == (200, True, [])


@pytest.mark.parametrize("restarts", [False, True])
def test_pages_show_the_clusters_of_an_incremental_plan(open_site: Callable[..., Site], *, restarts: bool) -> None:
    """They are those of a complete plan: with labels, replicas, and the clusters that are not available."""
    site = open_site()
    site.commit(two=CLUSTER.format(name="two", owner="private"))
    site.run()
    changes = (
        {"web": WORKLOAD.replace("replicas: 2", "replicas: 3")},
        {"one": CLUSTER.format(name="one", owner="private, tier: gold")},
        {"two": CLUSTER.format(name="two", owner="private") + "  taints: [{key: example.com/down, effect: NoExecute}]\n"},
    )
    for change in changes:
        site.commit(**change)
        if restarts:
            site.restart()
        site.run()
        assert not site.last.plan.complete
        shown = site.read_fleet()
        site.show_complete_plan()
        assert site.read_fleet() == shown
    assert "tier=gold" in shown


def test_no_time_of_changes_is_named_where_no_run_of_the_process_had_any(open_site: Callable[..., Site]) -> None:
    site = open_site()
    site.run()
    pages = LivePages(lambda: str(site.fleet), partial(open_run_history, site.settings), local_only=True)
    for tier in ("silver", "gold"):
        site.commit(one=CLUSTER.format(name="one", owner=f"private, tier: {tier}"))
        site.run()
        pages.update(site.last, make_review(site.last))
    answer = pages.handle(b"GET", b"/", ((b"host", b"localhost"),))
    assert isinstance(answer, _PageRequest)
    text = answer.respond().result().body.decode()
    assert "Changes of the last run</h2>" in text
    assert "No workload changed its clusters or replicas." in text
    pages.close()


def test_changes_stay_on_the_page_after_runs_without_any(open_site: Callable[..., Site]) -> None:
    site = open_site()
    site.run()
    site.commit(web=WORKLOAD.replace("replicas: 2", "replicas: 3"))
    begin = datetime.now(UTC).replace(microsecond=0)
    site.run()
    assert "Changes of the last run</h2>" in site.get("/")[1]
    site.commit(one=CLUSTER.format(name="one", owner="private, tier: gold"))
    site.run()
    text = site.get("/")[1]
    changed = re.search(r'Changes of the last run that had any, at <time datetime="([^"]+)Z">', text)
    assert changed is not None
    assert begin <= datetime.fromisoformat(f"{changed[1]}+00:00") <= datetime.now(UTC), "of the run, not of its commit"
    assert "one 2 → 3" in text
    assert "tier=gold" in text


def test_a_page_shows_what_each_cluster_has_applied(open_site: Callable[..., Site]) -> None:
    site = open_site()
    site.run()
    report = {
        "apiVersion": "gitsched.io/v1alpha1",
        "kind": "ClusterReport",
        "metadata": {"name": "one"},
        "spec": {"appliedCommit": site.last.after, "health": "Healthy", "since": "2026-03-02T08:30:00Z"},
    }
    site.commit(report=yaml.safe_dump(report), web=WORKLOAD.replace("replicas: 2", "replicas: 3"))
    site.run()
    text = site.get("/")[1]
    assert f"has applied {(site.last.before or '')[:10]}, 1 commit behind, Healthy since" in text
    assert "<td>one (1 commit)</td>" in text
    assert ("one", 1) in [(one.name, one.behind) for one in read_fleet_status(site.settings).clusters], "as status counts"
    site.commit(two=CLUSTER.format(name="two", owner="cloud"))
    site.run()
    assert ", 1 commit behind, Healthy since" in site.get("/")[1], "the last commit does not concern the cluster"
    site.commit(report=yaml.safe_dump(report).replace("Healthy", "Degraded"))
    site.run()
    assert ">one degraded</a>" in site.get("/")[1]


FACTS = """\
apiVersion: gitsched.io/v1alpha1
kind: ClusterFacts
metadata: {name: %s}
status: {observedAt: "%s", ready: {status: "True", reason: Observed}}
"""


def test_the_run_the_commit_and_the_observation_of_each_cluster_have_times_of_their_own(open_site: Callable[..., Site]) -> None:
    """The commit may be days older than the last run."""
    site = open_site()
    site.commit(
        two=CLUSTER.format(name="two", owner="private"),
        three=CLUSTER.format(name="three", owner="private"),
        gitsched="apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {source: {facts: {branch: facts}}}\n",
    )
    tree = site.last_commit()
    earlier, later = "2026-03-01T07:00:00Z", "2026-03-02T08:30:00Z"
    for times in ((earlier, earlier), (later, earlier)):
        site.write_facts({f"{name}.yaml": FACTS % (name, time) for name, time in zip(("one", "two"), times, strict=True)}, 1)
        site.run()
    text = site.get("/")[1]
    assert "<dt>as of</dt>" not in text
    assert re.search(rf'<dt>last run</dt><dd><time id="run-time" datetime="{datetime.now(UTC).year}[^"]+Z">[^<]+</time>', text)
    commit = re.search(rf"<dt>commit</dt><dd>{tree} Change .*?</dd>", text)
    assert commit is not None
    assert "<time datetime=" in commit[0]
    times = "2 of 3, last at 2026-03-02T08:30:00Z, two only at 2026-03-01T07:00:00Z; never: three"
    assert f"<dt>clusters observed</dt><dd>{times}</dd>" in text
    data = json.loads(text.partition('id="fleet-data">')[2].partition("</script>")[0])
    assert {one["name"]: one["observed"] for one in data["clusters"]} == {
        "one": "was observed at 2026-03-02T08:30:00Z",
        "two": "was observed at 2026-03-01T07:00:00Z",
        "three": "has not been observed",
    }


@pytest.mark.parametrize("path", ["/", "/history"])
def test_without_javascript_a_page_says_when_the_last_run_was(open_site: Callable[..., Site], browser: Browser, path: str) -> None:
    """Also after a run that keeps the page as it is."""

    def read() -> str:
        header = page.locator("nav.pages").inner_text()
        assert "connecting" not in header
        return header.partition("Last run at ")[2]

    site = open_site()
    site.run()
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(f"http://localhost:{site.port}{path}")
    first = read()
    assert re.match(rf"{datetime.now(UTC).year}-[0-9T:-]+Z\. Reload this page", first)
    time.sleep(1)
    site.run()
    page.reload()
    assert read() > first
    site.pages.report_failure(Temporary("the remote <b> does not answer"))
    page.reload()
    assert "Z and failed: the remote <b> does not answer. Reload" in read()


@pytest.mark.parametrize(
    ("local_only", "reason"),
    [(True, "the repository git.example.com/fleet is gone"), (False, f"{FAILS}; see the log")],
)
def test_a_failed_run_is_reported_with_the_age_of_what_is_shown(
    open_site: Callable[..., Site], *, local_only: bool, reason: str
) -> None:
    site = open_site(local_only=local_only)
    failure = Permanent("the repository git.example.com/fleet is gone")
    site.pages.report_failure(failure)
    status, text, headers = site.get("/")
    assert (status, headers["Retry-After"], f"The last run failed: {reason}" in text) == (503, "5", True)
    site.run()
    site.pages.report_failure(failure)
    with site.open_events() as stream:
        event = read_until(stream, b'"succeeded": ')
    assert 'event: run\ndata: {"age": ' in event.decode()
    assert f'"error": "{reason}", "succeeded": ' in event.decode()


def test_a_page_names_a_source_that_is_a_url(open_site: Callable[..., Site]) -> None:
    site = open_site()
    site.run()
    assert "<dt>source</dt>" not in site.get("/")[1]
    pages = LivePages(
        lambda: "", partial(open_run_history, site.settings), local_only=True, url="https://user@github.com/shop/fleet.git"
    )
    pages.update(site.last, make_review(site.last))
    answer = pages.handle(b"GET", b"/", ((b"host", b"localhost"),))
    assert isinstance(answer, _PageRequest)
    assert b"<dt>source</dt><dd>github.com/shop/fleet<" in answer.respond().result().body
    pages.close()


def test_other_hosts_are_answered_where_the_operator_wants_it(open_site: Callable[..., Site]) -> None:
    site = open_site(local_only=False)
    site.run()
    assert site.get("/", Host="fleet.example.com")[0] == 200


def test_events_report_changes_once_and_their_clients_are_limited(
    open_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "MAX_STREAMS", 2)
    monkeypatch.setattr(http_server, "HEARTBEAT_INTERVAL", 0.3)
    site = open_site()
    site.run()
    with site.open_events() as stream:
        event = read_until(stream, b"\n\n\r\n").decode() + read_until(stream, b"heartbeat").decode()
        version = event.partition("id: ")[2].partition("\n")[0]
        assert "event: change" in event
        assert 'event: run\ndata: {"age": ' in event
        with site.open_events(version) as informed:
            assert b"event: change" not in read_until(informed, b"heartbeat")
            assert site.get("/events")[0] == 503
            assert site.get("/")[0] == 200
            site.commit(web=WORKLOAD.replace("replicas: 2", "replicas: 3"))
            site.run()
            assert b"event: change" in read_until(informed, b"event: change")
            site.close()
            assert read_until(informed, b"never").endswith(b"0\r\n\r\n")


@pytest.mark.needs("browser")
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_before_a_run_succeeds_a_page_says_why_and_then_shows_the_fleet(
    open_site: Callable[..., Site], browser: Browser, width: int, scheme: str
) -> None:
    site = open_site()
    context = browser.new_context(bypass_csp=True, color_scheme=scheme, viewport={"width": width, "height": 800})  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"http://localhost:{site.port}/")
    expect(page.get_by_role("heading", level=1)).to_have_text("The first run has not finished")
    site.pages.report_failure(Temporary("the remote <b> does not answer"))
    expect(page.get_by_role("alert")).to_have_text("The last run failed: the remote <b> does not answer")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("No run has succeeded yet")
    expect(page.get_by_role("alert")).to_have_text("The last run failed: the remote <b> does not answer")
    assert page.locator("#live-since").inner_text() == ""
    assert page.evaluate("getComputedStyle(document.querySelector('.failure')).borderLeftWidth") == "4px"
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    site.run()
    expect(page.get_by_role("heading", level=1)).to_have_text("1 workload placed on 1 cluster")


def test_changes_that_are_withheld_stand_apart_from_those_that_a_run_made(open_site: Callable[..., Site]) -> None:
    """Also where both concern one workload: what is in the output branch has no mark."""
    site = open_site()
    site.commit(two=CLUSTER.format(name="two", owner="cloud"))
    site.run()
    site.commit(web=WORKLOAD.replace("replicas: 2", "replicas: 3"))
    site.run()
    set_freeze(site.settings, "audit week")
    site.commit(policy=POLICY.replace("ownership: private", "ownership: cloud"))
    site.run()
    text = site.get("/")[1]
    made, withheld = (
        text.partition(f'<section id="{name}"')[2].partition("</section>")[0] for name in ("changes", "withheld-changes")
    )
    assert ">one 2 → 3<" in made
    assert 'class="withheld"' not in made
    for wanted in ("Deployment shop/web", "− one 3", "+ two 3", "PropagationPolicy/shop/web in group private"):
        assert wanted in withheld
    assert '"withheld":2' in text


def test_the_first_screen_has_the_cause_of_what_is_withheld_and_the_map(open_site: Callable[..., Site]) -> None:
    site = open_site()
    site.commit(two=CLUSTER.format(name="two", owner="cloud"))
    site.run()
    set_freeze(site.settings, "audit week")
    site.commit(policy=re.sub("ownership: [a-z]+", "ownership: nobody", POLICY))
    commit = site.last_commit()
    site.run()
    site.commit(notes="kind: ConfigMap\napiVersion: v1\nmetadata: {name: notes}\n")
    site.run()
    text = site.get("/")[1]
    header, main = text.split("<main>")
    assert "<h1>1 workload placed on 1 of 2 clusters</h1>" in header
    assert "no cluster has ownership=nobody; the fleet has cloud, private (policy.yaml:" in header
    assert f"Requested by {commit} Change &lt;b&gt; (" in header
    assert f"to withdraw it: git revert {commit}" in header
    assert re.findall(r'<section id="([a-z-]+)"', main)[:3] == ["map", "changes", "withheld-changes"]
    assert re.findall(r'<a href="#([a-z-]+)">[A-Z]', header)[-6:][:2] == ["map", "changes"]


@pytest.mark.parametrize("restarts", [False, True], ids=["same process", "restarted"])
def test_the_dialog_of_a_workload_says_where_it_and_its_policy_are_written(
    open_site: Callable[..., Site], browser: Browser, restarts: bool
) -> None:
    site = open_site()
    site.run()
    site.commit(web=f"# moved down\n{WORKLOAD}")
    if restarts:
        site.restart()
    site.run()
    page = browser.new_page()
    page.goto(f"http://localhost:{site.port}/")
    page.locator("#fleet-window tbody th").first.click()
    text = page.get_by_role("dialog").inner_text()
    assert "web.yaml:2" in text
    assert "PropagationPolicy/shop/web (policy.yaml:1)" in text


def test_a_workload_that_leaves_a_drained_cluster_says_so(open_site: Callable[..., Site]) -> None:
    site = open_site()
    site.commit(two=CLUSTER.format(name="two", owner="private"), policy=POLICY)
    site.run()
    drained = CLUSTER.format(name="one", owner="private").replace(
        "spec:\n", "spec:\n  taints: [{key: gitsched.io/drain, effect: NoExecute}]\n", 1
    )
    site.commit(one=drained)
    site.run()
    text = site.get("/")[1]
    assert "it leaves one, which is drained (PropagationPolicy/shop/web" in text.partition('<section id="changes"')[2]
    assert '<li class="warning"><a href="#map">one drained</a></li>' in text


def test_the_log_counts_a_workload_whose_change_is_withheld_as_placed(
    open_site: Callable[..., Site], caplog: pytest.LogCaptureFixture
) -> None:
    site, log = open_site(), RunLog()
    site.run()
    set_freeze(site.settings, "audit week")
    site.commit(policy=POLICY.replace("name: web}", "name: api}"))
    with caplog.at_level(logging.INFO, logger="gitsched"):
        site.run()
        log.write(make_review(site.last))
    assert caplog.messages[-1].endswith("; 1 of 1 workloads placed")
    assert "<h1>1 workload placed on 1 cluster</h1>" in site.get("/")[1]


def test_a_removed_cluster_on_which_workloads_stay_is_called_removed(open_site: Callable[..., Site]) -> None:
    site = open_site()
    site.commit(two=CLUSTER.format(name="two", owner="cloud"))
    site.run()
    set_freeze(site.settings, "audit week")
    (site.fleet / "one.yaml").unlink()
    site.commit()
    site.run()
    text = site.get("/")[1]
    assert ">one removed from the fleet</a>" in text
    assert '"removed":1,"unavailable":"it has no document any more"' in text
    assert "not available" not in text.partition("<h1>")[0]


def test_a_frozen_fleet_names_who_froze_it_and_since_when(open_site: Callable[..., Site]) -> None:
    site = open_site()
    site.run()
    set_freeze(site.settings, "audit week")
    site.run()
    text = site.get("/")[1]
    since = r"since 20\d\d-\d\d-\d\d"
    assert re.search(rf">frozen: audit week \(\w[\w ]+ {since}\)</a>", text)
    assert re.search(
        rf"Placements are frozen: audit week \(\w[\w ]+, {since}T[^,]+, by the file FREEZE of the branch placements\)", text
    )


@pytest.mark.needs("browser")
def test_a_page_in_a_browser_follows_the_fleet(open_site: Callable[..., Site], browser: Browser) -> None:
    site = open_site()
    site.run()
    errors: list[str] = []
    page = browser.new_context(bypass_csp=True).new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"http://localhost:{site.port}/")
    expect(page.locator("#live-status")).to_have_text("live")
    expect(page.locator("#live-age")).to_have_text(re.compile(r"Last run \d+ s ago\."))
    assert Axe().run(page).violations_count == 0
    site.pages.report_failure(Temporary("the remote does not answer"))
    expect(page.get_by_role("alert")).to_have_text("The last run failed: the remote does not answer")
    expect(page.locator("#live-since")).to_have_text(re.compile(r"This page shows the run that succeeded \d+ s ago\."))
    assert Axe().run(page).violations_count == 0
    site.run()
    expect(page.locator("#live-failure")).to_be_hidden()
    page.get_by_role("link", name="History").click()
    expect(page.locator(".entry")).to_have_count(1)
    assert Axe().run(page).violations_count == 0
    site.commit(web=WORKLOAD.replace("replicas: 2", "replicas: 3"))
    site.run()
    expect(page.locator(".entry")).to_have_count(2)
    page.get_by_label("Workload").fill("nothing")
    expect(page.locator("#history-count")).to_have_text("0 commits, 0 changes; the filter leaves out 2 commits")
    expect(page.locator("#history-none")).to_contain_text("No commit of this page changed nothing.")
    site.commit(web=WORKLOAD.replace("replicas: 2", "replicas: 4"))
    site.run()
    page.get_by_role("button", name="The fleet has changed: show it").click()
    expect(page.locator(".entry")).to_have_count(3)
    page.get_by_label("Workload").fill("api")
    page.locator("#history-none").get_by_role("button", name="Show all").click()
    expect(page.locator("#history-none")).to_be_hidden()
    page.get_by_role("link", name="Fleet").click()
    page.locator("#fleet-window tbody th").click()
    page.get_by_role("link", name="Its history").click()
    expect(page.get_by_label("Workload")).to_have_value("Deployment shop/web")
    expect(page.locator("#history-count")).to_have_text("3 commits, 3 changes")
    assert errors == []
