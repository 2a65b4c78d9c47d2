"""What is to be said of an endpoint that answers and still deserves a finding: one row for each remark of a probe."""

from __future__ import annotations

from collections.abc import Mapping

from cpersona_cli.embedding.endpoints import KEY, MODEL, TIMEOUT, URL
from cpersona_cli.record import record
from cpersona_cli.traps.model import Severity


@record(kw_only=True)
class Advice:
    """What a remark means and what to do.

    ``setting`` is the variable to change, empty where it is the server behind the URL; ``value`` is what to set it to
    where that is always the same, else ``repair`` says it.
    """

    expected: str
    costs: str
    repair: str
    setting: str = ""
    value: str = ""
    severity: Severity = Severity.WARNING


_LOST = "what stands at the end of long memories is not found by meaning"
_GAPS = "some memories get no vector, at random, and are found only by shared words"

REMARKS: Mapping[str, Advice] = {
    "loopback-name": Advice(
        expected="every address of the host answers",
        costs="a program that tries only the first address finds nothing there",
        repair="write 127.0.0.1",
        setting=URL,
    ),
    "slow-start": Advice(
        expected="ready within CPersona’s own timeout",
        costs="the first recalls after a start of the embedding server fail",
        repair="allow more time than the start takes, or keep the model loaded",
        setting=TIMEOUT,
    ),
    "unstable": Advice(
        expected="every call answered, and the same text always with the same vector",
        costs=_GAPS,
        repair="look at the log of the embedding server, and give it the memory it needs",
    ),
    "key-needed": Advice(
        expected="a key that is not empty: CPersona fails on every call without one, also where the server needs none",
        costs="every call of CPersona fails before it leaves the computer, and is reported as an outage",
        repair="set any text as the key",
        setting=KEY,
        value="any-text",
    ),
    "server-differs": Advice(
        expected="CPersona’s own client accepts the same reply",
        costs="every call of CPersona fails although the endpoint answers",
        repair="read what CPersona would record, and correct the address",
        setting=URL,
    ),
    "key-shown": Advice(
        expected="no message of the server carries the key",
        costs="the key gets into the log and into what the agent is told",
        repair="write the key without white space around it",
        setting=KEY,
    ),
    "other-model": Advice(
        expected="the model that was asked for",
        costs="vectors of two models do not compare; a fallback model mixes them without a word",
        repair="name the model that is meant, and see whether the server falls back to another one",
        setting=MODEL,
    ),
    "single-fails": Advice(
        expected="a vector for one text sent alone, which is how CPersona stores and recalls",
        costs="no memory gets a vector and no recall searches by meaning",
        repair="look at the log of the embedding server",
    ),
    "wrong-order": Advice(
        expected="vectors in the order of the texts",
        costs="memories get the vectors of others, and nothing shows it",
        repair="use another server, or one that answers in order",
    ),
    "batch-too-large": Advice(
        expected="32 texts in one request (missing vectors, nodes) and 64 (blocks of a long memory)",
        costs="memories that need such a request never get their vectors or blocks",
        repair="raise the server’s largest batch to 64",
    ),
    "weak-separation": Advice(
        expected="related texts nearer to each other than to strangers",
        costs="searches by meaning return anything",
        repair="use a model that is made for embeddings",
        setting=MODEL,
    ),
    "crowded": Advice(
        expected="unrelated texts clearly below the similarity from which a memory counts",
        costs="until the threshold is calibrated every memory is a hit for every question",
        repair="calibrate the threshold (calibrate_threshold), or raise it",
        setting="CPERSONA_VECTOR_MIN_SIMILARITY",
    ),
    "truncating": Advice(
        expected="every word of a text counts, or a longer window",
        costs=_LOST,
        repair="raise the server’s window, or use a model with a longer one",
        severity=Severity.HINT,
    ),
    "window-too-small": Advice(
        expected="long texts are embedded, or cut",
        costs="memories that are longer get no vector at all",
        repair="raise the server’s window (llama-server: -c, -b and -ub; others: context length)",
    ),
    "body-limit": Advice(
        expected="a request a little below 1 MiB, which 32 long memories make",
        costs="filling missing vectors of long memories fails again and again",
        repair="raise the limit of the request body in the server, or in the proxy before it",
    ),
}
