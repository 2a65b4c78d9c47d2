"""Which turns of a conversation are worth a memory of their own: a stated rule for "ok", "yes" and "continue".

A turn is *short* if it has no digit and at most ``SHORT`` letters, where a letter of a script that writes words or
syllables with one (Chinese, Japanese, Korean) counts as two.

* A short turn that answers a question is kept, with the question quoted above it: "Rome" alone would say nothing.
* Any other short turn is left out.
* Of turns with equal texts the first is kept: a store holds one memory of a text.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence

from cpersona_cli.history.model import Turn
from cpersona_cli.record import record, replace

#: Up to so many letters say nothing by themselves: "continue" and "thank you" have eight.
SHORT = 8
#: A question longer than this is not quoted in full.
QUESTION = 300

SHORT_TURNS = "short messages"
EQUAL_TEXTS = "equal texts"
#: Under this ``Selected.merged`` counts turns that were put together with the question before them.
ANSWERS = "short answers kept with their question"

_LAST_QUESTION = re.compile(r"(?:\A|(?<=[.!?。！？]))[^.!?。！？]*[?？][\s\"'”’»」』)）*_`]*\Z")
_WIDE = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL")


@record(kw_only=True)
class Selected:
    """The turns that are kept, in their order, and how many are not, by reason; ``merged`` counts those changed."""

    turns: tuple[Turn, ...]
    left_out: Mapping[str, int]
    merged: Mapping[str, int]


def select(turns: Sequence[Turn], *, short: int = SHORT) -> Selected:
    """``turns`` without those that say nothing by themselves; ``short`` 0 keeps all but equal ones.

    Ids and times stay; as many turns come out as go in less those counted in ``left_out``.
    """
    kept: list[Turn] = []
    left_out: Counter[str] = Counter()
    merged: Counter[str] = Counter()
    seen: set[str] = set()
    before: Turn | None = None
    for turn in turns:
        chosen = turn
        if is_short(turn.text, short):
            asked = "" if before is None or before.role is turn.role else question(before.text)
            if not asked:
                left_out[SHORT_TURNS] += 1
                before = turn
                continue
            chosen = replace(turn, text=f"> {asked}\n\n{turn.text}")
        before = turn
        if chosen.text in seen:
            left_out[EQUAL_TEXTS] += 1
            continue
        seen.add(chosen.text)
        kept.append(chosen)
        if chosen is not turn:
            merged[ANSWERS] += 1
    return Selected(turns=tuple(kept), left_out=dict(left_out), merged=dict(merged))


def is_short(text: str, limit: int = SHORT) -> bool:
    """Whether ``text`` has no digit and at most ``limit`` letters, those of words or syllables counting twice."""
    letters = 0
    for letter in text:
        if letter.isnumeric() and not _wide(letter):
            return False
        if letter.isalpha():
            letters += 2 if _wide(letter) else 1
            if letters > limit:
                return False
    return limit > 0


def _wide(letter: str) -> bool:
    return letter > "\u1100" and unicodedata.name(letter, "").startswith(_WIDE)


def question(text: str) -> str:
    """The question that the last line of ``text`` ends with, at most ``QUESTION`` characters; empty if with none."""
    line = text.rstrip().rpartition("\n")[2]
    found = _LAST_QUESTION.search(line[-4 * QUESTION :])
    asked = " ".join(found.group().split()).lstrip("*-#> ") if found else ""
    return asked if len(asked) <= QUESTION else f"…{asked[1 - QUESTION :]}"
