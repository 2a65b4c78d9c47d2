"""What an endpoint taught by refusing: how large a request may be, and how many at a time are worth it. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.model import Outcome
from cpersona_cli.rebuild.batches import CYCLE, FRAME, Ceilings, Item, padded

#: Requests at a time in the beginning: one is computed while the next one waits, so that the endpoint never idles.
FIRST_SENDERS = 2
#: Which part of the growth that is possible makes more requests at a time worth it: in the beginning, where batches are
#: alike, and later; and which part calls for still more.
_PROMPT, _WORTH, _GREAT = 0.25, 0.45, 0.7
#: A gain that is no accident.
_SOME = 0.1
#: Rounds of measurement between two attempts to send more; doubled after each failed one.
_REST, _LONGEST_REST = 4, 32
#: A text whose estimate is this near to the stated window travels alone.
_NEAR = 0.7
#: What of a stated limit is used, because the tokens are only estimated.
_MARGIN = 0.95
_MEBIBYTE = 1 << 20

_PER_REQUEST = re.compile(r"\bmax(?:imum)?\D{0,20}(\d{1,9}) tokens per request", re.IGNORECASE)
_GIVEN = re.compile(r"(?:requested|given:?|input \(|has|got)\s{0,2}(\d{1,9})\b", re.IGNORECASE)


def stated_tokens(message: str) -> int | None:
    """The tokens a refusal says it was given, as TEI, vLLM, OpenAI and llama.cpp word it."""
    match = _GIVEN.search(message)
    return int(match.group(1)) if match else None


@dataclass(slots=True)
class Limits:
    """The ceilings in force, and those that the endpoint taught, by name."""

    count: int
    tokens: int
    size: int
    alone: int = 0
    learned: dict[str, int] = field(default_factory=dict)

    @property
    def ceilings(self) -> Ceilings:
        return Ceilings(self.count, self.tokens, self.size, self.alone)

    def refused(self, outcome: Outcome, items: Sequence[Item]) -> None:
        """A request of several texts was too large: lower the ceiling it ran into.

        By the number or the tokens the server stated, by half of the bytes where it counts those, else by half.
        """
        number, size = len(items), FRAME + sum(one.size for one in items)
        allowed = _PER_REQUEST.search(outcome.server_message)
        if allowed:
            given = stated_tokens(outcome.server_message)
            share = int(allowed.group(1)) / given * _MARGIN if given else 0.5
            self.fewer_tokens(int(padded(items) * min(share, 0.9)))
        elif outcome.kind is Kind.NO_BATCHING:
            self.fewer(1)
        elif outcome.limit is not None and 0 < outcome.limit < number:
            self.fewer(outcome.limit)
        elif outcome.limit is None and (outcome.status == 413 or size > _MEBIBYTE):
            self.size = min(self.size, size // 2)
            self.learned["bytes"] = self.size
        else:
            self.fewer(number // 2)

    def fewer(self, count: int) -> None:
        """No more than ``count`` texts in a request."""
        self.count = max(1, min(self.count, count))
        self.learned["batch"] = self.count

    def fewer_tokens(self, tokens: int) -> None:
        """No more than ``tokens`` padded tokens in a request."""
        self.tokens = max(1, min(self.tokens, tokens))
        self.learned["tokens"] = self.tokens

    def window(self, outcome: Outcome, items: Sequence[Item]) -> None:
        """A text was too long: by the stated number of tokens, else longer than this one is estimated."""
        if outcome.limit:
            self.learned["window"] = outcome.limit
            near = max(1, int(outcome.limit * _NEAR))
        elif len(items) == 1:
            near = items[0].tokens
        else:
            return
        self.alone = min(self.alone or near, near)


@dataclass(slots=True)
class Senders:
    """How many requests at a time: more while that brings more, fewer when the endpoint asks.

    Measured in rounds, leaving out what was sent under another number: padded tokens and requests per second, because
    batches cost by both and differ in length, so that the lesser gain of the two is no matter of which came in a round.
    Each is taken in two ways, of which the lesser counts: by the time between answers (exact where one thing is done at
    a time, misled where answers come in bursts), and by the time of requests, as often as there are at a time.

    From two it goes to three (and never further on an endpoint that works on one thing at a time), then in threefold
    steps while goodput follows, then by half. More must bring a good part of what it could bring, else it is taken
    back. A refusal halves the number, and from then on it only grows by one. ``timeout`` (seconds): no growth where
    answers would come near to it.
    """

    cap: int
    timeout: float = 30.0
    count: int = field(init=False)
    _fast: bool = True
    _sure: bool = False
    _refused: bool = False
    _usual: float | None = None
    _since: float = float("-inf")
    _first: tuple[float, float] | None = None
    _tokens: float = 0.0
    _seconds: float = 0.0
    _answers: int = 0
    _slowest: float = 0.0
    _before: tuple[int, float] | None = None
    _pause: int = 0
    _rest: int = _REST

    def __post_init__(self) -> None:
        self.count = max(1, min(FIRST_SENDERS, self.cap))

    @property
    def settled(self) -> bool:
        """The number for the beginning is found; what follows may be unlike what it was found with."""
        return self._before is None and (not self._fast or self.count >= self.cap)

    def anew(self, now: float) -> None:
        """Batches are others from ``now`` on: nothing measured before can be compared."""
        self._usual = None
        self.disturbed(now)

    def halve(self, now: float) -> bool:
        """The endpoint asked to slow down, or fell silent. Whether there was anything to halve."""
        before, self.count = self.count, max(1, self.count // 2)
        self._refused, self._sure, self._fast = True, True, False
        self._before, self._pause, self._usual = None, self._rest, None
        self.disturbed(now)
        return self.count < before

    def disturbed(self, now: float) -> None:
        """What was measured until ``now`` is worth nothing: begin anew."""
        self._since, self._first, self._slowest = now, None, 0.0
        self._tokens, self._seconds, self._answers = 0.0, 0.0, 0

    def answered(self, tokens: int, sent: float, now: float) -> None:
        """One request of ``tokens`` padded tokens, sent at ``sent``, is settled."""
        if sent < self._since or now <= sent:
            return
        self._tokens += tokens
        self._seconds += now - sent
        self._answers += 1
        self._slowest = max(self._slowest, now - sent)
        if self._first is None:
            self._first = (now, tokens)
        begun, before = self._first
        if self._answers >= self._enough and now > begun:
            between = math.sqrt((self._tokens - before) * (self._answers - 1)) / (now - begun)
            within = self.count * math.sqrt(self._tokens * self._answers) / self._seconds
            self._judge(min(between, within), now)

    @property
    def _enough(self) -> int:
        """Answers of a round: whole cycles of short and long batches, and as many as are under way at a time."""
        return CYCLE * math.ceil((self.count if self._fast else 2 * self.count) / CYCLE) + 1

    def _judge(self, goodput: float, now: float) -> None:
        """One round is over: keep the number, take it back, or try a larger one."""
        if self._before is not None:
            number, earlier = self._before
            possible, gain = self.count / number - 1, goodput / earlier - 1
            self._before = None
            if gain < (_PROMPT if self._fast else _WORTH) * possible:
                if self._fast:
                    self._usual, self._pause = None, 1  # what comes is no longer like the beginning
                else:
                    self._sure, self._pause, self._rest = True, self._rest, min(_LONGEST_REST, 2 * self._rest)
                # what it did bring shows how many there is room for, and one more keeps them all busy
                room = round(number * (1 + gain)) + 1 if number > FIRST_SENDERS and gain > _SOME else number
                self.count, self._fast = min(self.count, room), False
                self.disturbed(now)
                return
            self._fast = not self._sure and gain > _GREAT * possible
            self._usual = goodput
        # one poor round must not make the next one look like a gain
        self._usual = goodput if self._usual is None else (self._usual + goodput) / 2
        self._pause -= 1
        before, more = self.count, min(self.cap, self._more())
        if self._pause < 0 and more > before and self._slowest * more / before < self.timeout / 2:
            self._before, self.count = (before, max(goodput, self._usual)), more
        self.disturbed(now)

    def _more(self) -> int:
        if self._refused or self.count <= FIRST_SENDERS:
            return self.count + 1
        return 3 * self.count if self._fast else self.count + self.count // 2


def shorter(one: Item, outcome: Outcome) -> int:
    """How many characters to keep of a text that is too long: by what the server stated, else half of it."""
    given, limit = stated_tokens(outcome.server_message) or one.tokens, outcome.limit
    share = limit / given * _MARGIN if limit and limit < given else 0.5
    return int(len(one.text) * min(share, 0.9))
