"""The preview beside live servers of three release lines, over both transports: byte for byte the same."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from support.advisories import PYTHONS, asked, serving
from support.endpoints_small import Answer, Behaviour, SmallEndpoint
from support.endpoints_small import serving as endpoint
from support.replies import closed_port

from cpersona_cli.advisory.model import Event, Preview

RELEASES = [pytest.param(python, id=release) for release, python in PYTHONS.items() if python]
KEY = "sk-exact-0123456789"

pytestmark = pytest.mark.server


def env_of(case: str, server: SmallEndpoint) -> dict[str, str]:
    """An environment in which calls end as the case says."""
    refused = f"http://127.0.0.1:{closed_port()}/embed"
    api = {"CPERSONA_EMBEDDING_MODE": "api", "CPERSONA_EMBEDDING_API_URL": server.url("/v1/embeddings")}
    http = {"CPERSONA_EMBEDDING_MODE": "http"}
    cases: Mapping[str, dict[str, str]] = {
        "none": {"CPERSONA_EMBEDDING_MODE": "none"},
        "refused": {**http, "CPERSONA_EMBEDDING_URL": refused},
        "with user info": {**http, "CPERSONA_EMBEDDING_URL": refused.replace("//", "//me:" + KEY + "@")},
        "404": {**http, "CPERSONA_EMBEDDING_URL": server.url("/nowhere")},
        "no URL": http,
        "no key": api,
        "key with newline": {**api, "CPERSONA_EMBEDDING_API_KEY": KEY + "\n"},
        "another contract": {**http, "CPERSONA_EMBEDDING_URL": server.url("/v1/embeddings")},
        "healthy": {**http, "CPERSONA_EMBEDDING_URL": server.url()},
    }
    return cases[case]


#: Each case with the newest release or over HTTP; of the older ones what they do differently.
CASES = {
    "2.6.14": ("none", "with user info", "no URL", "no key", "key with newline", "another contract", "healthy"),
    "2.5.12": ("key with newline",),
    "2.4.41": ("none", "404", "another contract"),
}
STDIO = [
    pytest.param(PYTHONS[release], case, id=f"{release}-{case}")
    for release, cases in CASES.items()
    for case in cases
    if PYTHONS[release]
]
HTTP = [
    pytest.param(PYTHONS[release], case, id=f"{release}-{case}")
    for release, case in (("2.6.14", "none"), ("2.6.14", "refused"), ("2.5.12", "refused"), ("2.4.41", "refused"))
    if PYTHONS[release]
]


def texts(preview: Preview) -> list[str | None]:
    assert (preview.absent, preview.refused, preview.unfinished) == ("", "", ""), preview
    return [recall.text for recall in preview.recalls]


def measured(*keys: str) -> list[Event]:
    return [Event(word="measure", key=key) for key in keys]


@pytest.mark.parametrize(("python", "case"), STDIO)
def test_over_stdio(python: str, case: str, tmp_path: Path) -> None:
    keys = ("", "", "", "a", "a")
    with endpoint() as small:
        env = env_of(case, small)
        with serving(tmp_path / "live", env, python) as server:
            told = [server.recall(f"question {number}", key) for number, key in enumerate(keys)]
        preview = asked(env, measured(*keys), python, tmp_path)
    assert texts(preview) == told
    assert (told == [None] * 5) == (case == "healthy" or overlooked(preview))


def overlooked(preview: Preview) -> bool:
    """Old releases take a 2xx without vectors for a success."""
    return any(recall.call is not None and recall.call.overlooked for recall in preview.recalls)


@pytest.mark.parametrize(("python", "case"), HTTP)
def test_over_http(python: str, case: str, tmp_path: Path) -> None:
    """One process for all callers: without a key a fault is told in full every time, a hint once."""
    keys = ("", "", "", "a", "a", "b", "")
    with endpoint() as small:
        env = env_of(case, small)
        with serving(tmp_path / "live", env, python, "streamable-http") as server:
            told = [server.recall(f"question {number}", key) for number, key in enumerate(keys)]
        shared = {**env, "CPERSONA_TRANSPORT": "streamable-http"}
        preview = asked(shared, measured(*keys), python, tmp_path)
    assert texts(preview) == told
    assert preview.server is not None
    if preview.server.keyed:
        scopes = [json.loads(text)["advisory_scope"] for text in told if text is not None]
        assert {"process", "session"} == set(scopes)
        again = "short" if case == "none" else "full"
        assert [recall.told for recall in preview.recalls[1:3]] == ["short" if case == "none" else "full", again]
        assert [recall.told for recall in preview.recalls[3:6]] == ["full", "short", "full"]


def failing(numbers: Sequence[int]) -> Behaviour:
    """A server whose calls with these numbers fail."""
    return Behaviour(before=lambda _request, number: Answer(500, "") if number in numbers else None)


def test_a_recovery_arms_the_whole_text_again(tmp_path: Path) -> None:
    """One blip is silent; two failures are told, the third in short; after a success it begins again."""
    python = PYTHONS["2.6.14"]
    outcomes = ["fail", "ok", "fail", "fail", "fail", "ok", "fail", "fail"]
    numbers = [number for number, outcome in enumerate(outcomes, 1) if outcome == "fail"]
    told = []
    for folder in ("live", "child"):
        with SmallEndpoint(failing(numbers)) as small:
            env = env_of("healthy", small)
            if folder == "live":
                with serving(tmp_path / "live", env, python) as server:
                    live = [server.recall(f"question {number}") for number in range(len(outcomes))]
                port = small.port
            else:
                preview = asked(env, measured(*[""] * len(outcomes)), python, tmp_path)
                told = [text and text.replace(f":{small.port}/", f":{port}/") for text in texts(preview)]
                assert [recall.told for recall in preview.recalls] == [
                    "nothing", "nothing", "nothing", "full", "short", "nothing", "nothing", "full",
                ]  # fmt: skip
    assert told == live


@pytest.mark.parametrize("word", ["disabled"])
@pytest.mark.parametrize("python", RELEASES)
def test_which_words_switch_it_off(python: str, word: str, tmp_path: Path) -> None:
    env = {"CPERSONA_EMBEDDING_MODE": "none", "CPERSONA_DEGRADED_ADVISORY": word}
    with serving(tmp_path / "live", env, python) as server:
        told = server.recall("a question")
    preview = asked(env, measured(""), python, tmp_path)
    assert texts(preview) == [told]
    assert preview.server is not None
    assert preview.server.enabled == (told is not None)


def test_the_words_that_do_not_switch_it_off_in_the_newest_release(tmp_path: Path) -> None:
    for word, enabled in {"false": False, "0": False, "off": False, "disabled": True, "never": True, "": True}.items():
        env = {"CPERSONA_EMBEDDING_MODE": "none", "CPERSONA_DEGRADED_ADVISORY": word}
        preview = asked(env, measured(""), PYTHONS["2.6.14"], tmp_path)
        assert preview.server is not None
        assert preview.server.enabled is enabled, word


def test_a_port_that_cannot_be_ends_the_start(tmp_path: Path) -> None:
    env = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": "http://127.0.0.1:70000/embed"}
    plain = {name: text for name, text in os.environ.items() if not name.startswith(("CPERSONA_", "EMBEDDING_"))}
    ended = subprocess.run(
        [PYTHONS["2.6.14"], "-m", "cpersona"],
        env={**plain, **env, "CPERSONA_DB_PATH": str(tmp_path / "memory.db")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert "ExceptionGroup: unhandled errors in a TaskGroup" in ended.stderr
    preview = asked(env, measured(""), PYTHONS["2.6.14"], tmp_path)
    assert preview.refused.startswith("ExceptionGroup: ")
    assert preview.recalls == ()


def test_a_port_that_cannot_be_ends_the_recall_itself(tmp_path: Path) -> None:
    """Nothing is asked at the start where the path is not /embed: then the agent gets an error and no advisory."""
    env = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": "http://127.0.0.1:70000/vectors"}
    with (
        serving(tmp_path / "live", env, PYTHONS["2.6.14"]) as server,
        pytest.raises(AssertionError, match="unhandled errors in a TaskGroup"),
    ):
        server.recall("a question")
    preview = asked(env, measured(""), PYTHONS["2.6.14"], tmp_path)
    (recall,) = preview.recalls
    assert recall.escaped.startswith("ExceptionGroup: ")
    assert recall.text is None
