"""The environment a registered server would be started with, each value with the place it came from.

Layers, later ones winning: what the client hands on from its own environment, the client's own settings, the entry's
environment file, the entry's env block, and what the command line adds. A server in a container or behind ``wsl.exe``
sees only what is handed over explicitly. Rules per client: ``install/clients/table.py``, column ``base``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from cpersona_cli.install.clients.table import CLIENTS, IN_TERMINAL
from cpersona_cli.install.expand import COMMAND_RULES, Context, Lookup, context, expand
from cpersona_cli.install.files import envfile
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Environment, LaunchKind, Place, Registration, Value, Variable
from cpersona_cli.install.release import locate
from cpersona_cli.record import replace

Base = Literal["whitelist", "shell", "none", "process"]

#: What the MCP library hands on by default (``mcp/client/stdio``).
SDK_POSIX = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
SDK_WINDOWS = (
    "APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE",
    "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE",
)  # fmt: skip
#: What Codex hands on by default (codex-rs, ``mcp_client``).
CODEX_POSIX = ("HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ")
CODEX_WINDOWS = (
    "PATH", "PATHEXT", "COMSPEC", "SYSTEMROOT", "SYSTEMDRIVE", "USERNAME", "USERDOMAIN", "USERPROFILE", "HOMEDRIVE",
    "HOMEPATH", "PROGRAMFILES", "PROGRAMDATA", "LOCALAPPDATA", "APPDATA", "TEMP", "TMP", "SHELL",
)  # fmt: skip
#: What every process of a desktop session has, whoever started it.
SESSION = (
    "HOME", "LOGNAME", "SHELL", "USER", "LANG", "TMPDIR", "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA",
    "PATHEXT", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE",
)  # fmt: skip
#: What the published image sets (its Dockerfile).
IMAGE_DEFAULTS = {
    "CPERSONA_DB_PATH": "/data/cpersona.db",
    "CPERSONA_TRANSPORT": "streamable-http",
    "CPERSONA_HTTP_HOST": "0.0.0.0",  # noqa: S104 - a fact about the image, nothing is bound here
    "CPERSONA_HTTP_PORT": "8402",
}
#: Beginnings of names in which two environments must agree to count as one.
_MATTERS = ("CPERSONA_", "EMBEDDING_", "UV_", "SSL_CERT_", "PYTHON", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
            "NO_PROXY")  # fmt: skip

Values = dict[str, Value]


def environments(registration: Registration, machine: Machine) -> tuple[Environment, ...]:
    """The environment of the server, once for each assumption about what the client itself was started with.

    Two of them (bases ``none`` and ``shell``) only for a client that hands on all of its own environment, and only
    when they differ in something the server, its launcher or its HTTP client reads; otherwise one.
    """
    if registration.launch.kind is LaunchKind.REMOTE:
        return (Environment(base="none", values={}),)
    client = CLIENTS.get(registration.client)
    base = client.base if client else "own"
    if base == "process":
        values = {_fold(n, machine): Value(t, Place(words="this process"), "process") for n, t in machine.env.items()}
        return (_complete("process", values, registration, machine),)
    if base != "own":
        return (_complete("whitelist", _whitelisted(base, registration, machine), registration, machine),)
    desktop = _complete("none", _session(registration, machine), registration, machine)
    shell = _complete("shell", _shell(machine, machine.env), registration, machine)
    if not _differ(desktop, shell, registration, machine):
        return (desktop,)
    return replace(desktop, assumption="none"), replace(shell, assumption="shell")


def _fold(name: str, machine: Machine) -> str:
    """Windows does not tell upper from lower case in names."""
    return name.upper() if machine.system == "windows" else name


def _shell(machine: Machine, names: Iterable[str], origin: str = "shell") -> Values:
    """Those of ``names`` that this shell has."""
    wanted = {_fold(name, machine) for name in names}
    place = Place(words="this shell")
    return {
        folded: Value(text, place, origin)
        for name, text in machine.env.items()
        if (folded := _fold(name, machine)) in wanted
    }


def _desktop_path(machine: Machine) -> Value:
    return Value(locate.desktop_path(machine), Place(words="a program started from the desktop"), "desktop")


def _session(registration: Registration, machine: Machine) -> Values:
    values = _shell(machine, (*SESSION, "PATH"))
    if registration.client not in IN_TERMINAL:
        values["PATH"] = _desktop_path(machine)
    if machine.system != "windows":
        values["HOME"] = Value(str(machine.home), Place(words="the home directory"), "desktop")
    return values


def _whitelisted(base: str, registration: Registration, machine: Machine) -> Values:
    windows = machine.system == "windows"
    if base == "whitelist:codex":
        names = CODEX_WINDOWS if windows else CODEX_POSIX
        values = _shell(machine, names, "whitelist")
        return {**values, **_shell(machine, _env_vars(registration), "env_vars")}
    values = _shell(machine, SDK_WINDOWS if windows else SDK_POSIX, "whitelist")
    values["PATH"] = _desktop_path(machine)
    return values


def _env_vars(registration: Registration) -> list[str]:
    """Names that Codex hands on besides its own list: texts, or tables with a ``name``."""
    listed = registration.fields.get("env_vars")
    names = []
    for item in listed if isinstance(listed, list | tuple) else ():
        name = item.get("name") if isinstance(item, Mapping) else item
        if isinstance(name, str):
            names.append(name)
    return names


def _complete(base: Base, values: Values, registration: Registration, machine: Machine) -> Environment:
    """The base with everything the registration puts on top of it."""
    launch = registration.launch
    problems: list[str] = []
    own = {**_env_of_gemini(machine), **values} if registration.client == "gemini-cli" else dict(values)
    for variable in registration.inherited:
        own[_fold(variable.name, machine)] = Value(variable.text, variable.place, variable.origin, variable.text)
    reader = context(registration, machine, lambda name: _text(own, name, machine))
    outer = dict(own)
    if registration.env_file:
        text, unresolved = expand(registration.env_file, reader)
        if unresolved:
            problems.append(f"the environment file was not read: {unresolved}")
        else:
            outer.update(_from_file(_file(text, registration, machine), "envFile", outer, problems, machine))
    for variable in registration.variables:
        outer[_fold(variable.name, machine)] = _value(variable, reader)
    if launch.inside == "container":
        inner = _container(registration, machine, outer, reader, problems)
        return Environment(base="container", values=inner, outer=outer, problems=tuple(problems))
    crossed = _crossing(outer) if launch.inside == "wsl" else dict(outer)
    if "*" in launch.unset:
        crossed = {}
    for name in launch.unset:
        crossed.pop(_fold(name, machine), None)
    for text in launch.env_files:
        # uv lets a variable that is already set win over its environment file.
        path = _file(expand(text, reader)[0], registration, machine)
        loaded = _from_file(path, "--env-file", crossed, problems, machine)
        crossed = {**loaded, **crossed}
    _add_carried(crossed, registration, machine, reader)
    if launch.inside == "wsl":
        return Environment(base="wsl", values=crossed, outer=outer, problems=tuple(problems))
    return Environment(base=base, values=crossed, problems=tuple(problems))


def _env_of_gemini(machine: Machine) -> Values:
    """The one ``.env`` file that Gemini CLI adds to its own environment: the nearest above, else one of the user's."""
    if not locate.readable(machine):
        return {}
    for folder in (machine.cwd, *machine.cwd.parents, machine.home):
        for path in (folder / ".gemini" / ".env", folder / ".env"):
            found, _, problem = envfile.read(path, "dotenv", "Gemini CLI's .env file")
            if not problem:
                return {_fold(v.name, machine): Value(v.text, v.place, v.origin, v.text) for v in found}
    return {}


