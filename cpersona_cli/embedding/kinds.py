"""Every way an embedding call can end, as a partition.

A call passes ordered stages, and its kind is the first stage that failed. Kinds are decided by typed facts only:
exception class, errno, TLS reason, status integer, structured error code, parsed shape, numbers. The wording of a
reply may choose between two kinds of failure, never between failure and success. ``INTERNAL`` takes what is left.
"""

from __future__ import annotations

from enum import StrEnum

from cpersona_cli.record import record


class Stage(StrEnum):
    """The stages in their order."""

    CONFIGURATION = "configuration"
    INPUT = "input"
    NETWORK = "network"
    HEAD = "response head"
    BODY = "body"
    MEANING = "meaning"
    DONE = "done"


class Fault(StrEnum):
    """Where the repair is to be made, the likeliest first."""

    NONE = "nowhere"
    CONFIG = "the configuration"
    CLIENT = "this client"
    INPUT = "the texts"
    NETWORK = "the network"
    SERVER = "the embedding server"
    MODEL = "the model"


class Kind(StrEnum):
    """The ends of a call."""

    OK = "ok"
    # configuration: nothing leaves the process
    DISABLED = "disabled"
    CONFIG_MODE = "config_mode"
    CONFIG_URL = "config_url"
    CONFIG_CREDENTIAL = "config_credential"
    CONFIG_CLIENT = "config_client"
    # input
    INPUT_INVALID = "input_invalid"
    # network
    DNS = "dns"
    RESOLVER = "resolver"
    REFUSED = "refused"
    UNROUTABLE = "unroutable"
    CONNECT_TIMEOUT = "connect_timeout"
    TLS = "tls"
    PROXY = "proxy"
    TIMEOUT = "timeout"
    DISCONNECTED = "disconnected"
    NOT_HTTP = "not_http"
    # response head: the status, with the structured codes of the body
    REDIRECTED = "redirected"
    AUTH = "auth"
    ROUTE_NOT_FOUND = "route_not_found"
    MODEL_NOT_FOUND = "model_not_found"
    NOT_AN_EMBEDDING_MODEL = "not_an_embedding_model"
    NO_MODEL_LOADED = "no_model_loaded"
    EMBEDDINGS_DISABLED = "embeddings_disabled"
    POOLING_NONE = "pooling_none"
    WRONG_CONTRACT = "wrong_contract"
    NO_BATCHING = "no_batching"
    BATCH_TOO_LARGE = "batch_too_large"
    INPUT_TOO_LARGE = "input_too_large"
    NAN_FOR_INPUT = "nan_for_input"
    THROTTLED = "throttled"
    QUOTA = "quota"
    LOADING = "loading"
    UPSTREAM_FAILED = "upstream_failed"
    REJECTED = "rejected"
    SERVER_ERROR = "server_error"
    # body
    TOO_LARGE = "too_large"
    NOT_JSON = "not_json"
    ERROR_IN_SUCCESS = "error_in_success"
    WRONG_SHAPE = "wrong_shape"
    BASE64 = "base64_reply"
    EMPTY = "empty"
    NULL_VECTOR = "null_vector"
    COUNT_MISMATCH = "count_mismatch"
    BAD_INDEX = "bad_index"
    RAGGED = "ragged"
    BAD_VALUES = "bad_values"
    # meaning: well-formed, and still wrong
    ZERO_VECTOR = "zero_vector"
    CONSTANT_VECTOR = "constant_vector"
    NOT_NORMALIZED = "not_normalized"
    UNSTABLE = "unstable"
    TRUNCATING = "truncating"
    WEAK_SEPARATION = "weak_separation"
    DIMENSION_MISMATCH = "dimension_mismatch"
    MODEL_MISMATCH = "model_mismatch"
    # the last arm
    INTERNAL = "internal"


@record(kw_only=True)
class Meaning:
    """What a kind stands for. ``retryable``: the same call may succeed later without anybody changing anything.

    ``fatal`` is False for the kinds that only deserve a warning: vectors came back and can be used.
    """

    stage: Stage
    fault: tuple[Fault, ...]
    retryable: bool
    sentence: str
    advice: str
    fatal: bool = True


