"""From what was measured at an endpoint to findings: what is wrong, what it costs, and the setting to change."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cpersona_cli.embedding.endpoints import API_URL, KEY, MODE, MODEL, TIMEOUT, URL
from cpersona_cli.embedding.kinds import MEANINGS, Kind, Stage
from cpersona_cli.embedding.model import Mode
from cpersona_cli.install.model import Place
from cpersona_cli.install.proxies import is_loopback
from cpersona_cli.record import record
from cpersona_cli.store.reading import Reading, State
from cpersona_cli.text import bare_url, plural
from cpersona_cli.traps.endpoint_remarks import REMARKS
from cpersona_cli.traps.model import Finding, Repair, Severity, Target
from cpersona_cli.traps.repairs import set_variable, set_variables

if TYPE_CHECKING:
    from cpersona_cli.embedding.measured import Measured, Solution

#: Ends of a call that are no verdict: the endpoint may be fine, and that could not be found out.
UNDECIDED = frozenset({Kind.LOADING, Kind.TIMEOUT, Kind.THROTTLED, Kind.INTERNAL})

#: The port of the reference embedding server.
_REFERENCE_PORT, _OLLAMA_PORT = 8401, 11434

_COSTS = "no memory gets a vector: memories are found only by shared words, and CPersona calls it “unreachable”"
_COSTS_SILENT = "CPersona takes the endpoint for healthy, and its searches by meaning return nothing or anything"

_MODEL_KINDS = frozenset({
    Kind.MODEL_NOT_FOUND, Kind.NOT_AN_EMBEDDING_MODEL, Kind.NO_MODEL_LOADED, Kind.NULL_VECTOR, Kind.ZERO_VECTOR,
    Kind.CONSTANT_VECTOR, Kind.BAD_VALUES, Kind.RAGGED,
})  # fmt: skip
_KEY_KINDS = frozenset({Kind.AUTH, Kind.QUOTA, Kind.CONFIG_CREDENTIAL})


@record(kw_only=True)
class Subject:
    """One endpoint as it was measured, for whom, and the database its vectors are meant for.

    ``label`` names the registrations that use it, or the option it came from; ``target`` is the first of them.
    ``rebuild`` is the command that makes the vectors of that database anew with this endpoint.
    """

    label: str
    measured: Measured
    target: Target | None = None
    reading: Reading | None = None
    rebuild: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        return self.measured.outcome.kind

    @property
    def outside(self) -> bool:
        """Whether the server stands on another network than this command, so that what is not reached may be."""
        base = "" if self.target is None else self.target.environment.base
        return base in {"container", "wsl"} and MEANINGS[self.kind].stage is Stage.NETWORK


def trap_id(name: str) -> str:
    """``endpoint.model-not-found`` for a kind or a remark."""
    return f"endpoint.{name.replace('_', '-')}"


def findings(subject: Subject) -> Iterator[Finding]:
    """What is wrong, the decisive thing first."""
    kind, found = subject.kind, subject.measured
    if MEANINGS[kind].fatal and kind not in UNDECIDED | {Kind.DISABLED} and not subject.outside:
        yield _decisive(subject)
    for remark in found.remarks:
        advice = REMARKS[remark.name]
        name = _setting(subject, None, advice.setting or URL)
        prose = _at(subject, name, advice.repair) if advice.setting else advice.repair
        value = dict(remark.evidence).get("write", advice.value)
        stored = _stored(subject, remark.name)
        yield Finding(
            trap=trap_id(remark.name),
            severity=Severity.FAULT if remark.fatal else Severity.WARNING if stored else advice.severity,
            subject=subject.label,
            about=name,
            place=_place(subject, name),
            measured=f"{remark.measured}{stored}",
            expected=advice.expected,
            costs=advice.costs,
            repair=_set(subject, {name: value}) if value else Repair(prose=prose),
            evidence=remark.evidence,
        )
    yield from _widths(subject)
    yield from _samples(subject)
    yield from _another_model(subject)


def unsettled(subject: Subject) -> Iterator[str]:
    """Why there is no verdict on this endpoint; nothing where there is one."""
    found, kind = subject.measured, subject.kind
    if subject.outside:
        inside = "a container" if subject.target and subject.target.environment.base == "container" else "WSL"
        yield (
            f"{subject.label}: its server runs in {inside}, on another network than this command, and from here "
            f"{_where(subject)} cannot be judged: {MEANINGS[kind].sentence}"
        )
        return
    if kind in UNDECIDED:
        yield f"{subject.label}: {_sentence(subject)}; {_WAIT[kind]} ({trap_id(kind)})"
        return
    for step in found.steps:
        if step.state == "unknown":
            yield f"{subject.label}: {step.name} could not be measured: {step.detail}"


_WAIT: Mapping[Kind, str] = {
    Kind.LOADING: "wait until the model is loaded: --wait 120",
    Kind.TIMEOUT: "that is slow and not “down”: a first call may have to load a model: --wait 180",
    Kind.THROTTLED: "wait and try again: --wait 60",
    Kind.INTERNAL: "please report it",
}


def _decisive(subject: Subject) -> Finding:
    name = _setting(subject, subject.kind)
    outcome = subject.measured.outcome
    evidence = (
        *outcome.evidence,
        *((f"tried {made.changed}", f"{made.kind}") for made in subject.measured.refinement.experiments),
    )
    return Finding(
        trap=trap_id(subject.kind),
        # readable by other clients, and a setting of a proxy away from working
        severity=Severity.WARNING if subject.kind is Kind.BASE64 else Severity.FAULT,
        subject=subject.label,
        about=name,
        place=_place(subject, name),
        measured=_sentence(subject),
        expected="vectors in the contract of this mode, finite, different for different texts",
        costs=_COSTS_SILENT if outcome.server_view.ok else _COSTS,
        repair=_repair(subject, name),
        evidence=evidence,
    )


def _sentence(subject: Subject) -> str:
    """What happened, where, and what the server itself said of it."""
    found, outcome = subject.measured, subject.measured.outcome
    parts = [MEANINGS[outcome.kind].sentence]
    if outcome.attempted:
        status = f" is answered with {outcome.status}" if outcome.status else ""
        parts.append(f"POST {_where(subject)} in mode {found.endpoint.mode}{status}")
    shown = dict(outcome.evidence)
    detail = shown.get("objection") or shown.get("detail") or shown.get("looks like")
    parts += [detail] if detail else []
    parts += [f"“{outcome.server_message}”"] if outcome.server_message else []
    parts += [f"by way of the proxy {outcome.via_proxy}"] if outcome.via_proxy else []
    return ", ".join([": ".join(parts[:2]), *parts[2:]])


def _where(subject: Subject) -> str:
    return bare_url(subject.measured.endpoint.url) or "(no URL)"


def _repair(subject: Subject, name: str) -> Repair:
    refinement, outcome = subject.measured.refinement, subject.measured.outcome
    if refinement.solution is not None:
        return _solve(subject, refinement.solution)
    suggestion = dict(outcome.evidence).get("suggestion", "")
    if subject.kind is Kind.CONFIG_URL and suggestion:
        return _set(subject, {name: suggestion})
    special = _SPECIAL.get(subject.kind)
    if special is not None:
        return special(subject, name)
    prose = _at(subject, name, MEANINGS[subject.kind].advice)
    return Repair(prose=f"{prose}; {refinement.remark}" if refinement.remark else prose, place=_place(subject, name))


def _solve(subject: Subject, solution: Solution) -> Repair:
    """The settings with which a real call was answered."""
    endpoint = subject.measured.endpoint
    if solution.no_proxy and (solution.mode, solution.url) == (endpoint.mode, endpoint.url):
        hosts = "localhost,127.0.0.1,::1" if is_loopback(endpoint.url) else solution.no_proxy
        return _set(subject, {"NO_PROXY": hosts}, "without the proxy the call was answered; ")
    if solution.trim_key:
        prose = "the key was accepted without the white space around it: write it so"
        return Repair(prose=_at(subject, KEY, prose), place=_place(subject, KEY))
    values = {} if solution.mode == endpoint.mode else {MODE: solution.mode}
    if solution.mode != endpoint.mode or solution.url != endpoint.url:
        values[API_URL if solution.mode == Mode.API else URL] = bare_url(solution.url)
    if solution.model:
        values[MODEL] = solution.model
    if solution.key and not _given(subject, KEY):
        values[KEY] = "any-text"
    kept = "" if bare_url(solution.url) == solution.url else "keep the user name and what follows “?” as they are; "
    return _set(subject, values, f"a call with these settings was answered; {kept}")


def _set(subject: Subject, values: Mapping[str, str], why: str = "") -> Repair:
    """Write ``values`` where this registration keeps its settings; each replaces its own line where there is one."""
    target = subject.target
    if target is None:
        lines = tuple(f"{name}={value}" for name, value in values.items())
        return Repair(prose=f"{why}set for the server", edit="\n".join(lines))
    if len(values) == 1:
        (name, value), *_ = values.items()
        setting = target.settings.values.get(name)
        at = setting.place if setting is not None and setting.text is not None else None
        repair = set_variable(target.registration, name, value, at=at)
    else:
        repair = set_variables(target.registration, values)
    return Repair(prose=f"{why}{repair.prose}", commands=repair.commands, edit=repair.edit, place=repair.place)


def _given(subject: Subject, name: str) -> bool:
    """Whether the registration sets ``name`` to anything."""
    return subject.target is not None and subject.target.settings[name].given


def _auth(subject: Subject, name: str) -> Repair:
    endpoint = subject.measured.endpoint
    if endpoint.mode == Mode.HTTP:
        prose = (
            "CPersona sends no key in mode http, whatever CPERSONA_EMBEDDING_API_KEY says: turn the token of the "
            "embedding server off and let it listen on this computer only, or put a proxy before it that adds the token"
        )
        return Repair(prose=prose)
    sent = f"a key of {plural(len(endpoint.key), 'character')} was sent" if endpoint.key else "no key was sent"
    return Repair(prose=_at(subject, name, f"{sent}: correct it"), place=_place(subject, name))


def _model(subject: Subject, name: str) -> Repair:
    model = subject.measured.endpoint.model
    listed = next(
        (made.message for made in subject.measured.refinement.experiments if "list of models" in made.changed), ""
    )
    known = f"; the server has {listed}" if listed and listed != "no list" else ""
    prose = _at(subject, name, f"fetch the model “{model}”, or name one the server has{known}")
    message = subject.measured.outcome.server_message
    ollama = _port(subject) == _OLLAMA_PORT or "pulling it" in message
    commands = (f"ollama pull {shlex.quote(model)}",) if ollama and model else ()
    return Repair(prose=prose, commands=commands, place=_place(subject, name))


def _down(subject: Subject, name: str) -> Repair:
    if _port(subject) == _REFERENCE_PORT:
        prose = "start CEmbedding and keep its stdin open: it ends, without an error, as soon as its stdin is closed"
        return Repair(prose=prose, commands=("sleep infinity | cembedding",))
    prose = f"start the embedding server that should listen at {_where(subject)}, or"
    return Repair(prose=_at(subject, name, f"{prose} correct the address"), place=_place(subject, name))


def _disabled(_subject: Subject, _name: str) -> Repair:
    return Repair(
        prose="start the embedding server with embeddings on; a chat model then also needs a pooling type",
        commands=("llama-server --embeddings --pooling mean -m MODEL.gguf",),
    )


def _unloaded(subject: Subject, name: str) -> Repair:
    prose = "load a model in the server; one that it lists as a chat model does not count, whatever it is called"
    return Repair(prose=_at(subject, name, prose), place=_place(subject, name))


_SPECIAL = {
    Kind.AUTH: _auth,
    Kind.MODEL_NOT_FOUND: _model,
    Kind.REFUSED: _down,
    Kind.EMBEDDINGS_DISABLED: _disabled,
    Kind.NO_MODEL_LOADED: _unloaded,
}


def _port(subject: Subject) -> int | None:
    try:
        return urlsplit(subject.measured.endpoint.url).port
    except ValueError:
        return None


def _setting(subject: Subject, kind: Kind | None, meant: str = "") -> str:
    """The variable that decides over ``kind``, or the one that is ``meant``."""
    url = API_URL if subject.measured.endpoint.mode == Mode.API else URL
    if meant:
        return url if meant == URL else meant
    if kind is Kind.CONFIG_MODE:
        return MODE
    if kind is Kind.CONFIG_CLIENT and subject.measured.endpoint.timeout <= 0:
        return TIMEOUT
    if kind in _KEY_KINDS:
        return KEY
    return MODEL if kind in _MODEL_KINDS and url == API_URL else url


def _place(subject: Subject, name: str) -> Place | None:
    """Where the setting stands, or where the registration does."""
    if subject.target is None:
        return None
    setting = subject.target.settings.values.get(name)
    if setting is None or setting.text is None:
        return subject.target.registration.env_place or subject.target.registration.place
    return setting.place


def _at(subject: Subject, name: str, prose: str) -> str:
    """``prose`` with the setting it is about, and where that stands."""
    place = _place(subject, name)
    setting = None if subject.target is None else subject.target.settings.values.get(name)
    if place is None:
        return f"{prose} ({name})"
    if setting is None or setting.text is None:
        return f"{prose} ({name}, not set in {place})"
    return f"{prose} ({name} in {place})"


def _readable(subject: Subject) -> Reading | None:
    reading = subject.reading
    return reading if reading is not None and reading.state is State.OK else None


def _stored(subject: Subject, name: str) -> str:
    """How the longest stored memory compares with a window."""
    reading, window = _readable(subject), subject.measured.window
    if reading is None or window is None or name not in {"truncating", "window-too-small"}:
        return ""
    if reading.longest_content <= window.characters:
        return ""
    return f"; the longest stored memory has {reading.longest_content} characters"


def _widths(subject: Subject) -> Iterator[Finding]:
    """The stored vectors and the endpoint's are of one width, or nothing that is stored can be compared."""
    reading, dim = _readable(subject), subject.measured.outcome.dim
    if reading is None or dim is None or not subject.measured.outcome.ok or not reading.widths or dim in reading.widths:
        return
    stored = ", ".join(
        f"{plural(rows, 'memory has', 'memories have')} {width}" for width, rows in reading.widths.items()
    )
    name = _setting(subject, None, URL)
    yield Finding(
        trap=trap_id(Kind.DIMENSION_MISMATCH),
        severity=Severity.FAULT,
        subject=subject.label,
        about=name,
        place=_place(subject, name),
        measured=f"the endpoint makes {dim} dimensions; in {reading.path} {stored}",
        expected="vectors as wide as the stored ones",
        costs="no stored memory is found any more, not even by its words, and CPersona says nothing",
        repair=_one_model(subject, name),
    )


