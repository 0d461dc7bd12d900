"""Completion of shells: the words that an argument or option can have, from a local repository and the documentation.

Nothing is planned and no remote is contacted. What cannot be read has no words; a shell shows no errors here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import redirect_stderr
from io import StringIO
from itertools import islice
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from gitsched.cli.documentation import read_documentation
from gitsched.cli.workload_names import KINDS, SHORT_NAMES, parse_kind
from gitsched.reconcile.output.recorded_names import RecordedNames
from gitsched.report.finding_codes import read_codes

MAX_SHOWN_WORDS = 1_000
"""Words that are offered; a longer beginning selects among more."""

_CACHE = "gitsched.cli.completion.cache"
_SCOPES = ("node/", "zone/", "region/", "provider/")


def complete(words: str, ctx: click.Context, incomplete: str, cache: Path) -> list[CompletionItem]:
    """Return the words of a kind that start with what is typed; none where they cannot be read. "directories" is left to the shell.

    `cache` is the cache directory of commands without an option for it.
    """
    if words == "directories":
        return [CompletionItem(incomplete, type="dir")]
    try:
        ctx.meta[_CACHE] = cache
        with redirect_stderr(StringIO()):
            found = sorted({word for word in _WORDS[words](ctx, incomplete) if word.startswith(incomplete)})
    except Exception:  # noqa: BLE001 - a shell has no place for an error
        return []
    return [CompletionItem(word) for word in found[:MAX_SHOWN_WORDS] if word.isprintable()]


def _open_names(ctx: click.Context) -> RecordedNames:
    chosen = {**ctx.find_root().params, **{name: value for name, value in ctx.params.items() if value is not None}}
    cache = chosen.get("cache") or ctx.meta[_CACHE]
    return RecordedNames(str(chosen.get("location") or "."), cache, chosen.get("output_repository"), chosen.get("output_branch"))


def _list_workloads(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Yield KIND/NAME in the namespace of -n, or in `default`, and KIND/NAMESPACE/NAME of all namespaces without -n.

    The kind is the way in which what is typed spells it.
    """
    typed, slash, _ = incomplete.partition("/")
    kind, namespace = parse_kind(typed).lower(), ctx.params.get("namespace")
    for key in _open_names(ctx).read_workloads():
        if slash and kind not in (key.kind, f"{key.kind}.{key.group}"):
            continue
        spelling = typed if slash else key.kind
        if key.namespace in ("", namespace or "default"):
            yield f"{spelling}/{key.name}"
        if namespace is None:
            yield f"{spelling}/{key.namespace}/{key.name}"


def _list_explained(ctx: click.Context, incomplete: str) -> Iterable[str]:
    yield from (f"cluster/{name}" for name in _open_names(ctx).list_clusters())
    yield from _list_workloads(ctx, incomplete)
    if "/" not in incomplete and not any(True for _ in _open_names(ctx).read_workloads()):
        yield from (f"{kind.lower()}/" for kind in (*SHORT_NAMES.values(), *KINDS))


def _list_names(ctx: click.Context, _incomplete: str) -> Iterable[str]:
    """Yield what selects workloads in `history`: KIND/NAMESPACE/NAME, NAMESPACE/NAME and NAME."""
    for key in _open_names(ctx).read_workloads():
        yield from (f"{key.kind}/{key.namespace}/{key.name}", f"{key.namespace}/{key.name}", key.name)


def _list_tree_roots(ctx: click.Context, incomplete: str) -> Iterable[str]:
    yield from _open_names(ctx).list_clusters()
    yield from _list_workloads(ctx, incomplete)


def _list_targets(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Yield revisions, and the files and directories that continue a path."""
    yield from _open_names(ctx).list_revisions()
    directory = Path(incomplete).parent if not incomplete.endswith("/") else Path(incomplete)
    for path in islice(directory.iterdir(), MAX_SHOWN_WORDS):
        yield f"{path}/" if path.is_dir() else str(path)


def _list_codes(_ctx: click.Context, _incomplete: str) -> Iterable[str]:
    return (meaning.code for meaning in read_codes(read_documentation("findings.md")))


_WORDS: dict[str, Callable[[click.Context, str], Iterable[str]]] = {
    "branches": lambda ctx, _: _open_names(ctx).list_branches(),
    "clusters": lambda ctx, _: _open_names(ctx).list_clusters(),
    "codes": _list_codes,
    "explained": _list_explained,
    "namespaces": lambda ctx, _: (key.namespace for key in _open_names(ctx).read_workloads() if key.namespace),
    "names": _list_names,
    "output branches": lambda ctx, _: _open_names(ctx).list_output_branches(),
    "remotes": lambda ctx, _: _open_names(ctx).list_remotes(),
    "revisions": lambda ctx, _: _open_names(ctx).list_revisions(),
    "scopes": lambda ctx, _: (*_open_names(ctx).list_clusters(), *_SCOPES),
    "targets": _list_targets,
    "tree roots": _list_tree_roots,
    "workloads": _list_workloads,
}
