"""What each reply of a real family of servers is called: one row for one situation, on real sockets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from support.own_client import ours
from support.replies import Reset, Step, head, reply, serve

from cpersona_cli.embedding.kinds import MEANINGS, Fault, Kind, Stage
from cpersona_cli.embedding.model import Endpoint, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One reply and what it must be called; ``says`` must stand in the quoted sentence."""

    body: object
    kind: Kind
    status: int = 200
    mode: str = "api"
    says: str = ""
    limit: int | None = None
    wait: float | None = None
    detail: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = ""


def nested(message: str, kind: str | None = None, code: object = None) -> dict[str, object]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def flat(message: str, kind: str, code: int) -> dict[str, object]:
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


def items(*vectors: object) -> dict[str, object]:
    return {"object": "list", "data": [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]}


UNIT = ([0.6, 0.8, 0.0], [1.0, 0.0, 0.0])
PULL = 'model "falcon-embed" not found, try pulling it first'
PAGE = "<!DOCTYPE html><html><head><title>Sign in</title></head><body>please</body></html>"
TWO_TOO_LONG = (
    "This model's maximum context length is 512 tokens. However, you requested 1451 tokens in the input for "
    "embedding generation. Please reduce the length of the input."
)

ROWS: Mapping[str, Row] = {
    # Ollama
    "ollama: model not pulled": Row(
        status=404, body=nested(PULL, "not_found_error"), kind=Kind.MODEL_NOT_FOUND, says=PULL
    ),
    "ollama: model not pulled, older": Row(status=404, body=nested(PULL, "api_error"), kind=Kind.MODEL_NOT_FOUND),
    "ollama: model not pulled, native": Row(status=404, body={"error": PULL}, kind=Kind.MODEL_NOT_FOUND),
    "ollama: model not found, newest": Row(
        status=404, body={"error": "model 'falcon' not found"}, kind=Kind.MODEL_NOT_FOUND
    ),
    "ollama: no such route": Row(
        status=404, body="404 page not found", kind=Kind.ROUTE_NOT_FOUND, says="404 page not found"
    ),
    "ollama: null vector": Row(
        mode="http", body={"model": "g", "embeddings": [None, None], "total_duration": 7}, kind=Kind.NULL_VECTOR
    ),
    "ollama: NaN": Row(
        status=500, body=nested("failed to encode response: json: unsupported value: NaN"), kind=Kind.NAN_FOR_INPUT
    ),
    "ollama: NaN, newest": Row(
        status=400, body={"error": "embedding contains NaN or Inf values"}, kind=Kind.NAN_FOR_INPUT
    ),
    "ollama: chat model": Row(
        status=500, body=nested("this model does not support embeddings"), kind=Kind.NOT_AN_EMBEDDING_MODEL
    ),
    "ollama: chat model, newest": Row(
        status=501,
        body={"error": "This server does not support embeddings. Start it with `--embeddings`"},
        kind=Kind.NOT_AN_EMBEDDING_MODEL,
    ),
    "ollama: too long": Row(
        status=400, body={"error": "the input length exceeds the context length"}, kind=Kind.INPUT_TOO_LARGE
    ),
    "ollama: too long, older": Row(
        status=400, body={"error": "input length exceeds maximum context length"}, kind=Kind.INPUT_TOO_LARGE
    ),
    "ollama: too long to cut": Row(
        status=400,
        body={"error": "input exceeds maximum context length and cannot be truncated further"},
        kind=Kind.INPUT_TOO_LARGE,
    ),
    "ollama: busy": Row(
        status=503,
        body={"error": "server busy, please try again.  maximum pending requests exceeded"},
        kind=Kind.THROTTLED,
    ),
    "ollama: runner gone": Row(
        status=500,
        body={"error": 'do embedding request: Post "http://127.0.0.1:33967/embedding": EOF'},
        kind=Kind.SERVER_ERROR,
        says="EOF",
    ),
    "ollama: native route in api mode": Row(
        body={"model": "m", "embeddings": list(UNIT), "total_duration": 1}, kind=Kind.WRONG_CONTRACT
    ),
    "ollama: openai route in http mode": Row(
        mode="http", status=400, body=nested("invalid input", "invalid_request_error"), kind=Kind.WRONG_CONTRACT
    ),
    "openai route refuses a text of its own": Row(
        status=400, body=nested("invalid input", "invalid_request_error"), kind=Kind.REJECTED
    ),
    "ollama: no model named": Row(
        mode="http", status=404, body={"error": "model '' not found"}, kind=Kind.WRONG_CONTRACT
    ),
    "ollama: no input named": Row(mode="http", body={"model": "m", "embeddings": []}, kind=Kind.WRONG_CONTRACT),
    "ollama: canceled": Row(status=499, body={"error": "request canceled"}, kind=Kind.SERVER_ERROR),
    # llama-server
    "llama: null elements": Row(
        body=items([None, None, None], [0.6, 0.8, 0.0]), kind=Kind.BAD_VALUES, detail="item 0 of 2"
    ),
    "llama: no embeddings": Row(
        status=501,
        body=nested(
            "This server does not support embeddings. Start it with `--embeddings`", "not_supported_error", 501
        ),
        kind=Kind.EMBEDDINGS_DISABLED,
    ),
    "llama: pooling none": Row(
        status=400,
        body=nested("Pooling type 'none' is not OAI compatible. Please use a different pooling type", "x", 400),
        kind=Kind.POOLING_NONE,
    ),
    "llama: own route": Row(
        body=[{"index": 0, "embedding": [[0.1, 0.2], [0.3, 0.1]]}, {"index": 1, "embedding": [[0.1, 0.2]]}],
        kind=Kind.WRONG_CONTRACT,
    ),
    "llama: loading": Row(status=503, body=nested("Loading model", "unavailable_error", 503), kind=Kind.LOADING),
    "llama: over the physical batch": Row(
        status=500,
        body=nested(
            "input (596 tokens) is too large to process. increase the physical batch size (current batch size: 512)",
            "server_error",
            500,
        ),
        kind=Kind.INPUT_TOO_LARGE,
        limit=512,
    ),
    "llama: over the context": Row(
        status=400,
        body=nested("the request is larger than what is set up", "exceed_context_size_error", 400),
        kind=Kind.INPUT_TOO_LARGE,
    ),
    "llama: key": Row(status=401, body=nested("Invalid API Key", "authentication_error", 401), kind=Kind.AUTH),
    "llama: needs input": Row(
        mode="http", status=400, body=nested('"input" or "content" must be provided'), kind=Kind.WRONG_CONTRACT
    ),
    # LM Studio
    "lm studio: nothing loaded": Row(
        status=400,
        body={"error": "No models loaded. Please load a model in the developer page or use the 'lms load' command."},
        kind=Kind.NO_MODEL_LOADED,
    ),
    "lm studio: not embedding": Row(
        status=404,
        body=nested('Failed to load model "e5-x@q8_0". Error: Model is not embedding.', "x", "model_not_found"),
        kind=Kind.NOT_AN_EMBEDDING_MODEL,
    ),
    "lm studio: worker lost": Row(
        status=400,
        body={"error": 'Failed to load model "text-embedding-x". Error: Fork path /tmp/x does not exist.'},
        kind=Kind.SERVER_ERROR,
    ),
    "lm studio: wrong prefix": Row(
        body={"error": "Unexpected endpoint or method. (POST /embeddings)"}, kind=Kind.ROUTE_NOT_FOUND
    ),
    # Text Embeddings Inference
    "tei: wants inputs": Row(
        mode="http",
        status=422,
        body="Failed to deserialize the JSON body into the target type: missing field `inputs` at line 1 column 22",
        kind=Kind.WRONG_CONTRACT,
        says="missing field `inputs`",
    ),
    "tei: bare list": Row(mode="http", body=list(UNIT), kind=Kind.WRONG_CONTRACT),
    "tei: overloaded": Row(status=429, body=flat("Model is overloaded", "Overloaded", 429), kind=Kind.THROTTLED),
    "tei: body too large": Row(
        status=413, body="Failed to buffer the request body: length limit exceeded", kind=Kind.BATCH_TOO_LARGE
    ),
    "tei: batch": Row(
        status=422,
        body=flat("batch size 33 > maximum allowed batch size 32", "Validation", 422),
        kind=Kind.BATCH_TOO_LARGE,
        limit=32,
    ),
    "tei: text too long": Row(
        status=422,
        body=flat("Input validation error: `inputs` must have less than 512 tokens. Given: 1451", "Validation", 422),
        kind=Kind.INPUT_TOO_LARGE,
        limit=512,
    ),
    "tei: key, empty body": Row(status=401, body=b"", kind=Kind.AUTH),
    "tei: backend": Row(
        status=424, body={"error": "boom in the kernel", "error_type": "Backend"}, kind=Kind.SERVER_ERROR
    ),
    # CEmbedding
    "cembedding: token": Row(
        mode="http", status=401, body={"error": "unauthorized"}, kind=Kind.AUTH, says="unauthorized"
    ),
    "cembedding: loading": Row(mode="http", status=503, body={"error": "Provider not initialized"}, kind=Kind.LOADING),
    "cembedding: batch": Row(
        mode="http",
        status=400,
        body={"error": "Batch size exceeds limit (max 100)"},
        kind=Kind.BATCH_TOO_LARGE,
        limit=100,
    ),
    "cembedding: no texts": Row(
        status=400, body={"error": "'texts' must be a non-empty array of strings"}, kind=Kind.WRONG_CONTRACT
    ),
    "cembedding: inner failure": Row(
        mode="http",
        status=500,
        body={"error": "Embedding failed: something inside broke"},
        kind=Kind.SERVER_ERROR,
        says="something inside broke",
    ),
    # vLLM
    "vllm: model, flat": Row(
        status=404, body=flat("The model `nope` does not exist.", "NotFoundError", 404), kind=Kind.MODEL_NOT_FOUND
    ),
    "vllm: model, nested": Row(
        status=404, body=nested("The model `nope` does not exist.", "NotFoundError", 404), kind=Kind.MODEL_NOT_FOUND
    ),
    "vllm: chat model, flat": Row(
        status=400,
        body=flat("The model does not support Embeddings API", "BadRequestError", 400),
        kind=Kind.NOT_AN_EMBEDDING_MODEL,
    ),
    "vllm: chat model, nested": Row(
        status=501,
        body=nested("The model does not support Embeddings API", "BadRequestError", 501),
        kind=Kind.NOT_AN_EMBEDDING_MODEL,
    ),
    "vllm: no such route": Row(status=404, body={"detail": "Not Found"}, kind=Kind.ROUTE_NOT_FOUND),
    "vllm: too long": Row(
        status=400, body=flat(TWO_TOO_LONG, "BadRequestError", 400), kind=Kind.INPUT_TOO_LARGE, limit=512
    ),
    # OpenAI and those who follow it
    "openai: wrong key": Row(
        status=401,
        body=nested("Incorrect API key provided: sk-no-ke******ired. See your account.", "x", "invalid_api_key"),
        kind=Kind.AUTH,
        says="Incorrect API key provided: […]",
    ),
    "openai: chat model": Row(
        status=403,
        body=nested("You are not allowed to generate embeddings from this model"),
        kind=Kind.NOT_AN_EMBEDDING_MODEL,
    ),
    "openai: forbidden": Row(status=403, body=nested("Missing scopes: model.request"), kind=Kind.AUTH),
    "openai: rate": Row(
        status=429,
        body=nested(
            "Rate limit reached for m in organization org-AbCdEf12 on tokens per min (TPM). Please try again in 522ms.",
            "tokens",
            "rate_limit_exceeded",
        ),
        kind=Kind.THROTTLED,
        says="organization […]",
        wait=0.522,
    ),
    "openai: quota": Row(
        status=429,
        body=nested(
            "You exceeded your current quota, please check your plan.", "insufficient_quota", "insufficient_quota"
        ),
        kind=Kind.QUOTA,
    ),
    "openai: model": Row(
        status=404, body=nested("It is not here, or not for you.", "x", "model_not_found"), kind=Kind.MODEL_NOT_FOUND
    ),
    "openai: too many": Row(
        status=400,
        body=nested(
            "Invalid 'input': array too long. Expected an array with maximum length 2048, but got one of length 7000.",
            "x",
            "array_above_max_length",
        ),
        kind=Kind.BATCH_TOO_LARGE,
        limit=2048,
    ),
    "openai: sum of tokens": Row(
        status=400,
        body=nested("Requested 351929 tokens, max 300000 tokens per request", "x", "max_tokens_per_request"),
        kind=Kind.BATCH_TOO_LARGE,
    ),
    "openai: too long": Row(
        status=400,
        body=nested("This model's maximum context length is 8192 tokens, however you requested 25701 tokens."),
        kind=Kind.INPUT_TOO_LARGE,
        limit=8192,
    ),
    "openai: no model": Row(status=400, body=nested("you must provide a model parameter"), kind=Kind.MODEL_NOT_FOUND),
    "dashscope: batch": Row(
        status=400,
        body=nested("Value error, batch size is invalid, it should not be larger than 10.: input.contents", "x", "x"),
        kind=Kind.BATCH_TOO_LARGE,
        limit=10,
    ),
    "siliconflow: batch": Row(
        status=400,
        body={"code": 20042, "message": "input batch size 136 > maximum allowed batch size 64", "data": None},
        kind=Kind.BATCH_TOO_LARGE,
        limit=64,
    ),
    "payment": Row(status=402, body=nested("More credits are needed"), kind=Kind.QUOTA),
    # OpenRouter
    "openrouter: upstream": Row(body=nested("No successful provider responses.", None, 404), kind=Kind.UPSTREAM_FAILED),
    "openrouter: overloaded": Row(status=529, body=nested("Provider Overloaded", None, 529), kind=Kind.THROTTLED),
    "openrouter: model": Row(status=400, body=nested("falcon is not a valid model ID"), kind=Kind.MODEL_NOT_FOUND),
    "openrouter: no key": Row(status=401, body=nested("No cookie auth credentials found", None, 401), kind=Kind.AUTH),
    "error inside a success": Row(body=nested("Something else is odd"), kind=Kind.ERROR_IN_SUCCESS, says="odd"),
    "flat error inside a success": Row(
        body=flat("Something else is odd", "InternalError", 500), kind=Kind.ERROR_IN_SUCCESS, says="odd"
    ),
    "throttled inside a success": Row(
        body=nested("Rate limit exceeded. Try again in 3 s."), kind=Kind.THROTTLED, wait=3.0
    ),
    # LiteLLM
    "litellm: no key": Row(
        status=401, body=nested("Authentication Error, No api key passed in.", "auth_error", "401"), kind=Kind.AUTH
    ),
    "litellm: key without a database": Row(
        status=400, body=nested("No connected db.", "no_db_connection", "400"), kind=Kind.AUTH
    ),
    "litellm: model": Row(
        status=400,
        body=nested("/embeddings: Invalid model name passed in model=X. Call `/v1/models` for a list.", "x", "400"),
        kind=Kind.MODEL_NOT_FOUND,
    ),
    "litellm: model, older": Row(
        status=400,
        body={"detail": {"error": "embeddings: Invalid model name passed in model=X"}},
        kind=Kind.MODEL_NOT_FOUND,
    ),
    "litellm: cooldown": Row(
        status=429,
        body=nested(
            "No deployments available for selected model, Try again in 60 seconds. Passed model=x.", "None", "429"
        ),
        kind=Kind.THROTTLED,
        wait=60.0,
    ),
    # Infinity
    "infinity: model": Row(
        status=400,
        body=nested("Invalid model: Engine for model name `x` not found. Available are others"),
        kind=Kind.MODEL_NOT_FOUND,
    ),
    "infinity: not deployed": Row(
        status=400,
        body=nested("ModelNotDeployedError: model=`x` does not support `embed` for modality `text`. Reason: none"),
        kind=Kind.NOT_AN_EMBEDDING_MODEL,
    ),
    # others
    "still loading": Row(
        status=503, body={"error": "Model falcon is currently loading", "estimated_time": 20}, kind=Kind.LOADING
    ),
    "wants one string": Row(
        status=400,
        body={"error": {"message": "JSON format issue: expected string at field input got instead array"}},
        kind=Kind.NO_BATCHING,
    ),
    "wants one string, listed": Row(
        status=422,
        body={"detail": [{"type": "string_type", "loc": ["body", "input"], "msg": "Input should be a valid string"}]},
        kind=Kind.NO_BATCHING,
    ),
    "wants a list": Row(
        status=422,
        body={"detail": [{"type": "list_type", "loc": ["body", "input"], "msg": "Input should be a valid list"}]},
        kind=Kind.WRONG_CONTRACT,
        says="body.input: Input should be a valid list",
    ),
    "misses a field": Row(
        mode="http",
        status=422,
        body={"detail": [{"type": "missing", "loc": ["body", "input"], "msg": "Field required"}]},
        kind=Kind.WRONG_CONTRACT,
    ),
    "plain request to a secure port": Row(
        status=400,
        body="<html><title>400 The plain HTTP request was sent to HTTPS port</title></html>",
        content_type="text/html",
        kind=Kind.TLS,
    ),
    "gateway down": Row(status=502, body=b"", kind=Kind.UPSTREAM_FAILED),
    "gateway late": Row(status=504, body="upstream request timeout", kind=Kind.UPSTREAM_FAILED),
    "moved": Row(status=307, body=b"", headers={"location": "http://other.invalid/embed?k=1"}, kind=Kind.REDIRECTED),
    "no such status": Row(status=700, body=b"", kind=Kind.NOT_HTTP),
    "proxy wants a password": Row(status=407, body=b"", kind=Kind.PROXY),
    "method": Row(status=405, body=b"", kind=Kind.ROUTE_NOT_FOUND),
    "request timeout": Row(status=408, body=b"", kind=Kind.SERVER_ERROR),
    "teapot": Row(status=418, body="I am a teapot", kind=Kind.REJECTED),
    "busy, told when": Row(status=503, body=b"", headers={"retry-after": "7"}, kind=Kind.THROTTLED, wait=7.0),
    "busy": Row(status=503, body=b"", kind=Kind.LOADING),
    "too large, one word": Row(status=413, body=b"", kind=Kind.BATCH_TOO_LARGE),
    "page of an error": Row(status=500, body=PAGE, content_type="text/html", kind=Kind.SERVER_ERROR, says="Sign in"),
    "page of a success": Row(body=PAGE, content_type="text/html", kind=Kind.NOT_JSON, says="Sign in", detail="HTML"),
    # bodies
    "nothing": Row(status=204, body=b"", kind=Kind.NOT_JSON, detail="an empty body"),
    "no content": Row(body=b"", kind=Kind.NOT_JSON, detail="an empty body"),
    "words": Row(body="It works!", kind=Kind.NOT_JSON, says="It works!", detail="text that is not JSON"),
    "cut off": Row(body=b'{"data": [{"index": 0, "embed', kind=Kind.NOT_JSON, detail="cut off"),
    "deep": Row(body=b"[" * 100_000, kind=Kind.NOT_JSON, detail="nested too deeply"),
    "many digits": Row(body=b'{"data": ' + b"1" * 5000 + b"}", kind=Kind.NOT_JSON, detail="too many digits"),
    "no text": Row(body=b'{"data": "\xff\xff"}', kind=Kind.NOT_JSON, detail="bytes that are no text"),
    "out of order": Row(
        body={"data": [{"index": 1, "embedding": [0, 1, 0]}, {"index": 0, "embedding": [1, 0, 0]}]}, kind=Kind.OK
    ),
    "one index twice": Row(
        body={"data": [{"index": 0, "embedding": [0, 1, 0]}, {"index": 0, "embedding": [1, 0, 0]}]},
        kind=Kind.BAD_INDEX,
        detail="not exactly 0 to 1",
    ),
    "no index": Row(
        body={"data": [{"embedding": [0, 1, 0]}, {"embedding": [1, 0, 0]}]}, kind=Kind.BAD_INDEX, detail="no `index`"
    ),
    "true for an index": Row(
        body={"data": [{"index": True, "embedding": [0]}, {"index": 0, "embedding": [1]}]}, kind=Kind.BAD_INDEX
    ),
    "too few": Row(body=items(UNIT[0]), kind=Kind.COUNT_MISMATCH, detail="2 sent, 1 came back"),
    "too many": Row(body=items(*UNIT, UNIT[0]), kind=Kind.COUNT_MISMATCH, detail="2 sent, 3 came back"),
    "too few, http": Row(mode="http", body={"embeddings": [[1.0]]}, kind=Kind.COUNT_MISMATCH),
    "base64": Row(
        body=items("AACAPwAAAAAAAAAA", "AAAAAAAAgD8AAAAA"), kind=Kind.BASE64, detail="base64 of 3 dimensions"
    ),
    "base64 of odd length": Row(body=items("AACAPwAA", "AACAPwAAAA=="), kind=Kind.BAD_VALUES, detail="no vector"),
    "no base64": Row(body=items("äöü", "x"), kind=Kind.BAD_VALUES),
    "not of length one": Row(
        mode="http", body={"embeddings": [[3.0, 4.0, 0.0], [0.0, 5.0, 12.0]]}, kind=Kind.NOT_NORMALIZED
    ),
    "not of length one, api": Row(body=items([3.0, 4.0, 0.0], [0.0, 5.0, 12.0]), kind=Kind.OK),
    "zero vector": Row(body=items([0.0, 0.0], [1.0, 0.0]), kind=Kind.ZERO_VECTOR),
    "same vector": Row(body=items([1.0, 0.0], [1.0, 0.0]), kind=Kind.CONSTANT_VECTOR),
    "ragged": Row(body=items([1.0, 0.0], [1.0, 0.0, 0.0]), kind=Kind.RAGGED, detail="widths 2, 3"),
    "words for numbers": Row(body=items(["1"], ["2"]), kind=Kind.BAD_VALUES, detail="element 0 is text"),
    "truth for numbers": Row(body=items([True], [False]), kind=Kind.BAD_VALUES),
    "not a number": Row(body=items([float("nan")], [1]), kind=Kind.BAD_VALUES, detail="not finite"),
    "huge integer": Row(body=items([10**400], [1]), kind=Kind.BAD_VALUES, detail="too large for a number"),
    "beyond 32 bits": Row(body=items([1e300], [1]), kind=Kind.BAD_VALUES, detail="32-bit"),
    "object for a vector": Row(body=items({}, {}), kind=Kind.BAD_VALUES, detail="an object"),
    "empty vector": Row(body=items([], []), kind=Kind.BAD_VALUES, detail="is empty"),
    "wider than anything": Row(body=items([0] * 16385, [0] * 16385), kind=Kind.BAD_VALUES, detail="16385 dimensions"),
    "one vector for each token": Row(body=items([[1.0]], [[1.0]]), kind=Kind.WRONG_CONTRACT),
    "vectors in an object": Row(mode="http", body={"embeddings": {"float": [[1.0]]}}, kind=Kind.WRONG_SHAPE),
    "data null": Row(body={"data": None}, kind=Kind.EMPTY),
    "data empty": Row(body={"data": []}, kind=Kind.EMPTY),
    "data an object": Row(body={"data": {}}, kind=Kind.WRONG_SHAPE),
    "list of models": Row(body={"object": "list", "data": [{"id": "m", "object": "model"}]}, kind=Kind.WRONG_SHAPE),
    "list of names": Row(body={"data": ["m", "n"]}, kind=Kind.WRONG_SHAPE),
    "embeddings null": Row(mode="http", body={"embeddings": None}, kind=Kind.EMPTY),
    "embeddings empty": Row(mode="http", body={"embeddings": []}, kind=Kind.EMPTY),
    "openai in http mode": Row(mode="http", body=items(*UNIT), kind=Kind.WRONG_CONTRACT),
    "ollama’s old route": Row(mode="http", body={"embedding": [1.0]}, kind=Kind.WRONG_CONTRACT),
    "own contract in api mode": Row(body={"embeddings": list(UNIT), "dimensions": 3}, kind=Kind.WRONG_CONTRACT),
    "object of nothing known": Row(body={"hello": "world"}, kind=Kind.WRONG_SHAPE),
    "list of nothing known": Row(body=[1, 2], kind=Kind.WRONG_SHAPE),
    "null": Row(body=b"null", kind=Kind.WRONG_SHAPE),
}


