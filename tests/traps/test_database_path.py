from __future__ import annotations

from pathlib import Path

import pytest
from support.traps import MACHINE, Case, docker, facts, outcome, reading
from support.variations import severities, with_targets

from cpersona_cli.install.model import Launch, LaunchKind, Place, Variable
from cpersona_cli.install.sidefiles import SideFile, SideFiles
from cpersona_cli.record import replace
from cpersona_cli.store.reading import Reading, State
from cpersona_cli.traps.model import Facts

DB = "CPERSONA_DB_PATH"
FINE = {DB: "/home/u/cpersona.db"}
WINDOWS = replace(MACHINE, system="windows")


def path(text: str | None, client: str = "codex", **fields: object) -> Facts:
    """A registration of a client that expands nothing."""
    return facts({} if text is None else {DB: text}, client=client, **fields)  # type: ignore[arg-type]


def holding(at: str, memories: int, state: State = State.OK) -> Reading:
    return reading(at, state, counts={"memories": memories} if memories else {})


def with_candidates(known: Facts, *readings: Reading) -> Facts:
    return with_targets(known, candidates=readings)


TWO = (holding("/home/u/.claude/cpersona.db", 200), holding("/home/u/work/~/.claude/cpersona.db", 0))

UNSET, RELATIVE, TILDE = "database.path-unset", "database.path-relative", "database.path-tilde"
UNEXPANDED, QUOTED, URI = "database.path-unexpanded", "database.path-quoted", "database.path-uri"
OTHER, CONTROL = "database.path-of-another-system", "database.path-control-character"
MEMORY, EMPTY = "database.path-memory", "database.path-empty"

ZSHRC = Place(Path("/home/u/.zshrc"), 3)

