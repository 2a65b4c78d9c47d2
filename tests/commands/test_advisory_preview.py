"""``cpersona-cli advisory-preview`` through the installed script, with the real server in a child."""

from __future__ import annotations

import html
import io
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from pytest_console_scripts import ScriptRunner
from support import runs
from support.advisories import PYTHONS
from support.advisories import serving as live
from support.endpoints_small import Answer, Request, embed, serving
from support.english import left
from support.fit_stores import Written, store_of
from support.replies import closed_port
from support.stores import snapshot
from support.traps import reading

from cpersona_cli.commands import asking, previewing
from cpersona_cli.commands.errors import UsageError
from cpersona_cli.report.output import FORMATS
from cpersona_cli.start.process import ClosedError
from cpersona_cli.store.reading import State
from cpersona_cli.traps.gather import Selection

pytestmark = [pytest.mark.script_launch_mode("inprocess"), pytest.mark.server]

SECRET = "sk-live-0123456789abcdef"
OLDEST = PYTHONS["2.4.41"]


def flat(text: str) -> str:
    """Text without the line breaks that a terminal's width makes."""
    return " ".join(text.replace("│", " ").split())


class Run(runs.Run):
    """What one run of ``advisory-preview`` said."""

    command = "advisory-preview"

    @property
    def told(self) -> list[str]:
        return [recall["told"] for recall in self.json["recalls"]]


Preview = Callable[..., Run]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return runs.empty_home(tmp_path, monkeypatch, columns=120)


@pytest.fixture
def preview(home: Path, script_runner: ScriptRunner) -> Preview:
    def run(*words: str, env: Mapping[str, str] | None = None, typed: str = "") -> Run:
        before = snapshot(home)
        result = script_runner.run(
            ["cpersona-cli", "advisory-preview", *(["--env"] if env is not None else []), *words],
            cwd=home,
            env={**os.environ, **(env or {})},
            stdin=io.StringIO(typed),
        )
        assert snapshot(home) == before, "something was written"
        return Run(result.returncode, result.stdout, result.stderr)

    return run