def _one_model(subject: Subject, name: str) -> Repair:
    """Stored vectors and new ones of one model: the setting that decides it, or the command that rebuilds them."""
    prose = _at(subject, name, "put back the model that made the stored vectors")
    return Repair(prose=f"{prose}, or re-embed everything with this one", commands=subject.rebuild)


def _samples(subject: Subject) -> Iterator[Finding]:
    sampled = subject.measured.sampled
    if sampled is None or not sampled.failed:
        return
    kinds = {kind for _, kind in sampled.failed}
    nan = kinds <= {Kind.NAN_FOR_INPUT, Kind.BAD_VALUES, Kind.NULL_VECTOR}
    why = "; ".join(sorted(MEANINGS[kind].sentence for kind in kinds))
    yield Finding(
        trap=trap_id("nan-for-some-inputs" if nan else "some-texts-fail"),
        severity=Severity.WARNING,
        subject=subject.label,
        about="memories.content",
        measured=f"the endpoint is up, and {len(sampled.failed)} of {sampled.tried} stored texts fail: {why}; "
        f"memories {_listed([identifier for identifier, _ in sampled.failed])}",
        expected="a vector for every stored text",
        costs="these memories get no vector; a re-embedding stops or skips them",
        repair=Repair(
            prose="use another build or server of the model, or shorten these memories; --show-text shows them"
        ),
    )


def _another_model(subject: Subject) -> Iterator[Finding]:
    """The stored vectors are those that the endpoint makes, or it is another model of the same width."""
    sampled = subject.measured.sampled
    if sampled is None or not sampled.differing:
        return
    another = sampled.agreement is not None and sampled.agreement < sampled.thresholds.other
    name = _setting(subject, None, MODEL if subject.measured.endpoint.mode == Mode.API else URL)
    yield Finding(
        trap=trap_id(Kind.MODEL_MISMATCH),
        severity=Severity.FAULT if another else Severity.WARNING,
        subject=subject.label,
        about=name,
        place=_place(subject, name),
        measured=f"embedded again, {len(sampled.differing)} of {sampled.compared} stored texts get another vector "
        f"than the stored one (median cosine {sampled.agreement:.2f}): memories {_listed(sampled.differing)}",
        expected="the same vectors as the stored ones",
        costs="vectors of two models are compared as if they were of one: searches by meaning return anything",
        repair=_one_model(subject, name),
    )


def _listed(identifiers: Sequence[str]) -> str:
    more = f" and {len(identifiers) - 20} more" if len(identifiers) > 20 else ""
    return f"{', '.join(identifiers[:20])}{more}"
