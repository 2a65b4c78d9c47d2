"""Real models told apart by numbers alone: which one answers, how wide it is, how far apart it keeps texts."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.own_client import ours
from support.real_endpoints import E5_MODEL, Running, cembedding

from cpersona_cli.embedding.calling import Caller
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.meaning import SAME, cosine
from cpersona_cli.embedding.measured import Plan, Window
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.embedding.quality import CROWDED
from cpersona_cli.embedding.texts import anchor_texts, passage, separation
from cpersona_cli.embedding.window import window

Vectors = Sequence[Sequence[float]]


def embedded(server: Running, texts: Sequence[str]) -> Vectors:
    api = server.path == "/v1/embeddings"
    outcome = ours(
        Endpoint(mode=Mode.API if api else Mode.HTTP, url=server.url, key="any-key" if api else "", model=E5_MODEL),
        texts,
    )
    assert outcome.kind is Kind.OK
    return outcome.vectors


@pytest.fixture(scope="module")
def anchors(minilm: Running, e5: Running, supercat: Running) -> Mapping[str, Vectors]:
    """The ten anchor texts by each model."""
    texts = anchor_texts()
    return {"minilm": embedded(minilm, texts), "e5": embedded(e5, texts), "supercat": embedded(supercat, texts)}


# Scores of sentence pairs that the authors of Sentence Transformers print for all-MiniLM-L6-v2 in the documentation of
# paraphrase mining: no other model gives them.
PUBLISHED = [
    ("The new movie is awesome", "The new movie is so great", 0.8939),
    ("The cat sits outside", "The cat plays in the garden", 0.6788),
    ("I love pasta", "Do you like pizza?", 0.5096),
    ("I love pasta", "The new movie is so great", 0.2560),
    ("A man is playing guitar", "The cat plays in the garden", 0.2105),
    ("The cat sits outside", "A woman watches TV", 0.1310),
]


def test_it_is_the_real_minilm(minilm: Running) -> None:
    for left, right, score in PUBLISHED:
        one, other = embedded(minilm, [left, right])
        assert cosine(one, other) == pytest.approx(score, abs=0.001)


def test_padding_does_not_count(minilm: Running) -> None:
    """A short text keeps its vector beside one that is eighty times as long."""
    (alone,) = embedded(minilm, ["a short text"])
    beside, _ = embedded(minilm, ["a short text", passage("long", 240)])
    assert cosine(alone, beside) == pytest.approx(1.0, abs=1e-5)


def test_another_width_is_told_by_the_width(anchors: Mapping[str, Vectors]) -> None:
    widths = {name: {len(vector) for vector in vectors} for name, vectors in anchors.items()}
    assert widths == {"minilm": {384}, "e5": {384}, "supercat": {256}}
    with pytest.raises(ValueError, match="384 and 256 dimensions"):
        cosine(anchors["minilm"][0], anchors["supercat"][0])


def test_another_model_of_the_same_width_is_told_by_the_cosine(
    anchors: Mapping[str, Vectors], minilm: Running, e5: Running
) -> None:
    again = {"minilm": embedded(minilm, anchor_texts()), "e5": embedded(e5, anchor_texts())}
    for name, vectors in again.items():
        assert min(map(cosine, vectors, anchors[name])) > SAME
    swapped = list(map(cosine, anchors["minilm"], anchors["e5"]))
    assert max(map(abs, swapped)) < 0.2


@pytest.mark.parametrize(("name", "crowded"), [("minilm", False), ("supercat", False), ("e5", True)])
def test_separation(anchors: Mapping[str, Vectors], name: str, *, crowded: bool) -> None:
    """E5 keeps everything close together, and still finds every partner."""
    apart = separation(anchors[name])
    assert (apart.nearest, apart.of, apart.weak) == (10, 10, False)
    assert apart.related > 0.85
    assert (apart.strangers > CROWDED) is crowded
    assert crowded or apart.strangers < 0.15


# ---- how much of a long text counts


@pytest.fixture(scope="module", params=[512, 256])
def narrow(request: pytest.FixtureRequest, minilm: Running, embed_python: Path) -> Iterator[tuple[Running, int]]:
    """MiniLM with all its positions, and with those that its authors trained it for; the window in tokens."""
    tokens: int = request.param
    if tokens == 512:
        yield minilm, tokens
        return
    with cembedding(embed_python, ONNX_MAX_SEQ_LEN=str(tokens)) as server:
        yield server, tokens


def counted(server: Running, text: str) -> Mapping[str, Any]:
    """What the server's own tokenizer says of ``text``."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=30)
    try:
        connection.request("POST", "/count_tokens", json.dumps({"texts": [text]}), {"content-type": "application/json"})
        (found,) = json.loads(connection.getresponse().read())["token_info"]
    finally:
        connection.close()
    return dict(found)


async def measured(server: Running, plan: Plan, word: str) -> object:
    async with Caller(endpoint=Endpoint(mode=Mode.HTTP, url=server.url)) as caller:
        return await window(caller, plan, word)


def test_the_window_is_where_the_tokenizer_ends(narrow: tuple[Running, int]) -> None:
    server, tokens = narrow
    plan = Plan()
    found = asyncio.run(measured(server, plan, "window"))
    assert isinstance(found, Window)
    assert (found.cut, found.refused, found.at_least) == (True, None, False)
    told = counted(server, passage("window", plan.words))
    assert (told["window"], told["truncated"]) == (tokens, True)
    end = told["window_end_char"]
    # one step of the search, and the first word of the ending that makes the difference
    step = plan.words // 2**plan.bisections + 1
    assert found.characters < end
    assert len(passage("window", found.words + step)) + len(" lighthouse") >= end
    # all of what is called usable is read, and two steps more are not
    assert not counted(server, passage("window", found.words))["truncated"]
    assert counted(server, passage("window", found.words + 2 * step))["truncated"]


def test_a_text_that_fits_counts_whole(minilm: Running) -> None:
    found = asyncio.run(measured(minilm, Plan(words=300), "fits"))
    assert isinstance(found, Window)
    assert (found.words, found.at_least, found.cut) == (300, True, False)
