"""The part of a compose file that can be told safely without a YAML reader.

Block mappings, block lists, plain and quoted one-line scalars and one-line ``[a, b]`` lists are read. Everything else
(anchors, aliases, merge keys, block scalars, flow mappings, tags, tabs) is reported by line and left out, so that a
value is either right or named as not told.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from cpersona_cli.install.files.bounded import read_bounded
from cpersona_cli.record import record

#: Compose looks for these in the project folder, in this order.
NAMES = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
_LIMIT = 1 << 20


@record
class Node:
    """One value and the line it stands on: a mapping, a list, a text, or None for nothing (``NAME:``)."""

    value: dict[str, Node] | list[Node] | str | None
    line: int

    def get(self, name: str) -> Node | None:
        """The entry ``name`` of a mapping, or None."""
        return self.value.get(name) if isinstance(self.value, dict) else None

    @property
    def text(self) -> str:
        """The text of a scalar, else an empty string."""
        return self.value if isinstance(self.value, str) else ""


@record
class Line:
    """One line that says something: how far it is indented, its text without comment, its number from one."""

    indent: int
    text: str
    number: int


@dataclass(slots=True)
class Reader:
    """Reads one document; ``unclear`` collects what was left out."""

    file: Path
    lines: list[Line]
    unclear: list[str] = field(default_factory=list)
    index: int = 0

    def node(self, indent: int, line: int) -> Node:
        """The block that starts at the present line with exactly ``indent``."""
        if self.index >= len(self.lines) or self.lines[self.index].indent < indent:
            return Node(None, line)
        first = self.lines[self.index]
        if first.text == "-" or first.text.startswith("- "):
            return self._list(first.indent)
        return self._mapping(first.indent)

    def _mapping(self, indent: int) -> Node:
        found: dict[str, Node] = {}
        start = self.lines[self.index].number
        while self.index < len(self.lines) and self.lines[self.index].indent >= indent:
            line = self.lines[self.index]
            if line.indent > indent:
                self._leave_out(line, "is indented in a way that was not expected")
                continue
            split = _key(line.text)
            if split is None:
                if line.text == "-" or line.text.startswith("- "):
                    break
                self._leave_out(line, "is no `name: value`")
                continue
            name, rest = split
            self.index += 1
            if name == "<<":
                self._say(line, "merges another mapping")
                self._skip(indent)
            elif rest:
                found[name] = self._scalar(rest, line, indent)
            else:
                found[name] = self._below(indent, line.number)
        return Node(found, start)

    def _below(self, indent: int, number: int) -> Node:
        """What a bare ``name:`` holds: a deeper block, or a list at the same indentation."""
        if self.index < len(self.lines):
            following = self.lines[self.index]
            same = following.indent == indent and (following.text == "-" or following.text.startswith("- "))
            if following.indent > indent or same:
                return self.node(following.indent, number)
        return Node(None, number)

    def _list(self, indent: int) -> Node:
        items: list[Node] = []
        start = self.lines[self.index].number
        while self.index < len(self.lines) and self.lines[self.index].indent == indent:
            line = self.lines[self.index]
            if not (line.text == "-" or line.text.startswith("- ")):
                break
            rest = line.text[1:].strip()
            if not rest:
                self.index += 1
                items.append(self._below(indent, line.number))
            elif _key(rest) is not None and rest[0] not in "\"'":
                inner = indent + len(line.text) - len(line.text[1:].lstrip())
                self.lines[self.index] = Line(inner, rest, line.number)
                items.append(self._mapping(inner))
            else:
                self.index += 1
                items.append(self._scalar(rest, line, indent))
        return Node(items, start)

    def _scalar(self, text: str, line: Line, indent: int) -> Node:
        value = _scalar(text)
        continued = self.index < len(self.lines) and self.lines[self.index].indent > indent
        if value is None or (continued and not text.startswith("[")):
            self._say(line, "is written in a form that was not read")
            self._skip(indent)
            return Node(None, line.number)
        return Node(value if isinstance(value, str) else [Node(item, line.number) for item in value], line.number)

    def _leave_out(self, line: Line, why: str) -> None:
        self._say(line, why)
        self.index += 1

    def _skip(self, indent: int) -> None:
        while self.index < len(self.lines) and self.lines[self.index].indent > indent:
            self.index += 1

    def _say(self, line: Line, why: str) -> None:
        self.unclear.append(f"{self.file}:{line.number} {why}")


def read(file: Path) -> tuple[Node | None, tuple[str, ...]]:
    """The tree of a compose file and sentences about what was left out; (None, reason) when it cannot be read."""
    content = read_bounded(file, _LIMIT)
    if content.state == "absent" or content.problem:
        return None, (f"the compose file {file} {content.problem or 'does not exist'}",)
    lines = []
    unclear = []
    for number, raw in enumerate(content.text.split("\n"), 1):
        stripped = _uncommented(raw).rstrip()
        body = stripped.lstrip(" ")
        if not body or body == "---" or body.startswith("%"):
            continue
        if body.startswith("\t"):
            unclear.append(f"{file}:{number} is indented with a tab, which YAML does not allow")
            continue
        lines.append(Line(len(stripped) - len(body), body, number))
    reader = Reader(file, lines, unclear)
    tree = reader.node(0, 1)
    if reader.index < len(lines):
        reader._say(lines[reader.index], "and what follows was not read")  # noqa: SLF001 - same module
    return tree, tuple(reader.unclear)


def _key(text: str) -> tuple[str, str] | None:
    """``name: value`` taken apart; None when the line is no such thing."""
    match = re.match(r"^(\"[^\"]*\"|'[^']*'|[^\s\"'#\[\]{},&*!|>%@`-][^#]*?|-[^\s].*?)\s*:(?:\s+(.*))?$", text)
    if match is None:
        return None
    name = match.group(1)
    return (name[1:-1] if name[0] in "\"'" else name), (match.group(2) or "").strip()


def _scalar(text: str) -> str | list[str] | None:
    """A one-line scalar or list; None for every form that is not read. ``null`` and ``~`` are empty."""
    if text.startswith("["):
        if not text.endswith("]") or re.search(r"[\[\]{}&*!]", text[1:-1]):
            return None
        parts = re.findall(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'|[^,\s][^,]*", text[1:-1])
        items = [_scalar(part.strip()) for part in parts]
        return None if any(not isinstance(item, str) for item in items) else [str(item) for item in items]
    if text.startswith("'"):
        return text[1:-1].replace("''", "'") if len(text) > 1 and text.endswith("'") else None
    if text.startswith('"'):
        if len(text) < 2 or not text.endswith('"'):
            return None
        body = text[1:-1]
        plain = re.fullmatch(r'(?:[^\\"]|\\[\\"/])*', body)
        return re.sub(r"\\(.)", r"\1", body) if plain else None
    if text[0] in "&*!|>{%@`?":
        return None
    return "" if text in {"null", "~", "Null", "NULL"} else text


def _uncommented(line: str) -> str:
    """The line without its comment: a ``#`` at the start or behind a blank, outside quotes."""
    position, quote = 0, ""
    while position < len(line):
        letter = line[position]
        if quote:
            escaped = (quote == '"' and letter == "\\") or (quote == letter == "'" and line[position + 1 :][:1] == "'")
            if escaped:
                position += 1
            elif letter == quote:
                quote = ""
        elif letter in "\"'" and (position == 0 or line[position - 1] in " [,:-"):
            quote = letter
        elif letter == "#" and (position == 0 or line[position - 1] in " \t"):
            return line[:position]
        position += 1
    return line