def _text(values: Values, name: str, machine: Machine) -> str | None:
    value = values.get(_fold(name, machine))
    return None if value is None else value.text


def _value(variable: Variable, reader: Context, place: Place | None = None) -> Value:
    text, unresolved = expand(variable.text, reader)
    return Value(text, place or variable.place, variable.origin, variable.text, unresolved)


def _add_carried(values: Values, registration: Registration, machine: Machine, reader: Context) -> None:
    """Variables of the command line: expanded by the client, then by the shell or compose that reads them."""
    for variable in registration.launch.variables:
        written_here = variable.place.file is None
        text, unresolved = expand(variable.text, reader) if written_here else (variable.text, "")
        if variable.origin in COMMAND_RULES:
            inner = replace(reader, rule=variable.origin, reader=variable.origin.split()[0])
            text, unresolved = expand(text, inner)
        place = registration.place if written_here else variable.place
        values[_fold(variable.name, machine)] = Value(text, place, variable.origin, variable.text, unresolved)


def _file(text: str, registration: Registration, machine: Machine) -> Path:
    """A configured path, a relative one from where the client starts the server."""
    return (folder(registration, machine) or machine.cwd) / text


def folder(registration: Registration, machine: Machine) -> Path | None:
    """The folder the client starts the command in, where the registration or the client defines it; else None."""
    if registration.cwd:
        text, unresolved = expand(registration.cwd, context(registration, machine, machine.env.get))
        base = registration.project or machine.cwd
        return None if unresolved or not locate.readable(machine) else base / text
    if registration.client == "env":
        return machine.cwd
    if registration.client == "claude-desktop" and machine.system == "darwin":
        return machine.root
    return registration.project


