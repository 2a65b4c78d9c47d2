"""Reports made by hand, one of each kind that a renderer must be able to show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cpersona_cli.install.model import Place
from cpersona_cli.report.exits import Exit
from cpersona_cli.report.model import Report, Section, Waived
from cpersona_cli.traps.model import Facts, Finding, Needs, Repair, Severity, Trap
from cpersona_cli.traps.run import Check, State

HOME = "/home/aya"
SECRET = "sk-live-0123456789abcdef"


def nothing(_facts: Facts) -> Sequence[Finding]:
    return ()


def trap(trap_id: str, severity: Severity = Severity.FAULT) -> Trap:
    return Trap(
        id=trap_id,
        title=f"the title of {trap_id}",
        severity=severity,
        needs=Needs.REGISTRATION,
        detect=nothing,
        expected="CPERSONA_EMBEDDING_URL names the endpoint that answers POST …/embed",
        costs="memories are found only by shared words; the server will call it “unreachable”, which is not the reason",
        repair="set CPERSONA_EMBEDDING_URL",
        source="measured on 2.6.14",
    )


URL_MISSING = trap("names.url-missing").stamp(
    Finding(
        about="CPERSONA_EMBEDDING_URL",
        place=Place(file=Path(HOME, ".claude.json"), line=14, column=9),
        measured="CPERSONA_EMBEDDING_MODE=http and no URL",
        repair=Repair(
            prose=f"in {HOME}/.claude.json, line 12, add to its environment, then restart Claude Code",
            edit='"CPERSONA_EMBEDDING_URL": "http://127.0.0.1:8401/embed"',
            place=Place(file=Path(HOME, ".claude.json"), line=12),
        ),
    ),
    "Claude Code (user)",
)

DESKTOP = f"{HOME}/Library/Application Support/Claude/claude_desktop_config.json"

KEY_SHOWN = trap("names.key-in-url", Severity.WARNING).stamp(
    Finding(
        about="CPERSONA_EMBEDDING_URL",
        place=Place(file=Path(DESKTOP), line=7),
        measured=f"the key {SECRET} stands in the URL in {DESKTOP}, which every tool that reads the file can see",
        expected="the key in CPERSONA_EMBEDDING_API_KEY",
        costs="it ends up in logs\x1b[31m and in screenshots\u202e",
        repair=Repair(
            prose="move the key out of the URL",
            edit='"CPERSONA_EMBEDDING_URL": "https://embeddings.example.org/v1/a/very/long/path/that/must/not/be/broken"'
            '\n"CPERSONA_EMBEDDING_API_KEY": "<the key>"',
            commands=("chmod 600 'claude_desktop_config.json'",),
        ),
        depends="depends on how the client was started: true when it starts without this shell's variables",
        evidence=(("length", "24"),),
    ),
    "Claude Desktop (user)",
)

WIDE = trap("database.synced-folder", Severity.HINT).stamp(
    Finding(
        measured="the database stands in a folder that is kept in step with 雲の上の保存場所 by another program",
        repair=Repair(prose="move the database", commands=("mv ~/クラウド/記憶.db ~/.local/share/cpersona/",)),
        place=Place(file=Path(HOME, "クラウド", "記憶.db")),
    ),
    f"{HOME}/クラウド/記憶.db",
)


def check(trap_id: str, state: State = State.PASS, reason: str = "", findings: tuple[Finding, ...] = ()) -> Check:
    return Check(
        trap=trap(trap_id), state=state, reason=reason, findings=findings, subjects=int(state is not State.SKIPPED)
    )


def skipped(trap_id: str, reason: str) -> Check:
    return check(trap_id, State.SKIPPED, reason)


CHECKS = (
    check("names.url-missing", State.FINDINGS, findings=(URL_MISSING,)),
    check("names.key-in-url", State.FINDINGS, findings=(KEY_SHOWN,)),
    check("names.bad-mode"),
    check("database.synced-folder", State.FINDINGS, findings=(WIDE,)),
    check("database.locked", State.UNKNOWN, "the database was locked for 2 seconds by process 4242, a cpersona server"),
    skipped("vectors.dimension", "not contacted (--offline)"),
    skipped("vectors.norm", "not contacted (--offline)"),
    skipped("identity.split", "no registration that a client would start"),
    check("recall.gate-off"),
)

SECTIONS = (
    Section(
        title="registrations",
        rows=[
            ("Claude Code (user)", f"cpersona 2.6.14, {HOME}/.claude/cpersona.db", f"{HOME}/.claude.json:10"),
            ("Claude Desktop (user)", "disabled: switched off in the client", f"{DESKTOP}:4"),
        ],
        verbosity=0,
    ),
    Section(
        title="settings of Claude Code (user)",
        rows=[("CPERSONA_EMBEDDING_MODE", "http", f"{HOME}/.claude.json:13 (env block)")],
    ),
)

FAILING = Report(
    command="doctor",
    headline="2 registrations, 1 database",
    checks=CHECKS,
    findings=(WIDE, KEY_SHOWN, URL_MISSING),
    waived=(
        Waived(
            finding=trap("recall.gate-off", Severity.WARNING).stamp(
                Finding(
                    measured="the gate is off",
                    repair=Repair(prose="switch it on"),
                    place=Place(file=Path(HOME, ".claude.json"), line=20),
                ),
                "Claude Code (user)",
            ),
            reason="the gate is on in production",
            expires="2027-01-31",
        ),
    ),
    unmet=("vectors.norm",),
    unsettled=(f"{HOME}/slow.db: not done in time",),
    sections=SECTIONS,
    notes=("CPERSONA_CLI_FORMT is set and read by nobody; did you mean CPERSONA_CLI_FORMAT?",),
    rerun="cpersona-cli doctor --client claude-code",
    next_command="cpersona-cli traps explain names.url-missing",
    elapsed=0.42,
    home=HOME,
    secrets=(SECRET,),
)

PASSING = Report(
    command="doctor",
    headline="1 registration, 1 database",
    checks=(check("names.url-missing"), check("database.locked"), skipped("vectors.norm", "not contacted (--offline)")),
    sections=SECTIONS[:1],
    elapsed=0.1,
    home=HOME,
)

NOTHING = Report(
    command="doctor",
    headline="0 registrations, 0 databases",
    checks=(skipped("names.url-missing", "no registration that a client would start"),),
    unsettled=("no registration of CPersona was found",),
    looked=(f"{HOME}/.claude.json (claude-code): absent", f"{HOME}/.codex/config.toml (codex): broken; empty"),
    next_command="cpersona-cli doctor --registration FILE",
    home=HOME,
)

USAGE = Report(
    command="doctor",
    error="unknown client 'claud'; did you mean claude-code? The clients are claude-code, codex, cursor.",
    error_code=Exit.USAGE,
    next_command="cpersona-cli doctor --help",
)

BOOK = Report(
    command="traps",
    gate=False,
    sections=(
        Section(
            title="names.url-missing",
            rows=[("what", "http mode without an embedding URL", ""), ("costs", trap("names.x").costs, "")],
            verbosity=0,
        ),
        Section(title="names.key-in-url", rows=[("what", "a key in a URL", "")], verbosity=0),
    ),
    next_command="cpersona-cli traps list",
)

ALL = {"failing": FAILING, "passing": PASSING, "nothing": NOTHING, "usage": USAGE, "book": BOOK}
