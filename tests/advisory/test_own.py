"""Our own words: the rule is the server's, the six parts are there, and nothing is left to fill in."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.english import left

from cpersona_cli.advisory import japanese, script
from cpersona_cli.advisory.model import IMPERATIVE, KNOWN_TEXTS, Event, digest
from cpersona_cli.advisory.own import CAP, THRESHOLD, Rule
from cpersona_cli.advisory.phrases import PHRASES, advice, phrase, sentence
from cpersona_cli.advisory.texts import FULL, REASONS, SHORT, Language, Sort, runbook
from cpersona_cli.embedding.kinds import MEANINGS, Kind
from cpersona_cli.traps.advisory import TRAPS
from cpersona_cli.traps.model import Trap

LANGUAGES: tuple[Language, ...] = ("en", "ja")
SORTS: tuple[Sort, ...] = ("fault", "config", "hint")


@pytest.fixture(scope="module")
def health() -> Iterator[Any]:
    """The installed server's own health module, in this process."""
    module = importlib.import_module("cpersona.health")
    module._reset()
    yield module
    module._reset()


async def server(health: Any, events: list[Event], *, mode: str, shared: bool) -> list[Mapping[str, Any]]:
    """What the server's own module makes of these events."""
    health._reset()
    config = importlib.import_module("cpersona.config")
    told: list[Mapping[str, Any]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config, "EMBEDDING_MODE", mode)
        patch.setattr(config, "DEGRADED_ADVISORY_ENABLED", True)
        patch.setenv("CPERSONA_TRANSPORT", "streamable-http" if shared else "stdio")
        asked = [
            {"word": e.word, "key": e.key, "ok": e.ok, "error": e.error, "probe": e.probe, "attempted": e.attempted}
            for e in events
        ]
        await script.recalls(script.Server(importlib.import_module), asked, told.append)
    return told


_EVENTS = st.builds(
    lambda word, key, ok, attempted, error: Event(word=word, key=key, ok=ok, attempted=attempted, error=error),
    st.sampled_from(["call", "call", "call", "idle", "check"]),
    st.sampled_from(["", "a", "b", " ", " a ", "transport"]),
    st.booleans(),
    st.sampled_from([True, True, False]),
    st.sampled_from(["refused", "404"]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_EVENTS, max_size=14), st.sampled_from(["none", "http", "api"]), st.booleans())
def test_the_rule_is_the_servers(health: Any, events: list[Event], mode: str, shared: bool) -> None:
    import asyncio  # noqa: PLC0415 - run once for each example

    theirs = asyncio.run(server(health, events, mode=mode, shared=shared))
    ours = Rule(mode=mode, shared=shared, enabled=True).recalls(events)
    assert len(theirs) == len(ours)
    for their, our in zip(theirs, ours, strict=True):
        assert our.state == their["state"]
        expected = None if their["advisory"] is None else json.loads(their["advisory"])
        made = our.advisory
        assert (made is None) == (expected is None)
        if made is None or expected is None:
            continue
        assert made["source"] == "own"
        for name in ("degraded", "severity", "evidence", "advisory_scope"):
            assert made[name] == expected[name], name
        assert (our.told == "full") == expected["runbook"].startswith(IMPERATIVE)
        config = "never contacted" in expected["reason"]
        assert (made["reason"] == REASONS["config"]) == config


def test_as_many_callers_are_remembered_as_by_the_server(health: Any) -> None:
    import asyncio  # noqa: PLC0415 - as above

    failing = [Event(word="call", key="first", error="refused")] * 2
    callers = [Event(word="idle", key=f"caller {number}") for number in range(CAP - 1)]
    again = [Event(word="idle", key="first"), Event(word="idle", key="one more"), Event(word="idle", key="first")]
    events = [*failing, *callers, *again]
    theirs = asyncio.run(server(health, events, mode="http", shared=True))
    ours = Rule(mode="http", shared=True, enabled=True).recalls(events)
    whole = [their["advisory"] is not None and IMPERATIVE in their["advisory"] for their in theirs]
    assert [recall.told == "full" for recall in ours] == whole
    # the first caller is known until one more than fit in has been told
    assert whole[-3:] == [False, True, True]
    assert health.ADVISORY_SESSION_CAP == CAP
    assert health.FAULT_PROMOTE_THRESHOLD == THRESHOLD


