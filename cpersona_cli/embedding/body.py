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
from typing import TypeGuard

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.model import Mode, Reply
from cpersona_cli.embedding.reply import Sent, judge_failure
from cpersona_cli.embedding.sentence import ErrorInfo, read_error
from cpersona_cli.record import record

#: The server refuses larger bodies (bytes), by what they declare or by what they hold.
MAX_BODY = 64 << 20
#: The server refuses wider vectors (dimensions) and longer lists (vectors).
MAX_DIMENSION = 16384
MAX_VECTORS = 512
_FLOAT32_MAX = 3.4028234663852886e38

Vector = list[float]


@record(kw_only=True)
class Body:
    """What a success body holds. ``detail`` says what was seen, ``seen_as`` whose contract it looks like.

    ``stated_dim`` is the number of dimensions that it states beside its vectors, whatever theirs is.
    ``info``, ``retry_after`` and ``limit`` stand for an error inside the success, as in a failed reply.
    """

    kind: Kind
    vectors: Sequence[Vector] = ()
    detail: str = ""
    seen_as: str = ""
    model: str = ""
    stated_dim: int | None = None
    info: ErrorInfo | None = None
    out_of_order: bool = False
    retry_after: float | None = None
    limit: int | None = None


class _RefusedError(Exception):
    """Carries the verdict out of the nested checks."""

    def __init__(self, kind: Kind, detail: str, seen_as: str = "") -> None:
        super().__init__(detail)
        self.body = Body(kind=kind, detail=detail, seen_as=seen_as)


def judge_body(reply: Reply, sent: Sent) -> Body:
    """The vectors of a 2xx reply in the order of the texts, or the kind of what is wrong. Total."""
    if reply.overflow:
        return Body(kind=Kind.TOO_LARGE, detail=f"more than {reply.cap} bytes")
    size = declared(reply)
    if size is not None and size > MAX_BODY:
        return Body(kind=Kind.TOO_LARGE, detail=f"the reply declares {size} bytes")
    try:
        document: object = json.loads(reply.body)
    except (ValueError, RecursionError) as error:
        info = read_error(reply.body, reply.headers.get("content-type", ""))
        kind = Kind.PROXY if info.form == "html" and sent.proxied else Kind.NOT_JSON
        return Body(kind=kind, detail=_unread(error, reply.body, info), info=info)
    try:
        return _api(document, sent) if sent.mode == Mode.API else _http(document, sent)
    except _RefusedError as refused:
        body = refused.body
    if isinstance(document, dict) and _says_error(document) and body.kind in {Kind.WRONG_SHAPE, Kind.EMPTY}:
        head = judge_failure(reply, sent)
        return Body(
            kind=head.kind,
            detail="a success status with an error inside",
            info=head.info,
            retry_after=head.retry_after,
            limit=head.limit,
        )
    return body


def declared(reply: Reply) -> int | None:
    """The bytes a reply says it has; beside a chunked body this need not be true."""
    try:
        return int(reply.headers.get("content-length", ""))
    except ValueError:
        return None


def _unread(error: Exception, body: bytes, info: ErrorInfo) -> str:
    """Why the body could not be read as JSON."""
    if info.form in {"empty", "html"}:
        return "an empty body" if info.form == "empty" else "an HTML page"
    if isinstance(error, RecursionError):
        return "JSON nested too deeply to be read"
    if isinstance(error, UnicodeDecodeError):
        return "bytes that are no text"
    if not isinstance(error, json.JSONDecodeError):
        # the parser's only other refusal: an integer of more digits than Python converts
        return "JSON with a number of too many digits to be read"
    if body.lstrip()[:1] in {b"{", b"["}:
        return "JSON that is cut off or broken"
    return "text that is not JSON"


def _says_error(document: dict[str, object]) -> bool:
    if document.get("error") or document.get("errors") or document.get("detail"):
        return True
    return isinstance(document.get("message"), str) and ("code" in document or document.get("object") == "error")


def _http(document: object, sent: Sent) -> Body:
    if not isinstance(document, dict):
        raise _RefusedError(_foreign(document), f"{_name(document)} at the top", seen_as=_whose(document))
    if "embeddings" not in document:
        raise _RefusedError(_foreign(document), "no `embeddings`", seen_as=_whose(document))
    if document["embeddings"] == [] and "model" in document:
        # what Ollama's own route says to a request without `input`
        raise _RefusedError(Kind.WRONG_CONTRACT, "no vectors", seen_as="Ollama")
    vectors = _vectors(document["embeddings"], sent.count)
    return Body(kind=Kind.OK, vectors=vectors, model=_model(document), stated_dim=_stated(document))


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
    for position, item in enumerate(items):
        if not isinstance(item, dict):
            raise _RefusedError(Kind.WRONG_SHAPE, f"item {position} is {_name(item)}")
        if "embedding" not in item:
            raise _RefusedError(Kind.WRONG_SHAPE, f"item {position} has no `embedding`")
    if len(items) != sent.count:
        # plainer than the indices, which cannot be right either
        raise _RefusedError(Kind.COUNT_MISMATCH, f"{sent.count} sent, {len(items)} came back")
    order = [_index(item, position, len(items)) for position, item in enumerate(items)]
    if sorted(order) != list(range(len(items))):
        raise _RefusedError(Kind.BAD_INDEX, f"the indices are not exactly 0 to {len(items) - 1}")
    placed: list[object] = [None] * len(items)
    for index, item in zip(order, items, strict=True):
        placed[index] = item["embedding"]
    vectors = _vectors(placed, sent.count)
    return Body(
        kind=Kind.OK,
        vectors=vectors,
        model=_model(document),
        stated_dim=_stated(document),
        out_of_order=order != sorted(order),
    )


def _index(item: dict[str, object], position: int, count: int) -> int:
    index = item.get("index")
    if isinstance(index, bool) or not isinstance(index, int):
        missing = "no `index`" if "index" not in item else f"an `index` that is {_name(index)}"
        raise _RefusedError(Kind.BAD_INDEX, f"item {position} of {count} has {missing}")
    return index


def _vectors(raw: object, count: int) -> list[Vector]:
    if raw is None or raw == []:
        raise _RefusedError(Kind.EMPTY, "no vectors")
    if not isinstance(raw, list):
        raise _RefusedError(Kind.WRONG_SHAPE, f"the vectors are {_name(raw)}")
    if len(raw) != count:
        raise _RefusedError(Kind.COUNT_MISMATCH, f"{count} sent, {len(raw)} came back")
    if len(raw) > MAX_VECTORS:
        raise _RefusedError(Kind.BATCH_TOO_LARGE, f"{len(raw)} vectors, and CPersona takes {MAX_VECTORS} in one reply")
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
    if _plain(raw):
        return raw
    return [_number(value, f"{which}, element {place}") for place, value in enumerate(raw)]


def _plain(raw: list[object]) -> TypeGuard[list[float]]:
    """Whether these are nothing but floats that fit 32 bits, told without a step of Python for each of them."""
    # the length of a vector is not smaller than any of its numbers, and no number where one of them is none
    return set(map(type, raw)) == {float} and math.hypot(*raw) <= _FLOAT32_MAX  # type: ignore[arg-type]


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


def _stated(document: dict[str, object]) -> int | None:
    number = document.get("dimensions")
    return number if isinstance(number, int) and not isinstance(number, bool) and 0 < number < 10**9 else None


def _name(value: object) -> str:
    names = {type(None): "null", bool: "true or false", str: "text", list: "a list", dict: "an object"}
    return names.get(type(value), "a number")
