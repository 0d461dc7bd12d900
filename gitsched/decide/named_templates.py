"""Templates for engines whose decisions depend on no other template than the one that is decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gitsched.model.document import Document, Key


class NamedTemplates(Mapping[Key, Document]):
    """Templates that can only be read one by one, some of them `changed` (None for one that does not exist); iteration yields the `listed`
    keys alone."""

    def __init__(
        self, known: Mapping[Key, Document], changed: Mapping[Key, Document | None] | None = None, listed: tuple[Key, ...] = ()
    ) -> None:
        self._known, self._changed, self._listed = known, changed or {}, listed

    @property
    def known(self) -> Mapping[Key, Document]:
        """The templates without the changes."""
        return self._known

    @property
    def changed(self) -> Mapping[Key, Document | None]:
        """The templates that differ from the known ones."""
        return self._changed

    def __getitem__(self, key: Key) -> Document:
        document = self._changed[key] if key in self._changed else self._known[key]
        if document is None:
            raise KeyError(key)
        return document

    def __contains__(self, key: object) -> bool:
        return self._changed[key] is not None if key in self._changed else key in self._known  # type: ignore[index]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)


def pair_changed(
    before: Mapping[Key, Document], after: Mapping[Key, Document]
) -> dict[Key, tuple[Document | None, Document | None]]:
    """Return the templates that `change_templates` changed, in one or more steps, each before and after."""
    changed: dict[Key, None] = {}
    latest = after
    while latest is not before and isinstance(latest, NamedTemplates):
        changed.update(dict.fromkeys(latest.changed))
        latest = latest.known
    if latest is not before:
        changed.update(dict.fromkeys(key for key, document in latest.items() if before.get(key) is not document))
    return {key: (before.get(key), after.get(key)) for key in changed}


def change_templates(templates: Mapping[Key, Document], changed: Mapping[Key, Document]) -> Mapping[Key, Document]:
    """Return templates with changed and new ones. What is read one by one stays so."""
    if not changed:
        return templates
    if isinstance(templates, NamedTemplates):
        return NamedTemplates(templates, changed, tuple({**dict.fromkeys(templates), **dict.fromkeys(changed)}))
    return {**templates, **changed}
