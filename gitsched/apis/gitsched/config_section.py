"""Typed access to the members of a settings document; an error names the member by its pointer."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Generic, NoReturn, TypeVar

from gitsched.model.time import parse_duration
from gitsched.named_tuples import NamedTuple

T = TypeVar("T")

_MAX_NUMBER = sys.float_info.max
_DIGITS = re.compile(r"\d{1,9}", re.ASCII)
"""A number of seconds that was quoted in YAML."""


class SettingError(ValueError):
    """A member of the settings has a wrong type or value; `pointer` is its path from the root of the document."""

    def __init__(self, pointer: tuple[str | int, ...], message: str) -> None:
        super().__init__(f"{'/'.join(map(str, pointer))}: {message}")
        self.pointer, self.message = pointer, message


class ConfigSection(NamedTuple):
    """An object of the settings at a `path` below the spec. A member that is missing or null has its default."""

    values: Mapping[str, Any]
    path: str = ""

    def get_section(self, name: str) -> ConfigSection:
        """Return the object `name`; an empty one if it is missing."""
        return ConfigSection(self._mapping(self.values.get(name), name), self._join_path(name))

    def list_sections(self, name: str) -> Iterator[ConfigSection]:
        """Yield the objects of the list `name`."""
        for index, value in enumerate(self._sequence(name)):
            yield ConfigSection(self._mapping(value, f"{name}/{index}"), self._join_path(f"{name}/{index}"))

    def get_string(self, name: str, default: str = "") -> str:
        value = self.values.get(name)
        if value is None:
            return default
        return value if isinstance(value, str) else self.reject(name, "a string")

    def get_choice(self, name: str, *options: str) -> str:
        """Return one of the options; the first is the default."""
        value = self.get_string(name, options[0])
        return value if value in options else self.reject(name, f"one of {', '.join(map(repr, options))}")

    def get_strings(self, name: str) -> tuple[str, ...]:
        values = self._sequence(name)
        return tuple(value if isinstance(value, str) else self.reject(f"{name}/{i}", "a string") for i, value in enumerate(values))

    def get_bool(self, name: str, default: bool) -> bool:
        value = self.values.get(name)
        if value is None:
            return default
        return value if isinstance(value, bool) else self.reject(name, "true or false")

    def get_number(self, name: str, default: float) -> float:
        """Return a finite number, 0 or more."""
        value = self.values.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MAX_NUMBER:
            return self.reject(name, "a finite number, 0 or more")
        return float(value)

    def get_integer(self, name: str, default: int | None, least: int) -> int | None:
        value = self.values.get(name)
        if value is None:
            return default
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return value if type(value) is int and value >= least else self.reject(name, f"a whole number, {least} or more")

    def get_seconds(self, name: str, default: timedelta) -> timedelta:
        """Return a duration that is written as a number of seconds or as text, such as 90, 90s and 1m30s."""
        value = self.values.get(name)
        if isinstance(value, str):
            duration = timedelta(seconds=int(value)) if _DIGITS.fullmatch(value) else parse_duration(value)
            return self.reject(name, "a number of seconds, or a duration such as 60s or 1m30s") if duration is None else duration
        seconds = self.get_number(name, default.total_seconds())
        if seconds > timedelta.max.total_seconds() // 2:
            self.reject(name, "a number of seconds that a calendar can hold")
        return timedelta(seconds=seconds)

    def require_string(self, name: str) -> str:
        """Return a string that is not empty."""
        return self.get_string(name) or self.reject(name, "a string that is not empty")

    def get_duration(self, name: str, default: timedelta) -> timedelta:
        value = self.values.get(name)
        if value is None:
            return default
        duration = parse_duration(value)
        return self.reject(name, "a duration such as 10m or 24h") if duration is None else duration

    def reject(self, name: str, wanted: str) -> NoReturn:
        """Raise the error for the member."""
        steps = self._join_path(name).split("/")[1:]
        raise SettingError(("spec", *(int(step) if step.isdecimal() else step for step in steps)), f"must be {wanted}")

    def _join_path(self, name: str) -> str:
        return f"{self.path}/{name}"

    def _mapping(self, value: Any, name: str) -> Mapping[str, Any]:
        if value is None:
            return {}
        return value if isinstance(value, Mapping) else self.reject(name, "an object")

    def _sequence(self, name: str) -> Sequence[Any]:
        value = self.values.get(name)
        if value is None:
            return ()
        return value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else self.reject(name, "a list")


@dataclass(frozen=True, slots=True)
class SettingsSection(Generic[T]):
    """The section of a policy API in the spec of gitsched.yaml: its name, the settings where it is missing, and its parser.

    `schema` is the JSON Schema of the section, for an API whose section is not in the schema of Config that gitsched ships.
    `upstream_values` are the members that `gitsched.schedule` uses where its config has none: it decides as the upstream scheduler does.
    `ignored_codes` are the codes of validation findings by the setting that turns them off.
    """

    name: str
    default: T
    parse: Callable[[ConfigSection], T]
    schema: Mapping[str, Any] | None = None
    upstream_values: Mapping[str, Any] = field(default_factory=dict)
    ignored_codes: Mapping[str, str] = field(default_factory=dict)