def call(
    steps: list[Step], mode: str = "api", texts: tuple[str, ...] = ("falcon", "harbour"), **more: object
) -> Outcome:
    with serve(steps) as server:
        endpoint = Endpoint(mode=mode, url=server.url, key="sk-test-1234567890", model="m", timeout=20.0)
        return ours(endpoint, texts, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ROWS)
def test_reply(name: str) -> None:
    row = ROWS[name]
    outcome = call([reply(row.body, row.status, headers=row.headers, content_type=row.content_type)], row.mode)
    assert outcome.kind is row.kind
    assert outcome.attempted
    assert outcome.status == row.status
    assert row.says in outcome.server_message
    assert row.detail in dict(outcome.evidence).get("detail", "")
    assert outcome.retry_after == (None if row.wait is None else pytest.approx(row.wait))
    assert outcome.limit == row.limit
    assert not any(mark in outcome.server_message for mark in ('{"', '["', "org-", "sk-"))


def test_vectors_stand_in_the_order_of_the_texts() -> None:
    outcome = call(
        [reply({"data": [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [2, 0]}], "model": "x"})]
    )
    assert outcome.vectors == [[2.0, 0.0], [0.0, 1.0]]
    assert (outcome.dim, outcome.norms, outcome.model) == (2, (2.0, 1.0), "x")
    assert dict(outcome.evidence)["order"] == "the server answers out of order"


