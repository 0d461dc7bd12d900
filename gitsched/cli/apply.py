"""gitsched apply: set values that only an API server can take, such as a status, in a cluster with kubectl."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gitsched.apis.live_apply import LiveApply
from gitsched.apis.policy_api import PolicyAPI
from gitsched.cli import exit_codes, options, output
from gitsched.decide.registry import policy_apis

if TYPE_CHECKING:
    from gitsched.model.merge_patch import ApplyReport


def _read_prefix(_ctx: click.Context, _parameter: click.Parameter, value: str) -> str:
    path = value.strip("/")
    return f"{path}/" if path else ""


def make_apply_command(api: PolicyAPI, apply: LiveApply) -> click.Command:
    """Return the command that applies the records of a policy API."""

    @click.command(
        api.name,
        help=apply.description,
        epilog=options.show_examples(
            ("Let the API server check the patches without storing them", f"apply {api.name} --dry-run"),
            ("Apply again whenever the output branch or the cluster changes", f"apply {api.name} --watch"),
        ),
    )
    @click.option(
        "-C",
        "--repo",
        "location",
        metavar="LOCATION",
        default=".",
        show_default=True,
        callback=options.read_location,
        help="Repository of the output branch: a path or a URL.",
    )
    @click.option(
        "--output-branch",
        "branch",
        metavar="NAME",
        default="placements",
        show_default=True,
        help="Output branch in that repository.",
    )
    @click.option(
        "--output-path", "prefix", metavar="PATH", default="", callback=_read_prefix, help="Directory of the output in the branch."
    )
    @click.option(
        "--cluster",
        metavar="NAME",
        default="",
        shell_complete=options.complete_with("clusters"),
        help="Only what is for this cluster; required if the output has several.",
    )
    @click.option(
        "--group", "groups", metavar="GROUP", multiple=True, help="Also patch sources of this API group; may be repeated."
    )
    @click.option("--scale", is_flag=True, help="Also set the replicas of StatefulSets: fewer only after all placements are set.")
    @click.option("--dry-run", is_flag=True, help="Send the patches to the API server, which checks but does not store them.")
    @click.option("--watch", "watching", is_flag=True, help="Continue: apply again when the branch or the cluster changes.")
    @click.option(
        "--interval",
        type=click.FloatRange(min=1),
        default=15.0,
        show_default=True,
        metavar="SECONDS",
        help="With --watch: how often to compare the branch and the cluster.",
    )
    @click.option("--context", metavar="NAME", default="", help="Context of the kubeconfig; kubectl's current one by default.")
    @options.KUBECTL
    @options.CACHE
    @options.FORMAT
    @options.LOG
    def run_apply(
        location: str,
        branch: str,
        prefix: str,
        cluster: str,
        groups: tuple[str, ...],
        scale: bool,
        dry_run: bool,
        watching: bool,
        interval: float,
        context: str,
        kubeconfig: str,
        executable: str,
        timeout: float,
        cache: Path,
        form: str,
        log_format: str,
    ) -> int:
        if watching and (dry_run or form != "text"):
            raise click.UsageError("--watch excludes --dry-run, and --output other than text")
        from gitsched.git import open_source
        from gitsched.kubectl.client import KubectlClient, KubectlOptions
        from gitsched.reconcile.output.live_apply import ApplyOptions, LiveApplier, apply_branch

        output.configure_logging(log_format)
        applier = LiveApplier(KubectlClient(KubectlOptions(context, kubeconfig, timeout, executable)), scale=scale)
        source = open_source(location, cache=cache)
        chosen = ApplyOptions(branch, prefix, cluster, frozenset(groups))

        def run() -> ApplyReport:
            return apply_branch(source, applier, apply, chosen, dry_run=dry_run)

        if watching:
            return _watch(run, timedelta(seconds=interval))
        report = run()
        from gitsched.report.live_apply import format_apply, make_apply_object

        output.show_as(form, lambda _: format_apply(report), lambda: make_apply_object(report))
        return get_apply_code(report)

    options.add_environment_variables(run_apply)
    return run_apply


def get_apply_code(report: ApplyReport) -> int:
    """Return the exit code for a result. An error that remains takes precedence over a temporary one."""
    if report.refused or report.list_state("failed"):
        return exit_codes.FINDINGS
    return exit_codes.TEMPORARY if report.list_state("temporary") else exit_codes.DONE


def _watch(run: Callable[[], ApplyReport], interval: timedelta) -> int:
    from gitsched.watch import Wakeup, handle_signals
    from gitsched.watch.apply_loop import watch_and_apply

    gc.enable()
    wakeup, known = Wakeup(), EventLog()
    with handle_signals(wakeup, timedelta(seconds=20)) as handler:
        if not handler.complete(lambda: watch_and_apply(run, interval=interval, listener=known.write, wakeup=wakeup)):
            output.LOGGER.warning("run aborted", extra={"fields": {"event": "abandoned"}})
    output.LOGGER.info("stopped", extra={"fields": {"event": "end"}})
    return exit_codes.INTERRUPTED if handler.signal_number == signal.SIGINT else exit_codes.DONE


class EventLog:
    """The log of --watch: a line for each event that the previous run did not have, and one for each commit."""

    def __init__(self) -> None:
        self._events: frozenset[str] = frozenset()
        self._commit = ""

    def write(self, report: ApplyReport) -> None:
        """Log what is new since the last run."""
        from gitsched.report.live_apply import format_apply, list_events

        events = list(list_events(report))
        for event in events:
            if event.startswith("set "):
                output.LOGGER.info("%s", event, extra={"fields": {"event": "apply"}})
            elif event not in self._events:
                output.LOGGER.warning("%s", event.removeprefix("warning: "), extra={"fields": {"event": "apply"}})
        if report.commit != self._commit:
            output.LOGGER.info("%s", format_apply(report).splitlines()[-1], extra={"fields": {"event": "applied"}})
        self._events, self._commit = frozenset(events), report.commit


_APPLICABLE = {api.name: (api, api.apply) for api in policy_apis.values() if api.apply is not None}


class AppliedApiGroup(click.Group):
    """A group with one command for each policy API whose decisions can be applied."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(_APPLICABLE)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        return make_apply_command(*_APPLICABLE[name]) if name in _APPLICABLE else None

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, apply.summary) for name, (_, apply) in _APPLICABLE.items()])


@click.group("apply", cls=AppliedApiGroup)
def command() -> None:
    """Set values in a cluster that only its API server can take, such as a status. Writes nothing to Git."""
