"""gitsched init: write a small fleet that works, or what a repository needs to place the workloads that it has."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gitsched.apis.policy_api import GroupKind, StarterFiles
from gitsched.cli import exit_codes, formats, options, output
from gitsched.cli.commands.schemas import list_editor_files
from gitsched.cli.init import list_starters
from gitsched.cli.worktree import find_worktree_root
from gitsched.decide.registry import policy_apis, reserved_groups
from gitsched.git.process import run_git
from gitsched.git.worktree_commit import check_commit, commit_files, create_repository
from gitsched.layouts.kept_files import describe_missing, list_missing
from gitsched.layouts.proposal import (
    BUNDLES,
    DIRECTORY,
    describe_layout,
    list_cluster_metadata,
    write_bundles,
    write_source_settings,
)
from gitsched.model.errors import Permanent
from gitsched.model.finding import format_count
from gitsched.model.system_errors import make_write_error
from gitsched.reconcile import RunSettings, validate_source
from gitsched.reconcile.adoption.repository_layout import (
    DocumentKinds,
    copy_files,
    leave_out_errors,
    list_new_errors,
    read_worktree,
    recognize_layout_of,
)
from gitsched.reconcile.worktree_file import create_file, replace_file, resolve_worktree_file
from gitsched.report.consequences import describe_unplaced_objects
from gitsched.temporary_directory import TemporaryDirectory

if TYPE_CHECKING:
    from gitsched.model.document import Body
    from gitsched.model.finding import Finding
    from gitsched.reconcile.adoption.repository_layout import RecognizedLayout
    from gitsched.reconcile.reconciler import ValidatedSource


_CONFIG = """\
# yaml-language-server: $schema=.gitsched/schema.json
# Settings of gitsched. All settings have defaults: spec may be empty, and this file may be missing.
# The first line is for editors; `gitsched schemas --write .gitsched/schema.json` writes the schema, which Git ignores.
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata:
  name: gitsched
spec:
{source}  output:
    branch: placements # where decisions are committed; never the source branch
  guard:
    holdStateful: true # workloads with volumes stay in their clusters until they are released
"""


MAX_VALIDATIONS = 6
"""How often a proposal is validated."""


MAX_SHOWN_ERRORS = 3
"""Errors that a proposal leaves and that are shown."""


MAX_CLUSTERS = 100
"""Clusters that are written for policies that name them."""


MAX_LOOKED_AT = 100
"""Manifests of a directory that is not a repository among which one is looked for that gitsched did not write."""


CLUSTERS, POLICIES = "fleet/clusters.yaml", "fleet/policies.yaml"


COMMIT_MESSAGE = "Describe the fleet"


_TRACKING = "refs/remotes/origin/"
CUT_OVER = "see docs/cut-over.md"
_STEPS = """
Next:
{steps}