def test_more_vectors_than_the_server_ever_takes() -> None:
    texts = tuple(str(number) for number in range(513))
    assert call([reply({"embeddings": [[1.0]] * 513})], "http", texts).kind is Kind.BATCH_TOO_LARGE


def test_one_text_that_is_too_large() -> None:
    assert call([reply(b"", 413)], texts=("one",)).kind is Kind.INPUT_TOO_LARGE
    body = {"error": "Invalid JSON body"}
    assert call([reply(body, 400)], "http", ("x" * (1 << 20) + "y",)).kind is Kind.INPUT_TOO_LARGE
    assert call([reply(body, 400)], "http", ("x" * (1 << 20), "y")).kind is Kind.BATCH_TOO_LARGE
    assert call([reply(body, 400)], "http", ("x", "y")).kind is Kind.REJECTED


def test_where_a_redirect_points() -> None:
    outcome = call([reply(b"", 308, headers={"location": "https://user:word@other.invalid/embed?token=abcdefgh"})])
    assert dict(outcome.evidence)["location"] == "https://other.invalid/embed"


@pytest.mark.parametrize("steps", [[], [Reset()], [b"HTTP/1.1 200 OK\r\n", Reset()], [head(length=99) + b"{"]])
def test_connections_that_end_early(steps: list[Step]) -> None:
    assert call(steps).kind is Kind.DISCONNECTED


