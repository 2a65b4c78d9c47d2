"""Every registration's server asked at the same time, and beside it our own call and its stored vectors."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from cpersona_cli.advisory import unsaid as unsaying
from cpersona_cli.advisory.child import Command, ask
from cpersona_cli.advisory.model import Call, Event, Preview
from cpersona_cli.advisory.own import Rule
from cpersona_cli.advisory.phrases import phrase, sentence, word
from cpersona_cli.advisory.texts import Language
from cpersona_cli.commands.scenario import Step, events, overrides
from cpersona_cli.embedding.endpoints import MODE, configured
from cpersona_cli.embedding.kinds import MEANINGS, Kind, Stage
from cpersona_cli.embedding.measured import Measured, Plan
from cpersona_cli.embedding.model import Endpoint, Mode, ServerView
from cpersona_cli.fit.model import Fit, State
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import LaunchKind, Place, Value
from cpersona_cli.install.proxies import is_loopback
from cpersona_cli.install.release.interpreter import named_like_python
from cpersona_cli.install.settings.effective import effective
from cpersona_cli.install.settings.refusals import refusals
from cpersona_cli.record import record, replace
from cpersona_cli.start.process import ClosedError, Family
from cpersona_cli.store.model import StoreError
from cpersona_cli.store.reading import Reading
from cpersona_cli.store.reading import State as Readable
from cpersona_cli.traps.advisory import SWITCH
from cpersona_cli.traps.concurrent import concurrently
from cpersona_cli.traps.endpoint import UNDECIDED
from cpersona_cli.traps.live import SAMPLES
from cpersona_cli.traps.model import Facts, Target

_TRANSPORT = "CPERSONA_TRANSPORT"
#: Settings that decide whether a server of the registration's own transport starts, and say nothing of another one.
_OF_TRANSPORT = frozenset({_TRANSPORT, "CPERSONA_AUTH_TOKEN", "CPERSONA_HTTP_PORT", "CPERSONA_HTTP_HOST"})
#: Seconds that are kept for what follows the calls, after which a late answer is given up, and that a look always gets.
_REST, _GRACE, _LEAST = 1.0, 5.0, 0.5


@record(kw_only=True)
class Asked:
    """One registration: what its server says, and what we know beside it.

    ``label`` is its own, with its place where others are called the same.
    ``kind`` and ``recorded`` are of our own call: how it ended, and whether the server would take it for a success.
    ``why`` says why the stored vectors were not compared; ``undecided`` are reasons for having no verdict.
    """

    target: Target
    endpoint: Endpoint
    preview: Preview
    label: str = ""
    events: tuple[Event, ...] = ()
    mode: str = ""
    transport: str = "stdio"
    enabled: bool = True
    kind: Kind | None = None
    recorded: bool | None = None
    fit: Fit | None = None
    measured: Measured | None = None
    why: str = ""
    notes: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()

    @property
    def secrets(self) -> tuple[str, ...]:
        """Whatever the server's words might carry."""
        settings = self.target.settings.values.values()
        own = tuple(str(found.value) for found in settings if found.setting.secret and found.value)
        return tuple(dict.fromkeys((*self.endpoint.secrets, *own)))


def ask_all(
    targets: Sequence[Target],
    facts: Facts,
    made: Sequence[Step],
    *,
    transport: str | None,
    language: Language,
    end: float,
    machine: Machine,
) -> tuple[list[Asked], list[str]]:
    """Every registration asked until ``end`` (monotonic); and a sentence for each that could not be.

    Whatever happens, also an interruption, no process is left.
    """
    near = [target for target in targets if not _elsewhere(target)]
    readings = {id(target): database.reading for database in facts.databases for target in database.targets}
    family = Family()

    alike = Counter(target.registration.label for target in targets)

    def label(target: Target) -> str:
        name = word(language, target.registration.label)
        return name if alike[target.registration.label] == 1 else f"{name}, {target.registration.place}"

    def one(target: Target) -> Asked:
        work = _One(target, made, transport=transport, language=language, machine=machine, end=end)
        return replace(work.asked(family, readings.get(id(target))), label=label(target))

    try:
        late = phrase(language, "unsettled.late")
        asked, missed = concurrently(one, near, end + _GRACE, late=late)
    finally:
        family.close()
    reasons = [(target, phrase(language, "unsettled.far")) for target in targets if _elsewhere(target)]
    reasons += [
        (target, late if why == late else phrase(language, "unsettled.failed", why=why)) for target, why in missed
    ]
    return asked, [phrase(language, "unsettled.of", label=label(target), why=why) for target, why in reasons]


