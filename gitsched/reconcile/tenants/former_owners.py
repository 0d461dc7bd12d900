"""Find the tenant whose path had the document of an object that the source no longer has."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import chain, islice
from typing import Final

from gitsched.apis.gitsched.tenancy import PLATFORM
from gitsched.decide.catalog import KindScopes
from gitsched.decide.guard.change_owners import FindOwner
from gitsched.model.document import Key
from gitsched.reconcile.run import Fetched, RunContext
from gitsched.reconcile.source.source_notes import list_earlier_sources
from gitsched.reconcile.source.source_tree import read_source_tree

MAX_COMMITS: Final = 5
"""Source commits of earlier runs that are searched, the newest first."""


def make_owner_finder(context: RunContext, fetched: Fetched) -> FindOwner:
    """Return a function that returns the owner of an object in the newest earlier source commit that has it, PLATFORM for the platform;
    None if no available commit has it. Commits are read on demand."""
    source = context.source
    trusted = (fetched.trusted.commit.oid,) if fetched.trusted.commit is not None else ()
    tenants = fetched.base_tenants if fetched.base_tenants is not None else fetched.record.tenants if fetched.record else ()

    @cache
    def list_owners(oid: str) -> Mapping[Key, str]:
        tree = source.repository.commit(oid).tree
        read = read_source_tree(source.repository, tree, context.caches.files, None, context.settings.paths, tenants=tenants)
        scopes = KindScopes(list(read.source_tree.documents), read.source_tree.config.kinds)
        keys = (scopes.resolve(document).key for document in read.source_tree.documents)
        tenancy = read.source_tree.tenancy
        return {key: tenancy.find_owner(key) if tenancy is not None else PLATFORM for key in keys}

    @cache
    def list_commits() -> tuple[str, ...]:
        earlier = dict.fromkeys(chain(trusted, list_earlier_sources(fetched)))
        return tuple(
            islice((oid for oid in earlier if oid and oid != fetched.source.oid and source.fetch_commit(oid)), MAX_COMMITS)
        )

    def find_owner(key: Key) -> str | None:
        return next((owners[key] for oid in list_commits() if key in (owners := list_owners(oid))), None)

    return find_owner