def http(url: str, database: Path | None = None, **more: str) -> dict[str, str]:
    given = {"CPERSONA_DB_PATH": str(database)} if database is not None else {"CPERSONA_DB_PATH": "/nowhere/c.db"}
    return {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": url, **given, **more}


def refused() -> str:
    return f"http://127.0.0.1:{closed_port()}/embed"


def store(folder: Path, width: int = 64, *, missing: int = 0, twist: float = 1.0) -> Path:
    texts = [f"a sentence about the number {number} and little else" for number in range(12)]
    return store_of(
        folder,
        [
            Written(text=text, vector=None if number < missing else [twist * v for v in embed(text, width)])
            for number, text in enumerate(texts)
        ],
    )


# --- states and exit codes


def test_a_healthy_endpoint_and_vectors_that_fit(preview: Preview, tmp_path: Path) -> None:
    with serving() as small:
        found = preview("--json", env=http(small.url(), store(tmp_path / "store")))
        sent = [text for request in small.calls for text in request.texts]
    assert found.code == 0
    assert found.traps == []
    shown = found.json
    assert (shown["state"], shown["source"], shown["how"], shown["vectors"]) == ("healthy", "server", "live", "ok")
    assert found.told == ["nothing"] * 3
    assert [part["name"] for part in shown["unsaid"]] == ["first", "stores", "cached"]
    fresh = [text for text in sent if text.startswith("advisory preview ")]
    assert len(set(fresh)) == 3, "texts that no cache can hold"


def test_nobody_listens(preview: Preview) -> None:
    found = preview("--json", env=http(refused()))
    assert found.code == 1
    assert found.traps == ["advisory.fault"]
    assert found.told == ["nothing", "full", "short"]
    shown = found.json
    assert shown["meaning"]["kind"] == "refused"
    assert "ConnectError: All connection attempts failed" in shown["evidence"]
    assert shown["server"]["known_texts"] is True
    for recall in shown["recalls"][1:]:
        assert json.loads(recall["text"]) == recall["advisory"]
        assert list(recall["advisory"]) == [
            "degraded", "severity", "reason", "evidence", "runbook", "advisory_scope",
        ]  # fmt: skip


def test_green_health_and_red_embedding(preview: Preview) -> None:
    """The preview rests on a real embedding, not on what a health route says."""

    def red(request: Request, _number: int) -> Answer | None:
        return Answer(500, {"error": "'NoneType' object is not subscriptable"}) if request.texts else None

    with serving(gets={"/health": {"status": "ok"}}, before=red) as small:
        found = preview("--json", env=http(small.url()))
    assert found.code == 1
    assert found.json["state"] == "fault"


def test_evidence_that_tells_nothing_stands_beside_what_it_means(preview: Preview) -> None:
    said = "Unexpected endpoint or method. (POST /embeddings)"
    with serving(
        before=lambda request, _number: Answer(200, {"error": said}) if request.method == "POST" else None
    ) as s:
        env = {"CPERSONA_EMBEDDING_MODE": "api", "CPERSONA_EMBEDDING_API_URL": s.url("/v1/embeddings")}
        found = preview("--json", env={**http(""), **env, "CPERSONA_EMBEDDING_API_KEY": SECRET})
    (fault,) = found.json["findings"]
    assert found.json["evidence"].endswith("failed: KeyError: 'data'")
    assert fault["measured"] == f"{found.json['evidence']}; that is: the server has no such path: “{said}”"
    assert found.json["meaning"]["kind"] == "route_not_found"
    assert found.json["meaning"]["message"] == said


def test_an_endpoint_that_dies_between_two_runs(preview: Preview) -> None:
    with serving() as small:
        env = http(small.url())
        assert preview("--json", env=env).json["state"] == "healthy"
    assert preview("--json", env=env).json["state"] == "fault"


def test_mode_none_is_a_hint_and_not_a_fault(preview: Preview) -> None:
    found = preview("--json", env={"CPERSONA_DB_PATH": "/nowhere/c.db"})
    assert found.code == 0
    assert found.traps == ["advisory.hint"]
    assert found.told == ["full", "short", "short"]
    assert found.json["recalls"][0]["advisory"]["evidence"] == "mode=none / no embedding backend configured"
    text = flat(preview(env={"CPERSONA_DB_PATH": "/nowhere/c.db"}).out)
    assert "supported and not broken" in text
    assert "CPERSONA_DEGRADED_ADVISORY=false, which only silences the hint" in text


def test_mode_none_that_was_chosen(preview: Preview) -> None:
    env = {"CPERSONA_DB_PATH": "/nowhere/c.db", "CPERSONA_DEGRADED_ADVISORY": "false"}
    found = preview("--json", env=env)
    assert found.code == 0
    assert found.traps == []
    assert found.told == ["nothing"] * 3


def test_another_width_is_never_good_news(preview: Preview, tmp_path: Path) -> None:
    with serving() as small:
        env = http(small.url(), store(tmp_path / "store", 96))
        found, text = preview("--json", env=env), preview(env=env).out
    assert found.code == 1
    assert found.traps == ["advisory.silent"]
    assert found.told == ["nothing"] * 3
    assert found.json["vectors"] == "changed"
    (broken,) = [part for part in found.json["unsaid"] if part["broken"]]
    assert broken["command"] == "cpersona-cli dimension --env"
    rebuild = "cpersona-cli reembed --env --only mismatched"
    assert found.json["findings"][0]["repair"]["commands"] == [broken["command"], rebuild]
    assert text.splitlines()[-1].endswith(f"Next: {rebuild}")
    assert "the agent is told nothing, and recall is broken" in text


def test_another_model_of_the_same_width(preview: Preview, tmp_path: Path) -> None:
    """Only stored texts that are embedded again show it, and these stay on this computer."""
    with serving(after=lambda _request, vectors: [vector[::-1] for vector in vectors]) as small:
        found = preview("--json", env=http(small.url(), store(tmp_path / "store")))
    assert found.code == 1
    assert found.traps == ["advisory.silent"]
    assert found.json["vectors"] == "swapped"


def test_missing_vectors(preview: Preview, tmp_path: Path) -> None:
    with serving() as small:
        few = preview("--json", env=http(small.url(), store(tmp_path / "few", missing=1)))
        many = preview("--json", env=http(small.url(), store(tmp_path / "many", missing=6)))
    assert (few.code, few.traps) == (0, [])
    assert "missing" in [part["name"] for part in few.json["unsaid"]]
    assert (many.code, many.traps) == (1, ["advisory.silent"])


def test_vectors_that_are_worth_nothing(preview: Preview) -> None:
    with serving(after=lambda _request, vectors: [[0.0] * len(vector) for vector in vectors]) as small:
        found = preview("--json", env=http(small.url()))
    assert (found.code, found.traps) == (1, ["advisory.silent"])
    assert found.json["state"] == "healthy"


def test_calls_that_contradict_each_other_are_no_verdict(preview: Preview) -> None:
    """The server embeds one text at a time; a reply to several holds vectors of different widths."""
    with serving(after=lambda _request, vectors: [vector[: 8 + n] for n, vector in enumerate(vectors)]) as small:
        found = preview("--json", env=http(small.url()))
    assert (found.code, found.traps, found.json["state"]) == (3, [], "healthy")
    assert found.json["meaning"]["kind"] == "ragged"
    assert "the server’s own call ended otherwise" in found.json["unsettled"][0]


def test_switched_off_while_broken(preview: Preview) -> None:
    env = http(refused(), CPERSONA_DEGRADED_ADVISORY="false")
    found, text = preview("--json", env=env), preview(env=env).out
    assert (found.code, found.traps) == (1, ["advisory.switched-off"])
    assert found.told == ["nothing"] * 3
    assert found.json["enabled"] is False
    assert "whatever happens, the agent is told nothing" in text


def test_a_word_that_does_not_switch_it_off(preview: Preview) -> None:
    text = flat(preview(env=http(refused(), CPERSONA_DEGRADED_ADVISORY="disabled")).out)
    assert "CPERSONA_DEGRADED_ADVISORY=disabled does not switch the notice off in this release; false does" in text


def test_a_mode_that_does_not_exist(preview: Preview) -> None:
    env = {"CPERSONA_EMBEDDING_MODE": "htp", "CPERSONA_DB_PATH": "/nowhere/c.db"}
    found = preview("--json", env=env)
    assert (found.code, found.traps) == (1, ["advisory.no-start"])
    assert found.json["refused"].startswith("ValueError: CPERSONA_EMBEDDING_MODE='htp' is not supported")
    assert "the server does not start" in preview("-q", env=env).out


def test_start_up_checks_that_come_after_the_import(preview: Preview) -> None:
    """A server that listens needs a token; asked as it would be over stdio, that counts for nothing."""
    env = http(refused(), CPERSONA_TRANSPORT="streamable-http")
    assert preview("--json", env=env).traps == ["advisory.no-start"]
    assert preview("--json", "--transport", "stdio", env=env).traps == ["advisory.fault"]


def test_a_database_that_cannot_be_read_leaves_no_verdict(preview: Preview, tmp_path: Path) -> None:
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    with serving() as small:
        found = preview("--json", env=http(small.url(), broken))
    assert found.code == 3
    assert found.json["unsettled"]


def test_nothing_to_ask(preview: Preview) -> None:
    found = preview("--json")
    assert found.code == 3
    assert "no registration of CPersona was found" in found.json["unsettled"][0]


# --- secrets


def leaking(small_url: str) -> dict[str, str]:
    return {
        "CPERSONA_EMBEDDING_MODE": "api",
        "CPERSONA_EMBEDDING_API_URL": small_url,
        "CPERSONA_EMBEDDING_API_KEY": f"{SECRET}\n",
        "CPERSONA_DB_PATH": "/nowhere/c.db",
    }


@pytest.mark.parametrize("form", FORMATS)
def test_a_leak_is_masked_and_a_finding_in_itself(preview: Preview, form: str) -> None:
    with serving() as small:
        found = preview("--format", form, env=leaking(small.url("/v1/embeddings")))
    assert found.code == 1
    assert SECRET not in found.out + found.err
    assert "leaks-secret" in found.out


def test_a_leak_is_counted(preview: Preview) -> None:
    with serving() as small:
        found = preview("--json", env=leaking(small.url("/v1/embeddings")))
    assert "advisory.leaks-secret" in found.traps
    assert found.json["redacted_characters"] >= 2 * len(SECRET)
    assert found.json["raw"] is False


def test_raw_is_byte_for_byte_what_the_server_says(preview: Preview, tmp_path: Path) -> None:
    with serving() as small:
        env = leaking(small.url("/v1/embeddings"))
        own = {name: value for name, value in env.items() if name != "CPERSONA_DB_PATH"}
        with live(tmp_path / "live", own, sys.executable) as server:
            told = [server.recall(f"question {number}") for number in range(3)]
        found = preview("--json", "--raw", "--yes", env=env)
    assert [recall["text"] for recall in found.json["recalls"]] == told
    assert told[2] is not None
    assert SECRET in told[2]
    assert "advisory.leaks-secret" in found.traps


def test_raw_asks_and_nobody_is_there(preview: Preview) -> None:
    found = preview("--json", "--raw", env=http(refused()), typed="yes\n")
    assert found.code == 2
    assert found.json["error"] == "--raw may show a key or a password; add --yes to allow it"


@pytest.mark.parametrize(("typed", "refuses"), [("yes\n", False), ("no\n", True), ("", True)])
def test_raw_asks_at_a_terminal(
    typed: str, refuses: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(previewing, "terminal", lambda _stream: True)
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    request = previewing.Request(selection=Selection(), raw=True)
    if refuses:
        with pytest.raises(UsageError):
            previewing._agree(request, "en")
    else:
        previewing._agree(request, "en")
    assert "Type yes to see them" in capsys.readouterr().err


# --- replays


def test_a_replay_calls_nothing_and_judges_nothing(preview: Preview) -> None:
    with serving() as small:
        found = preview("--json", "--replay", "auth", env=http(small.url()))
        assert small.requests == []
    assert (found.code, found.traps) == (0, [])
    assert found.told == ["nothing", "full", "short"]
    assert "401 Unauthorized" in found.json["evidence"]
    assert found.json["how"] == "replay"
    assert found.json["meaning"]["kind"] == "auth"


def test_a_replay_is_what_a_live_server_says_of_such_a_failure(preview: Preview, tmp_path: Path) -> None:
    env = http(refused(), tmp_path / "none.db")
    with live(tmp_path / "live", env, sys.executable) as server:
        told = [server.recall(f"question {number}") for number in range(3)]
    found = preview("--json", "--replay", "refused", env=env)
    assert [recall["text"] for recall in found.json["recalls"]] == told


def test_one_blip_then_an_outage(preview: Preview) -> None:
    found = preview("--json", "--sequence", "fail,ok,fail,fail,recall,ok,fail,fail", env=http(refused()))
    assert found.told == ["nothing", "nothing", "nothing", "full", "short", "nothing", "nothing", "full"]


def test_callers_take_turns_or_are_named(preview: Preview) -> None:
    words = ("--transport", "streamable-http", "--json")
    turns = preview(
        *words, "--replay", "timeout", "--recalls", "5", "--session-key", "a", "--session-key", "b",
        env=http(refused()),
    )  # fmt: skip
    assert [recall["session_key"] for recall in turns.json["recalls"]] == ["a", "b", "a", "b", "a"]
    assert turns.told == ["nothing", "full", "full", "short", "short"]
    named = preview(*words, "--sequence", "fail,fail,recall,recall:a,recall:a,recall:", env=http(refused()))
    assert named.told == ["nothing", "full", "full", "full", "short", "full"]
    scopes = [recall["advisory"]["advisory_scope"] for recall in named.json["recalls"][1:]]
    assert scopes == ["process", "process", "session", "session", "process"]


def test_a_failing_check_health_and_one_recall_are_enough(preview: Preview) -> None:
    found = preview("--json", "--sequence", "check,fail", env=http(refused()))
    assert found.told == ["nothing", "full"]


def test_a_replay_replaces_settings_that_would_make_no_such_call(preview: Preview) -> None:
    none = preview("--json", "--replay", "none", env=http(refused()))
    assert none.told == ["full", "short", "short"]
    assert none.json["notes"] == ["CPERSONA_EMBEDDING_MODE=none in place of its own, for this replay"]
    down = preview("--json", "--replay", "refused", env={"CPERSONA_DB_PATH": "/nowhere/c.db"})
    assert down.json["state"] == "fault"
    assert len(down.json["notes"]) == 2


def test_vectors_that_nobody_complains_about_replayed(preview: Preview) -> None:
    found = preview("--json", "--replay", "zero-vector", env=http(refused()))
    assert found.told == ["nothing"] * 3
    assert found.json["meaning"]["kind"] == "zero_vector"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--replay", "refusd"), "--replay takes no 'refusd'; did you mean refused?"),
        (("--replay", "nonsense-word"), "known words: none, ok, "),
        (("--sequence", "fail,chek"), "did you mean check?"),
        (("--sequence", "ok,,fail"), "--sequence takes no ''; known words: none, fail, "),
        (("--sequence", "fail,none"), "a server has one mode"),
        (("--sequence", ",".join(["ok"] * 1001)), "up to 1000 words"),
        (("--sequence", "ok", "--recalls", "3"), "does not go with --recalls"),
        (("--live", "--replay", "auth"), "does not go with --replay"),
        (("--live", "--sequence", "ok"), "does not go with --sequence"),
        (("--recalls", "0"), "from 1 to 1000"),
        (("--session-key", "k" * 257), "up to 256 characters"),
        (("--sequence", f"ok:{'k' * 257}"), "up to 256 characters"),
        (("--transport", "http"), "--transport takes stdio or streamable-http"),
        (("--lang", "fr"), "--lang takes en or ja"),
        (("--yes",), "--yes goes with --raw"),
        (("--timeout", "0"), "above 0"),
        (("--registration", "nowhere.json"), "nowhere.json"),
    ],
)
def test_what_makes_no_sense(preview: Preview, words: tuple[str, ...], says: str) -> None:
    found = preview("--json", *words)
    assert found.code == 2
    assert says in found.json["error"]


