"""What a server says of itself: which product, which model, which limits; and whether the model is for embeddings.

Asked only when the user wants it or an experiment needs it. Everything that comes back is data from outside.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Literal, Self
from urllib.parse import urlunsplit

import httpx

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.measured import Identity
from cpersona_cli.embedding.model import Endpoint, Mode, Outcome
from cpersona_cli.embedding.texts import Separation
from cpersona_cli.embedding.transport import open_http
from cpersona_cli.embedding.variants import root, split
from cpersona_cli.record import replace
from cpersona_cli.text import bare_url, safe

#: Bytes of an answer past which it is not read, seconds of one question, and models that are kept.
_CAP, _SECONDS, _LISTED = 1 << 20, 5.0, 200

_EMBEDDING_NAME = re.compile(r"embed|minilm|\bbge\b|bge-|\be5\b|e5-|\bgte\b|gte-|nomic|arctic|jina", re.IGNORECASE)

Document = Mapping[str, object]


class Asker:
    """Questions to the server behind an endpoint, at its own root. Use as an async context manager.

    Same host, same proxy, the key only in mode api, as the endpoint itself. ``last`` is the address last asked.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.last = ""
        self.asked: list[tuple[str, str]] = []
        self._http: httpx.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        try:
            self._http = open_http(self.endpoint, min(_SECONDS, max(self.endpoint.timeout, 0.1)))
        except Exception:  # noqa: BLE001 - without a client there are no answers
            self._http = None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._http is not None:
            await self._http.aclose()

    async def ask(self, path: str, body: Document | None = None) -> Document | None:
        """The JSON object that ``path`` answers with, or None; how it went is kept in ``asked``. Never raises."""
        parts = split(self.endpoint.url)
        if self._http is None or parts is None:
            return None
        url = urlunsplit(parts._replace(path=f"{root(parts.path)}{path}", fragment=""))
        self.last = bare_url(url)
        method = "GET" if body is None else "POST"
        document, went = None, ""
        try:
            document, went = await self._exchange(method, url, body)
        except Exception as error:  # noqa: BLE001 - no answer is an answer here
            went = type(error).__name__
        self.asked.append((f"{method} {self.last}", went))
        return document

    async def _exchange(self, method: str, url: str, body: Document | None) -> tuple[Document | None, str]:
        assert self._http is not None  # noqa: S101 - for the type checker
        keyed = self.endpoint.mode == Mode.API and self.endpoint.key
        # packed answers could outgrow the cap within one piece
        headers = {"Accept-Encoding": "identity"}
        headers |= {"Authorization": f"Bearer {self.endpoint.key}"} if keyed else {}
        received = bytearray()
        async with self._http.stream(method, url, json=body, headers=headers) as response:
            async for chunk in response.aiter_bytes():
                received += chunk
                if len(received) > _CAP:
                    return None, f"{response.status_code}, too long"
        try:
            document: object = json.loads(bytes(received))
        except (ValueError, RecursionError):
            return None, f"{response.status_code}, no JSON"
        answered = response.status_code == httpx.codes.OK and isinstance(document, dict)
        return document if answered and isinstance(document, dict) else None, f"{response.status_code}"

    async def models(self) -> tuple[str, ...]:
        """The names in the server's list of models."""
        return _names(await self.ask("/v1/models"))


async def identify(endpoint: Endpoint) -> Identity:
    """Ask the questions that the known servers answer, and put the answers together."""
    async with Asker(endpoint) as asker:
        found = Identity()
        for path, read in (("/capabilities", _capabilities), ("/info", _info), ("/v1/models", _models)):
            document = await asker.ask(path)
            found = found if document is None else read(found, document, endpoint.model)
        version = await asker.ask("/api/version")
        if version is not None and _text(version.get("version")):
            found = replace(found, family="Ollama", version=_text(version.get("version")))
            shown = await asker.ask("/api/show", {"model": endpoint.model or found.model})
            found = found if shown is None else _show(found, shown)
        return replace(found, asked=tuple(asker.asked))


