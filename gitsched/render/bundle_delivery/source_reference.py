"""What the objects of both delivery tools have in common: names, patches, and the files that a build reads."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gitsched.model.document import Body, Key, get_field

if TYPE_CHECKING:
    from gitsched.model.delivery import BundleDelivery, FieldEdit

SOURCE_DIGEST = "gitsched.io/source-digest"
"""The annotation with the digest of what a build reads. The commit next to it changes only when the digest does."""

BUNDLE_SOURCE_PREFIXES = ("gitrepository.source.toolkit.fluxcd.io-", "application.argoproj.io-")
"""How the names of the files begin that name the commit to build."""

_MAX_NAME_LENGTH = 63  # Flux and Argo CD label objects with the name, and a label value has at most 63 characters
_DIGEST_LENGTH = 10


def make_name(namespace: str, *names: str) -> str:
    """Return `<namespace>.<name>...`, unique for each combination: a namespace has no dots, and names that make it ambiguous or too long
    end in a digest."""
    name = ".".join((namespace, *names))
    if len(name) <= _MAX_NAME_LENGTH and (len(names) == 1 or not any("." in part for part in names)):
        return name
    digest = hashlib.sha256("/".join((namespace, *names)).encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{name[: _MAX_NAME_LENGTH - _DIGEST_LENGTH - 1].rstrip('.-')}-{digest}"


def make_patches(edits: Iterable[FieldEdit]) -> list[Body]:
    """Return kustomize patches that set numbers in the built objects.

    They select by kind, because names and namespaces may still change when kustomize applies the patches of a root.
    """
    return [
        {
            "target": {"group": edit.key.group, "kind": edit.key.kind} if edit.key.group else {"kind": edit.key.kind},
            "patch": f"- op: add\n  path: /{edit.field.replace('.', '/')}\n  value: {edit.value}\n",
        }
        for edit in edits
    ]


def find_ambiguous_edit(delivery: BundleDelivery) -> FieldEdit | None:
    """Return an edit of an object whose kind other objects of the bundle have, too, so that a patch cannot select it alone."""
    kinds = [key[:2] for key in delivery.objects]
    return next((edit for edit in delivery.edits if kinds.count(edit.key[:2]) > 1), None)


def list_directories(files: Iterable[str]) -> list[str]:
    """Return the directories of files without those inside others, and the files at the root of the repository."""
    found: list[str] = []
    for path in sorted({posixpath.dirname(path) or path for path in files}):
        if not found or not f"{path}/".startswith(f"{found[-1]}/"):
            found.append(path)
    return found


def find_unset_namespace(delivery: BundleDelivery) -> Key | None:
    """Return an object without a namespace whose kind has one; None if every object says where it belongs."""
    return next(
        (
            document.key
            for document in delivery.variant.objects
            if document.key.namespace and not get_field(document.body, "metadata", "namespace")
        ),
        None,
    )


def find_common_problem(delivery: BundleDelivery) -> str:
    """Return why neither Flux nor Argo CD builds what gitsched builds, with a cure; "" if they do."""
    source, edit = delivery.source, find_ambiguous_edit(delivery)
    if edit is not None:
        return (
            f"its replicas are divided, and a patch cannot select {edit.key} alone, because the bundle has several objects of this kind; "
            "use delivery manifests"
        )
    if source.omitted:
        return f"{source.omitted[0]} has a document of gitsched, which it would apply; move it out of the directory"
    return ""
