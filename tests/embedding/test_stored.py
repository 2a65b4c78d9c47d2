from __future__ import annotations

import asyncio
import math
import struct
import sys
from typing import Any

import pytest
from cpersona._vendored_mcp_common.embedding_client import EmbeddingClient
from hypothesis import given
from hypothesis import strategies as st
from support.endpoints_small import serving

from cpersona_cli.embedding.model import Mode
from cpersona_cli.embedding.stored import length, pack, unpack

NUMBERS = st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=40)


@given(NUMBERS)
def test_http_vectors_are_stored_as_they_came(vector: list[float]) -> None:
    blob = pack(Mode.HTTP, vector)
    assert blob == EmbeddingClient.pack_embedding(vector)
    assert list(unpack(blob) or []) == vector


@given(NUMBERS)
def test_api_vectors_are_stored_with_length_one(vector: list[float]) -> None:
    size = math.hypot(*vector)
    stored = length(pack(Mode.API, vector))
    assert stored == pytest.approx(1 if size > 1e-9 else size, abs=1e-5)


def test_the_server_itself_would_store_the_same() -> None:
    async def asked(mode: str, url: str) -> Any:
        client = EmbeddingClient(mode=mode, http_url=url, api_url=url, api_key="sk-1", model="m")
        await client.initialize()
        try:
            return await client.embed(["one text", "and another one"])
        finally:
            await client.close()

    received: list[list[float]] = []

    def seen(_request: object, vectors: list[list[float]]) -> list[list[float]]:
        received[:] = vectors
        return vectors

    with serving(scale=3.7, width=96, after=seen) as server:
        for mode, path in (("http", "/embed"), ("api", "/v1/embeddings")):
            stored = asyncio.run(asked(mode, server.url(path)))
            for own, theirs in zip(received, stored, strict=True):
                ours = unpack(pack(mode, own))
                assert ours is not None
                assert list(ours) == pytest.approx(theirs, abs=2e-7)


@pytest.mark.parametrize("blob", [None, b"", b"\0\0\0", "text"])
def test_what_is_no_vector(blob: Any) -> None:
    assert unpack(blob) is None
    assert length(blob) is None


def test_vectors_are_little_endian_on_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    blob = pack(Mode.HTTP, [1.0, -2.5])
    assert blob == bytes.fromhex("0000803f000020c0")
    turned = b"".join(blob[place : place + 4][::-1] for place in (0, 4))
    monkeypatch.setattr("cpersona_cli.embedding.stored.sys.byteorder", "big" if sys.byteorder == "little" else "little")
    assert list(unpack(turned) or []) == [1.0, -2.5]


def test_the_length_of_what_is_no_number_is_none() -> None:
    assert length(struct.pack("<2f", math.nan, 1)) is None
    assert length(struct.pack("<2f", math.inf, 1)) is None
    assert length(struct.pack("<2f", 3, 4)) == 5
