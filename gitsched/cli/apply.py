"""gitsched apply: set values that only an API server can take, such as a status, in a cluster with kubectl."""

from __future__ import annotations

import click

from gitsched.apis.live_apply import LiveApply
from gitsched.apis.policy_api import PolicyAPI
from gitsched.cli import LazyCommand, options
from gitsched.decide.registry import policy_apis


def _read_prefix(_ctx: click.Context, _parameter: click.Parameter, value: str) -> str:
    path = value.strip("/")
    return f"{path}/" if path else ""


def make_apply_command(api: PolicyAPI, apply: LiveApply) -> click.Command:
    """Return the command that applies the records of a policy API."""

    @click.command(
        api.name,
        cls=LazyCommand,
        module="apply",
        given={"apply": apply},
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
    def run_apply() -> None:
        pass  # see LazyCommand

    options.add_environment_variables(run_apply)
    return run_apply


_APPLICABLE = {api.name: (api, api.commands.apply) for api in policy_apis.values() if api.commands.apply is not None}


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
