"""Valid JSON as a tree whose parts are read when they are asked for.

Clients keep megabytes of history beside the few lines that matter here. The standard parser checks the whole text at
once, in C; where a value begins is found out for those objects and arrays alone that somebody looks into.
"""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]

from cpersona_cli.install.files.tree import Fault, Node
from cpersona_cli.install.model import ProblemKind

_SPACE = re.compile(r"[ \t\r\n]*")
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


class _Unread(Node):
    """An object or array of valid text, read at the first look at its ``value``."""

    __slots__ = ("_held", "_text")
    _held: dict[str, Node] | list[Node] | None
    _text: str

    def __init__(self, text: str, at: int, key_at: int) -> None:
        for name, value in (("at", at), ("key_at", key_at), ("_text", text), ("_held", None)):
            object.__setattr__(self, name, value)

    @property
    def value(self) -> dict[str, Node] | list[Node]:
        held = self._held
        if held is None:
            held = _read(self._text, self.at)
            object.__setattr__(self, "_held", held)
        return held


def parse(text: str) -> tuple[Node | None, Fault]:
    """The tree of ``text``; None, and what the parser complained of first, when it is not valid or has a name twice."""
    fault = Fault(ProblemKind.SYNTAX, 0, "values are nested too deeply to be read")
    try:
        json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse)
        return _node(text, _past_space(text, 0), None)[0], fault
    except json.JSONDecodeError as error:
        fault = Fault(ProblemKind.SYNTAX, min(error.pos, len(text)), f"this is not valid JSON ({error.msg})")
    except ValueError as error:
        fault = Fault(ProblemKind.SYNTAX, 0, f"this is not valid JSON ({error})")
    except RecursionError:
        pass
    return None, fault


def _distinct(pairs: list[tuple[str, object]]) -> None:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a name is given twice in one object")


def _refuse(word: str) -> object:
    raise ValueError(f"{word} is no number of JSON")


def _past_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _node(text: str, at: int, key_at: int | None) -> tuple[Node, int]:
    """The value that begins at ``at``, and where it ends."""
    value, end = _scan(text, at)
    key_at = at if key_at is None else key_at
    return _Unread(text, at, key_at) if text[at] in "{[" else Node(value, at, key_at), end


def _read(text: str, at: int) -> dict[str, Node] | list[Node]:
    """The members or items of the container that begins at ``at``."""
    members: dict[str, Node] = {}
    items: list[Node] = []
    is_object = text[at] == "{"
    at = _past_space(text, at + 1)
    while text[at] not in "}]":
        if text[at] == ",":
            at = _past_space(text, at + 1)
        if is_object:
            key_at = at
            name, at = scanstring(text, at + 1)
            at = _past_space(text, _past_space(text, at) + 1)  # the colon
            members[name], at = _node(text, at, key_at)
        else:
            node, at = _node(text, at, None)
            items.append(node)
        at = _past_space(text, at)
    return members if is_object else items
