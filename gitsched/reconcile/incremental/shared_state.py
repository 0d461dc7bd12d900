"""Which state of a plan beside the output branch counts, and when a run writes one.

A state decides what the next run starts from, as the output branch does. So it is read only from the refs of the output repository, and
only where a key that the operator lists has signed it, or where the operator trusts whoever can push there with decisions.
"""

from __future__ import annotations

import logging
from hashlib import sha256
from typing import TYPE_CHECKING

from gitsched.git import make_signer
from gitsched.git.signatures import verify_commit
from gitsched.git.state_refs import StateRefs, fetch_source_tree
from gitsched.model.errors import GitschedError
from gitsched.reconcile.cache.plan_cache import PlanCache
from gitsched.reconcile.cache.plan_file import PlanFile
from gitsched.reconcile.cache.plan_tree import FORMAT, PlanTree, report_ignored
from gitsched.reconcile.cache.row_format import CorruptCacheError
from gitsched.reconcile.cache.storage import identify_build

if TYPE_CHECKING:
    from gitsched.reconcile.run import Fetched, RunContext

_log = logging.getLogger("gitsched.reconcile")


def open_shared_state(context: RunContext, fetched: Fetched) -> PlanCache | None:
    """Return the state for the head of the output; None if there is none that counts."""
    keys = _find_keys(context)
    if keys is None or fetched.output_tree is None:
        return None
    refs, problem = StateRefs(fetched.output, fetched.prefix), ""
    try:
        for commit in refs.list_plans():
            try:
                return _open(context, fetched, refs, commit, keys)
            except (CorruptCacheError, GitschedError) as error:
                problem = str(error)
            except _OtherStateError as error:
                _log.info("the state of the last plan at %s does not count: %s", refs.plan, error)
    except GitschedError as error:  # the private clone cannot be opened
        problem = str(error)
    if problem:
        report_ignored(refs, problem)
    return None


class _OtherStateError(Exception):
    """A state is valid, but not the one of this output."""


def _read(context: RunContext, fetched: Fetched, refs: StateRefs, commit: str, keys: tuple[str, ...]) -> PlanTree:
    """Return the state of a commit if it counts. Raise CorruptCacheError or another GitschedError otherwise."""
    if not refs.fetch(commit):
        raise CorruptCacheError(f"commit {commit} cannot be fetched")
    if keys:  # before anything else is read of it
        reason = verify_commit(refs.repository, commit, keys).reason
        if reason:
            raise CorruptCacheError(f"commit {commit[:12]} must be signed with a key that the operator lists, and {reason}")
    return PlanTree.open(refs, _make_key(context, fetched), commit)


def _open(context: RunContext, fetched: Fetched, refs: StateRefs, commit: str, keys: tuple[str, ...]) -> PlanCache:
    store = _read(context, fetched, refs, commit, keys)
    index = store.index
    assert index is not None
    if index.output != fetched.output_tree:
        raise _OtherStateError(f"it is that of the output tree {index.output:.12}")
    if index.key != store.key:
        raise CorruptCacheError("another build of gitsched wrote it, or one with other options")
    cache = PlanCache.open(store, fetched.cache_key, is_key_checked=True)
    if cache is None or (cache.header.output_tree, cache.header.source_tree) != (index.output, index.source):
        raise CorruptCacheError("its header does not belong to it")
    if not fetch_source_tree(context.source, index.source, refs.repository):
        raise CorruptCacheError(
            f"the tree {index.source:.12} of the source is neither in this clone nor sent by the remote; clone with a greater depth"
        )
    refs.keep(refs.plan, commit)
    return cache


def share_state(context: RunContext, fetched: Fetched) -> None:
    """Let the plan in the caches be stored beside the output branch, if it is complete or came from there. The output commit is published
    already, so a state that cannot be written is a warning."""
    try:
        _share_state(context, fetched)
    except (CorruptCacheError, GitschedError, OSError) as error:
        _log.warning("the state of this plan is not stored beside the output branch: %s", error)


def _share_state(context: RunContext, fetched: Fetched) -> None:
    cache = context.caches.plan
    keys = _find_keys(context)
    if cache is None or cache.store is None or keys is None or (keys and not context.settings.signing):
        return
    refs, signing = StateRefs(fetched.output, fetched.prefix), context.settings.signing
    signer = make_signer(refs.repository, format=signing[0], key=signing[1]) if signing else None
    trees = cache.header.output_tree, cache.header.source_tree
    if isinstance(cache.store, PlanTree):
        cache.store.refs = refs
        cache.store.describe(trees, fetched.source.time, signer)
        return
    tree = PlanTree(refs, _make_key(context, fetched))
    tree.describe(trees, fetched.source.time, signer)
    if cache.is_new:
        cache.store = tree
    elif isinstance(cache.store, PlanFile) and not _is_stored(context, fetched, refs, keys, trees):
        cache.move(cache.store, tree)  # otherwise other machines would plan everything as long as this one has its cache


def _is_stored(context: RunContext, fetched: Fetched, refs: StateRefs, keys: tuple[str, ...], trees: tuple[str, str]) -> bool:
    """Return whether a state of these output and source trees counts already."""
    for commit in refs.list_plans():
        try:
            index = _read(context, fetched, refs, commit, keys).index
        except (CorruptCacheError, GitschedError):
            continue
        if index is not None and (index.output, index.source) == trees:
            return True
    return False


def _find_keys(context: RunContext) -> tuple[str, ...] | None:
    """Return the keys of which one must sign a state; () if none has to, and None if no state counts.

    Without keys a state counts only where the operator says so: what forges protect are branches, not other refs, so everybody who can push
    a branch for a pull request can push a state. With keys, "on" requires a signature as well.
    """
    settings = context.settings
    if settings.state == "off" or (settings.state == "auto" and not settings.state_keys):
        return None
    return settings.state_keys


def _make_key(context: RunContext, fetched: Fetched) -> str:
    """Return what distinguishes states of the same output: the build of gitsched, and options that select what is read."""
    settings = context.settings
    parts = (identify_build(), str(FORMAT), fetched.prefix, str(settings.strict), *settings.paths)
    return sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
