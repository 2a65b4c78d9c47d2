"""What our own advisories say, in English; in Japanese: ``japanese``.

Each full text has six parts: what is wrong with the evidence, what it costs, what to look at, what to do, one plain
sentence for the user, and how to switch the notice off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from cpersona_cli.advisory import japanese
from cpersona_cli.advisory.model import IMPERATIVE
from cpersona_cli.advisory.phrases import phrase

Language = Literal["en", "ja"]
Sort = Literal["fault", "config", "hint"]


def reason(sort: Sort, language: Language = "en") -> str:
    """The state in one sentence."""
    return (japanese.REASONS if language == "ja" else REASONS)[sort]


def runbook(sort: Sort, evidence: str, *, full: bool, language: Language = "en") -> str:
    """The text for the agent."""
    translated = language == "ja"
    shown = evidence or phrase(language, "found.no-reason")
    if not full:
        return (japanese.SHORT if translated else SHORT)[sort].replace("{evidence}", shown)
    parts = "\n\n".join((japanese.FULL if translated else FULL)[sort]).replace("{evidence}", shown)
    return f"{japanese.IMPERATIVE if translated else IMPERATIVE} {parts}"


REASONS: Mapping[Sort, str] = {
    "fault": "the embedding endpoint does not answer; recall finds memories only by shared words",
    "config": "the embedding endpoint is never called, because of a setting; recall finds memories only by "
    "shared words",
    "hint": "no embedding backend is configured; recall finds memories only by shared words",
}

SHORT: Mapping[Sort, str] = {
    "fault": "Reminder: the embedding endpoint still does not answer ({evidence}); memories are found only by "
    "shared words.",
    "config": "Reminder: the embedding endpoint is still not called ({evidence}); memories are found only by "
    "shared words.",
    "hint": "Reminder: no embedding backend is configured; memories are found only by shared words.",
}

_IMPACT = (
    "What it costs: a recall still returns memories that share words with the question. Memories in other words, and "
    "old ones, are missing, and the answer does not show it. New memories are stored without a vector."
)
_OFF = "To switch it off: CPERSONA_DEGRADED_ADVISORY=false hides this notice. It repairs nothing."


FULL: Mapping[Sort, tuple[str, ...]] = {
    "fault": (
        (
            "CPersona cannot search its memories by meaning: the embedding endpoint does not answer as it should. "
            "Measured: {evidence}."
        ),
        _IMPACT,
        (
            "What to look at: (1) `cpersona-cli probe` names what answers at the address; (2) is the embedding "
            "server running? (3) are host, port and path of the address right? (4) is its model loaded?"
        ),
        (
            "What to do: start the embedding server, or correct the address and restart CPersona. The first call "
            "that succeeds ends this state. Then fill in the vectors that were missed: `cpersona-cli reembed "
            "--only missing`."
        ),
        (
            "For the user: “At the moment I can look up my notes only by their exact words, so I may overlook "
            "something I know.”"
        ),
        _OFF,
    ),
    "config": (
        (
            "CPersona cannot search its memories by meaning: a setting keeps it from calling its embedding "
            "endpoint. Measured: {evidence}."
        ),
        _IMPACT,
        (
            "What to look at: `cpersona-cli doctor` names the setting, the file and the line. The embedding server "
            "itself has no part in this."
        ),
        (
            "What to do: set CPERSONA_EMBEDDING_MODE to http with CPERSONA_EMBEDDING_URL, or to api with "
            "CPERSONA_EMBEDDING_API_KEY, or to none if search by words is enough; then restart CPersona."
        ),
        "For the user: “My memory search is set up wrongly, so I can look up my notes only by their exact words.”",
        _OFF,
    ),
    "hint": (
        (
            "CPersona runs without an embedding backend, so it cannot search its memories by meaning. Measured: "
            "{evidence}. This is supported, and not an outage."
        ),
        _IMPACT,
        (
            "What to look at: was this chosen? `cpersona-cli doctor` shows which settings are in force and where "
            "they stand."
        ),
        (
            "What to do, if it was not: start an embedding server, set CPERSONA_EMBEDDING_MODE=http and "
            "CPERSONA_EMBEDDING_URL, and restart CPersona. Then `cpersona-cli reembed --only missing`."
        ),
        (
            "For the user: “I look up my notes by their exact words. With an embedding service I could also find "
            "them by meaning.”"
        ),
        _OFF,
    ),
}
