"""NamedTuple of `typing`, with classes that are made in a fraction of the time: a command makes 500 of them before it does anything.

`typing.NamedTuple` compiles a constructor and each annotation of every class, which is a tenth of the time of a short run. Here the
constructor is compiled for the first instance, and annotations stay text. `python -m benchmarks.startup` measures both. Type checkers see
`typing.NamedTuple`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from collections import _tuplegetter
    from functools import cache

    def _make(cls, values):
        made = tuple.__new__(cls, values)
        if len(made) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
        return made

    def _replace(self, /, **changes):
        made = tuple.__new__(self.__class__, map(changes.pop, self._fields, self))
        if changes:
            raise ValueError(f"Got unexpected field names: {list(changes)!r}")
        return made

    def _asdict(self):
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"

    def __getnewargs__(self):
        return tuple(self)

    _METHODS = {one.__name__: one for one in (_replace, _asdict, __repr__, __getnewargs__)} | {"_make": classmethod(_make)}

    @cache
    def _compile_constructor(made):
        """Return the constructor of a class, as `collections.namedtuple` makes it."""
        names = "".join(f"{name}, " for name in made._fields)
        new = eval(f"lambda _cls, {names}: _new(_cls, ({names}))", {"_new": tuple.__new__, "__builtins__": {}})  # noqa: S307
        new.__name__, new.__qualname__, new.__module__ = "__new__", f"{made.__qualname__}.__new__", made.__module__
        new.__defaults__ = tuple(made._field_defaults.values())
        return new

    class _NamedTupleType(type):
        def __new__(cls, name, bases, namespace):
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            fields = tuple(namespace.get("__annotations__", ()))
            defaults = {field: namespace[field] for field in fields if field in namespace}
            members = {
                **_METHODS,
                **namespace,
                "__slots__": (),
                "__match_args__": fields,
                "_fields": fields,
                "_field_defaults": defaults,
            }
            members |= {field: _tuplegetter(index, f"Field {index}") for index, field in enumerate(fields)}
            made = type(name, tuple(tuple if base is NamedTuple else base for base in bases), members)

            def construct(cls, /, *values, **named):
                made.__new__ = _compile_constructor(made)
                return made.__new__(cls, *values, **named)

            made.__new__ = construct
            return made

    class NamedTuple(metaclass=_NamedTupleType):
        """Base of classes whose instances are tuples with named fields."""
