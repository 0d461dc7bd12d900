"""gitsched export: decisions and directions for programs that do not read the output branch by themselves."""

from __future__ import annotations

from importlib import import_module

import click

FORMS = {
    "flux": "Print the objects with which Flux takes a cluster's directory.",
    "argocd": "Print the ApplicationSet with which Argo CD takes every directory.",
    "knative": "Print what only an API server can take, as patches.",
}


class Forms(click.Group):
    """One command a consumer; only the one that is called is imported."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(FORMS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in FORMS:
            return None
        module = import_module("gitsched.cli.patching" if name == "knative" else "gitsched.cli.consuming")
        command: click.Command = getattr(module, name)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(FORMS.items()))


@click.group("export", cls=Forms)
def command() -> None:
    """Print what other programs need besides the output branch. Writes nothing to Git."""
