"""Rows of the catalogue of known faults that no trap can decide, for the end of docs/traps.md."""

from __future__ import annotations

from typing import NamedTuple


class Uncheckable(NamedTuple):
    """A row that facts alone cannot decide: why, and the command that measures it, if there is one."""

    row: str
    title: str
    why: str
    command: str = ""


UNCHECKABLE = (
    Uncheckable(
        "B23",
        "more than 100 texts in one request",
        "the server sends at most 64; only an outside program can break this, and this tool does not",
        "cpersona-cli probe",
    ),
    Uncheckable(
        "B29",
        "the server's embedding cache answers for a dead endpoint",
        "a property of asking through the server; this tool asks the endpoint with texts never used before",
        "cpersona-cli probe",
    ),
    Uncheckable(
        "D8",
        "an embedding server too old to count tokens",
        "its route /count_tokens must be asked",
        "cpersona-cli probe",
    ),
    Uncheckable(
        "D12",
        "storing is paused in a running session",
        "the pause lives in the memory of the server's process; ask the agent to call persistence_status",
    ),
    Uncheckable(
        "F12",
        "Changed content stored again under the same message id",
        "the second store is skipped and leaves no trace in the database; the agent has to call update_memory",
    ),
    Uncheckable(
        "F15",
        "Results read in the wrong order",
        "it happens in the reader: the first result is the best one",
    ),
    Uncheckable(
        "H4",
        "A check that runs in another environment than the server",
        "cannot happen here: every release, Python and SQLite is that of the registration's own command",
    ),
    Uncheckable(
        "H8",
        "check_update(apply=true) refused under uvx",
        "a call of the agent, not a setting; a server started by uvx cannot replace itself",
    ),
    Uncheckable(
        "J2",
        "the status healthy does not mean that embedding works",
        "a property of the server's check; the endpoint must be asked",
        "cpersona-cli probe",
    ),
    Uncheckable(
        "J3",
        "the report-only check never asks the endpoint",
        "a property of the server's check; the endpoint must be asked",
        "cpersona-cli probe",
    ),
    Uncheckable(
        "J4",
        "a missing URL is reported as an unreachable server",
        "a property of the server's advisory; names.url-missing finds the cause",
        "cpersona-cli advisory-preview",
    ),
    Uncheckable(
        "J6",
        "no check of the server looks at names, files, proxies, agent ids or other clients",
        "the reason for this tool; the other rows of the catalogue are these checks",
        "cpersona-cli doctor",
    ),
    Uncheckable(
        "J7",
        "“cpersona doctor” starts a server where this tool is not installed",
        "a property of how this tool is started: only its own JSON document proves that it ran",
        "cpersona-cli doctor --json",
    ),
)
