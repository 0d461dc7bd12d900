"""Whether a run may plan its source commit after that of the last run: an older commit, or one of another branch, would take back what
was decided since, and one that is not merged yet is not meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.git.commit_order import compare_commits
from gitsched.git.remote_refs import list_remote_refs
from gitsched.model.errors import GitschedError, Permanent
from gitsched.model.finding import Finding
from gitsched.report.lines import abbreviate_oid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitsched.git.source import SourceRepository
    from gitsched.reconcile.run import Fetched, RunContext

_HEADS, _TRACKING = "refs/heads/", "refs/remotes/origin/"
MAX_BRANCHES = 1_000
"""Branches of a clone, and of its origin, that are searched for the source commit of the last run."""


def check_source_order(context: RunContext, fetched: Fetched) -> tuple[Finding, ...]:
    """Return findings about a source commit that does not have that of the last run in its history. Raise Permanent if the run must not
    plan it: an older commit without the option --allow-older, and one of another branch without --branch, also if it follows."""
    settings, source, planned, last = context.settings, context.source, fetched.source, fetched.reconciled
    order = compare_commits(source, planned.oid, last.source)
    if order == "later":
        _check_branch(context, fetched)
        return ()
    subject = f"commit {abbreviate_oid(planned.oid)}{f' of branch {fetched.branch}' if fetched.branch else ''}"
    recorded = f" for branch {last.branch}" if last.branch not in ("", fetched.branch) else ""
    newest = f"commit {abbreviate_oid(last.source)}, which was reconciled last{recorded}"
    if order == "earlier" or (order == "unknown" and _is_dated_earlier(source, planned.oid, last.source)):
        how = "is older than" if order == "earlier" else "is dated before, and may not have,"
        if not settings.choices.allow_older:
            cure = (
                f"Merge branch {last.branch}, or pass --allow-older"
                if recorded and fetched.branch
                else "If this job was started again, or a later one was faster, nothing is to be done; to go back, revert with a new "
                "commit, or pass --allow-older"
            )
            raise Permanent(f"{subject} {how} {newest}: a run would take back what came since. {cure}")
        return (Finding("warning", "source-older", f"{subject} {how} {newest}: what came since is taken back"),)
    why, verb = _find_conflict(source, fetched), "does not have" if order == "diverged" else "may not have"
    is_other = fetched.branch != last.branch
    if why and not (settings.choices.allow_older or (settings.branch is not None and is_other)):
        choice = _describe_choice(fetched) if is_other else "--allow-older"
        raise Permanent(f"{subject} {verb} {newest} ({why}): a run would take it back. Merge that commit, or pass {choice}")
    if order == "unknown":
        message = (
            f"it is not known whether {subject} has {newest} in its history: this clone lacks the commits between them, and the "
            "remote does not send them; fetch the whole history (git fetch --unshallow, or fetch-depth: 0 of actions/checkout)"
        )
        return (Finding("info", "source-order-unknown", message),)
    why = why or _find_branch(source, fetched) or "no branch is known to have it, as after a force-push"
    return (Finding("warning", "source-diverged", f"{subject} does not have {newest} ({why}): it is taken back"),)


def _check_branch(context: RunContext, fetched: Fetched) -> None:
    """Raise Permanent if a commit that follows that of the last run is not merged into the reconciled branch, and nothing names its own."""
    is_other = fetched.branch != fetched.reconciled.branch and not context.settings.choices.allow_older
    if is_other and not _is_named(context, fetched) and _is_unmerged(context.source, fetched):
        raise Permanent(f"{_describe_place(fetched)}: merge it, or pass {_describe_choice(fetched)}")


def describe_unmerged(context: RunContext, fetched: Fetched) -> str:
    """Return that a run refuses the planned commit until its branch is merged into the reconciled one, as far as this clone shows; ""
    where it does not."""
    source, branch, planned = context.source, fetched.other_branch, fetched.source.oid
    if not branch or not planned or context.settings.choices.allow_older or _is_named(context, fetched):
        return ""
    names = f"{_HEADS}{branch}", f"{_TRACKING}{branch}"
    heads = [oid for prefix in names for name, oid in source.repository.list_refs(prefix) if name == prefix]
    is_unmerged = bool(heads) and all(compare_commits(source, head, planned) in ("earlier", "diverged") for head in heads)
    return f"The {_describe_place(fetched)}: gitsched reconcile refuses it until it is merged." if is_unmerged else ""


def _describe_place(fetched: Fetched) -> str:
    of_branch = f" of branch {fetched.branch}" if fetched.branch else ""
    return (
        f"commit {abbreviate_oid(fetched.source.oid)}{of_branch} is not on branch {fetched.reconciled.branch}, which is reconciled"
    )


def _describe_choice(fetched: Fetched) -> str:
    return f"--branch {fetched.branch or 'NAME'} to reconcile this branch from now on"


def _is_named(context: RunContext, fetched: Fetched) -> bool:
    """Return whether --branch, or gitsched.yaml on another branch, names the branch of the planned commit."""
    return context.settings.branch is not None or context.source.find_head(None).name not in (None, fetched.branch)


def _is_unmerged(source: SourceRepository, fetched: Fetched) -> bool:
    """Return whether the reconciled branch exists and does not have the planned commit, as far as that is known."""
    branch, planned = fetched.reconciled.branch, fetched.source.oid
    heads = _list_heads(source, branch).values() if branch else ()
    return bool(heads) and all(compare_commits(source, head, planned) in ("earlier", "diverged") for head in heads)


def _is_dated_earlier(source: SourceRepository, planned: str, last: str) -> bool:
    repository = source.repository
    return repository.has_commit(last) and repository.commit(planned).time < repository.commit(last).time


def _find_conflict(source: SourceRepository, fetched: Fetched) -> str:
    """Return why the planned commit does not replace that of the last run: another commit of the reconciled branch has that, or the planned
    one is not on this branch; "" otherwise, as after a force-push, or for a branch that was renamed.

    Where the reconciled branch is not known, or does not exist, every branch counts that has the commit of the last run.
    """
    planned, reconciled = fetched.source.oid, fetched.reconciled.branch
    heads = _list_heads(source, reconciled) if reconciled else {}
    if not heads:
        return _find_branch(source, fetched)
    for name, head in heads.items():
        if head != planned and compare_commits(source, head, fetched.reconciled.source) == "later":
            return f"it is on {name}"
    is_on_branch = reconciled == fetched.branch or any(compare_commits(source, head, planned) == "later" for head in heads.values())
    return "" if is_on_branch else f"branch {reconciled} does not have commit {abbreviate_oid(planned)}"


def _find_branch(source: SourceRepository, fetched: Fetched) -> str:
    """Return which other branch is known to have the source commit of the last run; "" if none is."""
    planned, last, repository = fetched.source.oid, fetched.reconciled.source, source.repository
    heads = _list_heads(source, "*").items()
    return next((f"it is on {name}" for name, head in heads if head != planned and repository.has_ancestor(head, last)), "")


def _list_heads(source: SourceRepository, branch: str) -> Mapping[str, str]:
    """Return the heads of a branch, or of all for `*`, by what a message calls them: those of the remote, and of a local repository. Where
    the remote does not answer, its branches are those of the last fetch."""
    repository, local = source.repository, source.url is None
    url = source.find_url()
    prefix = _HEADS
    try:
        remote = sorted(list_remote_refs(url, [_HEADS + branch], repository=repository).items()) if url is not None else []
    except GitschedError:
        prefix, remote = _TRACKING, repository.list_refs(_TRACKING)
    found: dict[str, str] = {}
    for start, refs in ((prefix, remote), (_HEADS, repository.list_refs(_HEADS) if local else [])):
        names = ((ref.removeprefix(start), oid) for ref, oid in refs if ref.startswith(start))
        place = "origin/" if refs is remote and local else "branch "
        chosen = [(name, oid) for name, oid in names if branch in ("*", name)][:MAX_BRANCHES]
        found |= {f"{place}{name}": oid for name, oid in chosen}
    return found
