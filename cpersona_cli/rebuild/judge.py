"""Whether search is better with new vectors, on the user's own rows: asked before anything is exchanged.

Two questions. Known-item search: a part of a memory's text is searched for, as an agent would, and the place at which
that memory comes is noted. The new endpoint embeds the part for the new vectors; for the old ones only the old model
can, so its figures exist only where an endpoint is named that still makes the stored vectors, which is measured too.
And agreement: how many of a memory's ten nearest neighbours stay the same. That one needs no calls, and is no mark of
quality: another model may well be right to differ.
"""

from __future__ import annotations

import heapq
from asyncio import to_thread
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import TypeVar

from cpersona_cli.embedding.body import MAX_DIMENSION
from cpersona_cli.embedding.calling import Caller, Factory, connect
from cpersona_cli.embedding.kinds import MEANINGS
from cpersona_cli.embedding.loop import run
from cpersona_cli.embedding.measured import Clock
from cpersona_cli.embedding.model import Endpoint
from cpersona_cli.embedding.sampling import embed_each
from cpersona_cli.embedding.stored import FLOAT, length, pack
from cpersona_cli.rebuild.chance import SIGNIFICANT, sign_test, wilson
from cpersona_cli.rebuild.judgement import Agreement, Found, Judgement, Verdict, sentences
from cpersona_cli.rebuild.pool import Pool
from cpersona_cli.record import record, replace

#: Searches made, and rows searched through, at most.
QUERIES, ROWS = 200, 2000
#: Neighbours compared, and rows whose neighbours are.
TOP, NEIGHBOURHOODS = 10, 60
#: Fewer searches or neighbourhoods than this say nothing.
FEWEST = 20
#: Places after which a row counts as not found.
DEPTH = 10
#: Multiplications a judgement may take, which bounds the seconds of a slow computer at large widths.
WORK = 1_500_000_000
#: Cosine from which an endpoint counts as the model of the stored vectors, by the median of a few rows.
MADE_BY = 0.98

#: Characters of a part of a text that is searched for, and the fewest that still say something.
_LONGEST, _SHORTEST = 300, 12
#: Scores as close as this are equal: the place among them is a matter of luck.
_TIE = 1e-6
_BATCH, _PROOFS = 16, 8

Tell = Callable[[str, int, int], None]
Vectors = Mapping[int, bytes]
T = TypeVar("T")


@record(kw_only=True)
class Item:
    """One row: its text, its stored vector, and the new one where it was made already."""

    text: str
    old: bytes | None = None
    new: bytes | None = None


def judged(
    items: Sequence[Item], *, new: Endpoint, old: Endpoint | None = None, queries: int = QUERIES, budget: float = 300.0
) -> Judgement:
    """``judge`` in an event loop of its own."""
    return run(judge(items, new=new, old=old, queries=queries, budget=budget))