@pytest.mark.parametrize(
    "steps",
    [
        [b"SSH-2.0-OpenSSH_9.6\r\n\r\n"],
        [b"HTTP/9.9 banana\r\n\r\n"],
        [head(headers={"content-length": "abc"})],
        [head(headers={"transfer-encoding": "chunked"}) + b"zz\r\n{}\r\n0\r\n\r\n"],
        [head(101)],
        [reply(b"not packed", headers={"content-encoding": "gzip"})],
    ],
)
def test_what_is_no_http(steps: list[Step]) -> None:
    assert call(steps).kind is Kind.NOT_HTTP


def test_every_kind_has_one_meaning() -> None:
    assert set(MEANINGS) == set(Kind)
    for kind, meaning in MEANINGS.items():
        assert meaning.sentence, kind
        assert meaning.advice, kind
        assert meaning.fault, kind
        assert (Fault.NONE in meaning.fault) == (kind is Kind.OK)
        assert (meaning.stage is Stage.DONE) == (kind is Kind.OK)
        # only what brought vectors may be less than fatal
        assert meaning.fatal or meaning.stage in {Stage.DONE, Stage.MEANING}


def test_the_table_stands_in_the_order_of_the_stages() -> None:
    order = list(Stage)
    places = [order.index(meaning.stage) for kind, meaning in MEANINGS.items() if kind not in {Kind.OK, Kind.INTERNAL}]
    assert places == sorted(places)


def test_no_two_kinds_say_the_same() -> None:
    sentences = [meaning.sentence for meaning in MEANINGS.values()]
    assert len(set(sentences)) == len(sentences)
