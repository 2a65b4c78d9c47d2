"""New vectors held against what they should be, before any old one is touched: all by shape, some by asking anew.

Nothing is exchanged unless every check passes. A check that could not be made is no pass.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from cpersona_cli.embedding.calling import Caller, Factory, connect
from cpersona_cli.embedding.kinds import MEANINGS
from cpersona_cli.embedding.meaning import NORM_TOLERANCE, ZERO, cosine
from cpersona_cli.embedding.measured import Clock
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.embedding.sampling import Each, embed_each
from cpersona_cli.embedding.stored import FLOAT, length, pack, unpack
from cpersona_cli.rebuild.survey import Distinct
from cpersona_cli.record import record
from cpersona_cli.store.job import Staged, Target, digest
from cpersona_cli.store.model import Kind
from cpersona_cli.text import plural

#: Cosine from which a vector asked for anew is the one that was staged. An endpoint that does not repeat itself so
#: well cannot be held to it: then twice its own distance is allowed.
SAME = 0.999
#: A vector that stands for more than this share of the different texts, and for more than so many, is a mistake.
#: (Two texts that differ in case or in what stands behind the model's window may rightly share one.)
SHARED, SHARED_FEW = 0.01, 10
#: Different texts whose vectors are compared for equality. Of more, an even sample is, to keep memory constant.
REMEMBERED = 20_000
#: Seconds for asking anew, and texts of one request: another number than the server's and the pipeline's 32.
BUDGET, _BATCH = 300.0, 7
_LISTED = 5


@record(kw_only=True)
class Check:
    """One thing held against what it should be; ``ok`` is None where it could not be told."""

    name: str
    ok: bool | None
    sentence: str


@record(kw_only=True)
class Verified:
    """The outcome. ``compared`` vectors were asked for anew; ``lowest`` is the lowest cosine."""

    checks: tuple[Check, ...]
    compared: int = 0
    lowest: float | None = None

    @property
    def ok(self) -> bool:
        """Whether the old vectors may be exchanged for these."""
        return all(check.ok for check in self.checks)

    @property
    def reason(self) -> str:
        """The first check that did not pass, as a sentence; empty when all did."""
        return next((check.sentence for check in self.checks if not check.ok), "")


@dataclass(slots=True)
class Inspection:
    """What one pass over all staged vectors showed. ``first`` names an example (kind and id) of each fault.

    ``shared`` is the most different texts that one vector stands for, among the ``texts`` that were compared.
    """

    expected: int
    seen: int = 0
    width: int = 0
    finite: int = 0
    zero: int = 0
    unit: int = 0
    texts: int = 0
    shared: int = 0
    first: dict[str, tuple[Kind, int]] = field(default_factory=dict)

    def note(self, name: str, entry: Staged) -> None:
        setattr(self, name, getattr(self, name) + 1)
        self.first.setdefault(name, (entry.kind, entry.id))


def inspect_staged(staged: Iterable[Staged], target: Target, *, expected: int) -> Inspection:
    """Read every staged vector once, in constant memory. ``expected`` rows should have one.

    Vectors of mode api must have length one, to which they are scaled.
    """
    found = Inspection(expected=expected)
    size, one = target.dim * FLOAT, target.mode == Mode.API
    sample = Distinct[tuple[int, Kind, int]](REMEMBERED)  # the vector of a text, by hash, and whose it is
    for entry in staged:
        found.seen += 1
        norm = length(entry.vector)
        if len(entry.vector) != size:
            found.note("width", entry)
        elif norm is None:
            found.note("finite", entry)
        elif norm < ZERO:
            found.note("zero", entry)
        elif one and abs(norm - 1) > NORM_TOLERANCE:
            found.note("unit", entry)
        else:
            sample.add(entry.digest, (hash(entry.vector), entry.kind, entry.id))
    vectors = Counter(vector for vector, _, _ in sample.kept.values())
    found.texts = len(sample.kept)
    for crowded, found.shared in vectors.most_common(1):
        found.first["shared"] = next(row[1:] for row in sample.kept.values() if row[0] == crowded)
    return found


async def verify(
    inspection: Inspection,
    sample: Sequence[tuple[Staged, str]],
    endpoint: Endpoint,
    target: Target,
    *,
    repeat: float | None = None,
    factory: Factory = connect,
    clock: Clock | None = None,
) -> Verified:
    """Put the checks together; ``sample`` are staged rows with the text they have now, which are asked for anew.

    ``repeat`` is the lowest cosine of one text's vectors in two replies, as ``identify_target`` measured it. Rows
    whose text is not the staged one any more are left out. Never raises but for cancellation.
    """
    rows = [(entry, text) for entry, text in sample if digest(text) == entry.digest]
    same = SAME if repeat is None else min(SAME, 2 * repeat - 1)
    async with Caller(endpoint=endpoint, factory=factory, clock=clock or Clock()) as caller:
        each = await embed_each(caller, [text for _, text in rows], BUDGET, batch=_BATCH)
    likeness = {
        position: _likeness(rows[position][0].vector, pack(target.mode, vector))
        for position, vector in each.vectors.items()
    }
    return Verified(
        checks=(*_shapes(inspection, target), _anew(rows, each, likeness, same)),
        compared=len(likeness),
        lowest=min(likeness.values(), default=None),
    )


def _likeness(staged: bytes, fresh: bytes) -> float:
    left, right = unpack(staged), unpack(fresh)
    if left is None or right is None or len(left) != len(right):
        return 0.0
    found = cosine(left, right)
    return found if math.isfinite(found) else 0.0


def _shapes(found: Inspection, target: Target) -> Iterator[Check]:
    whole = found.seen == found.expected
    yield Check(
        name="count",
        ok=whole,
        sentence=f"{found.seen:,} new vectors for {plural(found.expected, 'row')}"
        if whole
        else f"{found.seen:,} new vectors are there, and {found.expected:,} rows should have one",
    )
    for name, good, bad in (
        ("width", f"all are {target.dim} wide", f"are not {target.dim} wide"),
        ("finite", "all are finite", "hold what is no number"),
        ("zero", "none is zero", "are zeros"),
        ("unit", "all have the length they should have", "are not of length one"),
    ):
        count = getattr(found, name)
        yield Check(
            name=name,
            ok=not count,
            sentence=f"{count:,} new vectors {bad} ({_example(found, name)})" if count else good,
        )
    allowed = max(SHARED_FEW, found.texts * SHARED)
    crowded = found.shared > allowed
    yield Check(
        name="shared",
        ok=not crowded,
        sentence=f"one vector stands for {found.shared:,} of {found.texts:,} texts ({_example(found, 'shared')})"
        if crowded
        else "different texts have different vectors",
    )


def _example(found: Inspection, name: str) -> str:
    kind, identifier = found.first[name]
    return f"{'memory' if kind is Kind.MEMORY else 'episode'} {identifier} is one"


def _anew(rows: Sequence[tuple[Staged, str]], each: Each, likeness: dict[int, float], same: float) -> Check:
    """Whether the endpoint still gives what was staged."""
    differing = sorted(position for position, found in likeness.items() if found < same)
    if differing:
        shown = ", ".join(f"{rows[position][0].kind} {rows[position][0].id}" for position in differing[:_LISTED])
        lowest = min(likeness.values())
        sentence = (
            f"{len(differing)} of {plural(len(likeness), 'text')} asked for anew do not get the vector that was kept"
            f" (lowest cosine {lowest:.4f}; {shown}): the endpoint changed, or vectors went astray"
        )
        return Check(name="anew", ok=False, sentence=sentence)
    if not rows:
        return Check(name="anew", ok=True, sentence="there was nothing to ask for anew")
    if len(likeness) * 2 <= len(rows):
        kind = each.gone or next(iter(each.failed.values()), None)
        why = "the time for it was over" if kind is None else MEANINGS[kind].sentence
        sentence = f"only {len(likeness)} of {plural(len(rows), 'text')} could be asked for anew: {why}"
        return Check(name="anew", ok=None, sentence=sentence)
    lowest = min(likeness.values())
    sentence = f"{plural(len(likeness), 'text')} asked for anew get the same vector (lowest cosine {lowest:.4f})"
    return Check(name="anew", ok=True, sentence=sentence)