async def judge(
    items: Sequence[Item],
    *,
    new: Endpoint,
    old: Endpoint | None = None,
    queries: int = QUERIES,
    budget: float = 300.0,
    factory: Factory = connect,
    clock: Clock | None = None,
    tell: Tell | None = None,
) -> Judgement:
    """Compare search on at most ``ROWS`` of ``items``; those without a new vector are embedded first.

    Texts of ``items`` go to ``new``, and parts of them to ``old``: consent for both is the caller's to have. No call
    is begun after ``budget`` seconds for each endpoint. Never raises but for cancellation, which it obeys at once: what
    takes seconds of computing is done in a thread that the loop of ``embedding.loop`` leaves behind.
    """
    clock = clock or Clock()
    rows = _spread(_distinct(items), ROWS)
    parts = {place: part for place, row in enumerate(rows) if (part := part_of(row.text, place))}
    size = max((len(row.old or b"") + len(row.new or b"") for row in rows), default=0) // FLOAT
    most = min(queries, WORK // max(1, 2 * len(rows) * size))
    asked = _spread(list(parts), max(1, most))
    async with Caller(endpoint=new, factory=factory, clock=clock) as caller:
        ours = _Side(caller, budget, tell)
        made = await ours.embed({place: row.text for place, row in enumerate(rows) if row.new is None}, "rows")
        given = {place: row.new for place, row in enumerate(rows) if row.new is not None}
        fresh = _Searched(_usable({**given, **made}))
        searched = await ours.embed({place: parts[place] for place in asked if place in fresh.vectors}, "searches")
    # a row that was never tried would be missing on one side only
    tried = fresh.vectors.keys() | ours.failed
    former = {place: row.old for place, row in enumerate(rows) if row.old is not None and place in tried}
    stored = _Searched(_usable(former))
    places = await to_thread(fresh.places, searched)
    if searched and not places:
        ours.why = "the endpoint answers with another width than that of the new vectors"
    before: Mapping[int, int] = {}
    why, sent = "no endpoint with the old model was named", ours.sent
    if old is not None:
        async with Caller(endpoint=old, factory=factory, clock=clock) as caller:
            theirs = _Side(caller, budget, tell)
            proofs = _spread([place for place in stored.vectors if place in parts], _PROOFS)
            why = await _another(theirs, {place: rows[place].text for place in proofs}, stored.vectors)
            if not why:
                answers = await theirs.embed({place: parts[place] for place in places}, "searches before")
                before = await to_thread(stored.places, answers)
                why = "" if before else theirs.why
            sent += theirs.sent
    judgement = Judgement(
        verdict=Verdict.UNKNOWN,
        agreement=await to_thread(_agreement, stored, fresh, asked),
        old_unknown=why,
        texts_sent=sent,
    )
    judgement = _weighed(judgement, places, before, len(fresh.vectors), len(stored.vectors))
    return replace(judgement, sentences=tuple(sentences(judgement, ours.why)))


def part_of(text: str, number: int) -> str:
    """A part of a text to search for: its first half where ``number`` is even, else its second; at most 300 characters.

    Empty for a text too short to be halved.
    """
    words = text.split()
    if len(words) >= 6:
        middle = len(words) // 2
        half = " ".join(words[:middle] if number % 2 == 0 else words[middle:])
    else:
        whole = " ".join(words)
        half = whole[: len(whole) // 2] if number % 2 == 0 else whole[len(whole) // 2 :]
    part = half[:_LONGEST].strip()
    # a script without spaces says more with fewer characters
    enough = _SHORTEST if text.isascii() else _SHORTEST // 2
    return part if len(part) >= enough else ""


class _Side:
    """One endpoint: texts to packed vectors, within a budget.

    ``why`` says how it failed where it did, ``failed`` are the places of texts that it refused.
    """

    def __init__(self, caller: Caller, budget: float, tell: Tell | None) -> None:
        self.caller, self.tell, self.sent, self.why = caller, tell, 0, ""
        self.failed: set[int] = set()
        self._end = caller.clock.now() + budget

    async def embed(self, texts: Mapping[int, str], what: str) -> Vectors:
        """The vectors of ``texts`` as the server would store them; those that failed are left out."""
        places, done = list(texts), {}
        for start in range(0, len(places), 4 * _BATCH):
            group = places[start : start + 4 * _BATCH]
            rest = self._end - self.caller.clock.now()
            each = await embed_each(self.caller, [texts[place] for place in group], rest, batch=_BATCH)
            self.sent += len(group) - each.unfinished
            for position, vector in each.vectors.items():
                done[group[position]] = pack(self.caller.endpoint.mode, vector)
            if self.tell is not None:
                self.tell(what, min(start + len(group), len(places)), len(places))
            self.failed.update(group[position] for position in each.failed)
            if each.failed:
                self.why = MEANINGS[next(iter(each.failed.values()))].sentence
            if each.unfinished:
                self.why = "the time for it was over" if each.gone is None else MEANINGS[each.gone].sentence
                break
        return done


async def _another(side: _Side, texts: Mapping[int, str], stored: Vectors) -> str:
    """Why the endpoint is not the one that made the stored vectors; empty where it is."""
    if not texts:
        return "too few rows have a vector that can be read"
    address = side.caller.endpoint.address
    answers = await side.embed(texts, "the old model")
    if not answers:
        return f"{address}: {side.why}"
    width, own = len(next(iter(answers.values()))), len(next(iter(stored.values())))
    if width != own:
        return f"{address} answers with {width // FLOAT} dimensions, and {own // FLOAT} are stored"
    likeness = median(_cosine(vector, stored[place]) for place, vector in answers.items())
    if likeness < MADE_BY:
        return f"{address} is not what made the stored vectors (median cosine {likeness:.2f})"
    return ""


def _cosine(left: bytes, right: bytes) -> float:
    scale = (length(left) or 0.0) * (length(right) or 0.0)
    return next(Pool([left]).scores([right]))[0] / scale if scale else 0.0


def _distinct(items: Sequence[Item]) -> list[Item]:
    """One row for each text: a search cannot tell equal texts apart, and they are each other's neighbours anyhow."""
    return list({item.text.strip(): item for item in reversed(items) if item.text.strip()}.values())[::-1]


def _spread(values: Sequence[T], most: int) -> list[T]:
    """At most ``most`` of ``values``, at even distances."""
    if len(values) <= most:
        return list(values)
    return [values[len(values) * number // most] for number in range(most)]


def _usable(vectors: Mapping[int, bytes | None]) -> Vectors:
    """The vectors that can be searched together: finite, not zero, of the width that most have, as wide as can be."""
    sound = {
        place: vector
        for place, vector in vectors.items()
        if vector is not None and len(vector) <= MAX_DIMENSION * FLOAT and length(vector)
    }
    widths = [len(vector) for vector in sound.values()]
    common = max(set(widths), key=widths.count, default=0)
    return {place: vector for place, vector in sound.items() if len(vector) == common}


class _Searched:
    """Vectors that are searched among, by place."""

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors
        self.index = {place: number for number, place in enumerate(vectors)}
        self._pool: Pool | None = None

    @property
    def pool(self) -> Pool:
        """Made once, and only where it is needed."""
        if self._pool is None:
            self._pool = Pool(list(self.vectors.values()))
        return self._pool

    def places(self, searches: Vectors) -> Mapping[int, int]:
        """For each search the place of its own row among all rows, from 1; equal scores count against it.

        A row without a usable vector is found by no search: its place is behind all others.
        """
        width = next((len(vector) for vector in self.vectors.values()), None)
        can = [place for place, query in searches.items() if place in self.index and len(query) == width]
        places = {place: len(self.vectors) + 1 for place in searches if place not in self.index}
        for place, scores in zip(can, self.pool.scores(searches[place] for place in can), strict=True):
            least = scores[self.index[place]] - _TIE
            places[place] = sum(score >= least for score in scores)
        return places

    def nearest(self, asked: Sequence[int], among: Sequence[int]) -> Iterator[set[int]]:
        """For each of ``asked`` the places of its nearest neighbours ``among`` some of the rows."""
        for own, scores in zip(asked, self.pool.scores(self.vectors[place] for place in asked), strict=True):
            # of equal ones the first, whichever model they are of
            best = heapq.nlargest(TOP + 1, among, key=lambda place: (scores[self.index[place]], -place))
            yield set([place for place in best if place != own][:TOP])


def _agreement(stored: _Searched, fresh: _Searched, asked: Sequence[int]) -> Agreement | None:
    """How much neighbourhoods agree; None where too few rows have both vectors."""
    both = sorted(stored.vectors.keys() & fresh.vectors.keys())
    asked = _spread([place for place in asked if place in stored.vectors and place in fresh.vectors], NEIGHBOURHOODS)
    if len(both) <= TOP or len(asked) < FEWEST:
        return None
    neighbours = zip(stored.nearest(asked, both), fresh.nearest(asked, both), strict=True)
    shared = sum(len(before & after) for before, after in neighbours)
    return Agreement(asked=len(asked), rows=len(both), top=TOP, mean=shared / TOP / len(asked))


def _weighed(
    judgement: Judgement, places: Mapping[int, int], before: Mapping[int, int], fresh: int, stored: int
) -> Judgement:
    judgement = replace(judgement, new=_found(places, fresh))
    both = [place for place in places if place in before]
    if not both:
        return judgement
    ahead = sum(min(places[place], DEPTH + 1) < min(before[place], DEPTH + 1) for place in both)
    behind = sum(min(places[place], DEPTH + 1) > min(before[place], DEPTH + 1) for place in both)
    chance = sign_test(ahead, behind)
    verdict = Verdict.SAME
    if len(both) < FEWEST:
        verdict = Verdict.UNKNOWN
    elif chance < SIGNIFICANT:
        verdict = Verdict.BETTER if ahead > behind else Verdict.WORSE
    return replace(judgement, verdict=verdict, old=_found(before, stored), ahead=ahead, behind=behind, chance=chance)


def _found(places: Mapping[int, int], rows: int) -> Found | None:
    if not places:
        return None
    first = sum(place == 1 for place in places.values())
    low, high = wilson(first, len(places))
    return Found(
        asked=len(places),
        rows=rows,
        first=first,
        low=low,
        high=high,
        within=sum(place <= DEPTH for place in places.values()),
        reciprocal=sum(1 / place for place in places.values() if place <= DEPTH) / len(places),
    )
