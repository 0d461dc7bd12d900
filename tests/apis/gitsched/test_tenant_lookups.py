"""What is looked up for all paths or namespaces of a source at once is what is asked for each of them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gitsched.apis.gitsched.tenancy import TenantPaths
from gitsched.apis.gitsched.tenant import Tenant
from gitsched.git.trees import TreeEntry
from gitsched.reconcile.tenants.tenant_reads import ReadableEntries
from tests.search_depth import count_examples

NAMES = ("a", "b", "A", "shared", "shop", "shop-b")
DIRECTORIES = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
TENANTS = st.lists(
    st.builds(
        lambda name, paths, reads: Tenant(name, tuple(paths), reads=tuple(reads)),
        st.sampled_from(("one", "two")),
        st.lists(DIRECTORIES, max_size=2),
        st.lists(DIRECTORIES | st.just("."), max_size=2),
    ),
    max_size=4,
)


@settings(max_examples=count_examples(100))
@given(TENANTS, TENANTS, st.lists(DIRECTORIES, max_size=12))
def test_entries_that_an_owner_may_read(trusted: list[Tenant], own: list[Tenant], paths: list[str]) -> None:
    entries = [TreeEntry(path, "0" * 40, 0o100644) for path in paths]
    tenants = TenantPaths(trusted, own)
    readable = ReadableEntries(entries, tenants)
    for owner in ("", "one", "two", "three"):
        assert readable.list_of(owner) == [entry for entry in entries if tenants.may_read(owner, entry.path)]


@settings(max_examples=count_examples(100))
@given(
    st.lists(st.sampled_from(("shop", "shop-*", "*", "s?op", "[ab]", "b")), max_size=3),
    st.frozensets(st.sampled_from((*NAMES, "shop-*", "[ab]"))),
    st.sampled_from(("", "it is defined twice")),
)
def test_namespaces_of_a_tenant(patterns: list[str], namespaces: frozenset[str], closed: str) -> None:
    tenant = Tenant("one", ("one",), namespaces=tuple(patterns), closed=closed)
    assert tenant.select_namespaces(namespaces) == {one for one in namespaces if tenant.allows_namespace(one)}
