"""The files a server reads beside its environment: the access table, the operating context, the alias ledger.

What makes the server refuse one is taken from its own loaders in 2.6.14: ``acl.load_config``,
``operating_context._parse`` and ``aliases.AliasLedger``. A broken access table or ledger stops the server; a broken
operating context only sleeps.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from cpersona_cli.install.files.bounded import Content, line_of, read_bounded
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import DatabasePath, Environment, Place, Registration
from cpersona_cli.install.settings.effective import Effective, Settings
from cpersona_cli.record import record

SideState = Literal["absent", "read", "broken", "unreadable", "unknown"]

# JSON that is nested thousands of levels deep, or a number of thousands of digits.
_TOO_MUCH = "nested too deeply, or a number too long, to be read"

_PERMISSIONS = ("none", "read", "read-write")
_CLIENT_KEYS = frozenset({"client_id", "token", "grants", "per_subject"})
_ENFORCE = ("off", "warn", "reject")
_ALIAS = re.compile(r"u-[0-9a-f]{4,64}")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@record(kw_only=True)
class SideFile:
    """One such file. ``place`` is where its path was written.

    ``state`` ``unknown`` means the path cannot be looked at from here (inside a container, relative to an unknown
    folder). ``problem`` and ``line`` say what the server would refuse in it.
    """

    text: str
    path: Path | None
    place: Place
    state: SideState
    problem: str = ""
    line: int | None = None

    @property
    def at(self) -> Place:
        """The faulty line of the file itself, or where its path was written when the file cannot be read."""
        if self.path is None or self.state in {"absent", "unknown"}:
            return self.place
        return Place(file=self.path, line=self.line)


@record(kw_only=True)
class Grant:
    """One client of the access table: its permission by agent id (``*`` is every agent). No token is kept.

    ``variable`` names the environment variable its token is taken from; ``missing`` says that it is unset or empty.
    """

    client: str
    agents: Mapping[str, str]
    variable: str = ""
    missing: bool = False
    per_subject: bool = False


@record(kw_only=True)
class AccessTable(SideFile):
    """``CPERSONA_ACL_FILE``: who may do what with which agent's memories."""

    clients: tuple[Grant, ...] = ()


@record(kw_only=True)
class OperatingContext(SideFile):
    """The operating-context TOML: its summary's length in characters; ``mtime`` is a Unix time in seconds."""

    summary: int = 0
    mtime: float | None = None


@record(kw_only=True)
class SideFiles:
    """The side files of one registration; None where the server would not look for the file at all."""

    acl: AccessTable | None = None
    context: OperatingContext | None = None
    ledger: SideFile | None = None


def side_files(
    registration: Registration,
    environment: Environment,
    settings: Settings,
    database: DatabasePath,
    machine: Machine,
) -> SideFiles:
    """Read what the server of ``registration`` would read beside its environment. Raises nothing for their content."""
    acl = _acl(registration, environment, settings, machine) if _given(settings, "CPERSONA_ACL_FILE") else None
    shared = acl is not None and any(grant.per_subject for grant in acl.clients)
    return SideFiles(
        acl=acl,
        context=_context(registration, settings, machine),
        ledger=_ledger(registration, settings, database, machine) if shared else None,
    )


def _given(settings: Settings, name: str) -> bool:
    return name in settings and settings[name].given


def _locate(registration: Registration, setting: Effective, text: str, machine: Machine) -> tuple[Path | None, str]:
    """The file ``text`` means on this machine, or why that cannot be told."""
    if setting.unresolved:
        return None, setting.unresolved
    if registration.launch.inside != "host":
        return None, f"the path lies inside the {registration.launch.inside} the server runs in"
    if not machine.pure(text).is_absolute():
        if not machine.pure(registration.cwd).is_absolute():
            return None, "the path is relative, and the folder the client starts the server in is not known"
        return Path(registration.cwd) / text, ""
    return Path(text), ""


def _acl(registration: Registration, environment: Environment, settings: Settings, machine: Machine) -> AccessTable:
    setting = settings["CPERSONA_ACL_FILE"]
    text = str(setting)
    path, why = _locate(registration, setting, text, machine)
    if path is None:
        return AccessTable(text=text, path=None, place=setting.place, state="unknown", problem=why)
    content = read_bounded(path)
    problem, line = content.problem, None
    clients: tuple[Grant, ...] = ()
    state: SideState = content.state
    if state == "read":
        try:
            clients = _grants(json.loads(content.text), environment)
        except json.JSONDecodeError as error:
            problem, line = f"not valid JSON: {error.msg} at column {error.colno}", error.lineno
        except _RefusedError as error:
            problem, line = str(error), error.line(content.text)
        except (ValueError, RecursionError):
            problem = _TOO_MUCH
        state = "broken" if problem else "read"
    return AccessTable(
        text=text,
        path=path,
        place=setting.place,
        state=state,
        problem=problem,
        line=line,
        clients=clients,
    )


