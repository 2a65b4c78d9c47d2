from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from support.traps import MACHINE, facts, reading, registration, targets

from cpersona_cli.install.model import Launch, LaunchKind, Looked, Place, Process, Status, Variable
from cpersona_cli.record import replace
from cpersona_cli.report import inventory
from cpersona_cli.report.figures import Spans
from cpersona_cli.report.model import Section
from cpersona_cli.store.audit_model import Audit, Burst, Dates, Effect, Lens, Moved
from cpersona_cli.store.boundary import Boundary, Penalty, Scope, instant, rule_of
from cpersona_cli.store.reading import State
from cpersona_cli.traps.model import Database, Facts

KEY = "sk-live-0123456789abcdef"
URL = f"https://aya:p4ssw0rd-x@embeddings.example.org/v1?api={KEY}&n=1"


def rows(known: Facts, verbosity: int = 1) -> dict[str, list[tuple[str, str, str]]]:
    sections: list[Section] = list(inventory.sections(known))
    return {section.title: list(section.rows) for section in sections if section.verbosity <= verbosity}


def with_database(known: Facts, **fields: object) -> Facts:
    found = reading(**fields)  # type: ignore[arg-type]
    return replace(known, databases=(Database(path=found.path, reading=found, targets=known.targets),))


@pytest.mark.parametrize(
    "env",
    [
        {"CPERSONA_EMBEDDING_API_KEY": KEY},
        {"CPERSONA_EMBEDDING_URL": URL},
        {"CPERSONA_AUTH_TOKEN": KEY},
        {"MY_SECRET": KEY},
        {"SOME_URL": URL},
    ],
    ids=lambda env: next(iter(env)),
)
def test_secrets_of_variables(env: dict[str, str]) -> None:
    assert KEY in inventory.secrets(facts(env))


def test_secrets_of_a_url() -> None:
    found = inventory.secrets(facts({"CPERSONA_EMBEDDING_URL": URL}))
    assert {"p4ssw0rd-x", "aya:p4ssw0rd-x", KEY} <= set(found)
    assert "1" not in found


@pytest.mark.parametrize(
    "args",
    [
        ("run", "-e", f"CPERSONA_EMBEDDING_API_KEY={KEY}", "image"),
        ("mcp-remote", "http://h/mcp", "--header", f"Authorization: Bearer {KEY}"),
        ("--api-key", KEY),
        (f"--token={KEY}",),
        ("--url", f"http://h/mcp?key={KEY}"),
        (f"--url=http://h/mcp?key={KEY}",),
    ],
    ids=" ".join,
)
def test_secrets_of_a_command_line(args: tuple[str, ...]) -> None:
    entry = registration(args=args)
    assert inventory.secrets(replace(facts(), discovery=replace(facts().discovery, registrations=(entry,)))) == (KEY,)


@pytest.mark.parametrize(
    "headers", [{"Authorization": f"Bearer {KEY}"}, {"X-Api-Key": KEY}, {"authorization": f"basic {KEY}"}]
)
def test_secrets_of_headers(headers: dict[str, str]) -> None:
    entry = registration(headers=headers)
    known = replace(facts(), discovery=replace(facts().discovery, registrations=(entry,)))
    assert inventory.secrets(known) == (KEY,)


@pytest.mark.parametrize(
    "env",
    [
        {"MAX_TOKEN": "1000000000"},
        {"MY_KEY": "short"},
        {"MY_KEY": "/run/secrets/key"},
        {"MY_KEY": "${THE_KEY_VARIABLE}"},
        {"CPERSONA_EMBEDDING_MODEL": "text-embedding-3-small"},
        {"SOME_URL": "http://[broken"},
    ],
    ids=lambda env: f"{next(iter(env.items()))}",
)
def test_what_only_sounds_secret_is_left_alone(env: dict[str, str]) -> None:
    assert inventory.secrets(facts(env)) == ()


def test_secrets_found_beside_the_registrations() -> None:
    key = Variable("CPERSONA_EMBEDDING_API_KEY", KEY, Place(words="~/.bashrc"))
    assert inventory.secrets(replace(facts(), stray=(key,))) == (KEY,)
    entry = registration(inherited=(key,))
    assert inventory.secrets(replace(facts(), discovery=replace(facts().discovery, registrations=(entry,)))) == (KEY,)
    holder = Process(pid=7, environment={"CPERSONA_EMBEDDING_API_KEY": KEY})
    assert inventory.secrets(with_database(facts(), holders=(holder, Process(pid=8)))) == (KEY,)


