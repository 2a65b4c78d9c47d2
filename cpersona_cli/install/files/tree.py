"""A document as a tree: plain values, each with the offset at which it and its key begin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cpersona_cli.install.model import ProblemKind
from cpersona_cli.record import record

Flavour = Literal["json", "json+comments", "jsonc", "toml"]
Plain = str | int | float | bool | list[object] | dict[str, object] | None

# Values nested deeper than this are not turned into plain data: printing them would exhaust the stack.
_DEPTH = 100


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One value, and where it and its key begin as character offsets; without a key both are the same."""

    value: dict[str, Node] | list[Node] | str | float | bool | None
    at: int
    key_at: int

    @property
    def members(self) -> dict[str, Node]:
        """The members of an object; of anything else, none."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def items(self) -> list[Node]:
        """The items of an array; of anything else, none."""
        return self.value if isinstance(self.value, list) else []

    @property
    def text(self) -> str:
        """The value if it is a string, else an empty string."""
        return self.value if isinstance(self.value, str) else ""

    @property
    def shape(self) -> str:
        """The JSON name of the type: ``object``, ``array``, ``string``, ``number``, ``boolean``, ``null``."""
        if isinstance(self.value, bool):
            return "boolean"
        names = ((dict, "object"), (list, "array"), (str, "string"), (type(None), "null"))
        return next((name for kind, name in names if isinstance(self.value, kind)), "number")

    def find(self, *keys: str) -> Node | None:
        """The value at a path of keys, or None."""
        node: Node | None = self
        for key in keys:
            node = node.members.get(key) if node is not None else None
        return node

    def plain(self, depth: int = _DEPTH) -> Plain:
        """The value as plain data, without positions; what is nested deeper than ``depth`` becomes ``…``."""
        if isinstance(self.value, dict):
            return {key: node.plain(depth - 1) for key, node in self.value.items()} if depth else "…"
        if isinstance(self.value, list):
            return [node.plain(depth - 1) for node in self.value] if depth else "…"
        return self.value


@record
class Fault:
    """A problem of a text before it has a file: ``at`` is a character offset."""

    kind: ProblemKind
    at: int
    detail: str
    fatal: bool = True
    advice: str = ""
