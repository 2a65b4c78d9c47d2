"""Plans of imports and their ends, made by hand."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from cpersona_cli.history.bring_in import Brought, NoVectors
from cpersona_cli.history.gather import Read, Tally
from cpersona_cli.history.model import Format, Looked, Unread
from cpersona_cli.history.plan import LateEpisode, Plan
from cpersona_cli.record import replace
from cpersona_cli.report.backfill import Around
from cpersona_cli.store.boundary import Boundary, Scope
from cpersona_cli.store.effects import Change
from cpersona_cli.store.job import Refused
from cpersona_cli.store.model import Kind
from cpersona_cli.store.writing.backup import Backup
from cpersona_cli.store.writing.comparing import Present
from cpersona_cli.store.writing.imports import Action, Import
from cpersona_cli.store.writing.mending import Harm, Mended
from cpersona_cli.store.writing.taking_back import TakenBack

HOME = "/home/aya"
DATABASE = Path(HOME, ".claude", "cpersona.db")
EXPORT = f"{HOME}/export.zip"


def boundary(day: int, month: int = 10) -> Boundary:
    at = dt.datetime(2026, month, day, 9, tzinfo=dt.UTC)
    return Boundary(f"{at:%Y-%m-%d %H:%M:%S}", at)


MEMORIES = Tally(
    read=4_210,
    stored=3_907,
    duplicate={"stored already, by their id": 120, "equal texts in what is imported": 3},
    left_out={"short messages": 170, "without a date": 10},
)
EPISODES = Tally(read=212, stored=203, left_out={"empty": 3, "with nothing to summarise": 6})

READ = Read(
    files=(
        *(
            Looked(where=f"{EXPORT}, conversations-{number:03}.json", size=(1 << 20) + number, format=Format.CHATGPT)
            for number in range(9)
        ),
        Looked(where=f"{EXPORT}, chat.html", size=4_000_000, reason="an HTML page"),
        Looked(where=f"{EXPORT}, user.json", size=310, reason="an object with the keys id, email"),
    ),
    files_read=9,
    files_passed=2,
    bytes=(9 << 20) + 36,
    unread=(Unread(where=f"{EXPORT}, conversations-003.json, conversation 17 (byte 9)", reason="it has no messages"),),
    unread_count=1,
    conversations=212,
    turns=4_210,
    passed_over={"empty": 3},
    not_talk={"tool messages": 1_204, "thoughts": 388, "images": 17},
    altered={"half characters replaced": 2, "times without a zone": 9},
    undated={"without a time": 10},
    branches=41,
    remarks=(
        f"{EXPORT}, conversations-001.json, conversation 3 (byte 88): its messages answer each other in a circle",
    ),
    remark_count=1,
    memories=MEMORIES,
    episodes=EPISODES,
    split=2,
    first=dt.datetime(2023, 2, 3, tzinfo=dt.UTC),
    last=dt.datetime(2026, 9, 1, tzinfo=dt.UTC),
)

STILL = Change(scope=Scope("atlas"), before=boundary(1), after=boundary(1), rows=1_250)

PLAN = Plan(
    read=READ,
    memories=MEMORIES,
    episodes=EPISODES,
    rows={Kind.MEMORY: 3_931, Kind.EPISODE: 203},
    characters=2_410_000,
    present=Present(
        schema=21, bytes=40 << 20, rows=1_300, last=1_250, newest={}, oldest={}, widths={384: 1_250}, unique=True
    ),
    scopes=(STILL,),
    growth_bytes=24 << 20,
    backup_bytes=40 << 20,
    free_bytes=60 << 30,
)

AROUND = Around(
    agent="atlas",
    limit=16_000,
    no_penalty=True,
    vectors="4134 texts, about 602k tokens; 384 dimensions, mode http at http://127.0.0.1:8401/embed, no label",
    holders=("process 4711 (/home/aya/.venv/bin/python -m cpersona)",),
    weakening=("Claude Code (user)",),
    clients=True,
)
#: Rows of an export, another computer, and rows of earlier imports.
BEHIND = Around(
    agent="atlas",
    keep_agents=True,
    project="ferry",
    channel="north",
    limit=2_000,
    vectors="4140 texts, 603k tokens; 1536 dimensions, mode api at https://api.example.com/v1/embeddings, model m",
    sends="https://api.example.com/v1/embeddings",
    clients=True,
    waiting=6,
)
EMPTY = replace(
    PLAN,
    read=Read(
        files=(Looked(where=f"{HOME}/memory.jsonl", size=2_048, format=Format.CPERSONA),),
        files_read=1,
        bytes=2_048,
        rows=5,
        memories=Tally(read=5, duplicate={"stored already, with the same text": 5}),
    ),
    memories=Tally(read=5, duplicate={"stored already, with the same text": 5}),
    episodes=Tally(),
    rows={},
    characters=0,
    scopes=(),
)

MOVED = tuple(
    Change(
        scope=Scope("atlas", project),
        before=boundary(1),
        after=boundary(20, 11),
        rows=1_250 - number,
        changed=1_100 - number,
        most=-0.5,
    )
    for number, project in enumerate((None, *(f"project-{number}" for number in range(14))))
)
MOVING = replace(PLAN, scopes=MOVED, warnings=("1100 memories that are there would count for less",))
REFUSED = replace(
    PLAN,
    late=(
        LateEpisode(agent="atlas", project="", channel="", ended="2026-11-02 10:00:00", allowed="2026-10-01 09:00:00"),
        LateEpisode(agent="atlas", project="ferry", channel="north", ended="2026-11-02 10:00:00", allowed=""),
    ),
    late_count=23,
    refusals=(
        (
            "23 episodes are newer than the boundary that memories are held against (the first ended 2026-11-02"
            " UTC, the boundary allows 2026-10-01 09:00:00), and would lower their scores: leave them out with --until,"
            " date them back with --clamp, or use --as memories"
        ),
    ),
)

BACKUP = Backup(Path(f"{DATABASE}.backfill-backup"), 40 << 20, made=True)
DONE = Brought(
    id="20261201-090000-ab12",
    memories=MEMORIES,
    episodes=EPISODES,
    rows={Kind.MEMORY: 3_931, Kind.EPISODE: 203},
    embedded=4_134,
    blocks=True,
    backup=BACKUP,
    scopes=(STILL,),
    held=True,
    locked_seconds=0.26,
    seconds=133.0,
)
LACKING = replace(
    DONE,
    memories=replace(MEMORIES, stored=3_905, failed={"refused by a rule of the database": 2}),
    embedded=4_100,
    without_vector=34,
    refused=(Refused(Kind.MEMORY, 1_400, b"", "too_long", "the text has more tokens than the model reads", 900),),
    scopes=MOVED[:1],
    held=False,
)
STOPPED = replace(
    DONE,
    memories=replace(MEMORIES, stored=1_200, rest=2_707),
    rows={Kind.MEMORY: 1_200, Kind.EPISODE: 203},
    interrupted=True,
    embedded=0,
    without_vector=1_403,
    why_none=NoVectors.INTERRUPTED,
    held=None,
)

HARM = Harm(
    episodes=3,
    bursts=(3,),
    first="2025-07-01 08:00:01",
    last="2025-07-01 08:00:03",
    oldest="2024-05-01 11:00:00",
    newest="2024-05-03 11:00:00",
    agents={"atlas": 2, "borealis": 1},
    scopes=(Change(scope=Scope("atlas"), before=boundary(1), after=boundary(1, 1), rows=40, changed=31, most=0.5),),
)
MENDED = Mended(id="20261201-090000-ab12", mended=3, left=0, seconds=0.2, backup=BACKUP)
TAKEN = TakenBack(
    of=Import(id="20261201-090000-ab12", action=Action.IMPORT, started=1.0, finished=2.0, undone=0.0),
    removed=6,
    left=1,
    gone=2,
    seconds=0.3,
)
