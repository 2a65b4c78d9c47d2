"""Frozen value classes that cost almost nothing to define.

A stdlib dataclass writes and compiles its methods anew for every class: with the hundred small classes that describe a
machine here, that was a third of the whole start of the tool. These share one set of methods instead, and otherwise
behave as ``dataclass(frozen=True)``: keyword or positional arguments in the order of the fields, defaults and
default factories, equality and hash by value, a readable ``repr``.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")

_MISSING: Any = object()


class _Field:
    """What ``field`` leaves in the class body until ``record`` reads it."""

    __slots__ = ("factory", "shown", "value")

    def __init__(self, value: Any, factory: Callable[[], Any] | None, *, shown: bool) -> None:
        self.value, self.factory, self.shown = value, factory, shown


def field(
    *,
    default: Any = _MISSING,
    default_factory: Callable[[], Any] | None = None,
    repr: bool = True,  # noqa: A002
) -> Any:
    """A field with a default made anew for each instance, or one that ``repr`` does not show."""
    return _Field(default, default_factory, shown=repr)


class FrozenError(AttributeError):
    """A field of a record was assigned or deleted."""


def _init(self: Any, *args: Any, **named: Any) -> None:
    cls, values = type(self), self.__dict__
    names = cls.__record_fields__
    if args:
        if cls.__record_keywords__ or len(args) > len(names):
            most = 0 if cls.__record_keywords__ else len(names)
            raise TypeError(f"{cls.__name__} takes at most {most} arguments without a name, not {len(args)}")
        values.update(zip(names, args, strict=False))
    for name in named:
        if name not in names:
            raise TypeError(f"{cls.__name__} has no field {name!r}")
        if name in values:
            raise TypeError(f"{cls.__name__} got the field {name!r} twice")
    values.update(named)
    for name, factory in cls.__record_factories__:
        if name not in values:
            values[name] = factory()
    for name in cls.__record_required__:
        if name not in values:
            raise TypeError(f"{cls.__name__} needs the field {name!r}")


def _setattr(self: Any, name: str, _value: Any) -> None:
    raise FrozenError(f"{type(self).__name__}.{name} cannot be assigned")


def _delattr(self: Any, name: str) -> None:
    raise FrozenError(f"{type(self).__name__}.{name} cannot be deleted")


def _eq(self: Any, other: object) -> Any:
    fields: tuple[str, ...] = type(self).__record_fields__
    if type(self) is not type(other):
        return NotImplemented
    return all(getattr(self, name) == getattr(other, name) for name in fields)


def _hash(self: Any) -> int:
    return hash(tuple(getattr(self, name) for name in type(self).__record_fields__))


def _repr(self: Any) -> str:
    cls = type(self)
    shown = ", ".join(f"{n}={getattr(self, n)!r}" for n in cls.__record_fields__ if n not in cls.__record_hidden__)
    return f"{cls.__qualname__}({shown})"


def _prepare(cls: type[T], *, kw_only: bool) -> type[T]:
    own: Any = cls
    names = dict.fromkeys(getattr(cls, "__record_fields__", ()))
    factories = dict(getattr(cls, "__record_factories__", ()))
    hidden = set(getattr(cls, "__record_hidden__", ()))
    required = dict.fromkeys(getattr(cls, "__record_required__", ()))
    for name in cls.__annotations__ if "__annotations__" in cls.__dict__ else ():
        names[name] = None
        given = cls.__dict__.get(name, _MISSING)
        if isinstance(given, _Field):
            if not given.shown:
                hidden.add(name)
            if given.factory is not None:
                factories[name] = given.factory
            if given.value is _MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, given.value)
            given = given.value if given.factory is None else given
        if isinstance(given, FunctionType):
            # as an attribute of the class it would be a method, and be given the instance
            setattr(cls, name, staticmethod(given))
        if given is _MISSING:
            required[name] = None
        else:
            required.pop(name, None)
    own.__record_fields__ = tuple(names)
    setattr(cls, "__match_args__", own.__record_fields__)  # noqa: B010 - the type checker knows it as constant
    own.__record_factories__ = tuple(factories.items())
    own.__record_hidden__ = frozenset(hidden)
    own.__record_required__ = tuple(required)
    own.__record_keywords__ = kw_only
    own.__init__, own.__setattr__, own.__delattr__ = _init, _setattr, _delattr
    own.__eq__, own.__hash__, own.__repr__ = _eq, _hash, _repr
    return cls


@overload
def record(cls: type[T]) -> type[T]: ...
@overload
def record(*, kw_only: bool = False) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T] | None = None, *, kw_only: bool = False) -> Any:
    """Make ``cls`` a frozen value class of its annotated fields. ``kw_only``: arguments by name only."""
    return _prepare(cls, kw_only=False) if cls is not None else lambda other: _prepare(other, kw_only=kw_only)


def replace(value: T, /, **changes: Any) -> T:
    """``value`` with some fields changed. Raises ``TypeError`` for a name that is no field."""
    cls: Any = type(value)
    kept = {name: getattr(value, name) for name in cls.__record_fields__ if name not in changes}
    changed: T = cls(**kept, **changes)
    return changed


def fields(value: object) -> dict[str, Any]:
    """The fields of a record by name, in their order; of a record class its names with what they default to, or None.

    Records within records stay as they are.
    """
    names: tuple[str, ...] = getattr(value, "__record_fields__")  # noqa: B009 - unknown to the type checker
    return {name: getattr(value, name, None) for name in names}
