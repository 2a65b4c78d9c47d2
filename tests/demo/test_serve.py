"""The embedding model of the demo, as the child process that it is."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from cpersona_cli.demo.memories import MEMORIES, QUESTIONS
from cpersona_cli.demo.serve import MODELS

WIDTHS = {"wordllama-256": 256, "wordllama-64": 64, "static-64": 64}


@contextmanager
def child(model: str, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-m", "cpersona_cli.demo.serve", model, str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process, int(process.stdout.readline())
        finally:
            process.stdin.close()
            process.wait(60)
    assert process.returncode == 0, "it ends with its standard input"


def ask(url: str, body: bytes | None) -> tuple[int, Any]:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def dot(left: list[float], right: list[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


@pytest.mark.parametrize("model", MODELS)
def test_a_model_brings_each_question_to_its_memory(model: str) -> None:
    texts = [*MEMORIES, *(question for question, _ in QUESTIONS)]
    with child(model) as (_, port):
        url = f"http://127.0.0.1:{port}"
        status, answer = ask(f"{url}/embed", json.dumps({"texts": texts}).encode())
        assert ask(f"{url}/embed", json.dumps({"texts": texts}).encode()) == (status, answer), "the same each time"
        assert ask(f"{url}/embed", b'{"texts": []}') == (200, {"embeddings": [], "dimensions": 0})
        assert ask(f"{url}/other", b"{}")[0] == 404
        assert ask(f"{url}/capabilities", None)[0] == 404
        for broken in (b"no JSON", b"[]", b"{}", b'{"texts": 7}'):
            assert ask(f"{url}/embed", broken)[0] == 400
    vectors = answer["embeddings"]
    assert (status, answer["dimensions"], {len(vector) for vector in vectors}) == (200, WIDTHS[model], {WIDTHS[model]})
    assert all(math.isclose(dot(vector, vector), 1.0, abs_tol=1e-3) for vector in vectors)
    memories, asked = vectors[: len(MEMORIES)], vectors[len(MEMORIES) :]
    for vector, (question, wanted) in zip(asked, QUESTIONS, strict=True):
        best = max(range(len(MEMORIES)), key=lambda number: dot(vector, memories[number]))
        assert MEMORIES[best] == wanted, question


def test_models_of_one_width_are_strangers() -> None:
    one, other = MODELS["static-64"]()(MEMORIES), MODELS["wordllama-64"]()(MEMORIES)
    cosines = [dot(list(a), list(b)) for a, b in zip(one, other, strict=True)]
    assert max(map(abs, cosines)) < 0.5, "a switch between them must be seen as another model"


def test_no_question_shares_a_word_with_its_memory() -> None:
    for question, memory in QUESTIONS:
        words = [{word.strip(".,;?").lower() for word in text.split()} for text in (question, memory)]
        assert not words[0] & words[1], question
        assert memory in MEMORIES
