"""What a text goes through before it becomes a memory: mended characters, no blobs, pieces of a fair length."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter

# Keys of what `clean` counts.
HALVES = "half characters replaced"
NULS = "NULs removed"
BLOBS = "base64 blobs left out"

#: One run of base64 with this many characters is data, whatever stands around it.
BLOB = 2048

# Escapes that lost their other half, and bytes that were no UTF-8 (values.py reads them as halves).
_HALF = re.compile("[\ud800-\udfff]")
_DATA_URI = re.compile(r"data:[\w.+-]++/[\w.+-]++(?:;(?!base64,)[\w=.+-]++)*+;base64,[A-Za-z0-9+/_-]{64,}+={0,2}")
_RUN = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{BLOB},}}+={{0,2}}")
_WRAPPED = re.compile(
    r"^[A-Za-z0-9+/]{60,76}+(?:\n[A-Za-z0-9+/]{60,76}+){14,}+={0,2}(?:\n(?:[A-Za-z0-9+/]{20,75}|[A-Za-z0-9+/]{1,75}=)={0,2})?$",
    re.MULTILINE,
)
# Both are slow, and rare. Either is longer than a step and a sample, so it has a whole sample at some step.
_SAMPLE = re.compile(r"[A-Za-z0-9+/_\n-]{64}")
_STEP = 512
_KINDS = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]"))

_OPENING = "[Memory from "
_ANNOTATION = re.compile(r"\[Memory from [^\]]+\]\s*")

_SENTENCE = re.compile(r"""[.!?…]["'”’)\]]*(?=\s)|[。！？｡][」』”’）)\]]*""")


def clean(text: str, altered: Counter[str]) -> str:
    """``text`` as it was said, but fit for a database and a request; what had to be changed counts into ``altered``.

    Half characters (a surrogate without its partner cannot be written as UTF-8) become U+FFFD, NULs go (SQLite ends a
    text at the first), line ends become LF, white space around the text goes. Base64 (a ``data:`` address, a run of
    ``BLOB`` characters of all kinds, fifteen full lines as mail wraps them) gives way to a mark with its length.
    """
    text = mended(text, altered)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "base64," in text:
        text = _DATA_URI.sub(lambda found: _mark(found, altered), text)
    if any(_SAMPLE.match(text, at) for at in range(0, len(text), _STEP)):
        for pattern in (_RUN, _WRAPPED):
            text = pattern.sub(lambda found: _mark(found, altered), text)
    return text.strip()


def mended(text: str, altered: Counter[str]) -> str:
    """``text`` with only those characters changed that no database keeps: half ones and NULs, as ``clean`` does."""
    if not text.isascii():
        text, count = _HALF.subn("\ufffd", text)
        _add(altered, HALVES, count)
    if "\x00" in text:
        _add(altered, NULS, text.count("\x00"))
        text = text.replace("\x00", "")
    return text


def _add(counts: Counter[str], key: str, count: int) -> None:
    if count:
        counts[key] += count


def _mark(found: re.Match[str], altered: Counter[str]) -> str:
    """What stands for a blob; what has not characters of all kinds is none and stays."""
    if not all(kind.search(found.group()) for kind in _KINDS):
        return found.group()
    altered[BLOBS] += 1
    return f"[base64 data left out: {len(found.group()):,} characters]"


def unannotated(text: str) -> str:
    """``text`` without any ``[Memory from …]``, as the server stores it: also none that a removal puts together.

    The result is the server's own (2.6.14, utils.py, ``_strip_annotations``): that of removing all there are at once
    where none is left then, else that of removing them from left to right as they come to stand. Both take one pass.
    """
    # After the last "]" is none, and looking for one from each opening there would take for ever.
    end = text.rfind("]") + 1
    end += len(text[end:]) - len(text[end:].lstrip())
    once = _ANNOTATION.sub("", text[:end]) + text[end:]
    if not _ANNOTATION.search(once, 0, once.rfind("]") + 1):
        return once
    # An annotation ends at the first "]" after its opening, so each kept text between two of them holds no whole
    # opening, and a new one can only begin in its last characters.
    reach = len(_OPENING) - 1
    kept: list[str] = []
    tail, removed = "", False
    pieces = text.split("]")
    for piece in pieces[:-1]:
        look = tail + (piece.lstrip() if removed else piece)
        start = look.find(_OPENING)
        removed = 0 <= start < len(look) - len(_OPENING)
        if removed:
            kept.append(look[: max(0, start - reach)])
            tail = look[max(0, start - reach) : start]
        else:
            kept.append(look + "]")
            tail = ""
    kept.append(tail + (pieces[-1].lstrip() if removed else pieces[-1]))
    return "".join(kept)


def split(text: str, limit: int) -> tuple[str, ...]:
    """``text`` in pieces of at most ``limit`` characters, nothing lost but white space where it was cut.

    A piece ends after the last paragraph that ends in the second half of the room there is; without one after the last
    line, sentence or word there; without any of them where the room ends, but not within a composed character.
    """
    if limit < 1:
        raise ValueError(f"a piece needs room for a character, not {limit}")
    text = text.strip()
    pieces: list[str] = []
    start = 0
    while len(text) - start > limit:
        cut = _cut(text, start, start + limit)
        pieces.append(text[start:cut].rstrip())
        start = cut
        while text[start].isspace():
            start += 1
    return (*pieces, text[start:]) if text else ()


def _cut(text: str, start: int, end: int) -> int:
    """Where to cut between ``start`` and ``end``: after the former, at the latter at the latest."""
    middle = start + max(1, (end - start) // 2)
    for mark in ("\n\n", "\n"):
        found = text.rfind(mark, middle, end + len(mark))
        if found != -1:
            return found
    sentences = [match.end() for match in _SENTENCE.finditer(text, middle, min(end + 1, len(text)))]
    for cut in reversed(sentences):
        if cut <= end:
            return cut
    for cut in range(end, middle, -1):
        if text[cut].isspace():
            return cut
    for cut in range(end, max(start, end - 16), -1):
        if not _joined(text, cut):
            return cut
    return end


def _joined(text: str, cut: int) -> bool:
    """Whether the characters on both sides of ``cut`` are seen as one: accents, joined emoji, skin tones."""
    after = text[cut]
    return (
        unicodedata.category(after).startswith("M")
        or after == "\u200d"
        or text[cut - 1] == "\u200d"
        or "\U0001f3fb" <= after <= "\U0001f3ff"
    )


def digest(*parts: str) -> str:
    """An id for what its source gave none: the same for the same parts, whatever stands around them."""
    joined = "\x00".join(parts).encode("utf-8", "surrogatepass")
    return f"sha256:{hashlib.sha256(joined).hexdigest()[:32]}"
