"""From the options of ``advisory-preview`` to the recalls that are shown: who asks, and how each call ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cpersona_cli.advisory.model import Event
from cpersona_cli.advisory.phrases import phrase
from cpersona_cli.advisory.texts import Language
from cpersona_cli.commands.errors import UsageError
from cpersona_cli.embedding.examples import REPLAYABLE, example
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.record import record, replace
from cpersona_cli.text import nearest, safe

#: Recalls that are shown unless asked otherwise: a first failure, the whole text, the reminder.
RECALLS = 3
MOST_RECALLS, LONGEST_KEY = 1000, 256

#: The address of a call that is made up where none is configured.
REFERENCE = "http://127.0.0.1:8401/embed"


#: Makes an error of a name of ``phrases``.
Refusal = Callable[..., UsageError]


@record(kw_only=True)
class Step:
    """One recall as it was asked for. ``kind`` is None for a real call; ``word`` is set for ``recall``, ``check``."""

    key: str = ""
    word: str = ""
    kind: Kind | None = None


def steps(
    *,
    replay: str | None,
    sequence: str | None,
    recalls: int | None,
    keys: Sequence[str],
    live: bool,
    language: Language = "en",
) -> tuple[Step, ...]:
    """The recalls in their order; callers with ``keys`` take turns. Raises ``UsageError``."""

    def no(name: str, **fields: object) -> UsageError:
        return UsageError(phrase(language, f"usage.{name}", **fields), language)

    if live and (replay is not None or sequence is not None):
        raise no("live", option="--replay" if replay is not None else "--sequence")
    if sequence is not None and recalls is not None:
        raise no("counted")
    if recalls is not None and not 1 <= recalls <= MOST_RECALLS:
        raise no("recalls", most=MOST_RECALLS, given=recalls)
    failing = None if replay is None else _kind(replay, "--replay", no)
    too_long = [len(key) for key in keys if len(key) > LONGEST_KEY]
    if too_long:
        raise no("key", most=LONGEST_KEY, given=too_long[0])
    if sequence is None:
        count = recalls or RECALLS
        return tuple(Step(key=_turn(keys, number), kind=failing) for number in range(count))
    words = [word.strip() for word in sequence.split(",")]
    if len(words) > MOST_RECALLS:
        raise no("words", most=MOST_RECALLS, given=len(words))
    made = tuple(_step(word, _turn(keys, number), failing, no) for number, word in enumerate(words))
    kinds = {step.kind for step in made if step.word != "recall"}
    if Kind.DISABLED in kinds and len(kinds) > 1:
        raise no("none")
    return made


def _turn(keys: Sequence[str], number: int) -> str:
    return keys[number % len(keys)] if keys else ""


def _step(text: str, key: str, failing: Kind | None, no: Refusal) -> Step:
    word, colon, own = text.partition(":")
    caller = own if colon else key
    if len(caller) > LONGEST_KEY:
        raise no("key", most=LONGEST_KEY, given=len(caller))
    if word in {"recall", "check"}:
        return Step(key=caller, word=word, kind=failing or Kind.REFUSED)
    return Step(key=caller, kind=(failing or Kind.REFUSED) if word == "fail" else _kind(word, "--sequence", no))


def _kind(word: str, option: str, no: Refusal) -> Kind:
    name = word.strip().lower().replace("-", "_")
    if name == "none":
        return Kind.DISABLED
    if name in {*REPLAYABLE}:
        return Kind(name)
    others = ["fail", "recall", "check"] if option == "--sequence" else []
    near = nearest(name, ["none", *REPLAYABLE, *others], 3) if name else None
    known = ", ".join([*others, *REPLAYABLE])
    raise no("meant" if near else "kind", option=option, word=safe(repr(word), 60), near=near, known=known)


def overrides(made: Sequence[Step], mode: str) -> dict[str, str]:
    """Settings that a replay has to replace, because with the configured ones no such call would be made."""
    kinds = {step.kind for step in made if step.kind is not None and not step.word}
    if kinds == {Kind.DISABLED}:
        return {} if mode == Mode.NONE else {"CPERSONA_EMBEDDING_MODE": "none"}
    if kinds and mode not in {Mode.HTTP, Mode.API}:
        return {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": REFERENCE}
    return {}


def events(made: Sequence[Step], endpoint: Endpoint) -> tuple[Event, ...]:
    """The same as the child is asked; a made-up failure carries what the server would record of this endpoint."""
    return tuple(_event(step, endpoint) for step in made)


def _event(step: Step, endpoint: Endpoint) -> Event:
    if step.word == "recall":
        return Event(word="idle", key=step.key)
    if step.kind is None:
        return Event(word="measure", key=step.key)
    if step.kind is Kind.DISABLED:
        return Event(word="idle", key=step.key, kind=step.kind)
    called = endpoint if endpoint.mode in {Mode.HTTP, Mode.API} else replace(endpoint, mode=Mode.HTTP, url=REFERENCE)
    typical = example(step.kind, called)
    return Event(
        word="check" if step.word == "check" else "call",
        key=step.key,
        kind=step.kind,
        ok=typical.ok,
        error=typical.recorded,
        probe=typical.probe,
        attempted=typical.attempted,
    )