def _from_file(
    path: Path, origin: str, client: Values, problems: list[str], machine: Machine, *, docker: bool = False
) -> Values:
    found, passed, problem = envfile.read(path, "docker" if docker else "dotenv", origin)
    if problem:
        problems.append(problem)
    values = {_fold(v.name, machine): Value(v.text, v.place, origin, v.text) for v in found}
    for name in passed:
        if name in client:
            values[name] = client[name]
    return values


def _container(
    registration: Registration, machine: Machine, client: Values, reader: Context, problems: list[str]
) -> Values:
    """What reaches a process in a container: the image's own, files, and what is named; nothing by itself."""
    launch = registration.launch
    place = Place(words=f"the image {launch.image}")
    known = launch.package == "cpersona" and launch.image
    values = {name: Value(text, place, "image") for name, text in IMAGE_DEFAULTS.items()} if known else {}
    compose = launch.kind is LaunchKind.COMPOSE
    for text in launch.env_files:
        path = _file(expand(text, reader)[0], registration, machine)
        origin = "env_file" if compose else "--env-file"
        values.update(_from_file(path, origin, client, problems, machine, docker=not compose))
    for name in launch.passed:
        if name in client:
            values[name] = client[name]
    if compose:
        reader = replace(reader, lookup=_compose_lookup(registration, client))
    _add_carried(values, registration, machine, reader)
    return values


def _compose_lookup(registration: Registration, client: Values) -> Lookup:
    """Where compose finds variables: its own environment, then the ``.env`` file beside the compose file."""
    files = [variable.place.file for variable in registration.launch.variables if variable.place.file]
    beside = envfile.read(files[0].parent / ".env", "dotenv", ".env")[0] if files else ()
    known = {variable.name: variable.text for variable in beside}
    return lambda name: client[name].text if name in client else known.get(name)


def _crossing(client: Values) -> Values:
    """What ``wsl.exe`` lets through: the names WSLENV lists, unless a flag says they go the other way only."""
    listed = client.get("WSLENV")
    values: Values = {}
    for item in (listed.text if listed else "").split(":"):
        name, _, flags = item.partition("/")
        value = client.get(name.upper())
        if value is None or "w" in flags:
            continue
        text = value.text
        if "p" in flags and len(text) > 2 and text[1] == ":":
            text = f"/mnt/{text[0].lower()}/{text[3:]}".replace("\\", "/")
        values[name] = replace(value, text=text, raw=value.raw or value.text)
    return values


def _differ(left: Environment, right: Environment, registration: Registration, machine: Machine) -> bool:
    """Whether the server, its launcher or its HTTP client could tell the two apart."""
    names = {name for name in (*left.values, *right.values) if name.upper().startswith(_MATTERS)}
    for name in names:
        one, other = left.values.get(name), right.values.get(name)
        if (one and (one.text, one.unresolved)) != (other and (other.text, other.unresolved)):
            return True
    program = registration.launch.program
    if not locate.is_bare(program):
        return False
    found = [locate.which(program, _path(environment), machine) for environment in (left, right)]
    return found[0] != found[1]


def _path(environment: Environment) -> str:
    value = (environment.outer or environment.values).get("PATH")
    return value.text if value else ""
