"""Companions that follow their targets: which objects of a commit go where the workloads behind their targets go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gitsched.apis.gitsched.config import Config
from gitsched.kinds.companion_index import CompanionIndex
from gitsched.kinds.companion_kinds import COMPANION_KINDS
from gitsched.kinds.companion_targets import CompanionFeatures, read_features, read_follows
from gitsched.model.document import Document, Key


def has_followers(templates: Mapping[Key, Document], policies: Iterable[Document], config: Config) -> bool:
    """Return whether the settings, a policy or a companion ask for companions that follow their targets."""
    companions = [template for template in templates.values() if template.key[:2] in COMPANION_KINDS]
    if not companions:
        return False
    return config.follow_targets or any(read_follows(document.body) for document in (*policies, *companions))


class CompanionFollowers:
    """The companions and workloads of a commit. `revision` counts the objects whose part in it has changed since the index was made."""

    __slots__ = ("_follows", "_index", "_pod_paths", "revision")

    def __init__(self, templates: Mapping[Key, Document], config: Config) -> None:
        self.revision, self._follows, self._pod_paths = 0, config.follow_targets, config.pod_paths
        self._index: CompanionIndex[Key] = CompanionIndex()
        for key, template in templates.items():
            self._add(key, self._read(template))

    def is_workload(self, key: Key) -> bool:
        """Return whether companions may follow an object."""
        features = self._index.find_features(key)
        return features is not None and features.is_workload

    def list_workloads(self, companion: Key) -> list[Key]:
        """Return the workloads behind the targets of a companion, sorted, unless its annotation says that it does not follow these."""
        features = self._index.find_features(companion)
        if features is None or not features.is_companion or features.follows is False:
            return []
        return sorted(self._index.list_workloads(companion))

    def list_related(self) -> Iterable[Key]:
        """Return the companions, and the workloads that these may follow."""
        return self._index.list_entries()

    def follows(self, companion: Key, policy: Document | None) -> bool:
        """Return whether a companion follows a workload of a policy: by its own annotation, else by that of the policy or the setting."""
        features = self._index.find_features(companion)
        chosen = features.follows if features is not None else None
        if chosen is None and policy is not None:
            chosen = read_follows(policy.body)
        return self._follows if chosen is None else chosen

    def list_companions(self, workload: Key) -> set[Key]:
        """Return all companions of a workload, also those of its Services."""
        return self._index.list_related([workload])

    def update(self, changed: Iterable[Key], templates: Mapping[Key, Document]) -> set[Key]:
        """Read changed objects again. Returns every companion of theirs, before and now."""
        keys = list(changed)
        touched = self._index.list_related(keys)
        for key in keys:
            template = templates.get(key)
            features = self._read(template) if template is not None else None
            if features != self._index.find_features(key):
                self.revision += 1
                self._index.remove(key)
                self._add(key, features)
        return (touched | self._index.list_related(keys)) & templates.keys()

    def _read(self, template: Document) -> CompanionFeatures | None:
        features = read_features(template.key, template.body, self._pod_paths)
        return features if features.is_companion or features.is_workload else None

    def _add(self, key: Key, features: CompanionFeatures | None) -> None:
        if features is not None:
            self._index.add(key, key, features)
