"""What an endpoint taught by refusing: how large a request may be, and how many at a time are worth it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.model import Outcome
from cpersona_cli.rebuild.batches import FRAME, Ceilings, Item, padded

#: Requests at a time in the beginning: one is computed while the next one waits, so that the endpoint never idles.
FIRST_SENDERS = 2
#: More goodput than this makes more requests at a time worth it: after doubling them, and after adding some.
_DOUBLED, _ADDED = 1.15, 1.04
#: Rounds of measurement between two attempts to send more; doubled after each failed one.
_REST, _LONGEST_REST = 4, 64
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

    Rounds are measured in padded tokens per second, with the requests left out that began under another number. From
    two, the number doubles as long as goodput follows; then some are added from time to time. A refusal halves it, and
    from then on it only grows by adding. ``timeout`` (seconds): no growth where answers would come near to it.
    """

    cap: int
    timeout: float = 30.0
    count: int = field(init=False)
    _gentle: bool = False
    _skip: int = 0
    _began: float | None = None
    _tokens: float = 0.0
    _answers: int = 0
    _slowest: float = 0.0
    _before: tuple[int, float] | None = None
    _pause: int = 0
    _rest: int = _REST

    def __post_init__(self) -> None:
        self.count = max(1, min(FIRST_SENDERS, self.cap))

    def halve(self) -> bool:
        """The endpoint asked to slow down, or fell silent. Returns whether there was anything to halve."""
        before, self.count = self.count, max(1, self.count // 2)
        self._gentle, self._before, self._pause = True, None, self._rest
        self.reset()
        return self.count < before

    def reset(self) -> None:
        """What is being measured was disturbed: begin anew."""
        self._skip, self._began, self._tokens, self._answers, self._slowest = self.count, None, 0.0, 0, 0.0

    def answered(self, tokens: int, seconds: float, now: float) -> None:
        """One request of ``tokens`` padded tokens went through in ``seconds``, at ``now``."""
        if self._began is None:
            self._skip -= 1
            if self._skip <= 0:
                self._began = now
            return
        self._tokens += tokens
        self._answers += 1
        self._slowest = max(self._slowest, seconds)
        if self._answers >= 2 * self.count + 2 and now > self._began:
            self._judge(self._tokens / (now - self._began))

    def _judge(self, goodput: float) -> None:
        """One round is over."""
        worst = self._slowest
        if self._before is not None:
            number, earlier = self._before
            if goodput < earlier * (_ADDED if self._gentle else _DOUBLED):
                self.count, self._before, self._pause = number, None, 0 if not self._gentle else self._rest
                self._rest = self._rest if not self._gentle else min(_LONGEST_REST, 2 * self._rest)
                self._gentle = True
                self.reset()
                return
        self._before = None
        self._pause -= 1
        more = self.count + max(1, self.count // 4) if self._gentle else 2 * self.count
        more = min(self.cap, more)
        if self._pause < 0 and more > self.count and worst * more / self.count < self.timeout / 2:
            self._before, self.count = (self.count, goodput), more
        self.reset()


def shorter(one: Item, outcome: Outcome) -> int:
    """How many characters to keep of a text that is too long: by what the server stated, else half of it."""
    given, limit = stated_tokens(outcome.server_message) or one.tokens, outcome.limit
    share = limit / given * _MARGIN if limit and limit < given else 0.5
    return int(len(one.text) * min(share, 0.9))
