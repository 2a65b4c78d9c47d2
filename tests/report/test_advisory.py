"""What ``advisory-preview`` shows of previews made by hand."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from support.documents import document
from support.traps import MACHINE, registration, targets

from cpersona_cli.advisory.model import Call, Event, Preview, Recall, Server
from cpersona_cli.advisory.own import Rule
from cpersona_cli.advisory.phrases import advice, phrase, sentence
from cpersona_cli.advisory.texts import Language
from cpersona_cli.advisory.unsaid import Unsaid
from cpersona_cli.commands.previewing import _told
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.install.model import Discovery
from cpersona_cli.record import replace
from cpersona_cli.report import advisory
from cpersona_cli.report import json as document_of
from cpersona_cli.report.advisory import Panel
from cpersona_cli.report.layout import Style, columns
from cpersona_cli.report.model import Report
from cpersona_cli.report.text import render
from cpersona_cli.traps.advisory import TRAPS
from cpersona_cli.traps.model import Facts, Previewed, Repair
from cpersona_cli.traps.run import run

GOLDEN = Path(__file__).parent / "golden" / "advisory"
URL = "http://127.0.0.1:8401/embed"
EVIDENCE = f"mode=http / POST {URL} failed: ConnectError: All connection attempts failed"
SERVER = Server(version="2.6.14", mode="http")
COMMANDS = {
    "reembed": "cpersona-cli reembed --env --only mismatched",
    "dimension": "cpersona-cli dimension --env",
    "missing": "cpersona-cli reembed --env --only missing",
    "probe": "cpersona-cli probe --env",
}

#: Words as a server might write them; its own are not copied.
FULL = f"**Notify the user:** search is degraded: {EVIDENCE}.\n\nImpact: some memories are missed.\n\nOpt-out: set it."
SHORT = f"Reminder: still degraded ({EVIDENCE})."


def carried(runbook: str, scope: str = "session") -> str:
    return json.dumps(
        {
            "degraded": True,
            "severity": "fault",
            "reason": "endpoint unreachable",
            "evidence": EVIDENCE,
            "runbook": runbook,
            "advisory_scope": scope,
        },
        ensure_ascii=False,
    )


FAILED = Call(attempted=True, ok=False, error=EVIDENCE)
OUTAGE = (
    Recall(number=1, word="measure", call=FAILED, state="unknown"),
    Recall(number=2, word="measure", call=FAILED, state="fault", text=carried(FULL)),
    Recall(number=3, word="measure", key="window-1", call=FAILED, state="fault", text=carried(SHORT)),
)
FINE = Recall(number=1, word="measure", call=Call(attempted=True, ok=True), state="healthy")


def unsaid(language: Language, *, broken: bool = False) -> tuple[Unsaid, ...]:
    width = Unsaid(
        name="changed",
        measured=phrase(language, "unsaid.width", stored=384, live=768),
        shows="dimension",
        mends="reembed",
        broken=True,
    )
    return (
        *((width,) if broken else ()),
        Unsaid(name="first", measured=phrase(language, "unsaid.first"), shows="probe"),
        Unsaid(name="stores", measured=phrase(language, "unsaid.stores"), shows="dimension"),
    )


def panel(language: Language = "en", **fields: object) -> Panel:
    made = Panel(
        label="Claude Code (user)",
        preview=Preview(source="server", how="live", server=SERVER, recalls=OUTAGE),
        mode="http",
        address=URL,
        language=language,
        events=(Event(word="measure"), Event(word="measure"), Event(word="measure", key="window-1")),
        kind=Kind.REFUSED,
        unsaid=unsaid(language),
        commands=COMMANDS,
    )
    return replace(made, **fields)


def own(language: Language) -> Panel:
    failing = [Event(word="call", error=EVIDENCE)] * 3
    recalls = Rule(mode="http", shared=False, enabled=True, language=language).recalls(failing)
    preview = Preview(source="own", how="live", recalls=recalls, absent=phrase(language, "absent.container"))
    return panel(language, preview=preview)


def silent(language: Language) -> Panel:
    preview = Preview(source="server", how="live", server=SERVER, recalls=(FINE, replace(FINE, number=2)))
    return panel(language, preview=preview, kind=Kind.OK, unsaid=unsaid(language, broken=True))


ALL: Mapping[str, Panel] = {
    "outage": panel(),
    "outage-ja": panel("ja"),
    "own": own("en"),
    "own-ja": own("ja"),
    "silent": silent("en"),
    "silent-ja": silent("ja"),
    "refused": panel(preview=Preview(source="server", how="live", refused="ValueError: no such mode\nand more")),
}


def previewed(shown: Panel) -> Previewed:
    (target,) = targets(registration({"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": URL}))
    return Previewed(
        label=shown.label,
        target=target,
        state=shown.preview.state,
        evidence=shown.preview.evidence,
        means=sentence(shown.language, Kind.REFUSED) if shown.preview.state == "fault" else "",
        refused=shown.preview.refused,
        silent=tuple(part.measured for part in shown.unsaid if part.broken),
        repair=Repair(prose=advice(shown.language, Kind.REFUSED)),
        language=shown.language,
    )


def report(panels: Sequence[Panel]) -> Report:
    facts = Facts(machine=MACHINE, discovery=Discovery((), ()), previews=tuple(previewed(shown) for shown in panels))
    checks, language = run(TRAPS, facts), panels[0].language
    return Report(
        command="advisory-preview",
        headline=phrase(language, "headline", registrations="1 registration", recalls="3 recalls", targets=1, count=3),
        checks=checks,
        findings=[_told(finding, language) for check in checks for finding in check.findings],
        sections=[section for shown in panels for section in advisory.sections(shown)],
        payload=advisory.payload(panels),
        rerun="cpersona-cli advisory-preview",
        next_command="cpersona-cli probe --env",
        home="/home/u",
        language=language,
        elapsed=0.31,
    )


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ALL)
def test_golden(name: str, width: int) -> None:
    """``UPDATE_GOLDEN=1 pytest tests/report`` writes the files anew; read the difference before committing it."""
    shown = render(report([ALL[name]]), Style(width=width))
    file = GOLDEN / f"{name}-{width}.txt"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        file.parent.mkdir(exist_ok=True)
        file.write_text(shown, "utf-8")
    assert shown == file.read_text("utf-8")
    assert [line for line in shown.splitlines() if columns(line) > width] == []


def test_no_golden_file_is_forgotten() -> None:
    assert {file.stem for file in GOLDEN.glob("*.txt")} == {f"{n}-{w}" for n in ALL for w in (80, 120)}


def text(shown: Panel) -> str:
    return render(report([shown]), Style(width=200))


def test_escape_characters_of_the_server_are_shown_as_such() -> None:
    recall = replace(OUTAGE[1], text=carried("**Notify the user:** \x1b[31mred\x1b[0m\n\nsecond\nline"))
    shown = text(panel(preview=Preview(source="server", how="live", server=SERVER, recalls=(recall,))))
    assert "\x1b" not in shown
    assert "\\x1b[31mred" in shown
    assert "│ second line\n" in shown


def test_the_same_text_is_shown_once() -> None:
    recalls = tuple(replace(OUTAGE[1], number=number) for number in range(1, 31))
    shown = text(panel(preview=Preview(source="server", how="live", server=SERVER, recalls=recalls)))
    assert shown.count("Impact: some memories are missed.") == 1
    # the table is cut in its middle
    assert "…" in shown
    numbers = [line.split()[0] for line in shown.splitlines() if " no key " in line]
    assert numbers == [*map(str, range(1, 13)), *map(str, range(27, 31))]


def test_a_command_is_never_broken() -> None:
    command = f"cpersona-cli dimension --env --db /srv/{'long/' * 20}memory.db"
    shown = render(report([panel(commands={"dimension": command})]), Style(width=80))
    assert any(line.strip() == command for line in shown.splitlines())


def test_what_calls_may_look_like() -> None:
    recalls = (
        Recall(number=1, word="check", state="unknown"),
        Recall(number=2, word="idle", state="unknown"),
        Recall(number=3, word="measure", call=Call(attempted=True, ok=False, overlooked=True), state="healthy"),
        Recall(number=4, word="measure", escaped="ExceptionGroup: x", state="healthy"),
        Recall(number=5, word="measure", call=Call(attempted=False, ok=False), state="healthy"),
    )
    shown = text(panel(preview=Preview(source="server", how="replay", server=SERVER, recalls=recalls), events=()))
    for words in (
        "fails in check_health", "none ", "fails, taken for a success", "ends the recall with an error",
        "an error in place of memories", "replayed, nothing was called",
    ):  # fmt: skip
        assert words in shown
    fields = advisory.payload([panel(preview=Preview(source="server", how="live", recalls=recalls), events=())])
    assert [recall["kind"] for recall in fields["recalls"]] == [None] * 5  # type: ignore[attr-defined]


def test_sentences_for_rarer_things() -> None:
    old = replace(SERVER, version="2.4.41", keyed=False, probing=True)
    preview = Preview(
        source="server", how="live", server=old, recalls=OUTAGE, hidden=24, unfinished="1 of 3 recalls were over"
    )
    shown = text(panel(preview=preview, ours="our call", switch="the switch"))
    for words in (
        "the second request that this release adds", "this release knows no session_key", "24 characters that are",
        "1 of 3 recalls were over", "our call", "the switch",
    ):  # fmt: skip
        assert words in shown
    assert "--raw shows them" not in text(panel(preview=preview, raw=True))


def test_healthy_and_hint_are_explained() -> None:
    fine = Preview(source="server", how="live", server=None, recalls=(FINE,))
    assert "the endpoint answered the server" in text(panel(preview=fine, kind=None))
    hint = replace(fine, recalls=(replace(FINE, state="hint"),))
    assert "supported and not broken" in text(panel(preview=hint, kind=Kind.DISABLED, unsaid=()))


@pytest.mark.parametrize("name", ALL)
def test_the_document_holds_everything(name: str) -> None:
    found = document(document_of.render(report([ALL[name]]), Style()))
    assert found["label"] == "Claude Code (user)"
    assert found["language"] == ALL[name].language
    for recall, given in zip(found["recalls"], ALL[name].preview.recalls, strict=True):
        assert recall["text"] == given.text
        assert recall["advisory"] == (None if given.text is None else json.loads(given.text))


def test_several_registrations_are_a_list() -> None:
    found = document(document_of.render(report([ALL["outage"], ALL["silent"]]), Style()))
    assert [target["state"] for target in found["targets"]] == ["fault", "healthy"]
