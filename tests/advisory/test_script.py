"""The child program reads the server's own signatures: made-up servers of every shape there was."""

from __future__ import annotations

import asyncio
import io
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cpersona_cli.advisory import script

Told = list[Mapping[str, Any]]


class Health:
    """A health module that notes what it is told."""

    def __init__(self) -> None:
        self.seen: list[object] = []
        self._state = "unknown"
        self.faulted = False

    def observe_config(self) -> None:
        self.seen.append("config")

    def observe_ok(self) -> None:
        self.seen.append("ok")

    def observe_failure(self, evidence: str | None) -> None:
        self.seen.append(("failure", evidence))

    def is_faulted(self) -> bool:
        return self.faulted

    def maybe_advisory(self) -> dict[str, str] | None:
        return {"runbook": "old"}


class Keyed(Health):
    def maybe_advisory(self, session_key: str = "") -> dict[str, str] | None:
        return {"runbook": f"key {session_key!r}"}


class Client:
    """An embedding client of a release before 2.5.9."""

    answers: Any = None

    def __init__(self, **settings: object) -> None:
        self.settings = settings
        self.closed = False

    async def initialize(self) -> None: ...

    async def close(self) -> None:
        self.closed = True

    async def embed(self, texts: list[str]) -> Any:
        assert len(texts) == 1
        return self.answers


def loader(health: Any, client: type = Client, **config: object) -> Callable[[str], Any]:
    given = {
        "EMBEDDING_MODE": "http", "EMBEDDING_URL": "u", "EMBEDDING_API_KEY": "", "EMBEDDING_API_URL": "",
        "EMBEDDING_MODEL": "m", "EMBEDDING_CACHE_SIZE": 1, "EMBEDDING_CACHE_TTL": 2, **config,
    }  # fmt: skip
    modules: dict[str, Any] = {
        "cpersona.config": SimpleNamespace(**given),
        "cpersona.health": health,
        "cpersona._vendored_mcp_common.embedding_client": SimpleNamespace(EmbeddingClient=client),
    }

    def load(name: str) -> Any:
        if name == "cpersona.vector":
            return modules.setdefault(name, SimpleNamespace(_probe_embedding_health=probe_of(health)))
        if name not in modules:
            raise ModuleNotFoundError(name, name=name)
        return modules[name]

    return load


def probe_of(health: Any) -> Callable[[], Any]:
    async def probe() -> tuple[bool, str | None]:
        return getattr(health, "second", (False, "second request failed"))

    return probe


def answer(load: Callable[[str], Any], *events: Mapping[str, Any]) -> Told:
    told: Told = []
    asyncio.run(script.answer({"events": list(events)}, told.append, load))
    return told


MEASURE = {"word": "measure"}


def test_a_release_without_keys_is_asked_without() -> None:
    health = Health()
    server, recall, end = answer(loader(health), {**MEASURE, "key": "a"})
    assert (server["keyed"], server["probing"]) == (False, True)
    assert recall["advisory"] == '{"runbook": "old"}'
    assert recall["state"] == "unknown"
    assert health.seen == ["config", ("failure", "second request failed")]
    assert end == {"event": "end"}


@pytest.mark.parametrize(("key", "shown"), [(" a ", "'a'"), ("", "''"), ("  ", "''")])
def test_a_release_with_keys_and_no_declaration(key: str, shown: str) -> None:
    _, recall, _ = answer(loader(Keyed()), {**MEASURE, "key": key})
    assert recall["advisory"] == f'{{"runbook": "key {shown}"}}'


def test_the_second_request_is_believed() -> None:
    health = Health()
    health.second = (True, None)  # type: ignore[attr-defined]
    _, recall, _ = answer(loader(health), MEASURE)
    assert recall["call"] == {"attempted": True, "ok": False, "error": None, "overlooked": True}
    assert health.seen == ["config", "ok"]


def test_a_faulted_release_asks_no_second_time() -> None:
    health = Health()
    health.faulted = True
    _, measured, replayed, _ = answer(loader(health), MEASURE, {"word": "call", "ok": False, "probe": "x"})
    assert measured["call"] == replayed["call"] == {"attempted": True, "ok": False, "error": None}
    assert health.seen == ["config", "config"]


def test_old_releases_replayed() -> None:
    health = Health()
    answer(
        loader(health),
        {"word": "call", "ok": True},
        {"word": "call", "ok": False, "error": "new", "probe": "old"},
        {"word": "call", "ok": False, "error": "new", "probe": None},
        {"word": "check", "error": "new"},
        {"word": "idle"},
    )
    assert health.seen == ["config", "ok", "config", ("failure", "old"), "config", "ok", "config"]


def test_a_success_of_an_old_release() -> None:
    class Answering(Client):
        answers = ((1.0, 0.0),)

    health = Health()
    told = answer(loader(health, Answering), MEASURE)
    assert told[1]["call"]["ok"] is True
    assert health.seen == ["config", "ok"]


def test_mode_none_calls_nothing() -> None:
    health = Health()
    told = answer(loader(health, EMBEDDING_MODE="none"), MEASURE, {"word": "call", "ok": True}, {"word": "check"})
    assert told[1]["call"] == {"attempted": False, "ok": False, "error": None}
    assert told[2]["call"] is None
    assert health.seen == ["config", "config"]