# --- registrations


def register(home: Path, servers: Mapping[str, object]) -> None:
    (home / ".claude.json").write_text(json.dumps({"mcpServers": servers}, indent=2))


def test_a_server_that_cannot_be_asked_leaves_our_own_words(preview: Preview, home: Path) -> None:
    variables = ["-e", "CPERSONA_TRANSPORT=stdio", "-e", "CPERSONA_EMBEDDING_MODE=none"]
    register(
        home,
        {"cpersona": {"command": "docker", "args": ["run", "-i", "--rm", *variables, "example.org/cpersona:2.6.14"]}},
    )
    found = preview("--json")
    assert found.code == 0
    shown = found.json
    assert shown["source"] == "own"
    assert shown["own_words_because"] == "the server runs in a container"
    assert shown["recalls"][0]["advisory"]["source"] == "own"
    assert len(shown["recalls"][0]["advisory"]["runbook"].split("\n\n")) == 6
    text = flat(preview("--lang", "ja").out)
    assert "本ツールの文面です。サーバーの文面ではありません" in text
    assert "利用者への一言" in text


def test_a_container_is_on_another_network(preview: Preview, home: Path) -> None:
    """What cannot be reached from here may be reached from there."""
    variables = [f"CPERSONA_EMBEDDING_URL={refused()}", "CPERSONA_EMBEDDING_MODE=http", "CPERSONA_TRANSPORT=stdio"]
    args = ["run", "-i", *(word for variable in variables for word in ("-e", variable)), "example.org/cpersona:2.6.14"]
    register(home, {"cpersona": {"command": "docker", "args": args}})
    found = preview("--json")
    assert (found.code, found.traps) == (3, [])
    assert "another network" in " ".join(found.json["unsettled"])


