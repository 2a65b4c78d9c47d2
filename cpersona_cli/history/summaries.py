"""What an episode says of a conversation: a summary that the user brings, or an extract made here.

The extract is made of sentences as they were said, without any model: those whose words come up again and again in the
conversation, but not in every sentence of it, each chosen so that it says something the others do not. Words are told
by Unicode alone, in scripts without spaces by pairs of letters, so it works the same in every language and is the same
on every run.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from cpersona_cli.history.model import Conversation, HistoryError, Role
from cpersona_cli.history.texts import clean
from cpersona_cli.history.values import NotJSONError, kind_of, parsed
from cpersona_cli.record import record
from cpersona_cli.text import plural, safe

#: An extract has at most so many characters, and so many sentences.
LENGTH = 1200
SENTENCES = 8
#: A file of summaries may be so large, in bytes.
FILE = 64 * 2**20

# A sentence is cut at so many characters; one with fewer letters tells nothing (one without spaces has three for one).
_LONGEST, _SHORTEST = 300, 12
# So many sentences are weighed, from the start and from the end of the conversation.
_WEIGHED = 4000
_KEYWORDS = 8

_CODE = re.compile(r"^```.*?(?:^```|\Z)", re.DOTALL | re.MULTILINE)
_ENDS = re.compile(r"(?<=[.!?…])\s+|(?<=[.!?…][\"'”’)\]])\s+|(?<=[。！？])(?![」』”’）)])|(?<=[。！？][」』”’）)])|\n+")
_DECORATION = re.compile(r"^(?:[#>*•·+-]+|\d+[.)])\s+|\*\*|`")
_WORD = re.compile(r"[^\W_]+(?:['’_.-][^\W_]+)*")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
# What names a thing where words are not spaced: Chinese characters, or a word in katakana.
_NAMED = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]{2,}|[\u30a1-\u30fa\u30fc]{3,}")
_NAMES = {Role.USER: "User", Role.ASSISTANT: "Assistant"}


@record(kw_only=True)
class Summary:
    """``text`` for an episode, and its words, separated by spaces as the server keeps them; both may be empty."""

    text: str
    keywords: str = ""


@record(kw_only=True)
class _Sentence:
    place: int
    role: Role
    text: str
    words: tuple[str, ...]
    favour: float


def extract(conversation: Conversation, limit: int = LENGTH) -> Summary:
    """Title and most telling sentences in at most ``limit`` characters, marked as an extract; empty without any."""
    sentences = list(_sentences(conversation))
    weights = _weights(sentences, _words(conversation.title))
    head = f"{conversation.title} (extract of {plural(len(conversation.turns), 'message')})".strip()
    if len(head) > limit:
        head = f"{head[: max(limit - 1, 0)]}…"[:limit]
    chosen = _chosen(sentences, dict(weights), limit - len(head))
    if not chosen:
        return Summary(text="")
    lines = (f"{_NAMES[sentence.role]}: {sentence.text}" for sentence in sorted(chosen, key=lambda one: one.place))
    return Summary(text="\n".join([head, *lines]), keywords=" ".join(_keywords(conversation.title, sentences)))


def _sentences(conversation: Conversation) -> Iterator[_Sentence]:
    """What may be chosen. The user's first words say what it was about, the last answer how it ended."""
    turns = conversation.turns
    first = next((at for at, turn in enumerate(turns) if turn.role is Role.USER), 0)
    found = [
        (at, text)
        for at, turn in enumerate(turns)
        for text in dict.fromkeys(_split(turn.text))
        if sum(letter.isalpha() for letter in text) + 2 * sum(map(len, _UNSPACED.findall(text))) >= _SHORTEST
    ]
    if len(found) > _WEIGHED:
        found = found[: _WEIGHED // 2] + found[-_WEIGHED // 2 :]
    for place, (at, text) in enumerate(found):
        words = _words(text)
        favour = 1.5 if at == first else 1.2 if at == len(turns) - 1 else 1.0
        if words:
            yield _Sentence(place=place, role=turns[at].role, text=text, words=words, favour=favour)


def _split(text: str) -> Iterator[str]:
    for part in _ENDS.split(_CODE.sub("\n", text)):
        sentence = " ".join(_DECORATION.sub("", part.strip()).split())
        if sentence:
            yield sentence if len(sentence) <= _LONGEST else f"{sentence[: _LONGEST - 1]}…"


def _words(text: str) -> tuple[str, ...]:
    """The words of a text in small letters; of scripts without spaces each two letters that follow each other.

    Each once, and in one order, so that sums of them are the same on every run.
    """
    text = text.casefold()
    pairs = {run[at : at + 2] for run in _UNSPACED.findall(text) for at in range(max(1, len(run) - 1))}
    words = {word for word in _WORD.findall(_UNSPACED.sub(" ", text)) if len(word) > 2}
    return tuple(sorted(pairs | words))


def _weights(sentences: Sequence[_Sentence], titled: tuple[str, ...]) -> Mapping[str, float]:
    """A word weighs by how often it comes up, less the more sentences it is in, and double if the title has it.

    One that comes up once counts half: a talk is about what it comes back to. Short words count less: in most
    languages they hold a sentence together, and say little.
    """
    count = len(sentences)
    often = Counter(word for sentence in sentences for word in sentence.words)
    return {
        word: (times - 0.5) * math.log((count + 1) / times) * _substance(word) * (2 if word in titled else 1)
        for word, times in often.items()
    }


def _substance(word: str) -> float:
    return 1.0 if _UNSPACED.match(word) else min(len(word), 6) / 6


def _keywords(title: str, sentences: Sequence[_Sentence]) -> list[str]:
    """The words an extract may be found by: what comes up often, and longer ones first, as they say more."""
    often: Counter[str] = Counter()
    for text in (title, title, *(sentence.text for sentence in sentences)):
        spaced = _WORD.findall(_UNSPACED.sub(" ", text.casefold()))
        often.update({word for word in spaced if len(word) > 3 and not word.isdigit()})
        often.update({name for name in _NAMED.findall(text) if len(name) <= 8})
    reach = len(sentences) + 3

    def worth(word: str) -> float:
        size = len(word) * (2 if _NAMED.match(word) else 1)
        return often[word] * math.log(reach / often[word]) * min(size, 10)

    return sorted(often, key=lambda word: (-worth(word), word))[:_KEYWORDS]


def _chosen(sentences: Sequence[_Sentence], weights: dict[str, float], room: int) -> list[_Sentence]:
    """One after the other the sentence that says most of what is not yet said, as long as there is room."""
    left = [sentence for sentence in sentences if _size(sentence) <= room]
    chosen: list[_Sentence] = []
    while left and len(chosen) < SENTENCES:
        # the root: a long sentence has more words, and shall not win by that alone
        values = {
            one.place: one.favour * sum(weights[w] for w in one.words) / math.sqrt(len(one.words)) for one in left
        }
        best = max(left, key=lambda one: (values[one.place], -one.place))
        room -= _size(best)
        chosen.append(best)
        for word in best.words:
            weights[word] /= 4
        left = [one for one in left if one.text != best.text and _size(one) <= room]
    return chosen


def _size(sentence: _Sentence) -> int:
    return len(f"\n{_NAMES[sentence.role]}: {sentence.text}")


def read(path: Path) -> Mapping[str, str]:
    """Summaries by conversation from a JSON object, or from lines with ``conversation`` and ``summary``.

    Raises ``HistoryError`` for a file that is neither, with the line, and for one that cannot be read.
    """
    try:
        with path.open("rb") as file:
            data = file.read(FILE + 1)
    except OSError as error:
        raise HistoryError(f"the summaries in {path} cannot be read: {error.strerror or error}") from None
    if len(data) > FILE:
        raise HistoryError(f"the summaries in {path} take more than {FILE / 2**20:.0f} MiB; give fewer at a time")
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        whole = parsed(data)
    except NotJSONError:
        return _by_name(_lines(path, data))
    if not isinstance(whole, dict):
        raise HistoryError(f"the summaries in {path} are {kind_of(whole)}; {_WANTED}")
    if isinstance(whole.get("summary"), str) and "conversation" in whole:
        return _by_name(_lines(path, data.replace(b"\n", b" ")))
    return _by_name((str(path), name, text) for name, text in whole.items())


_WANTED = 'it must be one object with a text for each conversation id, or lines of {"conversation": …, "summary": …}'


def _lines(path: Path, data: bytes) -> Iterator[tuple[str, object, object]]:
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        place = f"line {number} of {path}"
        try:
            value = parsed(line)
        except NotJSONError as error:
            raise HistoryError(f"{place} is not JSON: {error}; {_WANTED}") from None
        if not isinstance(value, dict):
            raise HistoryError(f"{place} is {kind_of(value)}; {_WANTED}")
        yield place, value.get("conversation"), value.get("summary")


def _by_name(found: Iterable[tuple[str, object, object]]) -> Mapping[str, str]:
    summaries: dict[str, str] = {}
    for place, conversation, summary in found:
        name = str(conversation) if isinstance(conversation, (str, int)) else ""
        text = clean(summary, Counter()) if isinstance(summary, str) else ""
        if not name or not text:
            what = f"the summary of {safe(name, 60)} is no text" if name else "a summary names no conversation"
            raise HistoryError(f"{place}: {what}; {_WANTED}")
        if name in summaries:
            raise HistoryError(f"{place}: there is a second summary of {safe(name, 60)}; leave one")
        summaries[name] = text
    return summaries
