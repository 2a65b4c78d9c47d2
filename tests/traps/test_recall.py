"""Recall settings against what a store holds."""

from __future__ import annotations

import pytest
from support.trap_facts import Graded
from support.traps import facts, reading, registration

from cpersona_cli.store.reading import Reading
from cpersona_cli.traps.model import Facts

DB = "/home/u/cpersona.db"
ENV = {"CPERSONA_DB_PATH": DB}


def store(memories: int | None = None, episodes: int = 0, **fields: object) -> Reading:
    counts = {} if memories is None else {"memories": memories, "episodes": episodes}
    return reading(DB, counts=counts, **fields)  # type: ignore[arg-type]


def recall(env: dict[str, str], of: Reading | None = None, version: str | None = "2.6.14", **fields: object) -> Facts:
    return facts({**ENV, **{f"CPERSONA_{n}": v for n, v in env.items()}}, version=version, reading=of or (), **fields)  # type: ignore[arg-type]


WINDOW = "recall.scan-window"
REACH = "recall.reach-inert"
CAP = "recall.content-cap"
MODE = "recall.mode-inert"

CASES = (
    Graded(
        WINDOW,
        "too small",
        recall({"MAX_MEMORIES": "500"}, store(501)),
        says="1 of them are outside",
        severity="warning",
    ),
    Graded(WINDOW, "small and enough", recall({"MAX_MEMORIES": "500"}, store(500)), "pass"),
    Graded(WINDOW, "unset", recall({}, store(50_000)), "pass"),
    Graded(WINDOW, "huge over many rows", recall({"MAX_MEMORIES": "1000000"}, store(20_000)), severity="warning"),
    Graded(WINDOW, "huge over few rows", recall({"MAX_MEMORIES": "1000000"}, store(200)), severity="hint"),
    Graded(WINDOW, "huge over unknown rows", recall({"MAX_MEMORIES": "1000000"}), severity="warning"),
    Graded(WINDOW, "no number at all", recall({"MAX_MEMORIES": "lots"}, store(9)), "pass"),
    Graded(REACH, "below the window", recall({"VECTOR_REACH": "5000"}), says="not above", severity="hint"),
    Graded(REACH, "at the window", recall({"VECTOR_REACH": "10000"}), says="40000"),
    Graded(REACH, "above it", recall({"VECTOR_REACH": "10001"}), "pass"),
    Graded(REACH, "in cascade", recall({"VECTOR_REACH": "20000", "RECALL_MODE": "cascade"}), says="cascade"),
    Graded(REACH, "remote", recall({"VECTOR_REACH": "20000", "VECTOR_SEARCH_MODE": "remote"}), says="remote"),
    Graded(REACH, "unset", recall({}), "pass"),
    Graded(REACH, "a release without it", recall({"VECTOR_REACH": "5"}, version="2.4.41"), "pass"),
    Graded(
        "recall.limit-window",
        "the last release with it",
        recall({"EMBEDDING_MODE": "http"}, store(101), "2.4.39"),
        says=("2.4.39", "cpersona@latest"),
        severity="fault",
    ),
    Graded(
        "recall.limit-window", "the first without", recall({"EMBEDDING_MODE": "http"}, store(101), "2.4.40"), "pass"
    ),
    Graded("recall.limit-window", "few rows", recall({"EMBEDDING_MODE": "http"}, store(100), "2.4.39"), "pass"),
    Graded(
        "recall.limit-window", "rows not counted", recall({"EMBEDDING_MODE": "http"}, None, "2.4.39"), severity="fault"
    ),
    Graded("recall.limit-window", "words alone", recall({}, None, "2.4.39"), "skipped"),
    Graded("recall.confidence-order", "on", recall({"CONFIDENCE_ENABLED": "true"}), says="legacy", severity="hint"),
    Graded(
        "recall.confidence-order",
        "ordering",
        recall({"CONFIDENCE_ENABLED": "true", "CONFIDENCE_ORDERING": "legacy"}),
        "pass",
    ),
    Graded("recall.confidence-order", "before 2.6", recall({"CONFIDENCE_ENABLED": "true"}, version="2.5.12"), "pass"),
    Graded(
        MODE,
        "confidence orders in 2.5",
        recall({"CONFIDENCE_ENABLED": "true", "RECALL_MODE": "rsf"}, version="2.5.12"),
        says="RECALL_MODE=rsf",
        severity="hint",
        count=1,
    ),
    Graded(
        MODE,
        "and since 2.6 where it is told to",
        recall({"CONFIDENCE_ENABLED": "true", "CONFIDENCE_ORDERING": "legacy", "RECALL_MODE": "rrf"}),
    ),
    Graded(MODE, "it does not order", recall({"CONFIDENCE_ENABLED": "true", "RECALL_MODE": "rsf"}), "pass"),
    Graded(MODE, "no confidence", recall({"RECALL_MODE": "rsf"}, version="2.5.12"), "pass"),
    Graded(MODE, "the mode is left alone", recall({"CONFIDENCE_ENABLED": "true"}, version="2.5.12"), "pass"),
    Graded(
        MODE,
        "cascade is another",
        recall({"CONFIDENCE_ENABLED": "true", "RECALL_MODE": "cascade"}, version="2.5.12"),
        "pass",
    ),
    Graded(
        "recall.undated-confidence",
        "an old release",
        recall({"CONFIDENCE_ENABLED": "true"}, store(9, invalid_timestamps=1), "2.5.3"),
        says="1 memory has",
        severity="hint",
    ),
    Graded(
        "recall.undated-confidence",
        "a newer one",
        recall({"CONFIDENCE_ENABLED": "true"}, store(9, invalid_timestamps=1), "2.5.4"),
        "pass",
    ),
    Graded("recall.undated-confidence", "off", recall({}, store(9, invalid_timestamps=1), "2.5.3"), "pass"),
    Graded("recall.autocut-inert", "set", recall({"AUTOCUT_MIN_RESULTS": "5"}), says="rrf", severity="hint", count=1),
    Graded(
        "recall.autocut-inert", "in cascade", recall({"AUTOCUT_MIN_RESULTS": "5", "RECALL_MODE": "cascade"}), "pass"
    ),
    Graded("recall.autocut-inert", "switched off", recall({"AUTOCUT_ENABLED": "false"}), "pass"),
    Graded(
        CAP,
        "below the longest",
        recall({"MAX_CONTENT_LENGTH": "2000"}, store(9, longest_content=9000)),
        says=("keeps 2000", "longest here has 9000", "16000"),
        severity="fault",
        count=1,
    ),
    Graded(
        CAP,
        "the default of 2.5.4a1",
        recall({}, store(9, longest_content=9000), "2.5.4a1"),
        says="default",
        severity="fault",
    ),
    Graded(CAP, "the default of 2.5.4", recall({}, store(9, longest_content=9000), "2.5.4"), "pass"),
    Graded(
        CAP,
        "two clients disagree, nothing is too long yet",
        recall(
            {},
            store(9, longest_content=900),
            others=[registration({**ENV, "CPERSONA_MAX_CONTENT_LENGTH": "1000"}, client="codex")],
        ),
        says=("Codex (user) keeps 1000", "Claude Code (user) keeps 16000"),
        severity="warning",
        count=1,
    ),
    Graded(
        CAP,
        "two clients agree",
        recall({}, store(9, longest_content=900), others=[registration(ENV, client="codex")]),
        "pass",
    ),
    Graded(CAP, "no number", recall({"MAX_CONTENT_LENGTH": "16k"}, store(9, longest_content=9000)), "pass"),
    Graded(CAP, "a database nobody opens", facts(reading=reading("/other.db", longest_content=9)), "pass"),
    Graded(
        "recall.min-similarity",
        "above one",
        recall({"VECTOR_MIN_SIMILARITY": "1.5"}),
        says="no pair",
        severity="warning",
    ),
    Graded("recall.min-similarity", "high", recall({"VECTOR_MIN_SIMILARITY": "0.9"}), says="few memories"),
    Graded("recall.min-similarity", "negative", recall({"VECTOR_MIN_SIMILARITY": "-1"}), says="everything"),
    Graded("recall.min-similarity", "usual", recall({"VECTOR_MIN_SIMILARITY": "0.25"}), "pass"),
    Graded("recall.min-similarity", "unset", recall({}), "pass"),
    Graded("recall.task-queue-off", "off", recall({"TASK_QUEUE_ENABLED": "false"}), severity="hint"),
    Graded("recall.task-queue-off", "on", recall({"TASK_QUEUE_ENABLED": "true"}), "pass"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_recall(case: Graded) -> None:
    case.check()