def test_our_own_words_about_an_endpoint_that_answers(preview: Preview, home: Path) -> None:
    with serving() as small:
        env = http(small.url())
        register(home, {"cpersona": {"command": "no-such-program-cpersona", "args": [], "env": env}})
        found = preview("--json")
    shown = found.json
    assert (shown["source"], shown["state"]) == ("own", "healthy")
    assert found.code == 3, "a program that is not there is no good news"
    assert "no-such-program-cpersona was not found" in shown["unsettled"][0]


def test_our_own_words_about_an_endpoint_that_does_not(preview: Preview, home: Path) -> None:
    register(home, {"cpersona": {"command": "no-such-program-cpersona", "args": [], "env": http(refused())}})
    found = preview("--json")
    assert (found.json["source"], found.json["state"], found.code) == ("own", "fault", 1)
    assert found.told == ["nothing", "full", "short"]
    assert "ConnectError" in found.json["recalls"][1]["advisory"]["evidence"]


def test_an_endpoint_that_loads_gives_no_verdict_to_our_own_words(preview: Preview, home: Path) -> None:
    with serving(loading=1000) as small:
        env = http(small.url())
        register(home, {"cpersona": {"command": "no-such-program-cpersona", "args": [], "env": env}})
        found = preview("--json")
    assert (found.code, found.traps) == (3, [])
    assert found.json["meaning"]["kind"] == "loading"


