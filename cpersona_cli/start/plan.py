"""From a registration to the process to start in its place, or the reason why none is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cpersona_cli.install.clients.table import IN_TERMINAL
from cpersona_cli.install.environment import folder
from cpersona_cli.install.expand import context, expand
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Environment, LaunchKind, Registration, ServerVersion
from cpersona_cli.install.release import locate, programs
from cpersona_cli.install.settings.effective import Settings
from cpersona_cli.install.settings.table import BY_NAME, is_secret
from cpersona_cli.record import record
from cpersona_cli.start.transparent import Reader, objection

#: Where the scratch database of a start lies in its folder.
DATABASE = "memory.db"
#: Settings with which a server reaches what is the user's, and what they are for a start (``{}``: the scratch folder).
#: A remote index would keep the test's memory; the check for updates would write into the home.
_REPLACED = {
    "CPERSONA_DB_PATH": f"{{}}/{DATABASE}",
    "CPERSONA_ALIAS_LEDGER_FILE": "{}/alias_ledger.json",
    "CPERSONA_EXPORT_DIR": "{}",
    "CPERSONA_UPDATE_CHECK": "false",
    "CPERSONA_VECTOR_SEARCH_MODE": "local",
}
_PROMPT = "${input:"
_SHORTEST = 4  # characters from which a value can be looked for


@record(kw_only=True)
class Candidate:
    """A registration as its client would start it, under the usual assumption about the inherited environment."""

    registration: Registration
    environment: Environment
    settings: Settings
    version: ServerVersion


@record(kw_only=True)
class Plan:
    """The process to start. ``download``: a program in it may have to fetch a release first.

    ``absent`` says why the program cannot be started at all, as the client would find.
    """

    command: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    database: Path
    download: bool
    replaced: tuple[str, ...]
    secrets: tuple[str, ...]
    absent: str = ""


def over_stdio(registration: Registration) -> bool:
    """Whether a client starts a process for it at all."""
    return registration.transport == "stdio" and bool(
        registration.command or registration.launch.kind is LaunchKind.PROCESS
    )


def kept() -> frozenset[str]:
    """Every name that has to reach the server as a start sets it."""
    return frozenset(name for setting in _REPLACED for name in (setting, *_names(setting)))


def _names(setting: str) -> tuple[str, ...]:
    return BY_NAME[setting].names if setting in BY_NAME else ()


def plan(candidate: Candidate, machine: Machine, scratch: Path) -> Plan | str:
    """What to start, with ``scratch`` in the place of everything that is the user's; or why not, as a sentence."""
    registration, settings = candidate.registration, candidate.settings
    refusal = _elsewhere(registration, machine) or _settings(candidate)
    if refusal:
        return refusal
    values = candidate.environment.values
    words, unresolved = _words(candidate, machine)
    if unresolved:
        return unresolved
    cwd = _cwd(registration, machine)
    reader = Reader(
        machine=machine,
        cwd=cwd,
        find=lambda word: programs.find(word, registration, candidate.environment, machine),
        kept=kept(),
        prelude="BASH_ENV" in values,
    )
    refusal = objection(words, reader)
    if refusal:
        return refusal
    first = reader.find(words[0])
    return Plan(
        command=(str(first.path or words[0]), *words[1:]),
        env={**{name: value.text for name, value in values.items()}, **_given(scratch)},
        cwd=cwd,
        database=scratch / DATABASE,
        download=registration.launch.kind in {LaunchKind.UVX, LaunchKind.PIPX},
        replaced=tuple(name for name in _REPLACED if settings[name].given and name != "CPERSONA_UPDATE_CHECK"),
        secrets=_secrets(candidate),
        absent="" if first.path else first.problem or f"{words[0]} was not found",
    )


def _given(scratch: Path) -> dict[str, str]:
    return {name: text.format(scratch) for setting, text in _REPLACED.items() for name in (setting, *_names(setting))}


def _elsewhere(registration: Registration, machine: Machine) -> str:
    launch = registration.launch
    if not locate.readable(machine):
        return "its paths are those of another system than this one"
    if launch.inside == "container":
        return "it runs in a container, whose database cannot be replaced from outside"
    if launch.inside == "wsl":
        return "it runs in WSL, where no scratch folder was made"
    if launch.kind in {LaunchKind.REMOTE, LaunchKind.PROXY}:
        return "it connects to a server elsewhere, which would keep what is stored"
    if registration.torn:
        return f"{registration.place.file} breaks off, so that parts of the entry may be missing"
    carried = sorted({v.name for v in launch.variables} & kept())
    if carried:
        return f"{carried[0]} stands on its command line, where it cannot be replaced"
    if launch.kind is not LaunchKind.UNKNOWN and launch.package == "cembedding":
        return "it starts an embedding server"
    return ""


def _settings(candidate: Candidate) -> str:
    transport = candidate.settings["CPERSONA_TRANSPORT"]
    if transport.value == "streamable-http" and not transport.invalid:
        return f"it would listen on a port ({transport.place}) and not answer on stdout"
    for name, value in candidate.environment.values.items():
        if value.unresolved and _PROMPT in (value.raw or value.text):
            return f"its client asks the user for {name}"
    return ""


def _words(candidate: Candidate, machine: Machine) -> tuple[list[str], str]:
    """The command line as the client would make it, and why it cannot be told."""
    registration, version = candidate.registration, candidate.version
    if registration.launch.kind is LaunchKind.PROCESS:
        if version.program is not None:
            return [str(version.program)], ""
        if version.interpreter is not None and version.version is not None:
            return [str(version.interpreter.python), "-m", "cpersona"], ""
        return [], version.program_problem or version.evidence
    values = candidate.environment.values
    reader = context(registration, machine, lambda name: values[name].text if name in values else None)
    command, unresolved = expand(registration.command, reader)
    if unresolved:
        return [], unresolved
    arguments = [expand(word, reader) for word in registration.args]
    asked = next((why for text, why in arguments if why and _PROMPT in text), "")
    return [command, *(text for text, _ in arguments)], asked


def _cwd(registration: Registration, machine: Machine) -> Path:
    """Where the client starts it; where that is not fixed, where a person would have started the client."""
    return folder(registration, machine) or (machine.cwd if registration.client in IN_TERMINAL else machine.home)


def _secrets(candidate: Candidate) -> tuple[str, ...]:
    """Values that must not be quoted from what the server writes."""
    found = {value.text for name, value in candidate.environment.values.items() if is_secret(name)}
    found |= {
        str(setting.value) for setting in candidate.settings.values.values() if setting.setting.secret and setting.value
    }
    return tuple(sorted(text for text in found if len(text) >= _SHORTEST))
