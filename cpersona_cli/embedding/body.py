"""From the body of a success to vectors, or to the reason why there are none.

The order of the checks is the order in which the server makes them, so that the two agree on which comes first.
Every text gets exactly the vector that the reply says is its own; an order is never guessed.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.model import Mode, Reply
from cpersona_cli.embedding.reply import Sent, judge_failure
from cpersona_cli.embedding.sentence import ErrorInfo, read_error

#: The server refuses wider vectors (dimensions) and longer lists (vectors).
MAX_DIMENSION = 16384
MAX_VECTORS = 512
_FLOAT32_MAX = 3.4028234663852886e38

Vector = list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What a success body holds. ``detail`` says what was seen, ``seen_as`` whose contract it looks like."""

    kind: Kind
    vectors: Sequence[Vector] = ()
    detail: str = ""
    seen_as: str = ""
    model: str = ""
    info: ErrorInfo | None = None
    out_of_order: bool = False


class _RefusedError(Exception):
    """Carries the verdict out of the nested checks."""

    def __init__(self, kind: Kind, detail: str, seen_as: str = "") -> None:
        super().__init__(detail)
        self.body = Body(kind=kind, detail=detail, seen_as=seen_as)


def judge_body(reply: Reply, sent: Sent) -> Body:
    """The vectors of a 2xx reply in the order of the texts, or the kind of what is wrong. Total."""
    if reply.overflow:
        return Body(kind=Kind.TOO_LARGE, detail=f"more than {len(reply.body)} bytes")
    try:
        document: object = json.loads(reply.body)
    except (ValueError, RecursionError):
        info = read_error(reply.body, reply.headers.get("content-type", ""))
        return Body(
            kind=Kind.PROXY if _is_page(info) and sent.proxied else Kind.NOT_JSON, detail=_what(info), info=info
        )
    try:
        return _api(document, sent) if sent.mode == Mode.API else _http(document, sent)
    except _RefusedError as refused:
        body = refused.body
    if isinstance(document, dict) and _says_error(document) and body.kind in {Kind.WRONG_SHAPE, Kind.EMPTY}:
        head = judge_failure(reply, sent)
        return Body(kind=head.kind, detail="a success status with an error inside", info=head.info)
    return body


def _is_page(info: ErrorInfo) -> bool:
    return info.form == "html"


def _what(info: ErrorInfo) -> str:
    if info.form == "empty":
        return "an empty body"
    return "an HTML page" if _is_page(info) else "text that is not JSON"


def _says_error(document: dict[str, object]) -> bool:
    return bool(document.get("error") or document.get("errors") or document.get("detail"))


def _http(document: object, sent: Sent) -> Body:
    if not isinstance(document, dict):
        raise _RefusedError(_foreign(document), f"{_name(document)} at the top", seen_as=_whose(document))
    if "embeddings" not in document:
        raise _RefusedError(_foreign(document), "no `embeddings`", seen_as=_whose(document))
    return Body(kind=Kind.OK, vectors=_vectors(document["embeddings"], sent.count), model=_model(document))


def _api(document: object, sent: Sent) -> Body:
    if not isinstance(document, dict):
        raise _RefusedError(_foreign(document), f"{_name(document)} at the top", seen_as=_whose(document))
    if "data" not in document:
        raise _RefusedError(_foreign(document), "no `data`", seen_as=_whose(document))
    items = document["data"]
    if not isinstance(items, list):
        raise _RefusedError(Kind.EMPTY if items is None else Kind.WRONG_SHAPE, f"`data` is {_name(items)}")
    if not items:
        raise _RefusedError(Kind.EMPTY, "`data` is an empty list")
    placed: list[object] = [None] * len(items)
    order = []
    for position, item in enumerate(items):
        if not isinstance(item, dict):
            raise _RefusedError(Kind.WRONG_SHAPE, f"item {position} is {_name(item)}")
        if "embedding" not in item:
            raise _RefusedError(Kind.WRONG_SHAPE, f"item {position} has no `embedding`")
        index = item.get("index")
        if isinstance(index, bool) or not isinstance(index, int):
            raise _RefusedError(_index_kind(items, sent), f"item {position} has no usable `index`")
        if not 0 <= index < len(items) or index in order:
            raise _RefusedError(_index_kind(items, sent), f"the indices are not exactly 0 to {len(items) - 1}")
        order.append(index)
        placed[index] = item["embedding"]
    vectors = _vectors(placed, sent.count)
    return Body(kind=Kind.OK, vectors=vectors, model=_model(document), out_of_order=order != sorted(order))