def test_a_clients_stand_in_for_python_is_not_run(preview: Preview, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "named_like_python", lambda _path: False)
    found = preview("--json", env=http(refused()))
    assert found.json["source"] == "own"
    assert "is no Python of this machine" in found.json["own_words_because"]


def test_a_run_that_was_ended_asks_nobody(preview: Preview, monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(*_: object, **__: object) -> None:
        raise ClosedError

    monkeypatch.setattr(asking, "ask", ended)
    found = preview("--json", env=http(refused()))
    assert found.code == 3
    assert any("the run was over" in sentence for sentence in found.json["unsettled"])


@pytest.mark.parametrize(
    ("state", "why", "doubt"),
    [
        (None, "no database is known", False),
        (State.OK, "", False),
        (State.NO_FOLDER, "there is no database yet", False),
        (State.CORRUPT, "the database cannot be read: corrupt", True),
    ],
)
def test_why_there_is_nothing_to_compare(state: State | None, why: str, doubt: bool) -> None:
    found = None if state is None else reading(state=state)
    assert asking._unreadable(found, "en") == (why, doubt)


def test_a_client_that_starts_nothing(preview: Preview, home: Path) -> None:
    entry = {"command": sys.executable, "args": ["-m", "cpersona"], "env": http(refused())}
    folder = home / ".cursor"
    folder.mkdir()
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"cpersona": {**entry, "disabled": True}}}))
    found = preview("--json")
    assert found.code == 3
    assert "no client would start a server here" in " ".join(found.json["unsettled"])


