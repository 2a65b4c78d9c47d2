"""What agents will be told, shown to people and to machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cpersona_cli.advisory.model import Event, Preview, Recall
from cpersona_cli.advisory.phrases import advice, phrase, quoted, sentence
from cpersona_cli.advisory.texts import Language
from cpersona_cli.advisory.unsaid import Unsaid
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.install.model import Place
from cpersona_cli.record import field, record
from cpersona_cli.report.figures import Figure, Table
from cpersona_cli.report.json import place as place_of
from cpersona_cli.report.layout import wrap
from cpersona_cli.report.model import Section
from cpersona_cli.text import safe

_TEXT_LIMIT = 4000
#: Rows of the table that are shown from its beginning and its end, where there are more.
_HEAD, _TAIL = 12, 4

Row = tuple[str, str, str]


@record(kw_only=True)
class Panel:
    """Everything about one registration.

    ``kind`` names how its calls end, ``message`` is what the endpoint said of it, ``ours`` is a sentence about our own
    call, ``switch`` one about the switch. ``commands`` are those that ``unsaid`` speaks of, ``fit`` is the state of the
    stored vectors. ``raw``: nothing was masked.
    """

    label: str
    preview: Preview
    place: Place = Place()
    raw: bool = False
    mode: str = ""
    address: str = ""
    transport: str = "stdio"
    language: Language = "en"
    events: tuple[Event, ...] = ()
    kind: Kind | None = None
    message: str = ""
    ours: str = ""
    enabled: bool = True
    switch: str = ""
    unsaid: tuple[Unsaid, ...] = ()
    commands: Mapping[str, str] = field(default_factory=dict)
    fit: str | None = None

    def command(self, part: Unsaid) -> str:
        return self.commands.get(part.shows, "")


@record
class Words:
    """Foreign text in a frame, its paragraphs wrapped, so that nobody takes it for this tool's own."""

    title: str
    paragraphs: Sequence[str]

    def lines(self, width: int) -> Iterator[str]:
        yield ""
        yield f"┌ {self.title}"
        for number, paragraph in enumerate(self.paragraphs):
            if number:
                yield "│"
            yield from (f"│ {line}" for line in wrap(paragraph, width - 2))
        yield "└"


def sections(panel: Panel) -> Iterator[Section]:
    """Whose words these are and what they mean; the recalls with the texts; and what is not said."""
    say = panel.language
    where = panel.address or "-"
    title = phrase(
        say,
        "title.target",
        label=panel.label,
        mode=safe(panel.mode, 20),
        address=where,
        transport=panel.transport,
    )
    yield Section(title=title, rows=list(_facts(panel)), verbosity=0)
    if panel.preview.recalls:
        figures: list[Figure] = [_table(panel), *_texts(panel)]
        rows: list[Row] = []
        if all(recall.text is None for recall in panel.preview.recalls):
            rows = [("", phrase(say, "panel.silent"), "")]
        yield Section(title=phrase(say, "title.recalls"), rows=rows, verbosity=0, figures=figures)
    if panel.unsaid:
        rows = []
        for part in panel.unsaid:
            rows.append((phrase(say, "mark.broken") if part.broken else "·", part.measured, ""))
            if panel.command(part):
                rows.append(("", panel.command(part), ""))
        yield Section(title=phrase(say, "title.unsaid"), rows=rows, verbosity=0)


def _facts(panel: Panel) -> Iterator[Row]:
    say, preview = panel.language, panel.preview

    def row(name: str, text: str) -> Row:
        return phrase(say, f"label.{name}"), text, ""

    if preview.refused:
        yield row("refused", safe(preview.refused.splitlines()[0]))
        return
    yield row("source", _source(panel))
    if preview.unfinished:
        yield row("unfinished", preview.unfinished)
    yield row("state", preview.state)
    if preview.state == "hint":
        yield row("means", phrase(say, "hint"))
    elif panel.kind not in {None, Kind.OK} and panel.kind is not None:
        yield row("means", quoted(say, sentence(say, panel.kind), panel.message))
        yield row("advice", advice(say, panel.kind, panel.mode))
    elif preview.state == "healthy" and preview.how == "live":
        yield row("means", phrase(say, "healthy"))
    if panel.ours:
        yield row("ours", panel.ours)
    if panel.switch:
        yield row("switch", panel.switch)
    if preview.server is not None and not preview.server.keyed and any(event.key for event in panel.events):
        yield row("caller", phrase(say, "keys.unknown"))
    if any(recall.text is not None for recall in preview.recalls):
        yield row("carrier", phrase(say, "carrier"))
    if preview.hidden and not panel.raw:
        yield row("redacted", phrase(say, "redacted", count=preview.hidden))


def _source(panel: Panel) -> str:
    say, preview = panel.language, panel.preview
    if preview.source == "own":
        return phrase(say, "source.own", why=preview.absent)
    server = preview.server
    release = "CPersona" if server is None else f"CPersona {server.version}".rstrip()
    how = "replay" if preview.how == "replay" else "probing" if server is not None and server.probing else "live"
    return phrase(say, "source.server", release=release) + phrase(say, f"source.{how}")