CASES = (
    Case(
        UNSET,
        "set in a file that no server reads",
        facts(client="codex", stray=[Variable(DB, "/srv/m.db", ZSHRC, "shell start file")]),
        says='= "/srv/m.db"',
    ),
    Case(
        UNSET,
        "and badly",
        facts(client="codex", stray=[Variable(DB, "~/m.db", ZSHRC, "shell start file")]),
        says='= "/home/u/.claude/cpersona.db"',
    ),
    Case(RELATIVE, "no text is another finding", facts({DB: None}, client="codex"), "skipped"),
    Case(UNSET, "no path", path(None), says=("data/cpersona.db", '= "/home/u/.claude/cpersona.db"')),
    Case(UNSET, "an empty path", path(""), says="is not set"),
    Case(UNSET, "an empty path before 2.6.11 is another trap", path("", version="2.6.10"), "pass"),
    Case(UNSET, "a path", facts(FINE), "pass"),
    Case(UNSET, "the folder is fixed", path(None, cwd="/srv/c"), says="fixed folder /srv/c"),
    Case(UNSET, "a relative folder fixes nothing", path(None, cwd="c"), says="whatever folder"),
    Case(
        UNSET,
        "the databases that exist are listed",
        with_candidates(path(None), holding("/home/u/work/data/cpersona.db", 7), holding("/data/cpersona.db", 0)),
        says=("2 databases are found", "/home/u/work/data/cpersona.db (7 memories)", '"/home/u/work/data/cpersona.db"'),
    ),
    Case(UNSET, "a url", facts({}, launch=Launch(kind=LaunchKind.REMOTE)), "skipped"),
    Case(RELATIVE, "relative", path("c.db"), says=(f"{DB}=c.db", "whatever folder", f"{DB} = ")),
    Case(RELATIVE, "a dot", path("./data/c.db"), says="look for that file first"),
    Case(RELATIVE, "absolute", facts(FINE), "pass"),
    Case(RELATIVE, "unset is another trap", path(None), "pass"),
    Case(RELATIVE, "in a fixed folder", path("c.db", cwd="/srv"), says="fixed folder /srv"),
    Case(RELATIVE, "no drive on Windows", path(r"\data\c.db", machine=WINDOWS)),
    Case(RELATIVE, "a drive on Windows", path(r"C:\data\c.db", machine=WINDOWS), "pass"),
    Case(RELATIVE, "in a container", facts(launch=docker({DB: "c.db"})), says="/data/cpersona.db"),
    Case(
        TILDE,
        "both databases are named, and the one with the memories is proposed",
        with_candidates(path("~/.claude/cpersona.db"), *TWO),
        says=(
            "/home/u/.claude/cpersona.db (200 memories)",
            "/home/u/work/~/.claude/cpersona.db (0 memories)",
            '= "/home/u/.claude/cpersona.db"',
            "a folder named “~”",
        ),
    ),
    Case(TILDE, "nothing exists yet", path("~/c.db"), says='= "/home/u/c.db"'),
    Case(
        TILDE,
        "the literal folder has the memories",
        with_candidates(path("~/c.db"), holding("/home/u/work/~/c.db", 9)),
        says=("a database is found", '= "/home/u/work/~/c.db"'),
    ),
    Case(
        TILDE,
        "as many in both",
        with_candidates(path("~/c.db"), holding("/a", 2), holding("/b", 2)),
        says='"/home/u/c.db"',
    ),
    Case(
        TILDE, "one is locked", with_candidates(path("~/c.db"), holding("/a", 0, State.LOCKED)), says="locked just now"
    ),
    Case(TILDE, "one is empty", with_candidates(path("~/c.db"), holding("/a", 0, State.EMPTY)), says="/a (empty)"),
    Case(
        TILDE,
        "one is corrupt",
        with_candidates(path("~/c.db"), holding("/a", 0, State.CORRUPT)),
        says="could not be read",
    ),
    Case(TILDE, "absolute", facts(FINE), "pass"),
    Case(UNEXPANDED, "a shell variable", path("$HOME/c.db"), says='= "/home/u/c.db"'),
    Case(UNEXPANDED, "a Windows variable", path(r"%APPDATA%\c.db"), says="/home/u/.claude/cpersona.db"),
    Case(UNEXPANDED, "a placeholder", path("/home/<you>/c.db"), says="/home/u/.claude/cpersona.db"),
    Case(UNEXPANDED, "braces", path("${CPERSONA_HOME}/c.db")),
    Case(UNEXPANDED, "a client that expands it", path("${HOME}/c.db", "claude-code"), "pass"),
    Case(
        UNEXPANDED, "unset in a client that expands", path("${CPERSONA_HOME}/c.db", "claude-code"), says="CPERSONA_HOME"
    ),
    Case(UNEXPANDED, "the editor's folder", path("${workspaceFolder}/c.db", "vscode"), "unknown"),
    Case(UNEXPANDED, "asked for", path("${input:db}", "vscode"), "unknown"),
    Case(UNEXPANDED, "absolute", facts(FINE), "pass"),
    Case(QUOTED, "double", path('"/home/u/c.db"'), says=("quotation marks", '= "/home/u/c.db"')),
    Case(QUOTED, "single at the end", path("/home/u/c.db'")),
    Case(QUOTED, "a space at the end", path("/home/u/c.db "), says="a space"),
    Case(QUOTED, "a space inside", path("/home/u/my c.db"), "pass"),
    Case(URI, "a URI", path("file:///home/u/c.db"), says="file:///home/u/c.db"),
    Case(URI, "a path", facts(FINE), "pass"),
    Case(OTHER, "a drive", path(r"C:\Users\u\c.db"), says="the server runs here"),
    Case(OTHER, "a share", path(r"\\nas\c.db")),
    Case(OTHER, "on Windows", path(r"C:\Users\u\c.db", machine=WINDOWS), "pass"),
    Case(
        OTHER,
        "in a container on Windows",
        facts(launch=docker({DB: r"C:\c.db"}), machine=WINDOWS),
        says="in a container",
    ),
    Case(OTHER, "posix", facts(FINE), "pass"),
    Case(CONTROL, "a tab", path("C:\temp\\c.db"), says="a tab"),
    Case(CONTROL, "an escape", path("/home/u/\x1b.db"), says="U+001B"),
    Case(CONTROL, "none", facts(FINE), "pass"),
    Case(MEMORY, "in memory", path(":memory:"), says="/home/u/.claude/cpersona.db"),
    Case(MEMORY, "a file", facts(FINE), "pass"),
    Case(EMPTY, "2.6.10", path("", version="2.6.10"), says="empty text"),
    Case(EMPTY, "2.6.11", path("", version="2.6.11"), "pass"),
    Case(EMPTY, "no release told", path("", version=None), "unknown"),
    Case(EMPTY, "unset", path(None, version="2.6.10"), "pass"),
    Case("database.export-folder", "set", facts({**FINE, "CPERSONA_EXPORT_DIR": "/x"}), says="=/x"),
    Case("database.export-folder", "unset", facts(FINE), "pass"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_paths(case: Case) -> None:
    case.check()


PATH_TRAPS = (UNSET, RELATIVE, TILDE, UNEXPANDED, QUOTED, URI, OTHER, CONTROL, MEMORY, EMPTY)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "c.db",
        "~/c.db",
        "$HOME/c.db",
        '"~/c.db"',
        "file:~/c.db",
        r"C:\c.db",
        "~\t",
        ":memory:",
        " /c.db",
        "/c.db",
        "\ud800",
    ],
)
@pytest.mark.parametrize("version", ["2.6.10", "2.6.14"])
def test_one_text_is_spoken_of_once(text: str, version: str) -> None:
    ended = [outcome(trap, path(text, version=version))[0] for trap in PATH_TRAPS]
    assert ended.count("findings") == (text != "/c.db")


def test_a_fixed_folder_makes_it_a_warning() -> None:
    assert severities(outcome(UNSET, path(None))[1]) == ["fault"]
    assert severities(outcome(UNSET, path(None, cwd="/srv"))[1]) == ["warning"]
    assert severities(outcome(RELATIVE, path("c.db", cwd="/srv"))[1]) == ["warning"]


def ledger(state: str, agents: dict[str, int]) -> Facts:
    side = SideFile(
        text="alias_ledger.json",
        path=Path("/home/u/alias_ledger.json"),
        place=Place(words="default"),
        state=state,  # type: ignore[arg-type]
    )
    return with_targets(facts(FINE, reading=reading(agents=agents)), files=SideFiles(ledger=side))


@pytest.mark.parametrize(
    ("known", "state"),
    [
        (ledger("absent", {"u-0a1b": 3, "me": 1}), "findings"),
        (ledger("absent", {"me": 1}), "pass"),
        (ledger("read", {"u-0a1b": 3}), "pass"),
        (facts(FINE, reading=reading(agents={"u-0a1b": 3})), "pass"),
    ],
)
def test_the_alias_ledger(known: Facts, state: str) -> None:
    ended, findings = outcome("database.alias-ledger-lost", known)
    assert ended == state
    assert all("1 agent id" in finding.measured for finding in findings)