See {page} of gitsched. For policies of {others}, use --api.
"""


def run(api: str | None, clusters: Mapping[str, str], dry_run: bool, commits: bool, directory: Path) -> int:
    """Carry out the command, and return its exit code."""
    if dry_run and commits:
        raise click.UsageError("--dry-run writes nothing, so it cannot be used with --commit")
    top = directory.resolve()
    root = find_worktree_root(str(next(path for path in (top, *top.parents) if path.exists())))
    if root is not None and root != top:
        raise click.UsageError(
            f"{directory} is inside of the repository {root}, and gitsched.yaml belongs at its top: gitsched init {root}"
        )
    if not dry_run:
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise make_write_error(directory, error) from error
    if commits:
        check_commit(top)
        if root is None:
            root = top
            create_repository(root)
    try:
        api, found = _recognize(root, api, clusters)
    except Permanent as error:
        raise click.ClickException(str(error)) from error
    if root is None and (manifest := _find_manifest(directory)) is not None:
        raise click.UsageError(f"{directory} has manifests ({manifest}), but is not a repository: run `git init` there first")
    if dry_run:
        with TemporaryDirectory("proposal") as copy:
            _copy_worktree(root, copy)
            return _write(copy, api, found, dry_run=True)
    return _write(directory, api, found, commits=commits, has_repository=root is not None)


def _write(
    directory: Path,
    api: str,
    found: RecognizedLayout | None,
    *,
    dry_run: bool = False,
    commits: bool = False,
    has_repository: bool = True,
) -> int:
    """Write the proposal, without what has errors, and print what was written."""
    starter = list_starters()[api]()
    files, text = _propose(found, starter)
    validated = _validate(directory) if found is not None else None
    written = {name: write_new_file(directory, name, content) for name, content in files.items()}
    missing = _describe_missing(directory, found, files, [name for name in files if not written[name]])
    if found is not None and validated is not None and all(written.values()):
        files, text = _leave_out_errors(directory, found, starter, files, validated.findings)
    if dry_run:
        lines = [f"{'would write' if written.get(name, True) else 'would keep '} {name}" for name in files]
        contents = "".join(f"\n# {name}\n{content}" for name, content in files.items() if written.get(name, True))
        formats.show_text(text + "\n".join(lines) + "\n" + missing + contents)
        return exit_codes.DONE
    for name, content in list_editor_files().items():
        write_new_file(directory, name, content)
    lines = [f"{'wrote' if written.get(name, True) else 'kept '} {name}" for name in files]
    formats.show_text(text + "\n".join(lines) + "\n" + missing)
    if missing and not any(written.values()):
        formats.show_text("\nNothing was written: add these lines, and commit them.\n")
        return exit_codes.FINDINGS
    if commits and has_repository and commit_files(directory.resolve(), list(files), COMMIT_MESSAGE):
        formats.show_text("committed these files\n")
    *others, last = (name for name in list_starters() if name != api)
    steps = _list_steps(directory, found, has_repository=has_repository, committed=commits)
    width = max(len(step) for step, _ in steps)
    shown = _STEPS.format(
        steps="\n".join(f"  {step:<{width}}  {text}" for step, text in steps),
        page=starter.docs_page,
        others=f"{', '.join(others)} and {last}",
    )
    formats.show_text(shown)
    return exit_codes.DONE


def _describe_missing(directory: Path, found: RecognizedLayout | None, files: Mapping[str, str], kept: Iterable[str]) -> str:
    """Return what kept files lack of what the layout of the repository needs; "" if they have it."""
    if found is None or not _has_layout(found):
        return ""
    paths = ((name, resolve_worktree_file(directory, name)) for name in kept if not (directory / name).is_symlink())
    lacking = ((name, list_missing(name, path.read_bytes(), files[name])) for name, path in paths)
    return "".join(f"\n{describe_missing(name, documents)}" for name, documents in lacking if documents)


def _copy_worktree(root: Path | None, copy: Path) -> None:
    """Copy the files of a worktree that Git does not ignore, and the URLs of its remotes, into a new repository."""
    create_repository(copy)
    if root is None:
        return
    urls = run_git(["config", "--get-regexp", r"^remote\..*\.url$"], cwd=str(root))
    for name, _, url in (line.partition(" ") for line in urls.stdout.splitlines()):
        run_git(["config", "--add", name, url], cwd=str(copy))
    copy_files(root, copy)


def _list_steps(directory: Path, found: RecognizedLayout | None, *, has_repository: bool, committed: bool) -> list[tuple[str, str]]:
    """Return the commands that come next, each with what it does."""
    steps: list[tuple[str, str]] = []
    if directory.resolve() != Path.cwd():
        steps.append((f"cd {shlex.quote(str(directory))}", "the other commands work on the repository there"))
    if found is not None and not found.described:
        steps.append((f"edit {CLUSTERS}", "name your clusters, and keep the labels that policies select"))
    if not has_repository:
        steps.append(("git init", "gitsched reads the commits of a repository"))
    if not committed:
        steps.append((f'git add . && git commit -m "{COMMIT_MESSAGE}"', "gitsched schedules from commits"))
    return [
        *steps,
        ("gitsched plan", "show what would be placed where; writes nothing"),
        *_describe_branch(directory),
        ("gitsched reconcile", "commit the decisions to the branch `placements`"),
        ("git show placements:README.md", "look at the fleet"),
        *(
            [(CUT_OVER, "before it is delivered: disarm what delivers these clusters today, or it deletes objects")]
            if found is not None
            else ()
        ),
    ]


def _describe_branch(directory: Path) -> list[tuple[str, str]]:
    """Return the merge that comes before the first run where another branch than the default one is checked out."""

    def read(*arguments: str) -> str:
        return run_git([*arguments], cwd=str(directory)).stdout.strip()

    branch = read("symbolic-ref", "--quiet", "--short", "HEAD")
    default = read("symbolic-ref", "--quiet", "--short", f"{_TRACKING}HEAD").removeprefix("origin/")
    names = (default,) if default else ("main", "master")
    known = (name for name in names if read("for-each-ref", f"refs/heads/{name}", f"{_TRACKING}{name}"))
    default = next(known, branch)
    if not branch or branch == default:
        return []
    text = f"the first run chooses the branch that is reconciled: after one of {branch}, runs of {default} are refused until it is merged"
    return [(f"merge {branch} into {default}", text)]


def _find_manifest(directory: Path) -> str | None:
    """Return the path of a manifest below a directory that is not a repository; None if there is none among the first files."""
    found = islice((path for path in directory.rglob("*") if path.suffix in (".yaml", ".yml")), MAX_LOOKED_AT)
    names = (path.relative_to(directory).as_posix() for path in found)
    own = ("gitsched.yaml", CLUSTERS, POLICIES, *(name for load in list_starters().values() for name in load().workloads))
    return next((name for name in names if name not in own), None)


def _recognize(root: Path | None, api: str | None, clusters: Mapping[str, str]) -> tuple[str, RecognizedLayout | None]:
    """Return the policy API to write files for and what a repository has; None without a repository or documents."""
    default = next(iter(list_starters()))
    if root is None:
        return api or default, None

    worktree = read_worktree(root)
    missing = next((path for path in clusters if not any(entry.path.startswith(f"{path}/") for entry in worktree.entries)), None)
    if missing is not None:
        raise click.UsageError(f"--cluster {missing}={clusters[missing]}: the repository has no directory {missing}")
    groups = worktree.list_groups()
    api = api or next((name for name in list_starters() if not groups.isdisjoint(_list_groups(name))), default)
    starter, topology = list_starters()[api](), policy_apis[api].topology
    found = recognize_layout_of(
        worktree,
        DocumentKinds(
            (topology.group, topology.kind) if topology is not None else None,
            starter.policy_kinds,
            frozenset[GroupKind]().union(*(load().policy_kinds for load in list_starters().values())),
            reserved_groups,
            {"gitsched.yaml", CLUSTERS, POLICIES, *starter.workloads},
            clusters,
        ),
    )
    has_documents = bool(found.described or found.policies or found.kinds or found.layout.notes or found.other_tools)
    return api, found if has_documents or _has_layout(found) else None


def _list_groups(api: str) -> frozenset[str]:
    """Return the API groups by whose documents a policy API is recognized."""
    return policy_apis[api].groups | {group for group, _ in list_starters()[api]().policy_kinds}


def _has_layout(found: RecognizedLayout) -> bool:
    return bool(found.layout.recognitions or found.layout.build)


def _validate(directory: Path) -> ValidatedSource | None:
    """Return what is found about the files of a worktree; None if it cannot be validated, as without a program that builds it: the next
    command says so."""
    settings = RunSettings(
        datetime.now(UTC),
        options.find_cache_directory(),
        str(directory),
        worktree=True,
        observations="recorded",
        findings_only=True,
    )
    try:
        with output.show_progress("Validating the proposal"):
            return validate_source(settings)
    except Permanent:
        return None


def _leave_out_errors(
    directory: Path, found: RecognizedLayout, starter: StarterFiles, files: Mapping[str, str], before: Collection[Finding]
) -> tuple[Mapping[str, str], str]:
    """Validate the files that were written, and write them again without what causes errors that were not there `before`. Return the files
    and the text, with the workloads that nothing places."""
    errors: list[Finding] = []
    for _ in range(MAX_VALIDATIONS):
        validated = _validate(directory)
        errors = list_new_errors(validated.findings if validated is not None else (), before)
        left = leave_out_errors(found, files.get(BUNDLES, ""), errors)
        if left == found:
            break
        found = left
        changed, _text = _propose(found, starter)
        for name in files.keys() - changed.keys():
            (directory / name).unlink()
        for name, content in changed.items():
            if name in files:
                replace_file(directory / name, (directory / name).read_bytes(), content.encode())
            else:
                write_new_file(directory, name, content)
        files = changed
    else:
        validated = _validate(directory)
        errors = list_new_errors(validated.findings if validated is not None else (), before)
    shown = [f"{error.location}: {error.message}" for error in errors[:MAX_SHOWN_ERRORS]]
    shown += [f"and {len(errors) - MAX_SHOWN_ERRORS} more"] if len(errors) > MAX_SHOWN_ERRORS else []
    text = _propose(found, starter)[1] + _list_lines("Errors that gitsched validate shows now:", shown)
    unplaced = describe_unplaced_objects(validated.unselected) if validated is not None else []
    return files, text + _list_lines(f"Add a Bundle or a policy to {DIRECTORY} for what nothing places:", unplaced)


def _list_lines(title: str, lines: Iterable[str]) -> str:
    """Return a paragraph of lines below a title; "" without any."""
    listed = [f"  {line}" for line in lines]
    return "\n".join([title, *listed]) + "\n\n" if listed else ""


def _propose(found: RecognizedLayout | None, starter: StarterFiles) -> tuple[Mapping[str, str], str]:
    """Return the files to write, by path, and the text about what the repository has."""
    if found is None:
        files = {
            "gitsched.yaml": _CONFIG.format(source="") + starter.settings,
            CLUSTERS: starter.clusters,
        }
        return files | ({POLICIES: starter.policies} if starter.policies else {}) | dict(starter.workloads), ""

    layout, bundles = found.layout, starter.bundles
    source = write_source_settings(layout, found.hidden)
    files = {"gitsched.yaml": _CONFIG.format(source=source) + starter.settings}
    text = describe_layout(layout) + "\n\n" if _has_layout(found) else ""
    if layout.bundles and bundles is None:
        supported = " or ".join(f"--api {name}" for name, load in list_starters().items() if load().bundles is not None)
        text += f"Policies of this API do not place bundles, so no file is written for them; use {supported}.\n\n"
    clusters: Mapping[str, Body] = {}
    if layout.bundles and bundles is not None:
        files[BUNDLES] = write_bundles(layout, bundles.annotations, found.label)
        files[POLICIES] = bundles.policies
        clusters = list_cluster_metadata(layout, found.label, found.described)
    if clusters and bundles is not None:
        files[CLUSTERS] = bundles.write_clusters(clusters)
    elif not found.described:
        named, more = _list_named_clusters(found, starter)
        text += more
        files[CLUSTERS] = bundles.write_clusters(named) if named and bundles is not None else starter.clusters
    if BUNDLES not in files:
        files |= _list_missing_policies(found, starter)
    if not _has_layout(found):
        text += _describe_documents(found)
    text += _list_lines("Documents of other tools, which gitsched does not read:", found.other_tools)
    text += _list_lines("No policy is proposed for kinds whose objects would have errors then:", found.left_kinds)
    return files, text + _list_lines("Not considered:", layout.notes)


def _list_missing_policies(found: RecognizedLayout, starter: StarterFiles) -> dict[str, str]:
    """Return the policies and the example workload for a repository that has no policies."""
    if found.policies or (found.left_kinds and not found.kinds) or (found.layout.recognitions and not found.layout.build):
        return {}  # what is deployed is left out: a policy for the kinds of its parts would select what is no object
    if found.kinds and starter.write_policies is not None and not found.has_other_policies:
        return {POLICIES: starter.write_policies(found.kinds, sorted(found.described))}
    files = {POLICIES: starter.policies} if starter.policies else {}
    return files if found.kinds and starter.policies else files | dict(starter.workloads)


def _list_named_clusters(found: RecognizedLayout, starter: StarterFiles) -> tuple[dict[str, Body], str]:
    """Return the metadata of the clusters that the policies of a repository need, by name, and a text about those beyond the limit."""
    if starter.list_named_clusters is None:
        return {}, ""
    named: dict[str, Body] = {}
    for policy in found.policies:
        for name, metadata in starter.list_named_clusters(policy).items():
            named.setdefault(name, metadata)
    if len(named) <= MAX_CLUSTERS:
        return dict(sorted(named.items())), ""

    more = f"The policies name {format_count(len(named), 'cluster')}: only the first {MAX_CLUSTERS} are written.\n\n"
    return dict(islice(sorted(named.items()), MAX_CLUSTERS)), more


def _describe_documents(found: RecognizedLayout) -> str:
    counts = [
        (len(found.described), "cluster", "clusters"),
        (len(found.policies), "policy", "policies"),
        (len(found.kinds), "kind of workload", "kinds of workloads"),
    ]
    shown = ", ".join(format_count(count, *words) for count, *words in counts if count)
    return f"Recognized documents of {shown}; what is missing is written.\n\n" if shown else ""


def write_new_file(directory: Path, name: str, text: str) -> bool:
    """Write a file and return whether it was written; an existing file, even a dangling link, is not changed.

    Raises Permanent if a link, which a commit may have brought, leads out of the directory.
    """
    if (directory / name).is_symlink():
        return False
    try:
        create_file(resolve_worktree_file(directory, name), text)
    except FileExistsError:
        return False
    except OSError as error:
        raise make_write_error(directory / name, error) from error
    return True