def test_a_server_elsewhere_is_left_alone(preview: Preview, home: Path) -> None:
    register(home, {"cpersona": {"type": "http", "url": "http://memory.invalid:8402/mcp"}})
    found = preview("--json")
    assert found.code == 3
    assert "its server runs elsewhere" in " ".join(found.json["unsettled"])


@pytest.mark.skipif(not OLDEST, reason="needs a server of 2.4.41")
def test_several_registrations_of_several_releases(preview: Preview, home: Path) -> None:
    url = refused().replace("//", f"//me:{SECRET}@")
    old = {"command": OLDEST, "args": ["-m", "cpersona"], "env": http(url, CPERSONA_DEGRADED_ADVISORY="1")}
    new = {"command": sys.executable, "args": ["-m", "cpersona"], "env": http(refused())}
    register(home, {"cpersona": new, "cpersona-old": old})
    found = preview("--json", "--session-key", "a")
    assert found.code == 1
    assert [target["server"]["version"] for target in found.json["targets"]] == ["2.6.14", "2.4.41"]
    assert found.json["targets"][1]["server"]["knows_session_key"] is False
    text = flat(preview("--session-key", "a").out)
    assert "switches the notice off in this release, which takes nothing but true for on" in text
    assert "this release knows no session_key" in text
    assert SECRET not in text


@pytest.mark.skipif(not OLDEST, reason="needs a server of 2.4.41")
def test_an_old_release_puts_the_password_into_its_words(preview: Preview, home: Path) -> None:
    env = http(refused().replace("//", f"//me:{SECRET}@"))
    register(home, {"cpersona": {"command": OLDEST, "args": ["-m", "cpersona"], "env": env}})
    for words in ((), ("--replay", "refused")):
        found = preview("--json", *words)
        assert found.code == 1
        assert "advisory.leaks-secret" in found.traps
        assert SECRET not in found.out


def test_a_run_that_takes_too_long_keeps_what_it_knows(preview: Preview) -> None:
    import threading  # noqa: PLC0415 - one endpoint that holds its breath

    over = threading.Event()

    def hang(_request: Request, _number: int) -> None:
        over.wait(20)

    with serving(before=hang) as small:
        try:
            found = preview("--json", "--timeout", "2", env=http(small.url("/vectors")))
        finally:
            over.set()
    assert found.code == 3
    assert any("--timeout allows more" in sentence for sentence in found.json["unsettled"])


# --- in Japanese


def japanese(preview: Preview, folder: Path, *words: str, env: Mapping[str, str] | None = None) -> tuple[str, Run]:
    """One run as text, as Markdown and as a page without its tags; and the run."""
    files = {name: folder / f"report.{name}" for name in ("md", "html")}
    outputs = [option for file in files.values() for option in ("--output", str(file))]
    found = preview("--lang", "ja", "-v", *outputs, *words, env=env)
    texts = (re.sub("(?s)<style>.*?</style>|</?[a-z!][^>]*>", " ", file.read_text("utf-8")) for file in files.values())
    return "\n".join((found.out, *(html.unescape(text.replace("\\", "")) for text in texts))), found