def _elsewhere(target: Target) -> bool:
    return target.registration.launch.kind in {LaunchKind.REMOTE, LaunchKind.PROXY}


def _fit(path: Path, endpoint: Endpoint | None, end: float) -> Fit:
    """The stored vectors, beside the endpoint if there is one to call. No stored text goes to another computer.

    Raises ``StoreError``.
    """
    from cpersona_cli.fit.measure import measure  # noqa: PLC0415 - only where there is a database
    from cpersona_cli.store.cpersona.store import CPersonaStore  # noqa: PLC0415

    return measure(
        CPersonaStore(path),
        endpoint,
        sample=SAMPLES,
        texts_allowed=endpoint is not None and is_loopback(endpoint.url),
        deadline=_deadline(end),
    )


def _call(endpoint: Endpoint, end: float) -> Measured:
    """The endpoint alone, where there are no vectors to put beside it."""
    from cpersona_cli.embedding.probe import probe  # noqa: PLC0415 - only without a database

    left = _deadline(end) - time.monotonic()
    timeout = min(endpoint.timeout, left) if endpoint.timeout > 0 else None
    (measured,) = probe([endpoint], Plan(timeout=timeout, light=True, experiments=0, budget=left / 2))
    return measured


def _deadline(end: float) -> float:
    return max(time.monotonic() + _LEAST, end - _REST)


class _One:
    """One registration on its way to an answer."""

    def __init__(
        self,
        target: Target,
        made: Sequence[Step],
        *,
        transport: str | None,
        language: Language,
        machine: Machine,
        end: float,
    ) -> None:
        self.made, self.language, self.machine, self.end = made, language, machine, end
        self.live = any(step.kind is None for step in made)
        written = str(target.settings[MODE].value)
        changed = {} if self.live else overrides(made, written)
        self.notes = tuple(phrase(language, "note.override", name=name, value=value) for name, value in changed.items())
        if transport is not None:
            changed[_TRANSPORT] = transport
        self.overridden = transport is not None
        self.target = _changed(target, changed, machine)
        self.endpoint = configured(self.target.settings, self.target.environment)
        setting = self.target.settings[_TRANSPORT]
        self.transport = "stdio" if setting.invalid else str(setting)
        self.events = events(made, self.endpoint)

    @property
    def how(self) -> Literal["live", "replay"]:
        return "live" if self.live else "replay"

    def asked(self, family: Family, reading: Reading | None) -> Asked:
        """Ask the server first; our own call comes after it, so that neither is in the other's way."""
        command, absent = self._command()
        preview = Preview(source="own", how=self.how, absent=absent)
        if command is not None:
            try:
                preview = ask(command, self.events, self.how, family, self.end, language=self.language)
            except ClosedError:
                preview = replace(preview, unfinished=phrase(self.language, "unfinished.closed"))
        preview = self._refused(preview)
        mode = preview.server.mode if preview.server is not None else self.endpoint.mode
        found = Asked(
            target=self.target,
            endpoint=self.endpoint,
            preview=preview,
            events=self.events,
            mode=mode,
            transport=self.transport,
            enabled=preview.server.enabled if preview.server is not None else bool(self.target.settings[SWITCH].value),
            notes=self.notes,
        )
        if not preview.refused:
            found = self._beside(found, reading)
        return self._own(found) if preview.absent and not preview.refused else found

    def _command(self) -> tuple[Command | None, str]:
        """How the server's own Python is run, or why it cannot be."""
        version, launch = self.target.version, self.target.registration.launch
        if launch.inside != "host":
            return None, phrase(self.language, f"absent.{launch.inside}")
        if version.interpreter is None or version.version is None:
            return None, phrase(self.language, "absent.install", why=version.program_problem or version.evidence)
        python, problem = version.interpreter.python, version.interpreter.problem
        if not self.machine.native or not named_like_python(python):
            name = "absent.python" if problem else "absent.other"
            return None, phrase(self.language, name, why=problem, python=python)
        env = {name: value.text for name, value in self.target.environment.values.items()}
        return Command(python=python, env=env, cwd=self.machine.home), ""

    def _refused(self, preview: Preview) -> Preview:
        """A server that does not start, by its own word or by its start-up checks that come after its import."""
        if preview.refused:
            return preview
        reasons = [
            phrase(self.language, "refused.settings", why=refusal.sentence, settings="、".join(refusal.settings))
            for refusal in refusals(self.target.settings, self.target.version.version)
            if not (self.overridden and _OF_TRANSPORT & set(refusal.settings))
        ]
        return replace(preview, refused=reasons[0], recalls=()) if reasons else preview

    def _beside(self, found: Asked, reading: Reading | None) -> Asked:
        """With our own call (none for a replay) and the stored vectors."""
        endpoint = self.endpoint if self.live and found.mode in {Mode.HTTP, Mode.API} else None
        measured: Measured | None = None
        view: ServerView | None = None
        kind: Kind | None = Kind.DISABLED if self.live and found.mode == Mode.NONE else None
        why, doubt = _unreadable(reading, self.language) if self.live else ("", False)
        if reading is not None and reading.state is Readable.OK and found.mode != Mode.NONE:
            try:
                fit = _fit(reading.path, endpoint, self.end)
            except StoreError as error:
                why, doubt = phrase(self.language, "why.store", why=error), True
            else:
                measured = fit.measured
                if fit.live is not None:
                    kind = fit.live.call
                found = replace(found, fit=fit, recorded=None if fit.live is None else fit.live.recorded)
        if endpoint is not None and kind is None:
            measured = _call(endpoint, self.end)
            kind = measured.outcome.kind
        if measured is not None:
            view = measured.outcome.server_view
            found = replace(found, recorded=view.ok)
        told = found.preview.state == "fault"
        unknown = found.fit is not None and found.fit.state is State.UNKNOWN and self.live and not told
        undecided = (why,) if doubt else ()
        if unknown and found.fit is not None and not doubt:
            undecided = (unsaying.doubt(found.fit, self.language),)
        return replace(
            found, measured=measured, kind=kind, why=why, undecided=undecided if found.mode != "none" else ()
        )

    def _own(self, found: Asked) -> Asked:
        """Our own words: by the server's rule, with our own call as what its recalls would have measured."""
        made = self.events
        undecided = found.undecided
        if self.live and found.mode in {Mode.HTTP, Mode.API}:
            view = found.measured.outcome.server_view if found.measured is not None else None
            call = _as_call(view, found)
            made = tuple(replace(e, word="call", ok=call.ok, error=call.error, attempted=call.attempted) for e in made)
            undecided = self._undecided(found) or (undecided if call.ok else ())
        rule = Rule(
            mode=found.mode,
            shared=self.transport == "streamable-http",
            enabled=found.enabled,
            language=self.language,
        )
        preview = replace(found.preview, source="own", recalls=rule.recalls(made))
        return replace(found, preview=preview, undecided=undecided)

    def _undecided(self, found: Asked) -> tuple[str, ...]:
        if found.kind is None:
            return ()
        if self.target.registration.launch.inside != "host" and MEANINGS[found.kind].stage is Stage.NETWORK:
            return (phrase(self.language, "unsettled.network", sentence=sentence(self.language, found.kind)),)
        if found.kind in UNDECIDED:
            return (sentence(self.language, found.kind),)
        return ()


