"""What vectors are worth beyond one reply: order, repeatability, meaning, long texts, batches, large bodies, speed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from cpersona_cli.embedding.calling import STARTING, Caller
from cpersona_cli.embedding.kinds import MEANINGS, Kind
from cpersona_cli.embedding.meaning import SAME, cosine
from cpersona_cli.embedding.measured import Batch, Measured, Plan, Remark, State, Step, Window
from cpersona_cli.embedding.model import Outcome
from cpersona_cli.embedding.texts import anchor_texts, batch, padded, separation
from cpersona_cli.embedding.window import window

#: A text sent alone and in company may differ by the arithmetic of the batch, by not more than this cosine.
ALONE = 0.999
#: Cosine of unrelated texts above which the server's first threshold (0.3) keeps nothing out.
CROWDED = 0.6
#: A first call this many times and seconds slower than the second one had to load something.
COLD_TIMES, COLD_SECONDS = 3.0, 1.0


@dataclass(slots=True)
class Quality:
    """The measurements made on an endpoint whose first call was answered; each adds a step, and remarks."""

    caller: Caller
    found: Measured
    plan: Plan
    texts: Sequence[str]
    word: str
    heavy: bool = field(kw_only=True)
    _end: float = 0.0

    #: The steps in their order.
    NAMES: ClassVar[tuple[str, ...]] = (
        "repeat", "alone", "separation", "long", "batch-32", "batch-64", "body",
    )  # fmt: skip
    _LIGHT: ClassVar[frozenset[str]] = frozenset({"repeat", "alone", "separation"})

    async def all(self) -> None:
        """Every measurement that the plan, the host and the time allow."""
        clock = self.caller.clock
        self._end = clock.now() + self.plan.budget
        made: dict[str, Callable[[], Awaitable[Step]]] = {
            "repeat": self._repeat,
            "alone": self._alone,
            "separation": self._separation,
            "long": self._long,
            **{f"batch-{size}": self._batch_of(size) for size in self.plan.batches},
            **({"body": self._body} if self.plan.body else {}),
        }
        for name, step in made.items():
            if name not in self._LIGHT and self.plan.light:
                self.found.steps.append(Step(name=name, state="skipped", detail="only a few short texts were sent"))
            elif name not in self._LIGHT and not self.heavy:
                skipped = Step(name=name, state="skipped", detail="not on this computer; --full sends it all the same")
                self.found.steps.append(skipped)
            elif clock.now() > self._end:
                self.found.steps.append(Step(name=name, state="skipped", detail="the time for measurements is over"))
            else:
                self.found.steps.append(await step())

    async def _repeat(self) -> Step:
        outcome = await self.caller.embed(self.texts)
        if not outcome.ok:
            return self._failed("repeat", outcome, remark="unstable")
        self.found.second_call = outcome.elapsed
        first = self.found.first_call or 0.0
        if first > COLD_SECONDS and first > COLD_TIMES * outcome.elapsed:
            detail = f"the first call took {first:.1f} s, the second {outcome.elapsed:.2f} s"
        else:
            detail = f"{outcome.elapsed * 1000:.0f} ms for {len(self.texts)} texts"
        if outcome.dim != self.found.outcome.dim:
            agreement = 0.0
        else:
            pairs = zip(self.found.outcome.vectors, outcome.vectors, strict=True)
            agreement = min(cosine(left, right) for left, right in pairs)
        self._agreed(agreement)
        if agreement < SAME:
            measured = f"the same texts sent twice agree only to a cosine of {agreement:.4f}"
            return self._remark("repeat", Remark(name="unstable", measured=measured, kind=Kind.UNSTABLE))
        return Step(name="repeat", state="pass", detail=detail)

    async def _alone(self) -> Step:
        outcome = await self.caller.embed(self.texts[:1])
        if not outcome.ok:
            return self._failed("alone", outcome, remark="single-fails", fatal=True)
        if outcome.dim != self.found.outcome.dim:
            self._agreed(0.0)
            measured = f"a text alone has {outcome.dim} dimensions, among others {self.found.outcome.dim}"
            return self._remark("alone", Remark(name="unstable", measured=measured, fatal=True, kind=Kind.UNSTABLE))
        near = [cosine(outcome.vectors[0], vector) for vector in self.found.outcome.vectors]
        self._agreed(near[0])
        if near[0] >= ALONE:
            return Step(name="alone", state="pass", detail="a text has the same vector alone and among others")
        if max(near) >= ALONE:
            measured = f"the vector of text 0 came back in place {near.index(max(near))}"
            return self._remark("alone", Remark(name="wrong-order", measured=measured, fatal=True, kind=Kind.BAD_INDEX))
        measured = f"a text alone and among others agree only to a cosine of {near[0]:.4f}"
        return self._remark("alone", Remark(name="unstable", measured=measured, kind=Kind.UNSTABLE))

    async def _separation(self) -> Step:
        outcome = await self.caller.embed(anchor_texts())
        if not outcome.ok:
            return self._failed("separation", outcome, remark="batch-too-large")
        apart = separation(outcome.vectors)
        self.found.separation = apart
        detail = (
            f"related texts {apart.related:.2f}, strangers {apart.strangers:.2f}; "
            f"{apart.nearest} of {apart.of} texts find their partner"
        )
        if apart.weak:
            return self._remark(
                "separation", Remark(name="weak-separation", measured=detail, kind=Kind.WEAK_SEPARATION)
            )
        if apart.strangers > CROWDED:
            measured = f"texts that have nothing in common are at a cosine of {apart.strangers:.2f}"
            return self._remark("separation", Remark(name="crowded", measured=measured, kind=Kind.WEAK_SEPARATION))
        return Step(name="separation", state="pass", detail=detail)

    async def _long(self) -> Step:
        result = await window(self.caller, self.plan, self.word)
        if not isinstance(result, Window):
            slow = result.kind is Kind.TIMEOUT
            detail = f"a text of {self.plan.words} words took too long" if slow else MEANINGS[result.kind].sentence
            return Step(name="long", state="unknown", detail=detail)
        self.found.window = result
        size = f"{result.words} words ({result.characters} characters)"
        if result.at_least:
            return Step(name="long", state="pass", detail=f"{size} count to the last one")
        stated = f"; the server speaks of {result.limit} tokens" if result.limit else ""
        if result.refused is None:
            measured = f"what stands behind about {size} does not count{stated}"
            return self._remark("long", Remark(name="truncating", measured=measured, kind=Kind.TRUNCATING))
        measured = f"texts longer than about {size} fail: {MEANINGS[result.refused].sentence}{stated}"
        return self._remark("long", Remark(name="window-too-small", measured=measured, kind=Kind.INPUT_TOO_LARGE))

    def _batch_of(self, size: int) -> Callable[[], Awaitable[Step]]:
        async def made() -> Step:
            return await self._batch(size)

        return made

    async def _batch(self, size: int) -> Step:
        name = f"batch-{size}"
        smaller = next(
            (made for made in self.found.batches if made.kind not in {Kind.OK, *STARTING} and made.size < size), None
        )
        if smaller is not None:
            return Step(name=name, state="skipped", detail=f"{smaller.size} texts at once fail already")
        outcome = await self._try_batch(size)
        if outcome.ok:
            self.found.largest_batch = size
            return Step(name=name, state="pass", detail=f"{size / max(outcome.elapsed, 1e-6):.0f} texts a second")
        if outcome.kind in STARTING:
            return Step(name=name, state="unknown", detail=MEANINGS[outcome.kind].sentence)
        fits = await self._largest(size, outcome.limit)
        said = f" (“{outcome.server_message}”)" if outcome.server_message else ""
        fit = f"{fits} texts at once are answered" if fits else "not even 2 texts at once are answered"
        measured = f"{size} texts at once fail: {MEANINGS[outcome.kind].sentence}{said}; {fit}"
        return self._remark(name, Remark(name="batch-too-large", measured=measured, kind=outcome.kind))

    async def _try_batch(self, size: int) -> Outcome:
        texts, places = batch(f"{self.word}{size}", size, self.texts)
        outcome = await self.caller.embed(texts)
        self.found.batches.append(Batch(size=size, kind=outcome.kind, seconds=outcome.elapsed, limit=outcome.limit))
        if outcome.ok and outcome.dim != self.found.outcome.dim:
            measured = f"{size} texts at once have {outcome.dim} dimensions, four {self.found.outcome.dim}"
            self.found.remarks.append(Remark(name="unstable", measured=measured, fatal=True, kind=Kind.UNSTABLE))
        elif outcome.ok:
            for place, vector in zip(places, self.found.outcome.vectors, strict=False):
                agreement = cosine(outcome.vectors[place], vector)
                self._agreed(agreement)
                if agreement < ALONE and not self._known("unstable"):
                    measured = f"among {size} texts, text {place} has another vector than before"
                    self.found.remarks.append(Remark(name="unstable", measured=measured, kind=Kind.UNSTABLE))
        return outcome

    async def _largest(self, size: int, stated: int | None) -> int | None:
        """The largest batch that is answered: one known already, the stated one, else found by halving."""
        if self.found.largest_batch and not (stated and self.found.largest_batch < stated < size):
            return self.found.largest_batch
        tries = [stated] if stated and 1 < stated < size else []
        half = size // 2
        while half > 1 and len(tries) < 5:
            tries.append(half)
            half //= 2
        for fewer in tries:
            outcome = await self._try_batch(fewer)
            if outcome.ok:
                self.found.largest_batch = fewer
                return fewer
        return None

    async def _body(self) -> Step:
        texts = padded(self.word, min(self.plan.batches[0], self.found.largest_batch or 1), self.plan.body)
        outcome = await self.caller.embed(texts)
        size = f"{self.plan.body:,} bytes"
        if outcome.ok:
            return Step(name="body", state="pass", detail=f"a request of {size} is answered")
        if outcome.kind in STARTING:
            return Step(name="body", state="unknown", detail=MEANINGS[outcome.kind].sentence)
        measured = f"a request of {size} fails: {MEANINGS[outcome.kind].sentence}"
        return self._remark("body", Remark(name="body-limit", measured=measured, kind=outcome.kind))

    def _failed(self, name: str, outcome: Outcome, *, remark: str, fatal: bool = False) -> Step:
        """A step whose call failed although the first one was answered."""
        sentence = MEANINGS[outcome.kind].sentence
        said = f" (“{outcome.server_message}”)" if outcome.server_message else ""
        if outcome.kind in STARTING:
            return Step(name=name, state="unknown", detail=sentence)
        what = {"repeat": "the same texts again", "alone": "one text alone", "separation": "ten short texts"}[name]
        return self._remark(
            name, Remark(name=remark, measured=f"{what}: {sentence}{said}", fatal=fatal, kind=outcome.kind)
        )

    def _remark(self, name: str, remark: Remark) -> Step:
        self.found.remarks.append(remark)
        return Step(name=name, state=_STATE, detail=remark.measured)

    def _agreed(self, cosine_: float) -> None:
        """Keep the lowest cosine of one text's vectors in two replies."""
        self.found.repeat = cosine_ if self.found.repeat is None else min(self.found.repeat, cosine_)

    def _known(self, name: str) -> bool:
        return any(remark.name == name for remark in self.found.remarks)


_STATE: State = "findings"
