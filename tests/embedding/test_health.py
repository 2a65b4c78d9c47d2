"""The rule of the server's own health module, held against that module."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from support.scripted import ended

from cpersona_cli.embedding.health import health
from cpersona_cli.embedding.kinds import Kind

SERVER = """
import json, sys
from cpersona import health
states = []
for word in json.loads(sys.argv[1]):
    if word == "disabled":
        health.observe_config()
    elif word == "ok":
        health.observe_ok()
    else:
        health.observe_failure("because", attempted=True)
    states.append(health.observed_state()["state"])
print(json.dumps(states))
"""
DOWN, FINE = Kind.REFUSED, Kind.OK


@pytest.mark.parametrize(
    ("mode", "kinds"),
    [
        ("http", [FINE]),
        ("http", [DOWN]),
        ("http", [DOWN, DOWN]),
        ("http", [FINE, DOWN]),
        ("http", [FINE, DOWN, DOWN, DOWN]),
        ("http", [DOWN, FINE, DOWN, FINE, DOWN]),
        ("http", [DOWN, DOWN, FINE, DOWN, DOWN]),
        ("none", [Kind.DISABLED, Kind.DISABLED]),
    ],
)
def test_the_same_states_as_the_server(mode: str, kinds: list[Kind]) -> None:
    words = json.dumps([str(kind) for kind in kinds])
    answer = subprocess.run(
        [sys.executable, "-c", SERVER, words],
        env={"CPERSONA_EMBEDDING_MODE": mode},
        capture_output=True,
        text=True,
        check=True,
    )
    found = health([ended(kind) for kind in kinds])
    assert [state for _, state in found.calls] == json.loads(answer.stdout)
    assert found.state == found.calls[-1][1]


def test_vectors_of_zeros_are_healthy_to_the_server() -> None:
    assert health([ended(Kind.ZERO_VECTOR)]).state == "healthy"


def test_no_calls_tell_nothing() -> None:
    assert health([]).state == "unknown"
