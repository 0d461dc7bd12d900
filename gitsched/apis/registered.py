"""Functions and values that a policy API registers by name: their module is imported when they are first asked for."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from sys import modules
from typing import Any


@dataclass(frozen=True, slots=True)
class Registered:
    """A function or value of a module, by name. Call it as the function itself; `load` returns it."""

    module: str
    name: str

    def __call__(self, *arguments: Any) -> Any:
        return self.load()(*arguments)

    def load(self) -> Any:
        """Import the module, and return the function or value."""
        try:
            return getattr(modules[self.module], self.name)
        except (KeyError, AttributeError):  # it is not imported, or another thread is importing it
            return getattr(import_module(self.module), self.name)
