"""Syntax trees of modules, for tests of the code itself."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator

_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")


def walk_statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a module and the statements in it at any depth, as `ast.walk` does, without their expressions: a tenth of the nodes."""
    pending = deque([tree])
    while pending:
        node = pending.popleft()
        yield node
        for name in _BODIES:
            pending.extend(getattr(node, name, ()))
