"""The variables that Argo CD sets for the build of an Application. Source: newEnv of argoproj/argo-cd/reposerver/repository."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gitsched.model.document import Body, get_text

_VARIABLE = re.compile(r"\$(?:\{([^}]*)\}|([*#$@!?\-0-9]|[A-Za-z_]\w*))")
_OF_COMMIT = ("ARGOCD_APP_REVISION", "ARGOCD_APP_REVISION_SHORT", "ARGOCD_APP_REVISION_SHORT_8")


def read_environment(application: Body, source: Body) -> Mapping[str, str]:
    """Return the variables whose values the documents have; those of the commit are not known, as they change with each."""
    return {
        "ARGOCD_APP_NAME": get_text(application, "metadata", "name"),
        "ARGOCD_APP_NAMESPACE": get_text(application, "spec", "destination", "namespace"),
        "ARGOCD_APP_PROJECT_NAME": get_text(application, "spec", "project") or "default",
        "ARGOCD_APP_SOURCE_REPO_URL": get_text(source, "repoURL"),
        "ARGOCD_APP_SOURCE_PATH": get_text(source, "path"),
        "ARGOCD_APP_SOURCE_TARGET_REVISION": get_text(source, "targetRevision"),
    }


def expand_variables(text: str, environment: Mapping[str, str]) -> str:
    """Return a text with its variables, and `$$` as `$`; one without a value is empty. Source: os.Expand of Go."""

    def replace(found: re.Match[str]) -> str:
        name = found[1] if found[1] is not None else found[2]
        if name in _OF_COMMIT:
            return found[0]
        return "$" if name == "$" else environment.get(name, "")

    return _VARIABLE.sub(replace, text) if "$" in text else text


def find_commit_variable(value: Any) -> str | None:
    """Return the first variable in a value that changes with each commit; None if there is none."""
    found = re.search(rf"\$\{{?({'|'.join(reversed(_OF_COMMIT))})\b", repr(value))
    return found[1] if found is not None else None
