"""One run of the pipeline, from the first row to the last answer.

One coroutine decides everything, so that nothing happens at the same time but requests: it reads rows ahead, starts
requests, and settles each answer completely (written, repeated, split or given up) before it looks at the next.

Many requests may be under way, but few answers are taken in before they are settled, and nothing more is asked for
while an answer waits: where the endpoint is quicker than this process, answers would pile up. So what is lost when the
process dies is what was in a request, and hardly an answer or two.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from cpersona_cli.embedding.client import Client
from cpersona_cli.embedding.kinds import MEANINGS, Kind
from cpersona_cli.embedding.meaning import ZERO
from cpersona_cli.embedding.measured import Clock
from cpersona_cli.embedding.model import Outcome
from cpersona_cli.rebuild.batches import Item, padded
from cpersona_cli.rebuild.board import Board
from cpersona_cli.rebuild.faults import Step, passes, said, step, too_long
from cpersona_cli.rebuild.intake import Intake, Reason
from cpersona_cli.rebuild.ledger import TOO_LONG, Ledger, Sink
from cpersona_cli.rebuild.limits import Limits, Senders, shorter, stated_tokens
from cpersona_cli.rebuild.model import Fetched, Options, Tell
from cpersona_cli.rebuild.pace import Meter, Patience
from cpersona_cli.rebuild.sameness import CANARY, Sameness
from cpersona_cli.rebuild.waiting import TRIES, Batch, Waiting
from cpersona_cli.store.model import Row

#: Reasons of an end beside the kinds of outcomes.
CHANGED, TOO_MANY = "changed_mid_run", "too_many_errors"
#: Batches after which the model is proven again.
_PROOF = 16
#: Answers that are taken in and not settled; requests that follow one answer, so that many do not leave, and come back,
#: at once; and looks at the network before they do, because it takes some until an answer that is there is seen.
_PLACES, _FOLLOW, _LOOKS = 2, 2, 8
#: Seconds that running requests may take once the run is to end.
_GRACE = 5.0
#: Times a batch is throttled until it is sent in halves.
_THROTTLED = 3


class Run:
    """One run: what is under way, and what is made of each answer."""

    def __init__(
        self,
        rows: Iterable[Row],
        sink: Sink,
        client: Client,
        options: Options,
        *,
        tell: Tell | None,
        stop: asyncio.Event,
        clock: Clock,
    ) -> None:
        self.client, self.options, self.clock, self.stop = client, options, clock, stop
        self.began = now = clock.now()
        self.intake = Intake(rows, sink.known)
        self.ledger = Ledger(sink, self.intake, options.target.mode)
        self.limits = Limits(options.batch, options.batch_tokens, options.batch_bytes)
        self.senders = Senders(options.concurrency, client.endpoint.timeout)
        self.sameness = Sameness(options.target, options.canary)
        self.patience = Patience(options.patience, now)
        self.board = Board(tell=tell, rows=Meter(now), tokens=Meter(now), total=options.total, expected=options.tokens)
        self.waiting = Waiting(self.intake, self.limits)
        self.running: dict[asyncio.Task[Outcome], Batch | None] = {}
        self.dropped: list[asyncio.Task[Outcome]] = []
        self.places = asyncio.Semaphore(_PLACES)
        self.may_follow = _FOLLOW
        self.come: dict[asyncio.Task[Outcome], bool] = {}  # whose answer has begun to come, and whether it has a place
        self.stopping = asyncio.ensure_future(stop.wait())
        # the canary: wanted, and alone allowed while the endpoint is away; what it was asked for, and when
        self.due = self.away = True
        self.asked: list[Batch] | None = None
        self.asked_rows, self.asked_at = 0, 0.0
        self.answered = self.over = self.interrupted = self.slowed = False
        self.unproven = self.requests = self.padded = 0
        self.ends_at = 0.0
        self.reason = self.detail = ""

    async def go(self) -> None:
        """Until everything is settled, or cannot be."""
        while True:
            if self.stop.is_set() and not self.over:
                self.interrupted = True
                self.end()
            if not self.over:
                self.read()
                self.launch()
            if not self.running and (self.over or self.finished()):
                break
            answered = await self.wait()
            for task in answered:
                if task in self.running:  # not after another model was found to answer
                    self.settle(self.running.pop(task), task.result())
                    if self.come.pop(task, False):
                        self.places.release()
                    await self.look()
            if self.over and not answered:
                break  # out of time
        self.ledger.flush()
        self.show(force=True)

    async def look(self) -> None:
        """Let answers that are there be seen, before more is asked for."""
        self.may_follow = _FOLLOW
        for _ in range(_LOOKS):
            await asyncio.sleep(0)

    async def close(self) -> None:
        """End what still runs."""
        tasks = [self.stopping, *self.running, *self.dropped]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def fetched(self) -> Fetched:
        whole = not self.reason and not self.interrupted
        learned = dict(self.limits.learned)
        if self.slowed:
            learned["concurrency"] = self.senders.count
        return Fetched(
            counts=self.ledger.counts(self.intake.read if whole else max(self.options.total, self.intake.read)),
            requests=self.requests,
            retries=self.waiting.retries,
            tokens=self.board.sent,
            padded=self.padded,
            seconds=self.clock.now() - self.began,
            learned=learned,
            reason=self.reason,
            detail=self.detail,
            interrupted=self.interrupted,
            cut=self.ledger.cut,
            same=self.intake.same,
            canary=self.sameness.canary,
        )

    # what is sent, and when

    def read(self) -> None:
        """Read a little ahead, so that the next window is there when the present one is used up."""
        if self.waiting.hungry:
            self.intake.slice()
            self.ledger.flush()

    def launch(self) -> None:
        """Start what may be started now."""
        if self.clock.now() < self.patience.until:
            return
        if self.asked is None and (self.due or self.away or self.waiting.doubted or self.to_prove()):
            self.asked, self.waiting.doubted, self.asked_rows = self.waiting.doubted, [], len(self.ledger.unproven)
            self.asked_at = self.clock.now()
            self.ask([CANARY], None)
        while (
            not self.away
            and len(self.running) < self.senders.count
            and not self.come
            and self.may_follow > 0
            and (batch := self.waiting.next(alone=not self.running)) is not None
        ):
            batch.sent = self.clock.now()
            self.may_follow -= 1
            self.ask([one.text for one in batch.items], batch)

    def ask(self, texts: list[str], batch: Batch | None) -> None:
        """Send a request. Its answer is taken in when there is a place for it, which it keeps until it is settled."""

        async def arrived() -> None:
            self.come[task] = False
            await self.places.acquire()
            self.come[task] = True

        task = asyncio.ensure_future(self.client.embed(texts, arrived=arrived))
        self.running[task] = batch

    def to_prove(self) -> bool:
        """All is done, and the last rows were not proven yet."""
        return self.waiting.none and not self.running and not self.waiting.last and bool(self.ledger.unproven)

    def finished(self) -> bool:
        return self.waiting.none and not self.running and not self.waiting.last and not self.ledger.unproven

    async def wait(self) -> list[asyncio.Task[Outcome]]:
        """The requests that were answered. Returns without any while there is something to read, or to send again."""
        if self.over:
            rest = self.ends_at - asyncio.get_running_loop().time()
            done, _ = await asyncio.wait(self.running, timeout=max(0.0, rest), return_when=asyncio.FIRST_COMPLETED)
            return list(done)
        if self.waiting.hungry and len(self.running) < self.senders.count:
            await asyncio.sleep(0)
            return [task for task in self.running if task.done()]
        pause = self.patience.until - self.clock.now()
        timer = [asyncio.ensure_future(self.clock.sleep(pause))] if pause > 0 else []
        await asyncio.wait([*self.running, *timer, self.stopping], return_when=asyncio.FIRST_COMPLETED)
        for task in timer:
            task.cancel()
        return [task for task in self.running if task.done()]

    # what came back

    def settle(self, batch: Batch | None, outcome: Outcome) -> None:
        self.requests += 1
        if batch is None:
            self.canary(outcome)
        elif outcome.ok:
            self.brought(batch, outcome)
        elif not self.over:
            self.failed(batch, outcome)
        self.show()

    def canary(self, outcome: Outcome) -> None:
        """The fixed text came back, or did not: whether the model is the same, and who is to blame for failures."""
        asked, self.asked = self.asked or [], None
        if outcome.ok and outcome.kind is not Kind.ZERO_VECTOR:
            other = self.sameness.other(outcome)
            if other:
                self.ledger.take_back()
                self.end(CHANGED, other)
                return
            self.answered, self.due, self.away, self.unproven = True, False, False, 0
            self.succeeded(self.asked_at)
            self.ledger.prove(self.asked_rows)
            for batch in asked:
                if not self.over:
                    self.blame(batch)
            return
        self.waiting.doubted[:0] = asked
        throttled = outcome.kind is Kind.THROTTLED
        if not throttled and not passes(outcome.kind, answered=self.answered):
            self.end(outcome.kind.value, said(outcome))
            return
        self.away = self.away or not throttled
        self.hold(outcome, self.asked_at, slow=throttled)

    def brought(self, batch: Batch, outcome: Outcome) -> None:
        """Vectors came back: check them, and keep the good ones."""
        changed = self.sameness.changed(outcome)
        if changed:
            self.end(CHANGED, changed)
            return
        now, items = self.succeeded(batch.sent), batch.items
        if outcome.kind is Kind.CONSTANT_VECTOR:
            # texts that are equal in what the model reads of them, or a broken batch: one by one shows which
            batch.outcome = outcome
            self.waiting.halve(batch)
            return
        zero = [one for one, length in zip(items, outcome.norms, strict=True) if length < ZERO]
        if zero and len(items) == 1:
            batch.outcome = outcome
            self.waiting.doubted.append(batch)
            return
        self.waiting.again.extend(Batch([one]) for one in zero)
        good = [pair for pair in zip(items, outcome.vectors, strict=True) if pair[0] not in zero]
        rows = sum(len(one.rows) for one, _ in good)
        self.ledger.stage([one for one, _ in good], [vector for _, vector in good])
        self.board.batch(rows, sum(one.tokens for one, _ in good), now)
        self.padded += padded(items)
        self.senders.answered(padded(items), batch.sent, self.clock.now())
        if self.waiting.trying and self.senders.settled:
            self.waiting.repack()
            self.senders.anew(self.clock.now())
        self.unproven += 1
        self.due = self.due or self.unproven >= _PROOF
        self.waiting.went_through(batch)

    def succeeded(self, sent: float) -> float:
        """A request that was sent at ``sent`` went through: nothing is waited for any more. Returns the time."""
        now = self.clock.now()
        self.patience.succeeded(now, sent)
        if now >= self.patience.until:
            self.board.why = ""
        return now

    def failed(self, batch: Batch, outcome: Outcome) -> None:
        """Nothing came back: decide by the kind of failure."""
        batch.outcome = outcome
        next_step, alone = step(outcome), len(batch.items) == 1
        if next_step is Step.THROTTLE:
            batch.throttled += 1
            if batch.throttled % _THROTTLED == 0 and not alone:
                self.waiting.halve(batch)  # it may be more than the server lets through in its period
            else:
                self.waiting.repeat(batch)
            self.hold(outcome, batch.sent, slow=True)
            return
        if next_step is Step.WAIT:
            self.away = True
            self.waiting.repeat(batch)
            self.hold(outcome, batch.sent)
            return
        if batch.split is not None:
            batch.split.sound = False
        if next_step is Step.AGAIN:
            batch.tries += 1
            self.waiting.doubted.append(batch)
            if batch.tries == 1:
                self.away = True
                self.hold(outcome, batch.sent, slow=outcome.kind is Kind.TIMEOUT)
        elif next_step is Step.DOUBT or (alone and outcome.kind in {Kind.NO_BATCHING, Kind.TOO_LARGE}):
            self.waiting.doubted.append(batch)
        elif alone and too_long(outcome.kind):
            self.long(batch.items[0], outcome)
        elif alone:
            self.refuse(batch.items[0], outcome)
        elif next_step is Step.SHRINK:
            self.limits.refused(outcome, batch.items)
            self.waiting.resize(batch)
        elif outcome.kind is Kind.INPUT_TOO_LARGE:
            self.limits.window(outcome, batch.items)
            self.waiting.resize(batch)
        else:
            self.waiting.halve(batch)

    def blame(self, batch: Batch) -> None:
        """The endpoint works, so it is bad luck, the size of this batch, or one of its texts."""
        outcome, alone = batch.outcome, len(batch.items) == 1
        assert outcome is not None  # noqa: S101 - for the type checker: only failed batches are doubted
        late = outcome.kind is Kind.TIMEOUT
        if outcome.retryable and batch.tries < TRIES and (alone or not late):
            self.waiting.repeat(batch)
        elif late and not alone:
            self.limits.fewer_tokens(padded(batch.items) // 2)
            self.waiting.resize(batch)
        elif not alone:
            self.waiting.halve(batch)
        elif outcome.retryable and not batch.alone:
            self.waiting.last.append(batch)
        else:
            self.refuse(batch.items[0], outcome)

    # what follows

    def long(self, one: Item, outcome: Outcome) -> None:
        """One text alone is longer than the endpoint takes."""
        self.limits.window(outcome, [one])
        self.waiting.repack()
        keep = shorter(one, outcome)
        if self.options.cut and one.text[:keep].strip():
            one.shorten(keep)
            self.waiting.repeat(Batch([one]))
            return
        self.ledger.refuse(one, Reason(TOO_LONG, said(outcome), stated_tokens(outcome.server_message)))
        self.patience.progressed(self.clock.now())

    def refuse(self, one: Item, outcome: Outcome) -> None:
        """One text alone fails, and the endpoint works."""
        self.ledger.refuse(one, Reason(outcome.kind.value, said(outcome)))
        self.patience.progressed(self.clock.now())
        if self.ledger.errors > self.options.allowed:
            texts = f"{self.ledger.errors} texts failed, and {self.options.allowed} may"
            self.end(TOO_MANY, f"{texts}; the last one: {self.ledger.last}")

    def hold(self, outcome: Outcome, sent: float, *, slow: bool = False) -> None:
        """Wait before anything else is sent, or give up. ``slow``: send fewer at a time from now on."""
        now = self.clock.now()
        news = self.patience.failed(now, sent, outcome.retry_after)
        self.senders.disturbed(now)
        if slow and news:
            self.slowed = self.senders.halve(now) or self.slowed
        if self.patience.spent(now):
            self.end(outcome.kind.value, f"no success for {now - self.patience.since:.0f} s: {said(outcome)}")
            return
        wait = self.patience.until - now
        told = "the server asks to wait" if outcome.retry_after is not None else "waiting"
        self.board.why = f"{MEANINGS[outcome.kind].sentence}: {told} {wait:.0f} s" if wait >= 1 else self.board.why
        self.show(force=True)

    def end(self, reason: str = "", detail: str = "") -> None:
        """Nothing new is begun. Running requests get a moment, unless another model answers them."""
        self.over, self.reason, self.detail = True, reason, detail
        self.ends_at = asyncio.get_running_loop().time() + _GRACE
        if reason == CHANGED:
            self.dropped, self.running = [*self.running], {}

    def show(self, *, force: bool = False) -> None:
        self.board.show(
            self.clock.now(),
            settled=self.ledger.settled,
            failed=self.ledger.failed,
            in_flight=len(self.running),
            retries=self.waiting.retries,
            force=force,
        )