def _as_call(view: ServerView | None, found: Asked) -> Call:
    """Our own call as the server would have recorded it."""
    if view is not None:
        return Call(attempted=view.attempted, ok=view.ok, error=view.error or view.crash or None)
    error = found.fit.live.error if found.fit is not None and found.fit.live is not None else ""
    return Call(attempted=True, ok=False, error=error or None)


def _unreadable(reading: Reading | None, language: Language) -> tuple[str, bool]:
    """Why there are no stored vectors to look at, and whether that leaves a doubt."""
    if reading is None:
        return phrase(language, "why.none"), False
    if reading.state is Readable.OK:
        return "", False
    if reading.state in {Readable.MISSING, Readable.NO_FOLDER}:
        return phrase(language, "why.absent"), False
    return phrase(language, "why.unreadable", state=reading.state), True


def _changed(target: Target, changed: Mapping[str, str], machine: Machine) -> Target:
    """The registration as if these variables stood in its environment, and their aliases did not."""
    if not changed:
        return target
    place = Place(words="an option of this command")
    values = {
        **{name: value for name, value in target.environment.values.items() if name not in _aliases(target, changed)},
        **{name: Value(text=text, place=place, origin="option") for name, text in changed.items()},
    }
    environment = replace(target.environment, values=values)
    settings = effective(environment, target.version.version, system=machine.system)
    return replace(target, environment=environment, settings=settings)


def _aliases(target: Target, changed: Mapping[str, str]) -> set[str]:
    return {alias for name in changed if name in target.settings for alias in target.settings[name].setting.names}
