"""TOML through the standard parser, with the offset of every key and value, and what can be saved of a broken file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile

from cpersona_cli.install.files.tree import Fault, Node
from cpersona_cli.install.model import ProblemKind

#: A file with this many faults is not worth saving line by line.
LIMIT = 20

#: A name of more dotted parts is no setting, and the standard parser takes minutes over some thousands of them.
DEEPEST = 1000

Path = tuple[str | int, ...]

_LITERAL = "in TOML write Windows paths in single quotes: 'C:\\Users\\...' (or with forward slashes)"
_WHERE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_PATH_IN_QUOTES = re.compile(r'"[^"\'\n]*\\[^"\'\n]*"')
_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r]+|\#[^\n]*)
  | (?P<newline>\n)
  | (?P<text>\"{3}(?:[^\\]|\\.)*?\"{3,5}|'{3}.*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')
  | (?P<mark>[\[\]{}=,.])
  | (?P<word>[^\s\[\]{}=,."'\#]+)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def parse(text: str) -> tuple[Node | None, list[Fault]]:
    """The tree of ``text`` as far as it can be read, and everything that keeps it from being valid.

    Never raises. A fault costs its line (or, in a table header, its whole table): reading is tried again without it.
    A path in double quotes whose backslashes are no escapes is read as it was meant.
    """
    faults: list[Fault] = []
    rest = text
    deep = next((line for line in text.splitlines() if line.partition("=")[0].count(".") > DEEPEST), None)
    if deep is not None:
        return None, [Fault(ProblemKind.SYNTAX, text.index(deep), "tables are nested too deeply to be read")]
    for _ in range(LIMIT):
        try:
            data = tomllib.loads(rest)
        except tomllib.TOMLDecodeError as error:
            at = _offset(rest, str(error))
            fault, rest = _fault(rest, at, str(error))
            if fault.kind is not ProblemKind.TRUNCATED or fault.kind not in (known.kind for known in faults):
                faults.append(fault)
        except RecursionError:
            faults.append(Fault(ProblemKind.SYNTAX, 0, "values are nested too deeply to be read"))
            break
        else:
            return _tree(data, _positions(rest)), faults
    return None, faults


def _offset(text: str, message: str) -> int:
    """Where the parser stopped, as an offset; it counts from the start of the line, one-based."""
    match = _WHERE.search(message)
    if match is None or match[1] is None:
        return len(text)
    start = 0
    for _ in range(int(match[1]) - 1):
        start = text.find("\n", start) + 1
    return min(start + int(match[2]) - 1, len(text))


def _fault(text: str, at: int, message: str) -> tuple[Fault, str]:
    """The fault at an offset in our words, and the text with the faulty part blanked or put right, same length."""
    reason = _WHERE.sub("", message)
    start, end = _line(text, at)
    line = text[start:end]
    quoted = _PATH_IN_QUOTES.search(line)
    lower = reason.lower()
    if quoted and ("escape" in lower or "hex" in lower or "unicode scalar" in lower):
        fault = Fault(
            ProblemKind.SYNTAX, start + quoted.start(), "a single backslash in double quotes begins an escape that TOML"
            " does not know", advice=_LITERAL,
        )  # fmt: skip
        fixed = f"'{quoted[0][1:-1]}'"
        return fault, text[: start + quoted.start()] + fixed + text[start + quoted.end() :]
    if "twice" in lower or "overwrite" in lower or "mutate" in lower:
        header = line.lstrip().startswith("[")
        what = f"the table {line.strip()}" if header else f"“{line.partition('=')[0].strip()}”"
        fault = Fault(ProblemKind.DUPLICATE, start, f"{what} is written twice", advice="keep one of them")
    elif at >= len(text.rstrip()):
        end_of_text = len(text.rstrip())
        fault = Fault(
            ProblemKind.TRUNCATED, end_of_text, f"the file ends too early ({reason})", advice="the rest is missing"
        )
    else:
        fault = Fault(ProblemKind.SYNTAX, at, f"this is not TOML ({reason})")
    if line.lstrip().startswith("["):
        following = re.compile(r"^[ \t]*\[", re.MULTILINE).search(text, end)
        end = following.start() if following else len(text)
    return fault, text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]


def _line(text: str, at: int) -> tuple[int, int]:
    """The line that holds an offset; of a run of blanks, the last line before it that holds anything."""
    at = min(at, len(text))
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    if text[start:end].strip() or not text[:start].strip():
        return start, end
    return _line(text, len(text[:start].rstrip()) - 1)


@dataclass(slots=True)
class _Frame:
    """Where the scanner stands: among keys (``table`` or ``inline``) or in an array."""

    kind: str
    prefix: Path
    index: int = 0
    parts: list[str] = field(default_factory=list)
    key_at: int = -1
    path: Path | None = None  # of the value that comes next


def _positions(text: str) -> dict[Path, tuple[int, int]]:
    """For every key and array item of valid TOML, where it and its value begin."""
    found: dict[Path, tuple[int, int]] = {}
    counts: dict[Path, int] = {}
    stack = [_Frame("table", ())]
    tokens = ((match.lastgroup or "", match[0], match.start()) for match in _TOKEN.finditer(text))
    for kind, word, at in tokens:
        frame = stack[-1]
        if kind == "space" or (kind == "newline" and frame.kind != "table"):
            continue
        if kind == "newline":
            stack[-1] = _Frame("table", frame.prefix)
        elif frame.kind == "array":
            _in_array(stack, word, at, found)
        elif frame.path is not None:
            found.setdefault(frame.path, (frame.key_at, at))
            prefix, frame.path = frame.path, None
            _open(stack, word, prefix)
        elif word == "[" and not frame.parts and frame.kind == "table":
            stack[-1] = _Frame("table", _header(tokens, at, counts, found))
        elif word == "=":
            frame.path = (*frame.prefix, *frame.parts)
            frame.parts = []
        elif kind in ("word", "text"):
            frame.key_at = at if not frame.parts else frame.key_at
            frame.parts.append(_unquoted(word))
        elif word == "}" and len(stack) > 1:
            stack.pop()
    return found


def _open(stack: list[_Frame], word: str, prefix: Path) -> None:
    if word in ("{", "["):
        stack.append(_Frame("inline" if word == "{" else "array", prefix))


def _in_array(stack: list[_Frame], word: str, at: int, found: dict[Path, tuple[int, int]]) -> None:
    frame = stack[-1]
    if word == "]":
        stack.pop()
    elif word == ",":
        frame.index += 1
    else:
        path = (*frame.prefix, frame.index)
        found.setdefault(path, (at, at))
        _open(stack, word, path)


def _header(
    tokens: Iterator[tuple[str, str, int]], at: int, counts: dict[Path, int], found: dict[Path, tuple[int, int]]
) -> Path:
    """The table a header opens; read up to its closing bracket."""
    parts: list[str] = []
    brackets = 1
    for kind, word, _ in takewhile(lambda token: token[1] != "]", tokens):
        if kind in ("word", "text"):
            parts.append(_unquoted(word))
        brackets += word == "["
    path: Path = ()
    for depth, part in enumerate(parts):
        path = (*path, part)
        last = depth == len(parts) - 1
        if last and brackets > 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            found.setdefault(path, (at, at))
            path = (*path, counts[path])
        found.setdefault(path, (at, at))
    found[path] = (at, at)
    return path


def _unquoted(word: str) -> str:
    return str(tomllib.loads(f"k = {word}")["k"]) if word[0] in "\"'" else word


def _tree(data: Mapping[str, object], found: Mapping[Path, tuple[int, int]]) -> Node:
    """Plain data with offsets; what the scanner did not see takes its container's. Uses no recursion."""
    root = Node({}, 0, 0)
    todo: list[tuple[object, Node, Path]] = [(data, root, ())]
    while todo:
        raw, parent, path = todo.pop()
        pairs: Iterable[tuple[str | int, object]] = ()
        if isinstance(raw, dict):
            pairs = raw.items()
        elif isinstance(raw, list):
            pairs = enumerate(raw)
        for key, value in pairs:
            key_at, at = found.get((*path, key), (parent.key_at, parent.at))
            node = Node(_leaf(value), at, key_at)
            if isinstance(parent.value, list):
                parent.value.append(node)
            else:
                parent.members[str(key)] = node
            todo.append((value, node, (*path, key)))
    return root


def _leaf(value: object) -> dict[str, Node] | list[Node] | str | float | bool | None:
    if isinstance(value, dict):
        return {}
    if isinstance(value, list):
        return []
    if isinstance(value, str | int | float | bool):
        return value
    return {"datetime": Node(str(value), 0, 0)}  # dates and times, which clients see as a table and never as a string
