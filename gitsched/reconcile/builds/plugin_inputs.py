"""Files that plug-ins of kustomizations read: they are parts of these kustomizations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from gitsched.manifests.kustomization import list_plugin_paths, parse_plugins
from gitsched.manifests.kustomize import Kustomization, KustomizeReference
from gitsched.manifests.kustomize_graph import resolve_path
from gitsched.model.document import Body

PLUGIN_FIELDS: Final = ("generators", "transformers", "validators")
_BUILT_IN: Final = "builtin"
_SUFFIXES: Final = (".yaml", ".yml", ".json")


class PluginInputs:
    """The files that the plug-ins of a commit name.

    Those of built-in plug-ins are references like any other. A plug-in of another program, such as PolicyGenerator, wraps objects or
    changes them in ways that only it knows: `wrapped` has what describes it, by the path of each file.
    """

    def __init__(self, paths: Collection[str], read_blob: Callable[[str], bytes], blobs: Mapping[str, str]) -> None:
        self.wrapped: dict[str, str] = {}
        self._paths, self._read_blob, self._blobs = paths, read_blob, blobs
        self._by_directory: dict[str, list[str]] | None = None
        self._read: set[str] = set()

    def add(self, directory: str, kustomization: Kustomization) -> Kustomization:
        """Return a kustomization with the references of its built-in plug-ins, and record the files of others."""
        found: dict[KustomizeReference, None] = {}
        for reference in kustomization.references:
            file = resolve_path(directory, reference.path) if reference.field in PLUGIN_FIELDS else ""
            for body in parse_plugins(self._read_blob(self._blobs[file])) if file in self._blobs else ():
                if body.get("apiVersion", _BUILT_IN) == _BUILT_IN:
                    found.update((reference._replace(role="input", path=path), None) for path in list_plugin_paths(body))
                else:
                    self._add_foreign(directory, f"{file} ({body.get('kind')})", body)
        return kustomization._replace(references=(*kustomization.references, *found)) if found else kustomization

    def _add_foreign(self, directory: str, description: str, body: Body) -> None:
        for name in _list_path_strings(body):
            path = resolve_path(directory, name.rstrip("/") or name)
            if path in self._read:
                continue
            self._read.add(path)
            for file in [path] if path in self._blobs else self._list_files(path):
                self.wrapped.setdefault(file, description)

    def _list_files(self, directory: str) -> list[str]:
        """Return the files in a directory, and below it."""
        if self._by_directory is None:
            self._by_directory = {}
            for path in self._paths:
                parent = path
                while parent := parent.rpartition("/")[0]:
                    self._by_directory.setdefault(parent, []).append(path)
        return self._by_directory.get(directory, [])


def _list_path_strings(body: Body) -> Iterator[str]:
    """Yield the texts in the configuration of an unknown plug-in that may be paths: by the name of the field, or by their suffix."""
    rest: list[tuple[str, Any]] = [(name, value) for name, value in body.items() if name not in ("apiVersion", "kind", "metadata")]
    while rest:
        name, value = rest.pop()
        if isinstance(value, dict):
            rest += [(str(key), member) for key, member in value.items()]
        elif isinstance(value, list):
            rest += [(name, member) for member in value]
        elif isinstance(value, str) and (
            value.endswith(_SUFFIXES) or any(part in name.lower() for part in ("path", "file", "dir"))
        ):
            yield value