def _row(
    stage: Stage,
    fault: Fault | tuple[Fault, ...],
    sentence: str,
    advice: str,
    *,
    retry: bool = False,
    fatal: bool = True,
) -> Meaning:
    faults = fault if isinstance(fault, tuple) else (fault,)
    return Meaning(stage=stage, fault=faults, retryable=retry, sentence=sentence, advice=advice, fatal=fatal)


_C, _I, _N, _H, _B, _M = (
    Stage.CONFIGURATION, Stage.INPUT, Stage.NETWORK, Stage.HEAD, Stage.BODY, Stage.MEANING,
)  # fmt: skip
_CFG, _SRV, _NET, _MOD = Fault.CONFIG, Fault.SERVER, Fault.NETWORK, Fault.MODEL

#: The whole partition, in the order of the stages.
MEANINGS: dict[Kind, Meaning] = {
    Kind.OK: _row(Stage.DONE, Fault.NONE, "the call returned usable vectors", "nothing to do", fatal=False),
    Kind.DISABLED: _row(_C, _CFG, "no embedding backend is configured", "set a mode and a URL to search by meaning"),
    Kind.CONFIG_MODE: _row(_C, _CFG, "the mode is not one the server knows", "use none, http or api, in small letters"),
    Kind.CONFIG_URL: _row(_C, _CFG, "the URL cannot be called as it stands", "correct the URL"),
    Kind.CONFIG_CREDENTIAL: _row(_C, _CFG, "the key cannot be sent as it stands", "correct the key"),
    Kind.CONFIG_CLIENT: _row(_C, _CFG, "the client cannot be built with these settings", "correct the named setting"),
    Kind.INPUT_INVALID: _row(_I, Fault.INPUT, "a text cannot be sent", "leave the text out or repair it"),
    Kind.DNS: _row(_N, (_CFG, _NET), "the host name is not known", "correct the host name"),
    Kind.RESOLVER: _row(_N, _NET, "the name service does not answer", "check the network’s name service", retry=True),
    Kind.REFUSED: _row(_N, _SRV, "nothing listens at this address", "start the embedding server", retry=True),
    Kind.UNROUTABLE: _row(_N, _NET, "the address cannot be reached from here", "check network and address", retry=True),
    Kind.CONNECT_TIMEOUT: _row(_N, _NET, "the address does not answer", "check host, port and firewall", retry=True),
    Kind.TLS: _row(_N, _CFG, "no secure connection could be made", "check https against http, and the certificate"),
    Kind.PROXY: _row(_N, _CFG, "a proxy stands between and fails", "list the host in NO_PROXY, or mend the proxy"),
    Kind.TIMEOUT: _row(_N, _SRV, "no complete answer came in time", "wait, or allow more time", retry=True),
    Kind.DISCONNECTED: _row(_N, _SRV, "the connection ended before the answer", "look at the server’s log", retry=True),
    Kind.NOT_HTTP: _row(_N, (_CFG, _SRV), "what answers does not speak HTTP properly", "check the port"),
    Kind.REDIRECTED: _row(_H, _CFG, "the server points to another address", "set the address it points to"),
    Kind.AUTH: _row(_H, _CFG, "the server refuses the credentials", "correct the key, or its permissions"),
    Kind.ROUTE_NOT_FOUND: _row(_H, _CFG, "the server has no such path", "correct the path of the URL"),
    Kind.MODEL_NOT_FOUND: _row(_H, (_MOD, _CFG), "the server does not have this model", "name or fetch the model"),
    Kind.NOT_AN_EMBEDDING_MODEL: _row(_H, _MOD, "the model does not make embeddings", "use an embedding model"),
    Kind.NO_MODEL_LOADED: _row(_H, _MOD, "the server has no embedding model loaded", "load one"),
    Kind.EMBEDDINGS_DISABLED: _row(_H, _SRV, "the server runs without embeddings", "start it with embeddings on"),
    Kind.POOLING_NONE: _row(_H, _SRV, "the server does not pool to one vector", "start it with a pooling type"),
    Kind.WRONG_CONTRACT: _row(_H, _CFG, "the server speaks another contract", "set the mode and URL that fit it"),
    Kind.NO_BATCHING: _row(_H, _SRV, "the server refuses a list of texts", "use a server that takes lists"),
    Kind.BATCH_TOO_LARGE: _row(_H, (Fault.CLIENT, _SRV), "too many texts at once", "send smaller batches"),
    Kind.INPUT_TOO_LARGE: _row(_H, Fault.INPUT, "a text is longer than the server takes", "raise the server’s window"),
    Kind.NAN_FOR_INPUT: _row(_H, _MOD, "the model makes no number of some texts", "leave these texts out"),
    Kind.THROTTLED: _row(_H, _SRV, "the server asks to slow down", "wait as told", retry=True),
    Kind.QUOTA: _row(_H, _CFG, "the account’s quota is used up", "look at plan and billing"),
    Kind.LOADING: _row(_H, _SRV, "the server is not ready yet", "wait until the model is loaded", retry=True),
    Kind.UPSTREAM_FAILED: _row(_H, _SRV, "a gateway’s own upstream failed", "look at the gateway’s log", retry=True),
    Kind.REJECTED: _row(_H, (Fault.CLIENT, _CFG), "the server rejects the request", "read the server’s sentence"),
    Kind.SERVER_ERROR: _row(_H, _SRV, "the server failed", "look at the server’s log", retry=True),
    Kind.TOO_LARGE: _row(_B, _SRV, "the answer is larger than any embedding", "check what answers at this URL"),
    Kind.NOT_JSON: _row(_B, (_CFG, _SRV), "the answer is not JSON", "check what answers at this URL"),
    Kind.ERROR_IN_SUCCESS: _row(_B, (_CFG, _SRV), "a success status carries an error", "read the server’s sentence"),
    Kind.WRONG_SHAPE: _row(_B, _CFG, "the answer has another shape than this mode’s", "set the mode and URL that fit"),
    Kind.BASE64: _row(_B, _SRV, "vectors came as base64 text, which the server refuses", "turn base64 off"),
    Kind.EMPTY: _row(_B, _SRV, "the answer carries no vectors", "look at the server’s log", retry=True),
    Kind.NULL_VECTOR: _row(_B, _MOD, "a vector is null", "use an embedding model"),
    Kind.COUNT_MISMATCH: _row(_B, _SRV, "not one vector for each text", "send smaller batches, or another server"),
    Kind.BAD_INDEX: _row(_B, _SRV, "which vector belongs to which text is not told", "send one text at a time"),
    Kind.RAGGED: _row(_B, _MOD, "vectors of one answer differ in width", "look at the server’s log"),
    Kind.BAD_VALUES: _row(_B, _MOD, "a vector holds something that is no finite number", "look at the server’s log"),
    Kind.ZERO_VECTOR: _row(_M, _MOD, "a vector is all zeros", "use another model or server"),
    Kind.CONSTANT_VECTOR: _row(_M, _MOD, "different texts get the same vector", "use another model or server"),
    Kind.NOT_NORMALIZED: _row(_M, _SRV, "vectors are not of length one", "turn normalisation on in the server"),
    Kind.UNSTABLE: _row(_M, _MOD, "the same text gets different answers", "look at the server", fatal=False),
    Kind.TRUNCATING: _row(_M, _MOD, "long texts are cut without a word", "raise the server’s window", fatal=False),
    Kind.WEAK_SEPARATION: _row(_M, _MOD, "related and unrelated texts look alike", "use another model", fatal=False),
    Kind.DIMENSION_MISMATCH: _row(_M, (_CFG, _MOD), "the stored vectors have another width", "rebuild the vectors"),
    Kind.MODEL_MISMATCH: _row(_M, (_CFG, _MOD), "the stored vectors are another model’s", "rebuild the vectors"),
    Kind.INTERNAL: _row(_B, Fault.CLIENT, "an unexpected error", "please report it"),
}  # fmt: skip