def test_what_is_missing_is_named() -> None:
    def load(name: str) -> Any:
        if name == "cpersona.health":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return SimpleNamespace(EMBEDDING_MODE="none")

    assert answer(load) == [
        {"event": "absent", "module": "cpersona.health", "error": "ModuleNotFoundError: No module named "
         "'cpersona.health'"},
    ]  # fmt: skip


def test_another_missing_module_ends_the_start() -> None:
    def load(name: str) -> Any:
        raise ModuleNotFoundError("No module named 'httpx'", name="httpx")

    (told,) = answer(load)
    assert (told["event"], told["module"]) == ("refused", "")


@pytest.mark.parametrize("where", ["assert_embedding_mode_supported", "initialize", "exit"])
def test_what_ends_the_start(where: str) -> None:
    def refuse() -> None:
        raise SystemExit(3) if where == "exit" else ValueError("no such mode")

    class Refusing(Client):
        async def initialize(self) -> None:
            refuse()

    client = Refusing if where == "initialize" else Client
    more: dict[str, object] = {} if where == "initialize" else {"assert_embedding_mode_supported": refuse}
    told = answer(loader(Health(), client, **more), MEASURE)
    assert told[-1]["event"] == "refused"
    assert told[-1]["error"] == ("SystemExit: 3" if where == "exit" else "ValueError: no such mode")


def test_the_timeout_is_read_as_the_release_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    class Noting(Client):
        def __init__(self, **settings: object) -> None:
            super().__init__(**settings)
            seen.append(settings["timeout"])

    monkeypatch.setenv("CPERSONA_EMBEDDING_TIMEOUT_SECS", "7")
    answer(loader(Health(), Noting))
    answer(loader(Health(), Noting, parse_int=lambda _name, _default: 8))
    answer(loader(Health(), Noting, embedding_timeout_secs=lambda: 9))
    assert seen == [7, 8, 9]


def test_what_no_net_catches_ends_that_recall_only() -> None:
    class Bursting(Client):
        async def embed(self, texts: list[str]) -> Any:
            raise RuntimeError("burst")

    health = Health()
    told = answer(loader(health, Bursting), MEASURE, {"word": "idle"})
    assert told[1]["escaped"] == "RuntimeError: burst"
    assert told[1]["advisory"] is None
    assert told[2]["advisory"] is not None


class Outcome(Client):
    """A client of 2.5.9 and later."""

    attempted = True

    async def embed_with_outcome(self, texts: list[str]) -> Any:
        return self.answers, SimpleNamespace(attempted=self.attempted, ok=bool(self.answers), error=None)


def test_an_outcome_without_a_reason_gets_the_servers_own_words() -> None:
    health = Health()
    told = answer(loader(health, Outcome), MEASURE, {"word": "call", "ok": False, "error": None})
    assert told[0]["probing"] is False
    assert [message["call"]["error"] for message in told[1:3]] == [script.NOTHING] * 2
    assert health.seen == ["config", ("failure", script.NOTHING)] * 2


def test_an_answer_from_the_cache_is_no_observation() -> None:
    class Cached(Outcome):
        answers = ((1.0,),)
        attempted = False

    health = Health()
    told = answer(loader(health, Cached), MEASURE, {"word": "call", "ok": True, "attempted": False})
    assert [message["call"]["ok"] for message in told[1:3]] == [True, True]
    assert health.seen == ["config", "config"]


def test_a_backend_that_says_nothing_of_itself_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "_STARTING", 0.01)

    class Silent(Outcome):
        async def capabilities_with_outcome(self) -> None:
            await asyncio.Event().wait()

    assert answer(loader(Health(), Silent), MEASURE)[-1] == {"event": "end"}


def test_a_success_is_observed_if_a_request_was_made() -> None:
    class Answering(Outcome):
        answers = ((1.0,),)

    health = Health()
    answer(loader(health, Answering), MEASURE)
    assert health.seen == ["config", "ok"]


def test_the_answer_goes_to_what_was_stdout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And whatever else is printed does not."""
    moved: list[tuple[int, int]] = []
    out = os.open(tmp_path / "out", os.O_CREAT | os.O_WRONLY)
    monkeypatch.setattr("os.dup", lambda _number: out)
    monkeypatch.setattr("os.dup2", lambda source, target: moved.append((source, target)))
    monkeypatch.setattr("sys.stdin", io.StringIO('{"events": [{"word": "idle"}]}\n'))
    monkeypatch.setattr("importlib.import_module", loader(Health(), Outcome))
    script.main()
    lines = [json.loads(line) for line in (tmp_path / "out").read_text("ascii").splitlines()]
    assert [line["event"] for line in lines] == ["server", "recall", "end"]
    assert moved == [(2, 1)]


def test_a_source_tree_has_no_release(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_name: str) -> Any:
        raise ModuleNotFoundError

    monkeypatch.setattr("importlib.import_module", missing)
    assert answer(loader(Health()))[0]["version"] == ""