def test_the_texts_of_the_newest_release_are_those_that_are_known(health: Any) -> None:
    for name, known in KNOWN_TEXTS.items():
        kind, size = name.split("_")
        assert digest(getattr(health, f"{kind}_RUNBOOK_{size}")) == known


def test_switched_off_nothing_is_told() -> None:
    events = [Event(word="call", error="refused")] * 3
    recalls = Rule(mode="http", shared=False, enabled=False).recalls(events)
    assert [recall.text for recall in recalls] == [None, None, None]
    assert recalls[-1].state == "fault"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("sort", SORTS)
def test_six_parts_with_the_evidence_in_the_first(sort: Sort, language: Language) -> None:
    text = runbook(sort, "mode=http / {braces} failed", full=True, language=language)
    parts = text.split("\n\n")
    assert len(parts) == 6
    assert parts[0].startswith(IMPERATIVE if language == "en" else japanese.IMPERATIVE)
    assert "mode=http / {braces} failed" in parts[0]
    assert "CPERSONA_DEGRADED_ADVISORY=false" in parts[-1]
    assert re.search("“.+”|「.+」", parts[4]), "one plain sentence for the user"
    assert "{evidence}" not in text


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("sort", SORTS)
def test_the_reminder_is_short_and_no_order(sort: Sort, language: Language) -> None:
    text = runbook(sort, "refused", full=False, language=language)
    assert "**" not in text
    assert "\n" not in text
    assert len(text) < len(runbook(sort, "refused", full=True, language=language)) / 4
    assert ("refused" in text) == (sort != "hint")


def test_without_a_reason_that_is_said() -> None:
    assert "no reason was recorded" in runbook("fault", "", full=True)
    assert "記録されていません" in runbook("fault", "", full=False, language="ja")


#: What Japanese says in general where another part of this tool has its own exact English.
EXACT = {"prose", "why", "detail", "note"}
#: Words that English inflects, beside the number that Japanese counts with.
COUNTED = {"registrations", "recalls", "characters"}


def test_both_languages_say_the_same_things() -> None:
    assert set(FULL) == set(japanese.FULL) == set(SHORT) == set(japanese.SHORT) == set(japanese.REASONS)
    assert list(PHRASES) == list(japanese.PHRASES)
    gaps = re.compile(r"\{(\w+)")
    for name, english in PHRASES.items():
        told, expected = set(gaps.findall(japanese.PHRASES[name])), set(gaps.findall(english))
        if not expected & EXACT:
            assert bool(told & {"count", "targets"}) >= bool(expected & COUNTED), name
            assert told - {"count", "targets"} == expected - COUNTED - {"count", "targets"}, name
        assert not left(re.sub(r"\{[^}]*\}", "", japanese.PHRASES[name])), name
    for english, translated in japanese.WORDS.items():
        assert not left(translated), english


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.id)
def test_every_finding_is_told_in_both_languages(trap: Trap) -> None:
    """A trap that this command can show has no sentence without its Japanese."""
    for text in (trap.title, trap.expected, trap.costs):
        assert text in japanese.WORDS


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_is_told_in_both_languages(kind: Kind) -> None:
    assert sentence("en", kind) == MEANINGS[kind].sentence
    assert advice("en", kind) == MEANINGS[kind].advice
    assert (sentence("ja", kind), advice("ja", kind)) == japanese.KINDS[kind]
    assert all(text and not left(text) and not text.endswith("。") for text in japanese.KINDS[kind])


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_key_is_blamed_where_none_is_sent(language: Language) -> None:
    assert (
        advice(language, Kind.AUTH, "http") == phrase(language, "advice.no-key") != advice(language, Kind.AUTH, "api")
    )