class _RefusedError(ValueError):
    """What a loader refuses, with a word of the file near which it stands."""

    def __init__(self, message: str, near: str = "") -> None:
        super().__init__(message)
        self.near = near

    def line(self, text: str) -> int | None:
        return line_of(text, self.near)


def _grants(data: object, environment: Environment) -> tuple[Grant, ...]:
    if not isinstance(data, dict) or set(data) != {"clients"}:
        raise _RefusedError('the top level must be exactly {"clients": [...]}')
    if not isinstance(data["clients"], list) or not data["clients"]:
        raise _RefusedError('"clients" must be a list with at least one client', '"clients"')
    found: dict[str, Grant] = {}
    for number, entry in enumerate(data["clients"], 1):
        grant = _grant(entry, number, environment)
        if grant.client in found:
            raise _RefusedError(f"client_id {grant.client!r} stands twice", json.dumps(grant.client))
        found[grant.client] = grant
    return tuple(found.values())


def _grant(entry: object, number: int, environment: Environment) -> Grant:
    if not isinstance(entry, dict):
        raise _RefusedError(f"client {number} is not an object")
    unknown = sorted(str(key) for key in set(entry) - _CLIENT_KEYS)
    if unknown:
        raise _RefusedError(f"client {number} has the unknown key {unknown[0]!r}", json.dumps(unknown[0]))
    client = entry.get("client_id")
    if not isinstance(client, str) or not client:
        raise _RefusedError(f"client {number} needs a client_id, a string that is not empty")
    near = json.dumps(client, ensure_ascii=False)
    grants = entry.get("grants")
    if not isinstance(grants, dict):
        raise _RefusedError(f"client {client!r} needs grants, an object of agent id and permission", near)
    for agent, permission in grants.items():
        if not agent or permission not in _PERMISSIONS:
            raise _RefusedError(
                f"client {client!r}: the permission of {agent!r} must be one of {', '.join(_PERMISSIONS)}", near
            )
    variable, missing = _token(entry, client, near, environment)
    shared = entry.get("per_subject", False)
    if not isinstance(shared, bool):
        raise _RefusedError(f"client {client!r}: per_subject must be true or false", near)
    if shared and (client == "local" or entry.get("token") is not None):
        raise _RefusedError(f'client {client!r}: per_subject needs "token": null', near)
    return Grant(client=client, agents=dict(grants), variable=variable, missing=missing, per_subject=shared)


def _token(entry: dict[str, object], client: str, near: str, environment: Environment) -> tuple[str, bool]:
    """(variable the token is read from, whether that variable is empty); raises for a token nothing can present."""
    token = entry.get("token")
    if client == "local":
        if token is not None:
            raise _RefusedError("client 'local' is the stdio connection and must not carry a token", near)
        return "", False
    if "token" not in entry:
        raise _RefusedError(f"client {client!r} needs a token, or null when an identity provider vouches for it", near)
    if token is None:
        return "", False
    if not isinstance(token, str) or not token:
        raise _RefusedError(f"client {client!r}: the token must be a string that is not empty", near)
    reference = _REFERENCE.fullmatch(token)
    if reference:
        return reference[1], not environment.get(reference[1])
    if "${" in token:
        raise _RefusedError(f"client {client!r}: the token must be the whole reference ${{NAME}} or none", near)
    if not token.isascii() or token != token.strip() or not token.isprintable():
        raise _RefusedError(f"client {client!r}: the token holds characters no HTTP header can carry", near)
    return "", False


def _context(registration: Registration, settings: Settings, machine: Machine) -> OperatingContext | None:
    name = "CPERSONA_OPERATING_CONTEXT_PATH"
    if name not in settings or str(settings["CPERSONA_OPERATING_CONTEXT"].text or "").lower() == "off":
        return None
    setting = settings[name]
    text = setting.text or "~/.cpersona/operating-context.toml"
    # The one path the server expands itself.
    expanded = f"{machine.home}{text[1:]}" if text == "~" or text.startswith(("~/", "~\\")) else text
    path, why = _locate(registration, setting, expanded, machine)
    if path is None:
        if not setting.given:
            return None
        return OperatingContext(text=text, path=None, place=setting.place, state="unknown", problem=why)
    content = read_bounded(path)
    if content.state == "absent" and not setting.given:
        return None
    data, problem, line = _toml(content) if content.state == "read" else ({}, content.problem, None)
    return OperatingContext(
        text=text,
        path=path,
        place=setting.place,
        state="broken" if content.state == "read" and problem else content.state,
        problem=problem,
        line=line,
        mtime=content.mtime,
        summary=len(str(_table(data, "instructions").get("summary", ""))),
    )


