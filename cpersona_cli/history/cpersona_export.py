"""CPersona's own exports (``export_memories``): rows that already are memories, episodes and profiles, one a line.

Versions 1.0 to 1.2 are read; graph and folders, which name rows by numbers that are new after an import, are counted,
as are vectors, which are of the model of another day. Times are those of a database: without a zone they are in UTC.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from cpersona_cli.history.lines import NULLS, UNFINISHED, Line, Lines
from cpersona_cli.history.model import Aside, Reader, Stored, StoredKind, Unread
from cpersona_cli.history.texts import mended
from cpersona_cli.history.times import Clock, Time, stored
from cpersona_cli.history.values import mapping, word
from cpersona_cli.text import plural, safe

_VERSION = "cpersona-export/"
_KNOWN = "cpersona-export/1."

NO_JSON = "descriptions that are no JSON left out"

# What a header declares, by the kind of line.
_DECLARED = {"memory_count": "memory", "episode_count": "episode", "profile_count": "profile"}
_PLURALS = {"memory": "memories", "entity": "entities"}
_KINDS = {kind.value: kind for kind in StoredKind}


def reader() -> Reader:
    """A reader of this format."""
    return _read


def _read(stream: BinaryIO, where: str, clock: Clock) -> Iterator[Stored | Aside | Unread]:
    lines = Lines(stream, where)
    left_out: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    header: Line | None = None
    for line in lines:
        if isinstance(line, Unread):
            yield line
            continue
        kind = word(line.value.get("_type"))
        if kind == "header":
            yield from _differing(header, seen)
            header, seen = line, Counter()
            version = word(line.value.get("version"))
            if version.startswith(_VERSION) and not version.startswith(_KNOWN):
                yield Unread(
                    where=line.where,
                    reason=f"it is an export of version {safe(version, 40)}, newer than 1.x: what follows was not read",
                )
                return
        elif kind in _KINDS:
            seen[kind] += 1
            if line.value.get("embedding_b64"):
                left_out["vectors"] += 1
            yield _row(_KINDS[kind], line, clock)
        else:
            left_out[_named(kind)] += 1
    if lines.unfinished:
        yield Unread(where=where, reason=UNFINISHED)
    yield from _differing(header, seen)
    if lines.nulls:
        left_out[NULLS] = lines.nulls
    if left_out:
        yield Aside(where=where, left_out=dict(left_out))
    lines.close()


def _named(kind: str) -> str:
    if not kind:
        return "records without a type"
    name = safe(kind.replace("_", " "), 40)
    return _PLURALS.get(kind, f"{name}s")


def _differing(header: Line | None, seen: Mapping[str, int]) -> Iterator[Unread]:
    """That a file holds less or more than its header says: it was cut, or edited."""
    if header is None:
        return
    for field, kind in _DECLARED.items():
        declared = header.value.get(field)
        if isinstance(declared, int) and not isinstance(declared, bool) and declared != seen.get(kind, 0):
            stated = plural(declared, kind, _PLURALS.get(kind, ""))
            yield Unread(
                where=header.where,
                reason=f"the header says {stated}, and {seen.get(kind, 0)} follow: the file was cut or edited",
            )


def _row(kind: StoredKind, line: Line, clock: Clock) -> Stored | Unread:
    value = line.value
    altered: Counter[str] = Counter()
    field = "summary" if kind is StoredKind.EPISODE else "content"
    text = value.get(field)
    if not isinstance(text, str) or not text.strip():
        return Unread(where=line.where, reason=f'there is no text in "{field}" of this {kind.value}')
    text = mended(text, altered)
    clock = stored(clock)
    at, created = clock.read(value.get("timestamp")), clock.read(value.get("created_at") or value.get("updated_at"))
    started, ended = clock.read(value.get("start_time")), clock.read(value.get("end_time"))
    needed = {StoredKind.MEMORY: (at,), StoredKind.EPISODE: (ended, started, created), StoredKind.PROFILE: (created,)}
    return Stored(
        kind=kind,
        where=line.where,
        text=text,
        agent=word(value.get("agent_id")),
        project=word(value.get("project_id")),
        channel=word(value.get("channel")),
        msg_id=mended(word(value.get("msg_id")), altered),
        source=_described(value, "source", altered),
        metadata=_described(value, "metadata", altered),
        at=at.at,
        created=created.at,
        started=started.at,
        ended=ended.at,
        keywords=mended(word(value.get("keywords")), altered),
        resolved=bool(value.get("resolved")),
        locked=bool(value.get("locked")),
        undated=_undated(needed[kind]),
        altered=dict(altered),
    )


def _undated(times: tuple[Time, ...]) -> str:
    """Why none of ``times`` is known; empty if one is."""
    if any(time.at is not None for time in times):
        return ""
    return next((time.reason for time in times if time.reason), "") or "no time is given"


def _described(value: Mapping[str, object], field: str, altered: Counter[str]) -> str:
    """A JSON object as its column holds it; what was none in the store travels as ``…_text``, and is not taken on."""
    if value.get(f"{field}_text"):
        altered[NO_JSON] += 1
    return mended(json.dumps(mapping(value.get(field)), ensure_ascii=False), altered)
