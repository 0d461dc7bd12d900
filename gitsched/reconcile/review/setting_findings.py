"""Report the settings of the planned commit: how they differ from the trusted ones, which of them have no effect because the operator has
not confirmed them, and whether the commit is signed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from gitsched.apis.gitsched.config import FILE, Config
from gitsched.apis.gitsched.output_config import OutputConfig
from gitsched.decide.catalog import make_origin
from gitsched.diff.setting_changes import list_setting_changes
from gitsched.git.signatures import verify_commit
from gitsched.git.urls import identify_repository, redact
from gitsched.model.allow_list import OPERATOR_FILE
from gitsched.model.changes import SettingChange
from gitsched.model.errors import Permanent
from gitsched.model.finding import FieldOrigin, Finding, Location, Pointer
from gitsched.reconcile.run import Fetched, RunContext, SettingReport
from gitsched.reconcile.run_settings import RunSettings
from gitsched.reconcile.source.config_file import read_config_document
from gitsched.reconcile.source.source_locations import RuleLocations, locate_finding_rules

_TOP = Location(FILE, 1, 1)


def report_settings(context: RunContext, fetched: Fetched, config: Config, *, refuses: bool) -> SettingReport:
    """Compare the settings of the planned commit with the trusted ones and with those of the operator.

    With `refuses`, as in a run that writes, raise Permanent where a run may not write; otherwise that is a finding.
    """
    changes = _list_changes(context, fetched)
    findings = list(_list_ignored(context, fetched, config, refuses=refuses))
    ignored = {finding.field.pointer[1:] for finding in findings if finding.field is not None}
    findings += _list_sensitive(context, fetched, [change for change in changes if not _is_below(change, ignored)])
    named = config.output.repository
    if refuses and fetched.record is None and named and not context.settings.output:
        raise Permanent(
            f"output.repository of {FILE} is {redact(named)[:200]}, and the operator does not name it: nothing is written, there or "
            f"elsewhere. {_say_how_to_confirm('--output-repository', 'output.repository', redact(named)[:200])}"
        )
    keys = choose_source_keys(context, fetched, config)
    reason = find_signature_problem(context, fetched, keys) if keys and fetched.source.oid else ""
    if reason:
        message = f"the source commit {fetched.source.oid[:12]} is not accepted: {reason}; one of the listed keys must sign it"
        if refuses:
            raise Permanent(message)
        findings.append(Finding("warning", "source-unsigned", f"{message}. A run refuses it", is_change=True))
    return SettingReport(tuple(changes), locate_finding_rules(findings, RuleLocations(context.source.repository)))


def check_signature(context: RunContext, fetched: Fetched) -> None:
    """Raise Permanent if the operator or the trusted settings require a signature, and the source commit has none of a listed key."""
    keys = choose_source_keys(context, fetched, fetched.trusted.config)
    reason = find_signature_problem(context, fetched, keys) if keys else ""
    if reason:
        raise Permanent(
            f"the source commit {fetched.source.oid[:12]} is not accepted: {reason}; one of the listed keys must sign it"
        )


def choose_source_keys(context: RunContext, fetched: Fetched, config: Config) -> tuple[str, ...]:
    """Return the public keys of which one must sign the source commit: those of the operator, else the trusted ones, else those that the
    planned commit adds."""
    if context.settings.source_keys is not None:
        return context.settings.source_keys
    return fetched.trusted.config.source.verify_keys or config.source.verify_keys


def find_signature_problem(context: RunContext, fetched: Fetched, keys: tuple[str, ...]) -> str:
    """Return why none of the keys signed the source commit, or ""."""
    repository, commit = context.source.repository, fetched.source
    if not repository.has(commit.oid):
        return "it is not available"
    return verify_commit(repository, commit.oid, keys).reason


def _list_changes(context: RunContext, fetched: Fetched) -> list[SettingChange]:
    trusted = fetched.trusted.commit
    if trusted is None or trusted.tree == fetched.source.tree:
        return []
    repository, cache = context.source.repository, context.caches.files
    found = [read_config_document(repository, tree, cache) for tree in (trusted.tree, fetched.source.tree)]
    before, after = ((document.body.get("spec") or {}) if document is not None else {} for document in found)
    return list_setting_changes(before, after) if before != after else []


def _is_below(change: SettingChange, members: Collection[Pointer]) -> bool:
    path = tuple(change.change.path.split("."))
    return any(path[: len(member)] == member for member in members)


def _list_sensitive(context: RunContext, fetched: Fetched, changes: Iterable[SettingChange]) -> Iterator[Finding]:
    """Yield a finding for sensitive changes that do the same."""
    groups: dict[str, list[SettingChange]] = {}
    for change in changes:
        if change.sensitive:
            groups.setdefault(change.effect, []).append(change)
    for effect, group in groups.items():
        field = find_field(context, fetched, group[0].change.path)
        message = f"{'; '.join(change.text for change in group)}. {effect}"
        yield Finding("warning", "sensitive-setting", message, _TOP, None, field, is_change=True)


def find_field(context: RunContext, fetched: Fetched, path: str) -> FieldOrigin | None:
    """Return where a member of gitsched.yaml is, or the nearest one around it; None without a valid file."""
    repository = context.source.repository
    document = read_config_document(repository, fetched.source.tree, context.caches.files)
    entry = repository.find_entry(fetched.source.tree, FILE)
    if document is None or entry is None:
        return None
    return FieldOrigin(make_origin(document, FILE, entry[0]), ("spec", *path.split(".")))


def _list_ignored_pushes(
    report: Callable[[str, str, str], Finding], settings: RunSettings, named: OutputConfig, *, refuses: bool, is_local: bool
) -> Iterator[Finding]:
    """Yield findings where output.push has no effect, or narrows an option."""
    if named.push and is_local and not settings.push:
        cure = _say_how_to_confirm("--push", "output.push", "origin")
        message = f"output.push is true, and the operator has not confirmed it: decisions are not pushed to origin. {cure}"
        yield report("setting-ignored", "output.push", message)
    if named.push is False and not (is_local or settings.push):
        message = (
            "output.push is false, which has no effect for a repository at a URL: decisions are always pushed there; remove it"
        )
        yield report("setting-ignored", "output.push", message)
    if refuses and is_local and settings.push:
        message = f"output.push is false: decisions stay in this repository, although the operator names {settings.push} to push them to; "
        yield report("push-disabled", "output.push", f"{message}remove output.push from {FILE} to push them")


def _list_ignored(context: RunContext, fetched: Fetched, config: Config, *, refuses: bool) -> Iterator[Finding]:
    """Yield a finding for each setting that has no effect because only the operator decides about it, or that narrows an option."""
    settings, named, output = context.settings, config.output, fetched.output
    place = fetched.prefix.rstrip("/")

    def report(code: str, member: str, message: str) -> Finding:
        return Finding("warning", code, message, _TOP, None, find_field(context, fetched, member))

    def report_unconfirmed(member: str, value: str, instead: str, option: str) -> Finding:
        cure = _say_how_to_confirm(option, member, value)
        return report("setting-ignored", member, f"{member} is {value}, and the operator has not confirmed it: {instead}. {cure}")

    if named.repository and not _is_same_repository(named.repository, settings.output):
        where = redact(settings.output) if settings.output else "the source repository, if a run has put some there"
        yield report_unconfirmed(
            "output.repository", redact(named.repository)[:200], f"decisions go to {where}", "--output-repository"
        )
    if settings.output_branch is None and named.branch.removeprefix("refs/heads/") != output.branch:
        where = f"{output.branch}{f' in {place}' if place else ''}"
        instead = f"decisions stay on the branch {where}, where earlier runs have put them"
        yield report_unconfirmed("output.branch", named.branch, instead, "--output-branch")
    if settings.output_path is None and named.path != place:
        message = f"output.path is {named.path or 'the root'}, and the operator has not confirmed it: decisions stay in "
        cure = f"To confirm it: output.path: '{named.path}' in {OPERATOR_FILE}"
        yield report("setting-ignored", "output.path", f"{message}{place or 'the root'}. {cure}")
    yield from _list_ignored_pushes(report, settings, named, refuses=refuses, is_local=output.remote is None)
    if named.signing is not None and tuple(named.signing) != settings.signing:
        shown = f"{named.signing.format}:{named.signing.key}"[:200]
        instead = "commits are signed with the key of the operator" if settings.signing else "commits are not signed"
        yield report_unconfirmed("output.signing", shown, instead, "--sign")


def _is_same_repository(one: str, other: str | None) -> bool:
    return other is not None and (one == other or identify_repository(one) == identify_repository(other))


def _say_how_to_confirm(option: str, member: str, value: str) -> str:
    return f"To confirm it: {option} {value}, or {member} in {OPERATOR_FILE}"