def test_none_of_our_words_is_left_in_english(preview: Preview, home: Path, tmp_path: Path) -> None:
    """Whatever a run may say: of a fault, of silence, of a server that does not start or cannot be asked."""
    dead, unset = refused(), {"CPERSONA_DB_PATH": "/nowhere/c.db"}
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    with serving() as small, serving(before=lambda _request, _number: Answer(401, "")) as locked:
        width = store(tmp_path / "store", 96, missing=3)
        cases: Sequence[tuple[Mapping[str, str] | None, tuple[str, ...], int]] = [
            (http(dead), (), 1),
            (unset, (), 0),
            (http(small.url(), width), (), 1),
            (http(small.url(), broken), (), 3),
            (http(locked.url()), (), 1),
            (http(small.url("/v1/embeddings")), (), 1),
            (http(dead, CPERSONA_DEGRADED_ADVISORY="false"), (), 1),
            (http(dead, CPERSONA_DEGRADED_ADVISORY="disabled"), ("--replay", "none"), 0),
            (http(dead, CPERSONA_TRANSPORT="streamable-http"), (), 1),
            (http(dead, CPERSONA_EMBEDDING_MODE="htp"), (), 1),
            (leaking(small.url("/v1/embeddings")), (), 1),
            (http(dead), ("--sequence", "fail,check,recall:a,zero-vector"), 0),
            (None, (), 3),
        ]
        for env, words, code in cases:
            text, found = japanese(preview, tmp_path, *words, env=env)
            assert found.code == code, words
            assert not left(text, *FOREIGN), (words, env)
    register(
        home,
        {
            "cpersona": {"command": "no-such-program-cpersona", "args": [], "env": http(dead.removeprefix("http://"))},
            "far": {"type": "http", "url": "http://memory.invalid:8402/mcp"},
            "docked": {"command": "docker", "args": ["run", "-i", "-e", f"CPERSONA_EMBEDDING_URL={dead}", "-e",
                "CPERSONA_EMBEDDING_MODE=http", "-e", "CPERSONA_TRANSPORT=stdio", "example.org/cpersona:2.6.14"]},
        },
    )  # fmt: skip
    text, found = japanese(preview, tmp_path)
    assert found.code == 1
    assert not left(text, *FOREIGN, "docked", "/embed")
    titles = [line.partition("：")[0] for line in found.out.splitlines() if line.startswith("Claude Code (user)")]
    assert f'"CPERSONA_EMBEDDING_URL": "{dead}"' in found.out, "the line to write stays"
    assert titles == [f"Claude Code (user), ~/.claude.json:{line}" for line in (3, 16)], "three of one name"


#: What the server says in these runs, and the endpoint, and names.
FOREIGN = (
    re.compile(
        r"mode=(?:http|api) / POST \S+ failed: (?:ConnectError: All connection attempts failed"
        r"|UnsupportedProtocol: Request URL is missing an 'http://' or 'https://' protocol."
        r"|LocalProtocolError: Illegal header value b'Bearer [^']*'"
        r"|HTTPStatusError: Client error '[0-9A-Za-z ]+' for url '\S+'\\?n?For more information check:)"
    ),
    re.compile(r"「[ -~\n]*」"),
    "モード htp",
    re.compile(r"ValueError: CPERSONA_EMBEDDING_MODE='htp' is not supported[^()]*\(recall becomes keyword/FTS-only\)"),
)


@pytest.mark.parametrize(
    "words",
    [
        ("--replay", "refusd"), ("--replay", "nonsense-word"), ("--sequence", "fail,none"), ("--recalls", "0"),
        ("--sequence", ",".join(["ok"] * 1001)), ("--sequence", "ok", "--recalls", "3"), ("--live", "--replay", "auth"),
        ("--session-key", "k" * 257), ("--transport", "http"), ("--yes",), ("--raw",), ("--timeout", "0"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_said_in_japanese(preview: Preview, words: tuple[str, ...]) -> None:
    found = preview("--lang", "ja", *words)
    assert found.code == 2
    known = found.err.partition("使える語：")[0]
    assert known
    assert not left(known, *words, "refused", "streamable-http")