def _table(panel: Panel) -> Table:
    say = panel.language
    header = tuple(phrase(say, f"table.{name}") for name in ("recall", "caller", "call", "state", "told"))
    rows = [_line(recall, panel) for recall in panel.preview.recalls]
    if len(rows) > _HEAD + _TAIL:
        rows = [*rows[:_HEAD], ("…", "", "", "", ""), *rows[-_TAIL:]]
    return Table(header=header, rows=rows, numbers=frozenset({0}), elastic=1)


def _line(recall: Recall, panel: Panel) -> tuple[str, ...]:
    say = panel.language
    caller = safe(recall.key, 40) if recall.key.strip() else phrase(say, "caller.none")
    return str(recall.number), caller, _called(recall, panel), recall.state, _told(recall, say)


def _called(recall: Recall, panel: Panel) -> str:
    say, call = panel.language, recall.call
    if recall.word == "check":
        return phrase(say, "call.check")
    if recall.escaped:
        return phrase(say, "call.escaped")
    if call is None or (not call.attempted and not call.ok and call.error is None):
        return phrase(say, "call.none")
    name = "ok" if call.ok else "overlooked" if call.overlooked else "failed"
    return phrase(say, f"call.{name}")


def _told(recall: Recall, say: Language) -> str:
    if recall.escaped:
        return phrase(say, "told.error")
    advisory = recall.advisory
    if advisory is None:
        return phrase(say, "told.nothing")
    size = phrase(say, "size", count=len(str(advisory.get("runbook", ""))))
    return phrase(say, f"told.{recall.told}", size=size)


def _texts(panel: Panel) -> Iterator[Words]:
    """Each different text once, where it comes first."""
    seen: set[str] = set()
    for recall in panel.preview.recalls:
        advisory = recall.advisory
        runbook = "" if advisory is None else str(advisory.get("runbook", ""))
        if advisory is None or runbook in seen:
            continue
        seen.add(runbook)
        say = panel.language
        title = phrase(say, "panel.first", number=recall.number, told=phrase(say, f"kind.{recall.told}"))
        facts = phrase(
            say,
            "panel.facts",
            severity=safe(str(advisory.get("severity")), 20),
            scope=safe(str(advisory.get("advisory_scope", "-")), 20),
            reason=safe(str(advisory.get("reason"))),
        )
        paragraphs = [" ".join(safe(line, _TEXT_LIMIT) for line in part.splitlines()) for part in runbook.split("\n\n")]
        yield Words(title, [facts, *paragraphs])


def payload(panels: Sequence[Panel]) -> Mapping[str, object]:
    """The fields of one registration at the top, those of several as ``targets``."""
    if len(panels) == 1:
        return _fields(panels[0])
    return {"targets": [_fields(panel) for panel in panels]}


def _fields(panel: Panel) -> Mapping[str, object]:
    preview = panel.preview
    return {
        "label": panel.label,
        "place": place_of(panel.place),
        "source": preview.source,
        "how": preview.how,
        "language": panel.language,
        "mode": panel.mode,
        "transport": panel.transport,
        "address": panel.address or None,
        "server": _server(panel),
        "state": preview.state,
        "enabled": panel.enabled,
        "evidence": preview.evidence or None,
        "meaning": None
        if panel.kind is None
        else {
            "kind": panel.kind,
            "sentence": sentence(panel.language, panel.kind),
            "advice": advice(panel.language, panel.kind, panel.mode),
            "message": panel.message or None,
        },
        "recalls": [_recall(recall, panel) for recall in preview.recalls],
        "unsaid": [
            {
                "name": part.name,
                "measured": part.measured,
                "broken": part.broken,
                "command": panel.command(part) or None,
            }
            for part in panel.unsaid
        ],
        "vectors": panel.fit,
        "redacted_characters": preview.hidden,
        "raw": panel.raw,
        "refused": preview.refused or None,
        "own_words_because": preview.absent or None,
        "unfinished": preview.unfinished or None,
    }


def _server(panel: Panel) -> Mapping[str, object] | None:
    server = panel.preview.server
    if server is None:
        return None
    return {
        "version": server.version or None,
        "mode": server.mode,
        "shared": server.shared,
        "knows_session_key": server.keyed,
        "asks_twice": server.probing,
        "remote_search": server.remote,
        "failures_until_fault": server.threshold,
        "callers_remembered": server.cap,
        "texts": server.texts or {},
        "known_texts": server.known_texts,
    }


def _recall(recall: Recall, panel: Panel) -> Mapping[str, object]:
    call = recall.call
    event = panel.events[recall.number - 1] if recall.number <= len(panel.events) else None
    return {
        "number": recall.number,
        "session_key": recall.key or None,
        "event": recall.word,
        "kind": None if event is None else event.kind,
        "call": None
        if call is None
        else {"attempted": call.attempted, "ok": call.ok, "error": call.error, "overlooked": call.overlooked},
        "escaped": recall.escaped or None,
        "state_after": recall.state,
        "told": recall.told,
        "advisory": recall.advisory,
        "text": recall.text,
        "seconds": recall.seconds,
    }
