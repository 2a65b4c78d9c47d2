"""What a file is, by its first bytes and the keys it begins with; never by its name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from cpersona_cli.history.model import Format
from cpersona_cli.record import record
from cpersona_cli.text import safe

#: How much of a file is looked at.
HEAD = 2**20

#: The formats as people call them, in the order of `Format`.
NAMES: Mapping[Format, str] = {
    Format.CHATGPT: "ChatGPT",
    Format.CLAUDE: "Claude",
    Format.CLAUDE_CODE: "Claude Code",
    Format.CODEX: "Codex",
    Format.CPERSONA: "CPersona",
    Format.OPEN_WEBUI: "Open WebUI",
    Format.PLAIN: "plain JSONL",
}

_MAGIC = (
    (b"SQLite format 3\0", "an SQLite database"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"%PDF-", "a PDF document"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"RIFF", "a recording or an image"),
    (b"\xff\xfe", "text in UTF-16, which is to be saved as UTF-8 first"),
    (b"\xfe\xff", "text in UTF-16, which is to be saved as UTF-8 first"),
)

# A string (the text may end within it), a sign, or a word.
_TOKEN = re.compile(r'"((?:[^"\\]++|\\.)*+)(?:"|\\?\Z)|([\[\]{}:,])|[^\s\[\]{}:,"]++', re.DOTALL)

# The first elements tell; a file that hides its kind behind so many of them is of no kind known here.
_LOOKED_AT = 200

_OBJECTS = ("an object", "lines of objects", "an array of objects")

_NODES = re.compile(r'"(?:message|parent|children)"\s*:')


class Field(NamedTuple):
    """What stands behind a key: the kind of value, and a string itself."""

    kind: str
    text: str = ""


View = Mapping[str, Field]


@record(kw_only=True)
class Seen:
    """``format`` if it is one of ours, else None; ``kind`` is what the file is, in words; ``keys`` of its objects."""

    format: Format | None
    kind: str
    keys: tuple[str, ...] = ()

    @property
    def objects(self) -> bool:
        """Whether it holds objects, so that a reader may try them."""
        return self.kind in _OBJECTS

    def words(self) -> str:
        """Kind and keys, to be read after "it is"."""
        if not self.keys:
            return self.kind
        shown = ", ".join(safe(key, 40) for key in self.keys[:8])
        return f"{self.kind} with the keys {shown}{', …' if len(self.keys) > 8 else ''}"


def detect(head: bytes) -> Seen:
    """What the file is that begins with ``head`` (``HEAD`` bytes of it are enough)."""
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return Seen(format=None, kind=kind)
    if head[257:262] == b"ustar":
        return Seen(format=None, kind="a tar archive, which is to be unpacked first")
    text = head.decode("utf-8-sig", "replace").lstrip()
    if not text:
        return Seen(format=None, kind="blank" if head else "empty")
    if text[0] not in "[{":
        return Seen(format=None, kind=_unstructured(head, text))
    return _structured(text)


def _unstructured(head: bytes, text: str) -> str:
    if b"\0" in head:
        return "binary data"
    start = text[:200].lower()
    if start.startswith(("<!doctype html", "<html")):
        return "an HTML page"
    return "XML" if start.startswith("<") else "text that is no JSON"


def _structured(text: str) -> Seen:
    likely: Format | None = None
    keys: tuple[str, ...] = ()
    count = 0
    view: View = {}
    for view, whole in _views(text):
        found = _certain(view, text)
        if found:
            return Seen(format=found, kind=_kind(text, 2 if text[0] == "[" else 1), keys=tuple(view))
        if whole:
            count += 1
            likely = likely or _likely(view)
            keys = keys or tuple(view)
            if count == _LOOKED_AT:
                break
    return Seen(format=likely, kind=_kind(text, count), keys=keys or tuple(view))


def _kind(text: str, count: int) -> str:
    if text[0] == "{":
        return "lines of objects" if count > 1 else "an object"
    first = text[1:].lstrip()[:1]
    if first == "]":
        return "an empty array"
    kinds = {"{": "objects", "[": "arrays", '"': "strings", "": "something cut off"}
    return f"an array of {kinds.get(first, 'numbers or words')}"


def _views(text: str) -> Iterator[tuple[View, bool]]:
    """The outermost objects as far as they are known: again after each key, and last when one is whole."""
    within = 1 if text[0] == "[" else 0
    depth = 0
    view: dict[str, Field] = {}
    key: str | None = None
    string = ""
    for token in _TOKEN.finditer(text):
        sign = token.group(2)
        if depth == within + 1:
            if sign == ":" and key is None:
                key = string
                continue
            if key is not None:
                view[key] = _field(token)
                key = None
                yield view, False
        if sign and sign in "[{":
            depth += 1
            if depth == within + 1:
                view, key = {}, None
        elif sign and sign in "]}":
            depth -= 1
            if depth == within and sign == "}":
                yield view, True
            if depth <= 0 and within:
                return
        else:
            string = _string(token) if token.group(1) is not None else ""


def _string(token: re.Match[str]) -> str:
    try:
        return str(json.loads(token.group(), strict=False))
    except ValueError:
        return token.group(1)


def _field(token: re.Match[str]) -> Field:
    first = token.group()[0]
    if first == '"':
        return Field("string", _string(token) if len(token.group()) < 100 else "")
    kinds = {"{": "object", "[": "array", "n": "null", "t": "boolean", "f": "boolean"}
    return Field(kinds.get(first, "number"))


def _certain(view: View, text: str) -> Format | None:
    return next((found for found, holds in _SIGNS if holds(view, text)), None)


def _likely(view: View) -> Format | None:
    """A ChatGPT conversation that lost its messages is still one, and the next in its file may be whole."""
    return Format.CHATGPT if {"title", "create_time", "update_time"} <= view.keys() else None


def _kinds(view: View, **kinds: str) -> bool:
    return all(key in view and view[key].kind == kind for key, kind in kinds.items())


def _chatgpt(view: View, text: str) -> bool:
    beside = {"title", "create_time", "current_node", "conversation_id"}
    return "mapping" in view and (bool(beside & view.keys()) or bool(_NODES.search(text)))


def _claude(view: View, _: str) -> bool:
    return "chat_messages" in view


def _open_webui(view: View, _: str) -> bool:
    if _kinds(view, chat="object"):
        return bool({"user_id", "title", "created_at", "updated_at", "archived", "share_id"} & view.keys())
    return _kinds(view, history="object") and bool({"models", "messages", "title"} & view.keys())


_EXPORTED = {"header", "memory", "episode", "profile", "entity", "mention", "relation", "folder", "folder_member"}


def _cpersona(view: View, _: str) -> bool:
    return "_type" in view and view["_type"].text in _EXPORTED


def _codex(view: View, _: str) -> bool:
    if _kinds(view, timestamp="string", type="string", payload="object"):
        return True
    # Before there was an envelope: a first line about the session, then items and states as they are; or one object.
    if _kinds(view, id="string", timestamp="string") and "instructions" in view:
        return True
    if _kinds(view, session="object", items="array"):
        return True
    return view.get("record_type", Field("")).text == "state"


_CLAUDE_CODE = {"sessionId", "parentUuid", "leafUuid", "isSidechain"}


def _claude_code(view: View, _: str) -> bool:
    if not _kinds(view, type="string"):
        return False
    return bool(_CLAUDE_CODE & view.keys()) or _kinds(view, messageId="string", snapshot="object")


def _plain(view: View, _: str) -> bool:
    return {"conversation", "role", "text"} <= view.keys()


_SIGNS: tuple[tuple[Format, Callable[[View, str], bool]], ...] = (
    (Format.CPERSONA, _cpersona),
    (Format.CHATGPT, _chatgpt),
    (Format.CLAUDE, _claude),
    (Format.CLAUDE_CODE, _claude_code),
    (Format.CODEX, _codex),
    (Format.OPEN_WEBUI, _open_webui),
    (Format.PLAIN, _plain),
)
