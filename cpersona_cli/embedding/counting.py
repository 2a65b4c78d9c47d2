"""Whether a backend counts tokens: servers from 2.6.0 on build the nodes of long memories only with one that does."""

from __future__ import annotations

import json

from cpersona_cli.embedding.capabilities import beside
from cpersona_cli.embedding.model import Endpoint
from cpersona_cli.embedding.transport import open_http

#: Bytes past which an answer is not read, and the longest time for it in seconds.
_CAP, _SECONDS = 1 << 16, 10.0


async def counts_tokens(endpoint: Endpoint) -> bool:
    """Ask ``POST /count_tokens`` about one made-up word. Never raises but for cancellation."""
    url = beside(endpoint, "count_tokens")
    if url is None:
        return False
    received = bytearray()
    try:
        async with open_http(endpoint, min(_SECONDS, max(endpoint.timeout, 0.1))) as client:
            headers = {"Accept-Encoding": "identity"}
            async with client.stream("POST", url, json={"texts": ["word"]}, headers=headers) as response:
                if not response.is_success:
                    return False
                async for chunk in response.aiter_bytes():
                    received += chunk
                    if len(received) > _CAP:
                        return False
        return _counted(json.loads(bytes(received)))
    except Exception:  # noqa: BLE001 - one that fails counts nothing
        return False


def _counted(document: object) -> bool:
    """Whether an answer is one count for the one text."""
    found = document.get("token_info") if isinstance(document, dict) else None
    if not isinstance(found, list) or len(found) != 1 or not isinstance(found[0], dict):
        return False
    count = found[0].get("count")
    return isinstance(count, int) and not isinstance(count, bool) and count > 0
