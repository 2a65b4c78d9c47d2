"""What to change where an endpoint is not as it should be: the setting, its place in a file, and a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cpersona_cli.embedding.endpoints import API_URL, KEY, MODE, MODEL, TIMEOUT, URL
from cpersona_cli.embedding.kinds import MEANINGS, Kind
from cpersona_cli.embedding.model import Mode
from cpersona_cli.install.model import Place
from cpersona_cli.install.proxies import is_loopback
from cpersona_cli.text import bare_url, plural, quoted
from cpersona_cli.traps.model import Repair, Subject
from cpersona_cli.traps.repairs import set_variable, set_variables

if TYPE_CHECKING:
    from cpersona_cli.embedding.measured import Solution

#: The port of the reference embedding server.
_REFERENCE_PORT, _OLLAMA_PORT = 8401, 11434

_MODEL_KINDS = frozenset({
    Kind.MODEL_NOT_FOUND, Kind.NOT_AN_EMBEDDING_MODEL, Kind.NO_MODEL_LOADED, Kind.NULL_VECTOR, Kind.ZERO_VECTOR,
    Kind.CONSTANT_VECTOR, Kind.BAD_VALUES, Kind.RAGGED,
})  # fmt: skip
_KEY_KINDS = frozenset({Kind.AUTH, Kind.QUOTA, Kind.CONFIG_CREDENTIAL})


def repair_of(subject: Subject, name: str) -> Repair:
    """What to do about the end of the call that decides; ``name`` is the variable it is about."""
    refinement, outcome = subject.measured.refinement, subject.measured.outcome
    if refinement.solution is not None:
        return _solve(subject, refinement.solution)
    suggestion = dict(outcome.evidence).get("suggestion", "")
    if subject.kind is Kind.CONFIG_URL and suggestion:
        return set_for(subject, {name: suggestion})
    special = _SPECIAL.get(subject.kind)
    if special is not None:
        return special(subject, name)
    prose = with_place(subject, name, MEANINGS[subject.kind].advice)
    return Repair(prose=f"{prose}; {refinement.remark}" if refinement.remark else prose, place=place_of(subject, name))


def one_model(subject: Subject, name: str) -> Repair:
    """Stored vectors and new ones of one model: the setting that decides it, or the command that rebuilds them."""
    prose = with_place(subject, name, "put back the model that made the stored vectors")
    return Repair(prose=f"{prose}, or re-embed everything with this one", commands=subject.rebuild)


def _solve(subject: Subject, solution: Solution) -> Repair:
    """The settings with which a real call was answered."""
    endpoint = subject.measured.endpoint
    if solution.no_proxy and (solution.mode, solution.url) == (endpoint.mode, endpoint.url):
        hosts = "localhost,127.0.0.1,::1" if is_loopback(endpoint.url) else solution.no_proxy
        return set_for(subject, {"NO_PROXY": hosts}, "without the proxy the call was answered; ")
    if solution.trim_key:
        prose = "the key was accepted without the white space around it: write it so"
        return Repair(prose=with_place(subject, KEY, prose), place=place_of(subject, KEY))
    values = {} if solution.mode == endpoint.mode else {MODE: solution.mode}
    if solution.mode != endpoint.mode or solution.url != endpoint.url:
        values[API_URL if solution.mode == Mode.API else URL] = bare_url(solution.url)
    if solution.model:
        values[MODEL] = solution.model
    if solution.key and not _given(subject, KEY):
        values[KEY] = "any-text"
    kept = "" if bare_url(solution.url) == solution.url else "keep the user name and what follows “?” as they are; "
    return set_for(subject, values, f"a call with these settings was answered; {kept}")


def set_for(subject: Subject, values: Mapping[str, str], why: str = "") -> Repair:
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
    return Repair(prose=with_place(subject, name, f"{sent}: correct it"), place=place_of(subject, name))


def _model(subject: Subject, name: str) -> Repair:
    model = subject.measured.endpoint.model
    listed = next(
        (made.message for made in subject.measured.refinement.experiments if "list of models" in made.changed), ""
    )
    known = f"; the server has {listed}" if listed and listed != "no list" else ""
    prose = with_place(subject, name, f"fetch the model “{model}”, or name one the server has{known}")
    message = subject.measured.outcome.server_message
    ollama = _port(subject) == _OLLAMA_PORT or "pulling it" in message
    commands = (f"ollama pull {quoted(model)}",) if ollama and model else ()
    return Repair(prose=prose, commands=commands, place=place_of(subject, name))


def _down(subject: Subject, name: str) -> Repair:
    if _port(subject) == _REFERENCE_PORT:
        prose = "start CEmbedding and keep its stdin open: it ends, without an error, as soon as its stdin is closed"
        return Repair(prose=prose, commands=("sleep infinity | cembedding",))
    prose = f"start the embedding server that should listen at {address(subject)}, or"
    return Repair(prose=with_place(subject, name, f"{prose} correct the address"), place=place_of(subject, name))


def _disabled(_subject: Subject, _name: str) -> Repair:
    return Repair(
        prose="start the embedding server with embeddings on; a chat model then also needs a pooling type",
        commands=("llama-server --embeddings --pooling mean -m MODEL.gguf",),
    )


def _unloaded(subject: Subject, name: str) -> Repair:
    prose = "load a model in the server; one that it lists as a chat model does not count, whatever it is called"
    return Repair(prose=with_place(subject, name, prose), place=place_of(subject, name))


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


def setting_of(subject: Subject, kind: Kind | None, meant: str = "") -> str:
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


def place_of(subject: Subject, name: str) -> Place | None:
    """Where the setting stands, or where the registration does."""
    if subject.target is None:
        return None
    setting = subject.target.settings.values.get(name)
    if setting is None or setting.text is None:
        return subject.target.registration.env_place or subject.target.registration.place
    return setting.place


def with_place(subject: Subject, name: str, prose: str) -> str:
    """``prose`` with the setting it is about, and where that stands."""
    place = place_of(subject, name)
    setting = None if subject.target is None else subject.target.settings.values.get(name)
    if place is None:
        return f"{prose} ({name})"
    if setting is None or setting.text is None:
        return f"{prose} ({name}, not set in {place})"
    return f"{prose} ({name} in {place})"


def address(subject: Subject) -> str:
    """The URL as it may be shown."""
    return bare_url(subject.measured.endpoint.url) or "(no URL)"