def test_a_secret_is_told_by_its_length_and_a_url_without_its_secrets() -> None:
    known = facts({"CPERSONA_EMBEDDING_API_KEY": KEY, "CPERSONA_EMBEDDING_URL": URL})
    values = {
        setting["name"]: setting["value"]
        for setting in inventory.payload(known)["registrations"][0]["environments"][0]["settings"]  # type: ignore[index]
    }
    assert values["CPERSONA_EMBEDDING_API_KEY"] == f"set ({len(KEY)} characters)"
    assert values["CPERSONA_EMBEDDING_URL"] == "https://embeddings.example.org/v1"
    text = str(list(inventory.sections(known)))
    assert KEY not in text
    assert "p4ssw0rd" not in text


SHELL = replace(MACHINE, env={**MACHINE.env, "CPERSONA_EMBEDDING_MODE": "http"})


def test_the_headline_counts_registrations_once() -> None:
    known = facts({"CPERSONA_DB_PATH": "/home/u/c.db"}, machine=SHELL)
    assert len(known.targets) == 2, "one for each assumption about the environment"
    assert inventory.headline(known) == "1 registration, 0 databases"
    assert inventory.headline(with_database(known)) == "1 registration, 1 database"


def test_the_second_assumption_shows_only_what_it_changes() -> None:
    env = {"CPERSONA_DB_PATH": "/home/u/c.db"}
    assert [title for title in rows(facts(env)) if "settings" in title] == ["settings of Claude Code (user)"]
    found = {title: shown for title, shown in rows(facts(env, machine=SHELL)).items() if "settings" in title}
    desktop, shell = found
    assert desktop == "settings of Claude Code (user) (started by the desktop)"
    assert [name for name, _, _ in found[desktop]] == ["server version", "CPERSONA_DB_PATH"]
    assert shell == "settings of Claude Code (user) (started from this shell)"
    assert [name for name, _, _ in found[shell]] == ["CPERSONA_EMBEDDING_MODE"]


def test_the_registrations_found() -> None:
    entries = (
        registration({"CPERSONA_DB_PATH": "/home/u/c.db"}),
        registration(client="codex", status=Status.DISABLED, why="switched off in the client"),
        registration(client="cursor", status=Status.HIDDEN),
        registration(client="zed"),
        registration(client="windsurf", transport="http", url="http://u:hidden@127.0.0.1:8402/mcp?token=hidden"),
        registration(client="vscode", launch=Launch(kind=LaunchKind.PROXY)),
    )
    known = replace(
        facts(),
        discovery=replace(facts().discovery, registrations=entries),
        targets=(*targets(entries[0], version=None), *targets(entries[4], version=None), *targets(entries[5])),
    )
    shown = {name: value for name, value, _ in rows(known, 0)["registrations"]}
    assert shown == {
        "Claude Code (user)": "cpersona, version unknown, /home/u/c.db",
        "Codex (user)": "disabled: switched off in the client",
        "Cursor (user)": "hidden",
        "Zed (user)": "not examined",
        "Windsurf (user)": "calls http://127.0.0.1:8402/mcp",
        "VS Code (user)": "cpersona 2.6.14, as a proxy of a server elsewhere",
    }
    found = inventory.payload(known)["registrations"]
    assert [(entry["client"], entry["status"], entry["version"]) for entry in found] == [  # type: ignore[attr-defined]
        ("claude-code", "active", None),
        ("codex", "disabled", None),
        ("cursor", "hidden", None),
        ("zed", "active", None),
        ("windsurf", "active", None),
        ("vscode", "active", "2.6.14"),
    ]


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"counts": {"memories": 1}, "schema": 21}, "1 memory, schema 21"),
        ({"counts": {}, "schema": 21}, "0 memories, schema 21"),
        ({"state": State.LOCKED}, "locked"),
        ({"state": State.LOCKED, "holders": (Process(pid=7), Process(pid=8))}, "locked, open in process 7, process 8"),
    ],
)
def test_the_databases_found(fields: dict[str, object], shown: str) -> None:
    known = with_database(facts({"CPERSONA_DB_PATH": "/home/u/cpersona.db"}), **fields)
    assert rows(known, 0)["databases"] == [("/home/u/cpersona.db", shown, "opened by Claude Code (user)")]
    alone = replace(known, databases=(replace(known.databases[0], targets=()),))
    assert rows(alone, 0)["databases"][0][2] == "--db"
    found = inventory.payload(known)["databases"]
    assert [database["opened_by"] for database in found] == [["Claude Code (user)"]]  # type: ignore[attr-defined]


