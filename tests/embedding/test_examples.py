"""Made-up ends of calls are what the server's own client records when a call really ends so."""

from __future__ import annotations

import socket

import pytest
from support.endpoints_small import Answer, Behaviour, SmallEndpoint
from support.own_client import own

from cpersona_cli.embedding.examples import _EXCEPTIONS, REPLAYABLE, _reply, example
from cpersona_cli.embedding.kinds import MEANINGS, Kind, Stage
from cpersona_cli.embedding.model import Endpoint
from cpersona_cli.record import replace

URL = "http://127.0.0.1:8401/embed"
KEY = "sk-0123456789abcdef"

#: Kinds whose reply a small server can give; the phrase of 413 depends on the release of Python.
REPLIES = [
    kind
    for kind in REPLAYABLE
    if MEANINGS[kind].stage in {Stage.HEAD, Stage.BODY}
    and kind not in {Kind.TOO_LARGE, Kind.BATCH_TOO_LARGE, Kind.INPUT_TOO_LARGE}
]


def endpoint(mode: str, url: str = URL) -> Endpoint:
    return Endpoint(mode=mode, url=url, key=KEY if mode == "api" else "", model="small")


@pytest.mark.parametrize("mode", ["http", "api"])
@pytest.mark.parametrize("kind", REPLIES)
def test_a_reply_is_recorded_as_the_server_records_it(kind: Kind, mode: str) -> None:
    reply = _reply(kind, mode)
    # a redirect to where nothing is must stay one: the server follows none
    answer = Answer(reply.status, reply.body.decode(), dict(reply.headers))
    with SmallEndpoint(Behaviour(before=lambda _request, _number: answer)) as server:
        called = endpoint(mode, server.url())
        view = own(called, ["one text"]).view
    made = example(kind, called)
    assert (made.ok, made.attempted, made.recorded) == (view.ok, view.attempted, view.error)
    assert not made.ok


@pytest.mark.parametrize("mode", ["http", "api"])
def test_what_never_gets_an_answer(mode: str) -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        nobody = endpoint(mode, f"http://127.0.0.1:{unheard.getsockname()[1]}/embed")
        assert example(Kind.REFUSED, nobody).recorded == own(nobody).view.error
    with SmallEndpoint(Behaviour(before=lambda _request, _number: Answer(drop=True))) as server:
        dropping = endpoint(mode, server.url())
        assert example(Kind.DISCONNECTED, dropping).recorded == own(dropping).view.error


def test_settings_that_end_a_call() -> None:
    without = endpoint("http", "")
    made = example(Kind.CONFIG_URL, endpoint("http"))
    assert made.recorded == own(without).view.error
    assert made.recorded is not None
    assert "<unset>" in made.recorded
    with SmallEndpoint(Behaviour()) as server:
        keyless = replace(endpoint("api", server.url()), key="")
        assert example(Kind.CONFIG_CREDENTIAL, keyless).recorded == own(keyless).view.error
        dirty = replace(keyless, key=f"{KEY}\n")
        made = example(Kind.CONFIG_CREDENTIAL, dirty)
        # unmasked: it is for the server's own process alone
        assert made.recorded == own(dirty).view.error
        assert made.recorded is not None
        assert KEY in made.recorded
        foreign = replace(keyless, key="clé-très-secrète")
        assert example(Kind.CONFIG_CREDENTIAL, foreign).recorded == own(foreign).view.error
    impossible = endpoint("api", "http://127.0.0.1:70000/embed")
    assert "Illegal header value" in str(example(Kind.CONFIG_CREDENTIAL, impossible).recorded)
    assert "<unset>" in str(example(Kind.CONFIG_URL, impossible).recorded)
    wrong = endpoint("http", "ftp://127.0.0.1/embed")
    assert example(Kind.CONFIG_URL, wrong).recorded == own(wrong).view.error


@pytest.mark.parametrize("kind", REPLAYABLE)
def test_what_vectors_are_worth_is_nothing_the_server_records(kind: Kind) -> None:
    made = example(kind, endpoint("http"))
    meaningless = MEANINGS[kind].stage in {Stage.MEANING, Stage.DONE}
    assert made.ok is meaningless
    assert (made.recorded is None) == (meaningless or kind is Kind.DISABLED)


def test_releases_before_2_5_9_ask_a_second_time() -> None:
    called = endpoint("http", "http://me:secret-word@127.0.0.1:8401/embed")
    refused = example(Kind.REFUSED, called)
    assert refused.probe == f"mode=http / POST {called.url} failed: All connection attempts failed"
    assert refused.recorded == (
        "mode=http / POST http://127.0.0.1:8401/embed failed: ConnectError: All connection attempts failed"
    )
    # a 2xx without vectors counts as health for them
    assert example(Kind.EMPTY, called).probe is None
    assert example(Kind.EMPTY, endpoint("api")).probe == "embedding client unavailable"
    told = example(Kind.AUTH, called).probe
    assert told is not None
    assert "401 Unauthorized" in told


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind not in REPLAYABLE])
def test_what_cannot_be_made_up(kind: Kind) -> None:
    with pytest.raises(ValueError, match="cannot be made up"):
        example(kind, endpoint("http"))


def test_every_kind_of_failure_has_an_end() -> None:
    for kind in REPLAYABLE:
        stage = MEANINGS[kind].stage
        assert (kind in _EXCEPTIONS) == (stage is Stage.NETWORK)
