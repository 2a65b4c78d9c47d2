from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_cli.record import FrozenError, field, record, replace


@record
class Point:
    x: int
    y: int = 0
    tags: Mapping[str, int] = field(default_factory=dict)
    key: str = field(default="", repr=False)

    @property
    def total(self) -> int:
        return self.x + self.y


@record(kw_only=True)
class Named(Point):
    name: str


@record
class Plain:
    x: int
    y: int = 0
    z: str = "z"


@dataclasses.dataclass(frozen=True)
class Standard:
    x: int
    y: int = 0
    z: str = "z"


@given(x=st.integers(), y=st.integers(), z=st.text(), w=st.integers())
def test_it_behaves_as_a_frozen_dataclass(x: int, y: int, z: str, w: int) -> None:
    ours, theirs = Plain(x, y, z=z), Standard(x, y, z=z)
    assert repr(ours) == repr(theirs).replace("Standard", "Plain")
    assert (ours == Plain(w, y, z)) == (theirs == Standard(w, y, z))
    assert (hash(ours) == hash(Plain(w, y, z))) == (hash(theirs) == hash(Standard(w, y, z)))
    changed = replace(ours, y=w)
    assert (changed.x, changed.y, changed.z) == dataclasses.astuple(dataclasses.replace(theirs, y=w))
    assert copy.copy(ours) == copy.deepcopy(ours) == pickle.loads(pickle.dumps(ours)) == ours


def test_defaults_are_made_anew_and_hidden_fields_are_not_shown() -> None:
    one, other = Point(1), Point(1, key="secret")
    assert one.tags == {}
    assert one.tags is not other.tags
    assert one != other
    assert repr(other) == "Point(x=1, y=0, tags={})"
    assert one.total == 1
    assert Point(1) != object()
    others: list[object] = [Point(1), Standard(1)]
    assert Plain(1) not in others


def test_a_subclass_adds_to_the_fields() -> None:
    named = Named(x=1, name="n")
    assert repr(named) == "Named(x=1, y=0, tags={}, name='n')"
    assert replace(named, name="m").name == "m"
    assert named != Point(1)


def test_it_cannot_be_changed() -> None:
    point = Point(1)
    with pytest.raises(FrozenError, match=r"Point\.x cannot be assigned"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(FrozenError, match=r"Point\.x cannot be deleted"):
        del point.x
    with pytest.raises(TypeError, match="unhashable"):
        hash(point)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(TypeError, match="needs the field 'x'"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="has no field 'z'"):
        Point(1, z=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="the field 'x' twice"):
        Point(1, x=2)  # type: ignore[misc]
    with pytest.raises(TypeError, match="at most 4 arguments without a name, not 5"):
        Point(1, 2, {}, "", 5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="at most 0 arguments without a name"):
        Named(1, name="n")
    with pytest.raises(TypeError, match="has no field 'w'"):
        replace(Point(1), w=1)


def test_it_can_be_taken_apart_in_a_match() -> None:
    match Plain(1, 2):
        case Plain(x, y, _):
            assert (x, y) == (1, 2)


def _twice(number: int) -> int:
    return 2 * number


@record
class Calculator:
    plain: Callable[[int], int] = _twice
    told: Callable[[int], int] = field(default=_twice)


def test_a_function_as_default_is_a_value_and_no_method() -> None:
    assert (Calculator().plain(2), Calculator().told(3)) == (4, 6)
    assert Calculator(plain=lambda number: -number).plain(2) == -2
    assert Calculator() == Calculator(_twice)