def test_what_the_audit_of_the_rows_found() -> None:
    stamp = "2025-03-05 12:00:00"
    effect = Effect(
        lens=Lens(rule_of(None), Penalty(0.01, 0.5)),
        scope=Scope("atlas", "orion"),
        boundary=Boundary(stamp, instant(stamp)),
        rows=4,
        earlier=3,
        at_floor=2,
        mean=0.7,
    )
    audit = Audit(dates=Dates(rows=6, utc=5, undated=1), effects=(effect,))
    known = with_database(facts({"CPERSONA_DB_PATH": "/home/u/cpersona.db"}), audit=audit, unmeasured=("copies",))
    (found,) = cast("list[dict[str, object]]", inventory.payload(known)["databases"])
    assert found["dates"] == {"utc": 5, "offset": 0, "naive": 0, "undated": 1, "unread": 0, "sql_only": 0}
    assert found["penalty"] == [
        {
            "agent": "atlas",
            "project": "orion",
            "boundary": "2025-03-05T12:00:00+00:00",
            "rate": 0.01,
            "floor": 0.5,
            "memories": 4,
            "weakened": 3,
            "at_floor": 2,
            "mean_factor": 0.7,
        }
    ]
    assert found["unmeasured"] == ("copies",)


def test_how_far_an_import_moved_the_episode_boundary() -> None:
    now, healed, later = "2026-11-30 16:55:08", "2025-07-01 00:00:00", "2025-08-01 00:00:00"
    burst = Burst(episodes=2, first=now, last=now, oldest="2023-01-01 00:00:00", newest="2024-03-01 11:00:00")
    moved = (
        Moved("atlas", None, now, healed),
        Moved("atlas", "", now, healed),  # as the agent as a whole: not told twice
        Moved("atlas", "orion", now, later),
        Moved("vega", "", now, later),
    )
    known = with_database(facts({}), audit=Audit(bursts=(burst,), moved=moved))
    (section,) = (section for section in inventory.sections(known) if section.title.startswith("episode boundary"))
    (spans,) = section.figures
    assert isinstance(spans, Spans)
    assert list(spans.rows) == [
        ("episodes imported", burst.oldest, burst.newest),
        ("atlas", healed, now),
        ("atlas, orion", later, now),
        ("vega, global pool", later, now),
    ]
    assert section.verbosity, "with -v in text; the page shows it open"


def test_defaults_are_shown_when_asked_twice() -> None:
    known = facts({"CPERSONA_EMBEDDING_MODE": "http"})
    title = "settings of Claude Code (user): defaults"
    assert title not in rows(known, 1)
    names = {name: where for name, _, where in rows(known, 2)[title]}
    assert names["CPERSONA_EMBEDDING_TIMEOUT_SECS"] == "default"
    assert "CPERSONA_EMBEDDING_MODE" not in names


def test_an_alias_and_an_unusable_value_say_so() -> None:
    known = facts({"EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_TIMEOUT_SECS": "soon"})
    given = {name: where for title, found in rows(known).items() if "settings" in title for name, _, where in found}
    assert "read from EMBEDDING_MODE" in given["CPERSONA_EMBEDDING_MODE"]
    assert "; " in given["CPERSONA_EMBEDDING_TIMEOUT_SECS"]


def test_where_was_searched() -> None:
    looked = Looked("codex", Path("/home/u/.codex/config.toml"), "absent")
    known = replace(facts(), discovery=replace(facts().discovery, looked=(looked,)))
    assert inventory.payload(known)["searched"] == [{"client": "codex", "path": looked.path, "state": "absent"}]
