"""The variants of a source that is read only for a workload that has some."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from gitsched.model.document import Key
from gitsched.model.variants import TemplateVariants, WorkloadVariants


class LazyVariants(Mapping[Key, WorkloadVariants]):
    """The variants of the workloads `keys`, which are built when the first of them is read. AssertionError if others have variants."""

    def __init__(self, keys: frozenset[Key], build: Callable[[], TemplateVariants]) -> None:
        self._keys, self._build = keys, build

    @cached_property
    def _built(self) -> TemplateVariants:
        built = self._build()
        assert built.keys() == self._keys, "the source has the variants of the last plan"
        return built

    def __getitem__(self, key: Key) -> WorkloadVariants:
        if key not in self._keys:
            raise KeyError(key)
        return self._built[key]

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[Key]:
        return iter(self._built)

    def __len__(self) -> int:
        return len(self._keys)

    def adapt(self, change: Callable[[TemplateVariants], TemplateVariants]) -> LazyVariants:
        """Return the variants after a change, which has the same workloads and is made when one of them is read."""
        return LazyVariants(self._keys, lambda: change(self._built))
