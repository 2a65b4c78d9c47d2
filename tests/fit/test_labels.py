from __future__ import annotations

from typing import Any

import pytest

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.fit.labels import Standing, standing
from cpersona_cli.fit.model import Live

ONE, TWO = "1:" + "a1" * 16, "1:" + "b2" * 16
KNOWN = {"fingerprint": ONE}
NOMIC = {"model": "nomic-embed-text"}


@pytest.mark.parametrize(
    ("label", "live", "verdict"),
    [
        ("", {}, Standing.UNTOLD),
        ("", KNOWN, Standing.UNTOLD),
        (ONE, KNOWN, Standing.SAME),
        (TWO, KNOWN, Standing.OTHER),
        # a digest cannot be compared with a name
        (TWO, {}, Standing.UNTOLD),
        (TWO, NOMIC, Standing.UNTOLD),
        ("a166f63f525a5e17", {"fingerprint": "a166f63f525a5e17"}, Standing.SAME),
        ("a166f63f525a5e17", {"fingerprint": "1966f63f525a5e17"}, Standing.OTHER),
        # names, as they are spelled by different servers
        ("nomic-embed-text", NOMIC, Standing.NAMED),
        ("nomic-ai/Nomic-Embed-Text:latest", NOMIC, Standing.NAMED),
        ("minilm", {"model": "sentence-transformers/all-MiniLM-L6-v2"}, Standing.NAMED),
        ("jina-embeddings-v5-text-nano", NOMIC, Standing.OTHER),
        ("jina-embeddings-v5-text-nano", {"asked": "nomic-embed-text"}, Standing.OTHER),
        ("nomic-embed-text", {"model": "something", "asked": "nomic-embed-text"}, Standing.NAMED),
        # what the settings call it is not what the endpoint is
        ("my-model", {"configured": "my-model"}, Standing.UNTOLD),
        ("my-model", {"configured": "their-model"}, Standing.UNTOLD),
        ("my-model", {"configured": "my-model", **KNOWN}, Standing.UNTOLD),
        ("my-model", {"configured": "their-model", **KNOWN}, Standing.OTHER),
        ("my-model", {"configured": "my-model", **KNOWN, **NOMIC}, Standing.OTHER),
        ("!!", NOMIC, Standing.OTHER),
    ],
)
def test_what_a_label_says(label: str, live: dict[str, Any], verdict: Standing) -> None:
    endpoint = Live(address="", mode="http", call=Kind.OK, dim=64, **live)
    assert standing(label, endpoint) is verdict
