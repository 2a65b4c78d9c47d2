"""JSON as people leave it in files: read to the end, every value with its offset, every fault named.

Strict JSON (RFC 8259) is the measure, as every client that reads it with a standard parser would see it. Comments and
trailing commas are faults unless the flavour allows them. After a fault reading goes on with what was most likely
meant, so that the entries of a broken file can still be shown.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]

from cpersona_cli.install.files import valid
from cpersona_cli.install.files.tree import Fault, Flavour, Node
from cpersona_cli.install.model import ProblemKind

#: A file with this many faults is no JSON at all; reading stops.
LIMIT = 20
#: Of a broken text of more characters only the first fault is told: reading all of it would take many seconds.
LARGEST_BROKEN = 8_000_000

_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![\w.+-])")
_WORD = re.compile(r"[^\s{}\[\]:,\"'/#]+")
_ESCAPE = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPED = re.compile(r'\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))')
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_CLOSER = {"{": "}", "[": "]"}
_BACKSLASH = (
    "write Windows paths with forward slashes (C:/Users/...) or with every backslash doubled (C:\\\\Users\\\\...)"
)


class _Stop(Exception):  # noqa: N818 - a signal, not an error
    """Nothing more can be read."""


@dataclass(slots=True)
class _Frame:
    """An object or array that is still open."""

    node: Node
    opener: str
    key: str = ""  # of the member being read
    key_at: int = 0
    comma_at: int = -1  # the last comma, while nothing has followed it

    @property
    def filled(self) -> bool:
        return bool(self.node.value)


@dataclass(slots=True)
class _Reader:
    text: str
    flavour: Flavour
    at: int = 0
    faults: list[Fault] = field(default_factory=list)
    commented: bool = False

    def fault(self, kind: ProblemKind, at: int, detail: str, advice: str = "", *, fatal: bool = True) -> None:
        """Note a fault; reading stops at the limit, while those the client tolerates only stop being listed."""
        if fatal or len(self.faults) < LIMIT:
            self.faults.append(Fault(kind, at, detail, fatal, advice))
        if fatal and len(self.faults) >= LIMIT:
            raise _Stop

    def syntax(self, at: int, detail: str, advice: str = "") -> None:
        self.fault(ProblemKind.SYNTAX, at, detail, advice)

    def skip(self) -> str:
        """Go past white space and comments; the next character, or an empty string at the end."""
        text = self.text
        while True:
            match = _SPACE.match(text, self.at)
            self.at = at = match.end() if match else self.at
            char = text[at : at + 1]
            if char not in ("/", "#"):
                return char
            opener = char if char == "#" else text[at : at + 2]
            if opener not in ("//", "/*", "#"):
                return char
            self._comment(opener)

    def _comment(self, opener: str) -> None:
        start = self.at
        end = self.text.find("*/" if opener == "/*" else "\n", start + len(opener))
        if opener == "/*" and end < 0:
            self.at = len(self.text)
            self.fault(ProblemKind.TRUNCATED, start, "a comment begins here and is never closed")
            return
        self.at = len(self.text) if end < 0 else end + (2 if opener == "/*" else 0)
        if opener == "#":
            self.syntax(start, "“#” begins no comment in JSON", "remove the line")
        elif self.flavour == "json" and not self.commented:
            self.commented = True  # one report for a file full of comments
            self.fault(
                ProblemKind.COMMENT, start, "this file must be plain JSON, and JSON has no comments", "remove it"
            )

    def string(self) -> str:
        """The string that begins here, in either kind of quotes."""
        if self.text[self.at] == '"':
            value: str
            try:
                value, self.at = scanstring(self.text, self.at + 1)
            except JSONDecodeError:
                return self._loose()
            return value
        self.syntax(self.at, "text stands in single quotes", 'JSON needs double quotes: "..."')
        return self._loose()

    def _loose(self) -> str:
        """A string that is no valid one, as it was most likely meant."""
        start, quote = self.at, self.text[self.at]
        self.at += 1
        parts: list[str] = []
        told = False
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == quote:
                self.at += 1
                return "".join(parts)
            if char == "\\":
                parts.append(self._escape(start))
                continue
            if char == "\n":
                body = "".join(parts).rstrip("\r")
                advice = _BACKSLASH if "\\" in self.text[start : self.at] else ""
                self.syntax(start, "a text begins here and its closing quote is missing on the same line", advice)
                return body
            if char < " " and not told:
                told = True
                self.syntax(self.at, f"an unescaped control character (U+{ord(char):04X}) stands inside a text")
            parts.append(char)
            self.at += 1
        self.fault(ProblemKind.TRUNCATED, start, "the file ends inside the text that begins here")
        raise _Stop

    def _escape(self, opened: int) -> str:
        """The escape that begins here; a wrong one is reported once in the string that was opened there."""
        start = self.at
        match = _ESCAPED.match(self.text, start)
        if match:
            self.at = match.end()
            return chr(int(match[2], 16)) if match[2] else _ESCAPE[match[1]]
        self.at += 1
        letter = self.text[self.at : self.at + 1]
        told = self.faults and self.faults[-1].at > opened and self.faults[-1].advice == _BACKSLASH
        if letter.strip() and not told:
            detail = f"“\\{letter}” is no escape that JSON knows: a single backslash stands here"
            self.syntax(start, detail, _BACKSLASH)
        return "\\"

    def scalar(self) -> str | float | bool | None:
        """The string, number or word that begins here."""
        char = self.text[self.at]
        if char in "\"'":
            return self.string()
        match = _NUMBER.match(self.text, self.at)
        if match:
            self.at = match.end()
            return _number(match)
        start = self.at
        found = _WORD.match(self.text, start)
        if not found:
            self.at += 1
            visible = char.isprintable() and char > " "
            name = f"“{char}”" if visible else f"an invisible character (U+{ord(char):04X})"
            self.syntax(start, f"{name} cannot stand here")
            return None
        self.at = found.end()
        word = found[0]
        if word in _WORDS:
            return _WORDS[word]
        if word.lower() in _WORDS or word == "None":
            right = "null" if word == "None" else word.lower()
            self.syntax(start, f"“{word}” is not JSON", f"write {right}")
            return _WORDS[right]
        # The word itself is not shown: it may be a key or a token.
        self.syntax(start, "a value stands here that is neither a number nor in quotes", "put text in double quotes")
        return word

    def key(self) -> str:
        """The member name that begins here."""
        if self.text[self.at] in "\"'":
            return self.string()
        start = self.at
        found = _WORD.match(self.text, start)
        self.at = found.end() if found else start + 1
        word = found[0] if found else self.text[start]
        self.syntax(start, f"“{_short(word)}” stands where a name in double quotes belongs")
        return word


def _short(word: str) -> str:
    return word if len(word) <= 40 else f"{word[:39]}…"


def _number(match: re.Match[str]) -> float:
    if match[1] or match[2]:
        return float(match[0])
    try:
        return int(match[0])
    except ValueError:  # more digits than Python converts
        return float(match[0])


def parse(text: str, flavour: Flavour) -> tuple[Node | None, list[Fault]]:
    """The tree of ``text`` as far as it can be read, and everything that keeps it from being valid.

    Never raises. Of a member given twice the last one stays, as with every common parser. Text that the standard
    parser takes without a complaint, which is nearly all of it, is only looked at where somebody asks; the rest is
    read here, character by character and without recursion.
    """
    root, told = valid.parse(text)
    if root is not None:
        return root, []
    if len(text) > LARGEST_BROKEN:
        return None, [told]
    reader = _Reader(text, flavour)
    roots: list[Node] = []
    with suppress(_Stop):
        _document(reader, roots)
    return (roots[0] if roots else None), reader.faults


def _document(reader: _Reader, roots: list[Node]) -> None:
    if not reader.skip():
        return
    stack: list[_Frame] = []
    _value(reader, stack, roots)
    while stack:
        _step(reader, stack, roots)
    if reader.skip():
        reader.syntax(reader.at, "more text follows after the end of the document")


def _value(reader: _Reader, stack: list[_Frame], roots: list[Node]) -> None:
    """Read the value that begins here and hang it into the innermost open container, or make it the root."""
    frame = stack[-1] if stack else None
    at, char = reader.at, reader.text[reader.at]
    key_at = frame.key_at if frame and frame.opener == "{" else at
    node: Node
    if char in _CLOSER:
        reader.at += 1
        node = Node({} if char == "{" else [], at, key_at)
    else:
        node = Node(reader.scalar(), at, key_at)
    if frame is None:
        roots.append(node)
    elif isinstance(frame.node.value, list):
        frame.node.value.append(node)
    else:
        frame.node.members[frame.key] = node
    if char in _CLOSER:
        stack.append(_Frame(node, char))


def _step(reader: _Reader, stack: list[_Frame], roots: list[Node]) -> None:
    """One member, item, comma or closing bracket of the innermost open container."""
    frame = stack[-1]
    char = reader.skip()
    if not char:
        open_ = f"“{frame.opener}” begins here and is never closed"
        reader.fault(ProblemKind.TRUNCATED, frame.node.at, f"the file ends too early: {open_}", "the rest is missing")
        raise _Stop
    if char in "}]":
        _close(reader, stack, char)
    elif char == ",":
        if frame.comma_at >= 0 or not frame.filled:
            reader.syntax(reader.at, "a comma stands here with nothing before it", "remove it")
        frame.comma_at = reader.at
        reader.at += 1
    else:
        if frame.filled and frame.comma_at < 0:
            reader.syntax(reader.at, "a comma is missing before this")
        frame.comma_at = -1
        if frame.opener == "{" and not _name(reader, frame):
            return
        _value(reader, stack, roots)


def _name(reader: _Reader, frame: _Frame) -> bool:
    """Read a member's name and colon; False when no value follows."""
    frame.key_at = reader.at
    frame.key = reader.key()
    earlier = frame.node.members.get(frame.key)
    if earlier is not None:
        detail = f"“{_short(frame.key)}” is given twice in one object; the last one counts"
        reader.fault(ProblemKind.DUPLICATE, frame.key_at, detail, "remove one of them", fatal=False)
    char = reader.skip()
    if char == ":" or (char == "=" and reader.text[reader.at] == "="):
        if char == "=":
            reader.syntax(reader.at, "“=” stands where “:” belongs")
        reader.at += 1
        char = reader.skip()
    elif char:
        reader.syntax(reader.at, "“:” is missing after the name")
    if char and char in ",}]":
        reader.syntax(reader.at, f"the value of “{_short(frame.key)}” is missing")
        return False
    return bool(char)


def _close(reader: _Reader, stack: list[_Frame], char: str) -> None:
    frame = stack[-1]
    if char != _CLOSER[frame.opener]:
        reader.syntax(reader.at, f"“{char}” stands where “{_CLOSER[frame.opener]}” belongs")
        if not any(_CLOSER[outer.opener] == char for outer in stack):
            reader.at += 1  # closes nothing that is open: a stray bracket
            return
        while _CLOSER[stack[-1].opener] != char:
            stack.pop()
        frame = stack[-1]
    elif frame.comma_at >= 0 and reader.flavour != "jsonc":
        detail = "a comma stands before a closing bracket, which JSON does not allow"
        reader.fault(ProblemKind.TRAILING_COMMA, frame.comma_at, detail, "remove it")
    reader.at += 1
    stack.pop()