def with_role(identity: Identity, override: str, outcome: Outcome, separation: Separation | None) -> Identity:
    """The role of the model: what the operator says, then what the server states, then what was measured."""
    if override:
        role: Literal["chat", "embedding", "unknown"] = "chat" if override == "chat" else "embedding"
        return replace(identity, role=role, role_from="--role")
    if identity.role != "unknown":
        return identity
    if outcome.kind is Kind.NOT_AN_EMBEDDING_MODEL:
        return replace(identity, role="chat", role_from="the server’s refusal")
    if separation is not None and not separation.weak:
        return replace(identity, role="embedding", role_from="measured: related texts are nearer than strangers")
    return identity


def models_like(asked: str, listed: Sequence[str], *, others: bool = False) -> list[str]:
    """Names of ``listed`` that are ``asked`` in another spelling; with ``others`` also those that sound right."""
    wanted = plain_name(asked)
    same = [name for name in listed if name != asked and plain_name(name) == wanted]
    return same + [name for name in listed if others and name not in same and _EMBEDDING_NAME.search(name)]


def plain_name(model: str) -> str:
    """A model's name without publisher, tag of the newest build, and case."""
    return model.rpartition("/")[2].removesuffix(":latest").lower()


def _text(value: object) -> str:
    return safe(value, 100) if isinstance(value, str) else ""


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 31 else None


def _capabilities(found: Identity, document: Document, _asked: str) -> Identity:
    identity = document.get("identity")
    if not isinstance(identity, dict):
        return found
    return replace(
        found,
        family="CEmbedding",
        model=_text(identity.get("model")),
        dimensions=_number(identity.get("dimensions")),
        window=_number(identity.get("window")),
        fingerprint=_text(document.get("fingerprint")),
        role="embedding",
        role_from="GET /capabilities",
    )


def _info(found: Identity, document: Document, _asked: str) -> Identity:
    if not _text(document.get("model_id")) or "max_client_batch_size" not in document:
        return found
    kinds = document.get("model_type")
    stated = kinds if isinstance(kinds, dict) else {str(kinds): None}
    known = replace(
        found,
        family="Text Embeddings Inference",
        version=_text(document.get("version")),
        model=_text(document.get("model_id")),
        window=_number(document.get("max_input_length")),
        largest_batch=_number(document.get("max_client_batch_size")),
    )
    if "embedding" in {str(key).lower() for key in stated}:
        return replace(known, role="embedding", role_from="GET /info")
    return known


_OWNERS = {"llamacpp": "llama.cpp", "vllm": "vLLM", "organization_owner": "LM Studio", "library": "Ollama"}


def _models(found: Identity, document: Document, asked: str) -> Identity:
    names = _names(document)
    items = document.get("data")
    entries = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    if not names:
        return found
    owners = {_OWNERS.get(str(entry.get("owned_by")), "") for entry in entries} - {""}
    mine = next((e for e in entries if plain_name(str(e.get("id"))) == plain_name(asked)), None)
    entry = mine or (entries[0] if len(entries) == 1 else {})
    meta = entry.get("meta")
    details = meta if isinstance(meta, dict) else {}
    return replace(
        found,
        family=found.family or (owners.pop() if len(owners) == 1 else ""),
        model=found.model or _text(entry.get("id")),
        models=names,
        dimensions=found.dimensions or _number(details.get("n_embd")),
        window=found.window or _number(entry.get("max_model_len")) or _number(details.get("n_ctx_train")),
    )


def _show(found: Identity, document: Document) -> Identity:
    info = document.get("model_info")
    values = info if isinstance(info, dict) else {}
    abilities = document.get("capabilities")
    stated = {str(item).lower() for item in abilities} if isinstance(abilities, list) else set()
    known = replace(
        found,
        dimensions=_ending(values, ".embedding_length") or found.dimensions,
        window=_ending(values, ".context_length") or found.window,
    )
    if "embedding" in stated:
        return replace(known, role="embedding", role_from="POST /api/show")
    return replace(known, role="chat", role_from="POST /api/show") if "completion" in stated else known


def _ending(values: Mapping[str, object], ending: str) -> int | None:
    return next((_number(value) for name, value in values.items() if str(name).endswith(ending)), None)


def _names(document: Document | None) -> tuple[str, ...]:
    items = document.get("data") if document else None
    if not isinstance(items, list):
        return ()
    return tuple(_text(item.get("id")) for item in items if isinstance(item, dict) and _text(item.get("id")))[:_LISTED]