def _index_kind(items: list[object], sent: Sent) -> Kind:
    # a wrong number of vectors is the plainer thing to say when both are true
    return Kind.BAD_INDEX if len(items) == sent.count else Kind.COUNT_MISMATCH


def _vectors(raw: object, count: int) -> list[Vector]:
    if raw is None or raw == []:
        raise _RefusedError(Kind.EMPTY, "no vectors")
    if not isinstance(raw, list):
        raise _RefusedError(Kind.WRONG_SHAPE, f"the vectors are {_name(raw)}")
    if len(raw) != count:
        raise _RefusedError(Kind.COUNT_MISMATCH, f"{count} sent, {len(raw)} came back")
    widths = [len(item) for item in raw if isinstance(item, list)]
    vectors = [_vector(item, position, len(raw)) for position, item in enumerate(raw)]
    if len(set(widths)) > 1:
        raise _RefusedError(Kind.RAGGED, f"widths {', '.join(str(width) for width in sorted(set(widths)))}")
    return vectors


def _vector(raw: object, position: int, count: int) -> Vector:
    which = f"item {position} of {count}"
    if raw is None:
        raise _RefusedError(Kind.NULL_VECTOR, f"{which} is null")
    if isinstance(raw, str):
        raise _RefusedError(Kind.BASE64 if _decoded_width(raw) else Kind.BAD_VALUES, _base64_detail(raw, which))
    if not isinstance(raw, list):
        raise _RefusedError(Kind.BAD_VALUES, f"{which} is {_name(raw)}")
    if not raw:
        raise _RefusedError(Kind.BAD_VALUES, f"{which} is empty")
    if len(raw) > MAX_DIMENSION:
        raise _RefusedError(Kind.BAD_VALUES, f"{which} has {len(raw)} dimensions, more than {MAX_DIMENSION}")
    if isinstance(raw[0], list):
        raise _RefusedError(
            Kind.WRONG_CONTRACT, f"{which} holds one vector for each token", seen_as="llama-server’s own route"
        )
    return [_number(value, f"{which}, element {place}") for place, value in enumerate(raw)]


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _RefusedError(Kind.BAD_VALUES, f"{where} is {_name(value)}")
    try:
        number = float(value)
    except OverflowError:
        raise _RefusedError(Kind.BAD_VALUES, f"{where} is too large for a number") from None
    if not math.isfinite(number):
        raise _RefusedError(Kind.BAD_VALUES, f"{where} is not finite")
    if abs(number) > _FLOAT32_MAX:
        try:
            struct.pack("<f", number)
        except OverflowError:
            raise _RefusedError(Kind.BAD_VALUES, f"{where} does not fit a 32-bit float") from None
    return number


def _decoded_width(text: str) -> int | None:
    """The dimensions of a base64 text read as little-endian float32, or None when it is none."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return len(raw) // 4 if raw and len(raw) % 4 == 0 else None


def _base64_detail(text: str, which: str) -> str:
    width = _decoded_width(text)
    return f"{which} is base64 of {width} dimensions" if width else f"{which} is text that is no vector"


def _foreign(document: object) -> Kind:
    return Kind.WRONG_CONTRACT if _whose(document) else Kind.WRONG_SHAPE


def _whose(document: object) -> str:
    """Whose contract a document follows, when it is a known one."""
    if isinstance(document, list):
        first = document[0] if document else None
        if isinstance(first, dict) and "embedding" in first:
            return "llama-server’s own route"
        return "Text Embeddings Inference" if isinstance(first, list) else ""
    if not isinstance(document, dict):
        return ""
    if isinstance(document.get("data"), list):
        return "OpenAI"
    if "total_duration" in document or ("model" in document and "embeddings" in document):
        return "Ollama"
    if "embedding" in document:
        return "Ollama’s older route"
    return "the server’s own contract" if "embeddings" in document else ""


def _model(document: dict[str, object]) -> str:
    model = document.get("model")
    return model if isinstance(model, str) else ""


def _name(value: object) -> str:
    names = {type(None): "null", bool: "true or false", str: "text", list: "a list", dict: "an object"}
    return names.get(type(value), "a number")
