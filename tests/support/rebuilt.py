"""Plans of rebuilds and their ends, made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cpersona_cli.rebuild.judgement import Agreement, Found, Judgement, Verdict
from cpersona_cli.rebuild.model import Counts, Only, Pilot, Plan
from cpersona_cli.rebuild.verify import Check, Verified
from cpersona_cli.rebuild.work import Effort, Ended, Why
from cpersona_cli.record import replace
from cpersona_cli.store.job import JobState, Refused, Target
from cpersona_cli.store.model import Kind
from cpersona_cli.store.writing.settling import CutOver

HOME = "/home/aya"
DATABASE = Path(HOME, ".claude", "cpersona.db")

TARGET = Target(
    mode="api",
    url="https://api.example.com/v1/embeddings",
    model="text-embedding-3-small",
    dim=1536,
    label="text-embedding-3-small",
    served="text-embedding-3-small",
)

PLAN = Plan(
    target=TARGET,
    only=Only.ALL,
    rows={Kind.MEMORY: 52_310, Kind.EPISODE: 1},
    blank=12,
    distinct=49_876,
    characters=18_231_004,
    tokens=5_120_400,
    requests=1640,
    seconds=372.4,
    staging_bytes=312 << 20,
    undo_bytes=140 << 20,
    backup_bytes=140 << 20,
    wal_bytes=330 << 20,
    free_bytes=900 << 20,
    old_dim=384,
    old_labels={"a166f63f525a5e17": 40_000, "": 12_311},
    lock_seconds=3.36,
    holders=("process 4711 (/home/aya/.venv/bin/python -m cpersona)",),
    consent="api.example.com",
    pilot=Pilot(texts_per_second=137.1),
    warnings=("3 rows are longer than what the server reads",),
)

SMALL = replace(
    PLAN,
    target=Target(mode="http", url="http://127.0.0.1:8401/embed", model="", dim=256),
    only=Only.MISSING,
    rows={Kind.MEMORY: 2, Kind.EPISODE: 0},
    blank=0,
    left_out={"have a vector": 19},
    distinct=2,
    characters=310,
    tokens=80,
    requests=1,
    seconds=0.02,
    staging_bytes=9000,
    backup_bytes=315_392,
    wal_bytes=12_000,
    free_bytes=None,
    old_dim=None,
    old_labels={},
    lock_seconds=0.001,
    holders=(),
    consent="",
    pilot=None,
    warnings=(),
)

FAILED = (
    Refused(Kind.MEMORY, 7, b"", "nan_for_input", "“failed to encode response: json: unsupported value: NaN”"),
    Refused(Kind.MEMORY, 19, b"", "too_long", "“maximum context length is 8192 tokens”", 25_701),
    *(Refused(Kind.EPISODE, number, b"", "rejected") for number in range(1, 12)),
)

DONE = Ended(
    state=JobState.CUT,
    counts=Counts(planned=52_323, done=52_311, nothing=12),
    before=19_000,
    effort=Effort(requests=1043, retries=3, tokens=3_300_000, seconds=241.0, same=2435, learned={"batch": 10}),
    verified=Verified(
        checks=(Check(name="count", ok=True, sentence="52311 new vectors for 52311 rows"),), compared=32, lowest=0.99998
    ),
    judgement=Judgement(
        verdict=Verdict.BETTER,
        new=Found(asked=200, rows=2000, first=171, low=0.8, high=0.9, within=192, reciprocal=0.9),
        old=Found(asked=200, rows=2000, first=148, low=0.67, high=0.79, within=180, reciprocal=0.8),
        ahead=41,
        behind=12,
        chance=0.0001,
        agreement=Agreement(asked=200, rows=2000, top=10, mean=0.61),
        texts_sent=400,
        sentences=("new vectors: 171 of 200 searches find their memory first", "better on your memories"),
    ),
    cut=CutOver(written={Kind.MEMORY: 52_310, Kind.EPISODE: 1}, locked_seconds=3.1, calibration="rewritten"),
    held=52_311,
    backup=DATABASE.with_name("cpersona.db.reembed-backup"),
)

PARTLY = replace(
    DONE,
    counts=Counts(planned=52_323, done=52_298, failed=12, nothing=12, unchanged=1),
    held=52_298,
    before=0,
    missed=2,
    failed=FAILED,
    effort=Effort(requests=9, tokens=900, seconds=0.2, cut=1),
    judgement=None,
    cut=replace(DONE.cut, emptied=13) if DONE.cut is not None else None,
)

STOPPED = Ended(
    state=JobState.STAGING,
    counts=Counts(planned=100, done=37),
    left=63,
    effort=Effort(requests=10, tokens=1200, seconds=75.2),
    reason=Why.INTERRUPTED,
)

REFUSED = Ended(
    state=JobState.STAGED,
    counts=Counts(planned=100, done=100),
    verified=Verified(
        checks=(Check(name="anew", ok=False, sentence="31 of 32 texts asked for anew get another vector"),)
    ),
    reason=Why.NOT_VERIFIED,
    detail="31 of 32 texts asked for anew get another vector",
)

ENDS: Mapping[str, Ended] = {"done": DONE, "partly": PARTLY, "stopped": STOPPED, "refused": REFUSED}
PLANS: Mapping[str, tuple[Plan, int | None]] = {"plan": (PLAN, None), "continues": (PLAN, 1200), "small": (SMALL, None)}
