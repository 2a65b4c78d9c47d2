"""Asking the server in a process of its own: started with a deadline, read line by line, always ended."""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from cpersona_cli.advisory import script
from cpersona_cli.advisory.model import Call, Event, Preview, Recall, Server, digest
from cpersona_cli.advisory.phrases import phrase
from cpersona_cli.advisory.texts import Language
from cpersona_cli.record import record, replace
from cpersona_cli.start.process import Child, Family
from cpersona_cli.text import safe

#: Seconds that the child gets to leave after its last word.
GRACE = 2.0
#: Characters that are kept of one error.
_LIMIT = 4000


@record(kw_only=True)
class Command:
    """How the server's interpreter is run: with the environment its server would have."""

    python: Path
    env: Mapping[str, str]
    cwd: Path


def ask(
    command: Command,
    events: Sequence[Event],
    how: Literal["live", "replay"],
    family: Family,
    end: float,
    *,
    language: Language = "en",
) -> Preview:
    """What the recalls ``events`` would be told, asked until the monotonic time ``end``. Raises ``ClosedError``.

    What was told before the time ran out, or before the child died, is kept.
    """
    text = Path(script.__file__).read_text("utf-8")
    preview = Preview(source="server", how=how)
    try:
        child = family.start([str(command.python), "-I", "-c", text], command.env, command.cwd)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None)
        absent = phrase(language, "absent.start" if why else "absent.nul", python=command.python, why=why)
        return replace(preview, absent=absent)
    try:
        child.send(json.dumps({"events": [_plain(event) for event in events]}).encode() + b"\n")
        return _heard(child, preview, len(events), end, language)
    finally:
        child.end(GRACE if time.monotonic() < end else 0.0)


def _plain(event: Event) -> Mapping[str, object]:
    return {
        "word": event.word,
        "key": event.key,
        "ok": event.ok,
        "error": event.error,
        "probe": event.probe,
        "attempted": event.attempted,
    }


def _heard(child: Child, preview: Preview, count: int, end: float, language: Language) -> Preview:
    recalls: list[Recall] = []
    ended = False
    for message in _messages(child, end):
        match message.get("event"):
            case "server":
                preview = replace(preview, server=_server(message))
            case "absent":
                preview = replace(preview, absent=_absent(message, language))
            case "refused":
                preview = replace(preview, refused=str(message.get("error", ""))[:_LIMIT])
            case "recall":
                recalls.append(_recall(message))
            case "end":
                ended = True
                break
    preview = replace(preview, recalls=tuple(recalls))
    if ended or preview.absent or preview.refused:
        return preview
    name = "unfinished.time" if time.monotonic() >= end else "unfinished.ended"
    last = next((line for line in reversed(child.errors.splitlines()) if line.strip()), "")
    said = safe(last) or phrase(language, "unfinished.silent")
    return replace(preview, unfinished=phrase(language, name, done=len(recalls), count=count, said=said))


def _messages(child: Child, end: float) -> Iterator[Mapping[str, Any]]:
    """What the child tells, until it ends or the time is up. A line that is no message is passed over."""
    while (left := end - time.monotonic()) > 0:
        try:
            line = child.lines.get(timeout=left)
        except queue.Empty:
            return
        if line is None:
            return
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(message, dict):
            yield message


def _absent(message: Mapping[str, Any], language: Language) -> str:
    module = str(message.get("module", ""))
    name = "absent.release" if module == "cpersona.health" else "absent.module"
    return phrase(language, name, module=safe(module, 60))


def _server(message: Mapping[str, Any]) -> Server:
    texts = message.get("texts")
    return Server(
        version=safe(str(message.get("version", "")), 40),
        mode=safe(str(message.get("mode", "")), 40),
        enabled=bool(message.get("enabled", True)),
        shared=bool(message.get("shared")),
        keyed=bool(message.get("keyed")),
        probing=bool(message.get("probing")),
        remote=bool(message.get("remote")),
        cap=_number(message.get("cap")),
        threshold=_number(message.get("threshold")),
        texts={safe(str(name), 40): digest(str(text)) for name, text in texts.items()}
        if isinstance(texts, dict)
        else {},
    )


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _recall(message: Mapping[str, Any]) -> Recall:
    call = message.get("call")
    text = message.get("advisory")
    return Recall(
        number=int(message["number"]),
        word=message["word"],
        key=str(message.get("key", "")),
        call=None if not isinstance(call, dict) else _call(call),
        escaped=str(message.get("escaped") or "")[:_LIMIT],
        state=safe(str(message.get("state", "unknown")), 20),
        text=text if isinstance(text, str) else None,
        seconds=float(message.get("seconds", 0.0)),
    )


def _call(call: Mapping[str, Any]) -> Call:
    error = call.get("error")
    return Call(
        attempted=bool(call.get("attempted")),
        ok=bool(call.get("ok")),
        error=error if isinstance(error, str) else None,
        overlooked=bool(call.get("overlooked")),
    )
