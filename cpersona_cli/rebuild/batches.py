"""Which texts travel together. Pure: texts in, batches out.

An engine that pads makes every text of a request as long as its longest, so texts of a window are sorted by length
before they are packed: in the order of their ids, texts of mixed lengths cost three to six times their own tokens.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring

from cpersona_cli.record import record, replace
from cpersona_cli.store.job import digest
from cpersona_cli.store.model import Kind, Row

#: Bytes of a request's body beside its texts: keys, brackets, the model's name.
FRAME = 256

#: Batches in a row that range from the shortest to the longest.
CYCLE = 6

#: Batches for the beginning, and texts of each.
_OPENING, _SMALL = 72, 8

_SPACE = b" \t\r\n\v\f"
_LETTERS = bytes(range(ord("a"), ord("z") + 1)) + bytes(range(ord("A"), ord("Z") + 1))
_DIGITS = b"0123456789"
_ASCII = bytes(range(128))
_LEADS = (bytes(range(0xC0, 0xE0)), bytes(range(0xE0, 0xF0)), bytes(range(0xF0, 0xF8)))
#: Tokens per character: space, letters, digits, other ASCII; then characters of two, three and four bytes. Between a
#: word-piece, a unigram and a byte-pair tokenizer, measured on prose, code, JSON and fourteen languages: scripts that
#: a vocabulary does not cover fall to one token for each character, and nothing falls far below.
_DENSITY = (0.05, 0.23, 0.6, 0.9, 0.55, 0.9, 1.6)


def estimate_tokens(text: str) -> int:
    """About how many tokens ``text`` is, from the scripts it is written in; at least 1, two marks included."""
    raw = text.encode("utf-8", "surrogatepass")
    ascii_only = len(raw) == len(text)
    total, rest = 2.0, raw
    for density, characters in zip(_DENSITY, (_SPACE, _LETTERS, _DIGITS), strict=False):
        kept = rest.translate(None, characters)
        total += density * (len(rest) - len(kept))
        rest = kept
    if ascii_only:
        return math.ceil(total + _DENSITY[3] * len(rest))
    kept = rest.translate(None, _ASCII)
    total += _DENSITY[3] * (len(rest) - len(kept))
    for density, leads in zip(_DENSITY[4:], _LEADS, strict=True):
        total += density * (len(kept) - len(kept.translate(None, leads)))
    return math.ceil(total)


@dataclass(slots=True, eq=False)
class Item:
    """One text to be sent, and every row that has it.

    ``tokens`` is an estimate, ``size`` the bytes it takes in a request. ``digest`` stays that of the stored text where
    ``text`` was cut.
    """

    text: str
    digest: bytes
    tokens: int
    size: int
    rows: list[tuple[Kind, int]] = field(default_factory=list)
    cut: bool = False

    def shorten(self, characters: int) -> None:
        """Keep the first ``characters``."""
        self.text = self.text[:characters]
        self.tokens, self.size, self.cut = estimate_tokens(self.text), _size(self.text), True


def item(row: Row, of: bytes | None = None) -> Item:
    """The item of one row; ``of`` is the digest of its text where it is known. Half a character raises."""
    return Item(row.text, of or digest(row.text), estimate_tokens(row.text), _size(row.text), [(row.kind, row.id)])


def _size(text: str) -> int:
    """Bytes of ``text`` in JSON, with its comma. Raises ``UnicodeEncodeError`` for half a character."""
    return len(encode_basestring(text).encode()) + 1


@record
class Ceilings:
    """How large a request may be: texts, padded tokens (the longest, as often as there are texts), bytes of its body.

    From ``alone`` tokens a text is sent by itself, so that a refusal names it; 0 where no such length is known.
    """

    count: int
    tokens: int
    size: int
    alone: int = 0


def padded(items: Sequence[Item]) -> int:
    """Tokens an engine computes that pads every text to the longest."""
    return max((one.tokens for one in items), default=0) * len(items)


def pack(items: Iterable[Item], ceilings: Ceilings) -> list[list[Item]]:
    """All ``items``, each in one batch, shortest first; no batch above a ceiling but one of a single text."""
    batches: list[list[Item]] = []
    batch: list[Item] = []
    size = FRAME
    for one in sorted(items, key=lambda it: it.tokens):
        # sorted: the newest is the longest
        full = (
            len(batch) >= ceilings.count
            or (len(batch) + 1) * one.tokens > ceilings.tokens
            or size + one.size > ceilings.size
            or 0 < ceilings.alone <= one.tokens
        )
        if batch and full:
            batches.append(batch)
            batch, size = [], FRAME
        batch.append(one)
        size += one.size
    if batch:
        batches.append(batch)
    return batches


def interleave(batches: Sequence[list[Item]]) -> list[list[Item]]:
    """The same batches with short and long ones in turns: any ``CYCLE`` of them in a row speak for the whole."""
    step = max(1, math.ceil(len(batches) / CYCLE))
    return [batch for start in range(step) for batch in batches[start::step]]


def packed(items: Iterable[Item], ceilings: Ceilings) -> list[list[Item]]:
    """The batches of a window, in the order in which they are sent."""
    return interleave(pack(items, ceilings))


def opening(items: Iterable[Item], ceilings: Ceilings) -> list[list[Item]]:
    """The batches of the first window, with small ones of much the same length ahead.

    They are for finding out how many requests at a time are worth it: their answers come soon and can be compared.
    They are from the middle, and go outward by turns, so that their lengths do not drift.
    """
    ranked = sorted(items, key=lambda it: it.tokens)
    few = min(len(ranked), _OPENING * _SMALL)
    start = (len(ranked) - few) // 2
    small = pack(ranked[start : start + few], replace(ceilings, count=min(ceilings.count, _SMALL)))
    middle = (len(small) - 1) / 2
    outward = [small[place] for place in sorted(range(len(small)), key=lambda place: abs(place - middle))]
    return [*outward, *packed(ranked[:start] + ranked[start + few :], ceilings)]


def halves(items: Sequence[Item]) -> list[list[Item]]:
    """The shorter and the longer half."""
    middle = len(items) // 2
    return [list(items[:middle]), list(items[middle:])]