def _toml(content: Content) -> tuple[dict[str, object], str, int | None]:
    import tomllib  # noqa: PLC0415 - few machines have this file

    if content.problem:
        return {}, content.problem, None
    try:
        data = tomllib.loads(content.text)
    except (ValueError, RecursionError) as error:
        line = re.search(r"line (\d+)", str(error))
        return {}, f"not valid TOML: {error}", int(line[1]) if line else None
    problem, near = _context_problem(data)
    return ({}, problem, line_of(content.text, near)) if problem else (data, "", None)


def _context_problem(data: dict[str, object]) -> tuple[str, str]:
    """(the first thing the server's loader refuses, a word near it), or two empty strings."""
    if data.get("version") != 1:
        return "version must be 1", "version"
    for name in ("instructions", "registry", "defaults"):
        if not isinstance(data.get(name, {}), dict):
            return f"[{name}] must be a table", name
    if not isinstance(data.get("context_revision", ""), str):
        return "context_revision must be a string", "context_revision"
    if not isinstance(_table(data, "instructions").get("summary", ""), str):
        return "instructions.summary must be a string", "summary"
    registry = _table(data, "registry")
    projects = registry.get("project_ids", [])
    if not isinstance(projects, list) or not all(isinstance(project, str) for project in projects):
        return "registry.project_ids must be a list of strings", "project_ids"
    if registry.get("enforce", "warn") not in _ENFORCE:
        return f"registry.enforce must be one of {', '.join(_ENFORCE)}", "enforce"
    if not all(isinstance(project, str) for project in _table(data, "defaults").values()):
        return "[defaults] must give each agent id one project id, a string", "defaults"
    return _doctrine_problem(data.get("doctrine", []))


def _doctrine_problem(sections: object) -> tuple[str, str]:
    if not isinstance(sections, list):
        return "[[doctrine]] must be an array of tables", "doctrine"
    seen: set[str] = set()
    for section in sections:
        name = section.get("name") if isinstance(section, dict) else None
        if not isinstance(name, str) or not name or not isinstance(section.get("body"), str):
            return "each [[doctrine]] needs a name and a body, both strings", "doctrine"
        if name in seen:
            return f"two [[doctrine]] sections are named {name!r}", "doctrine"
        seen.add(name)
    return "", ""


def _table(data: Mapping[str, object], name: str) -> dict[str, object]:
    value = data.get(name, {})
    return value if isinstance(value, dict) else {}


def _ledger(registration: Registration, settings: Settings, database: DatabasePath, machine: Machine) -> SideFile:
    setting = settings["CPERSONA_ALIAS_LEDGER_FILE"]
    if setting.given:
        text = str(setting)
        path, why = _locate(registration, setting, text, machine)
    else:
        path = None if database.path is None else database.path.parent / "alias_ledger.json"
        text, why = "alias_ledger.json" if path is None else str(path), database.why
    place = setting.place if setting.given else database.place
    if path is None:
        return SideFile(text=text, path=None, place=place, state="unknown", problem=why)
    content = read_bounded(path)
    problem, line = content.problem, None
    if content.state == "read" and not problem:
        problem, line = _ledger_problem(content.text)
    state: SideState = "broken" if content.state == "read" and problem else content.state
    return SideFile(text=text, path=path, place=place, state=state, problem=problem, line=line)


def _ledger_problem(text: str) -> tuple[str, int | None]:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        return f"not valid JSON: {error.msg} at column {error.colno}", error.lineno
    except (ValueError, RecursionError):
        return _TOO_MUCH, None
    if not isinstance(data, dict) or data.get("version") != 1 or not isinstance(data.get("aliases"), dict):
        return 'expected {"version": 1, "aliases": {...}}', None
    for issuer, subjects in data["aliases"].items():
        if not issuer or not isinstance(subjects, dict):
            return "each issuer must have an object of subjects and aliases", None
        for subject, alias in subjects.items():
            if not subject or not isinstance(alias, str) or not _ALIAS.fullmatch(alias):
                return 'every alias must be "u-" and 4 to 64 hexadecimal digits', line_of(text, str(alias))
    return "", None
