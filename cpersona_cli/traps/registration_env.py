"""What reaches the server: the program on the client's PATH, expanded variables, container options."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator

from cpersona_cli.install.clients.table import CLIENTS, IN_TERMINAL
from cpersona_cli.install.model import LaunchKind, Value
from cpersona_cli.install.proxies import is_loopback
from cpersona_cli.install.settings.table import is_secret
from cpersona_cli.traps.model import Facts, Finding, Needs, Repair, Severity, SkipError, Target, Trap
from cpersona_cli.traps.repairs import restart, set_variable

_OURS = ("CPERSONA_", "EMBEDDING_")
_NETWORK = {
    name
    for word in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
    for name in (word, word.lower())
}
_ASKED = re.compile(r"\$\{(?:input:[^}]*|workspace\w*)\}")
_BARE = re.compile(r"\$[A-Za-z_]\w*|%[A-Za-z_]\w*%")

#: How each client's own syntax for a variable of the surrounding environment looks.
_SYNTAX = {
    "claude": "${NAME} or ${NAME:-default}",
    "vscode": "${env:NAME}",
    "editor-env": "${env:NAME}",
    "gemini": "$NAME or ${NAME}",
    "braces": "${NAME}",
}


def _program(facts: Facts) -> Iterator[Finding]:
    version = facts.target.version
    if not version.program_problem and not version.program_doubt:
        return
    registration = facts.target.registration
    yield Finding(
        about="command",
        place=registration.place,
        measured=version.program_problem or version.program_doubt,
        severity=None if version.program_problem else Severity.WARNING,
        costs="" if version.program_problem else "another installation may be started than the one you mean, or none",
        repair=_program_repair(facts),
    )


def _program_repair(facts: Facts) -> Repair:
    registration, version = facts.target.registration, facts.target.version
    place, program = registration.place, registration.launch.program or registration.command
    after = restart(registration)
    if version.program_command:
        return Repair(prose=f"run this{after}", commands=(version.program_command,), place=place)
    if version.program_write and registration.command in {program, version.program_write}:
        spelled = json.dumps(version.program_write, ensure_ascii=False)
        toml = place.file is not None and place.file.suffix == ".toml"
        edit = f"command = {spelled}" if toml else f'"command": {spelled}'
        return Repair(prose=f"in {place}, change the command to this{after}", edit=edit, place=place)
    if version.program_write:
        said = f"in {place}, write {version.program_write} in place of {program!r}{after}"
        return Repair(prose=said, place=place)
    lookup = f"where.exe {program}" if facts.machine.system == "windows" else f"command -v {shlex.quote(program)}"
    if version.program_doubt and not version.program_problem:
        name = re.split(r"[/\\]", program)[-1]
        manager = version.program_doubt.rpartition(" belongs to ")[2].partition(",")[0]
        said = f"in {place}, write the path of the real program as the command{after}; this prints it:"
        return Repair(prose=said, commands=(f"{manager} which {shlex.quote(name)}",), place=place)
    said = f"install it, or in {place}, write its absolute path as the command{after}; this prints the path:"
    return Repair(prose=said, commands=(lookup,), place=place)


def _unexpanded(facts: Facts) -> Iterator[Finding]:
    target = facts.target
    registration = target.registration
    if registration.launch.kind is LaunchKind.PROCESS:
        raise SkipError("this process's environment holds final values")
    client = CLIENTS.get(registration.client)
    syntax = _SYNTAX.get(client.expansion, "") if client else ""
    for name, value in target.environment.values.items():
        # the database path has a trap of its own, which looks for the databases it may have meant
        if not name.startswith(_OURS) or name == "CPERSONA_DB_PATH":
            continue
        why, severity = _unexpanded_why(name, value)
        if why:
            if target.environment.assumption == "none" and _expanded_in_shell(facts, name):
                severity = Severity.HINT if registration.client in IN_TERMINAL else Severity.WARNING
            shown = "" if is_secret(name) else f"{name}={value.raw or value.text}: "
            yield Finding(
                about=name,
                place=value.place,
                severity=severity,
                measured=f"{shown}{why}",
                expected=f"{registration.client_title} expands {syntax}" if syntax else "",
                costs="" if "$" in value.text or "%" in value.text else "the server works as if nothing were set",
                repair=set_variable(registration, name, "THE VALUE ITSELF", at=value.place),
            )


def _expanded_in_shell(facts: Facts, name: str) -> bool:
    """Whether the client expands it when it starts from this shell: then it is a question of how it is started."""
    registration = facts.target.registration
    return any(
        target.registration is registration
        and target.environment.assumption == "shell"
        and name in target.environment.values
        and not target.environment.values[name].unresolved
        for target in facts.targets
    )


def _unexpanded_why(name: str, value: Value) -> tuple[str, Severity | None]:
    """(why the text is not what was meant, how bad that is), or an empty sentence."""
    raw = value.raw or value.text
    references = _ASKED.sub("", raw)
    if references != raw and "$" not in references:
        return "", None  # the client asks the user, or fills in the folder that is open
    if is_secret(name) and _only_bare(raw):
        return "", None  # a dollar sign in a secret is most often just that
    if value.unresolved:
        empty = "$" not in value.text
        return value.unresolved, Severity.WARNING if empty or _only_bare(raw) else None
    if value.origin == "env block" and _only_bare(value.text):
        return f"{value.text!r} is handed on as it stands", Severity.WARNING
    return "", None


def _only_bare(text: str) -> bool:
    """``$NAME`` or ``%NAME%`` and no braces: a shell's spelling, which most clients hand on as it stands."""
    return bool(_BARE.search(text)) and "${" not in text


def _not_inherited(facts: Facts) -> Iterator[Finding]:
    target = facts.target
    if target.environment.base != "whitelist" or target.registration.launch.inside != "host":
        raise SkipError("this client hands its whole environment on")
    url = _remote_endpoint(target)
    shell = facts.machine.env
    names = sorted(n for n in _NETWORK if shell.get(n) and n not in target.environment.values) if url else []
    registration = target.registration
    if names:
        codex = registration.client == "codex"
        place = registration.place if codex else registration.env_place or registration.place
        quoted = ", ".join(json.dumps(name) for name in names)
        yield Finding(
            about="proxy variables",
            place=place,
            measured=f"{', '.join(names)} of this shell will not reach the server, and {url} is not on this computer",
            repair=Repair(
                prose=f"in {place}, {'hand them on' if codex else 'add them, with the values they have in your shell'}",
                edit=f"env_vars = [{quoted}]" if codex else quoted,
                place=place,
            ),
        )
    listed = registration.fields.get("env_vars")
    for name in listed if isinstance(listed, list) else ():
        if isinstance(name, str) and name.startswith(_OURS) and not shell.get(name):
            yield Finding(
                about=name,
                place=registration.place,
                measured=f"env_vars hands {name} on, and it is not set in this shell",
                repair=set_variable(registration, name, "THE VALUE ITSELF"),
            )


def _remote_endpoint(target: Target) -> str:
    mode = target.settings["CPERSONA_EMBEDDING_MODE"].value
    name = {"http": "CPERSONA_EMBEDDING_URL", "api": "CPERSONA_EMBEDDING_API_URL"}.get(str(mode))
    url = str(target.settings[name]) if name else ""
    return "" if not url or is_loopback(url) else url.split("?")[0].rpartition("@")[2]


def _docker_interactive(facts: Facts) -> Iterator[Finding]:
    registration = facts.target.registration
    launch = registration.launch
    if launch.kind is not LaunchKind.DOCKER:
        raise SkipError("not started by docker run")
    if not launch.interactive and registration.transport == "stdio":
        verb = next((word for word in launch.words if word in {"run", "exec", "start"}), "run")
        yield Finding(
            about="docker -i",
            place=registration.place,
            measured=f"docker {verb} without -i",
            expected=f"docker {verb} -i",
            repair=Repair(prose=f'in {registration.place}, add to the arguments after "{verb}"', edit='"-i",'),
        )


def _docker_environment(facts: Facts) -> Iterator[Finding]:
    registration = facts.target.registration
    launch = registration.launch
    if launch.kind is not LaunchKind.DOCKER:
        raise SkipError("not started by docker run")
    arrives = {v.name for v in launch.variables} | set(launch.passed)
    for variable in registration.variables:
        if variable.name.startswith(_OURS) and variable.name not in arrives:
            yield Finding(
                about=variable.name,
                place=variable.place,
                measured=f"{variable.name} stands in the entry's environment, and no -e {variable.name} hands it on",
                repair=Repair(
                    prose=f"in {registration.place}, add to the arguments before the "
                    + ("container's name" if launch.made_earlier else "image"),
                    edit=f'"-e", "{variable.name}",',
                    place=registration.place,
                ),
            )


def _docker_volume(facts: Facts) -> Iterator[Finding]:
    target = facts.target
    launch = target.registration.launch
    if launch.kind is not LaunchKind.DOCKER:
        raise SkipError("not started by docker run")
    if launch.made_earlier:
        raise SkipError("the container was made earlier, with its volumes")
    if not launch.mounts and target.database.path is None:
        inside = target.database.text
        folder = inside.rpartition("/")[0] or "/data"
        yield Finding(
            about="docker -v",
            place=target.registration.place,
            measured=f"docker run without -v or --mount; the database is {inside} inside the container",
            repair=Repair(
                prose=f"in {target.registration.place}, add to the arguments before the image",
                edit=f'"-v", "cpersona-data:{folder}",',
                place=target.registration.place,
            ),
        )


def _leftover(facts: Facts) -> Iterator[Finding]:
    registration = facts.target.registration
    words = registration.launch.leftover
    if words:
        yield Finding(
            about="args",
            place=registration.place,
            measured=f"the server ignores {' '.join(words)!r}",
            repair=Repair(prose=f"in {registration.place}, take it out of the arguments", place=registration.place),
        )


def _startup_timeout(facts: Facts) -> Iterator[Finding]:
    target = facts.target
    registration = target.registration
    if registration.client != "codex" or registration.launch.kind is not LaunchKind.UVX:
        raise SkipError("not Codex with uvx")
    written = registration.fields.get("startup_timeout_sec")
    seconds = float(written) if isinstance(written, int | float) else 10.0
    cold = target.version.version is None or registration.launch.fresh
    if (written is not None and seconds < 10) or (cold and seconds <= 10):
        yield Finding(
            about="startup_timeout_sec",
            place=registration.place,
            severity=Severity.WARNING if written is not None and seconds < 10 else Severity.HINT,
            measured=f"Codex waits {seconds:g} seconds for the server"
            + (", and uvx may have to download it first" if cold else ""),
            repair=Repair(
                prose=f"in {registration.place}, below [mcp_servers.{registration.name}], add",
                edit="startup_timeout_sec = 60",
                place=registration.place,
            ),
        )


TRAPS = (
    Trap(
        id="registration.program-missing",
        title="The client cannot find or start the command",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_program,
        expected="a command that exists on the PATH this client starts servers with, or an absolute path",
        costs="the server does not start (“spawn … ENOENT”); desktop programs do not see the PATH of your shell",
        repair="write the absolute path of the program as the command",
        source="resolved with the client's PATH, not with this shell's",
        rows=("G7",),
    ),
    Trap(
        id="registration.unexpanded",
        title="A variable in a value is not expanded",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_unexpanded,
        expected="the value itself; this client expands nothing in an environment",
        costs="the server gets the text as it stands, dollar sign and all",
        repair="write the value itself, or use the client's own syntax for a variable that is set",
        source="each client's documentation of variables in its file",
        rows=("G12", "G13"),
    ),
    Trap(
        id="registration.not-inherited",
        title="Variables of the shell do not reach the server",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_not_inherited,
        expected="what the server needs stands in the entry's environment (Codex: or in env_vars)",
        costs="a request that works in the shell fails in the server",
        repair="add the variables to the entry",
        source="Codex, Claude Desktop and clients built on the MCP library hand on a fixed list of variables",
        rows=("G11",),
    ),
    Trap(
        id="registration.docker-interactive",
        title="A container without an open stdin",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_docker_interactive,
        expected="docker run -i",
        costs="the server reads the end of its input and exits at once, with status 0",
        repair="add -i",
        source="the server lives as long as its stdin",
        rows=("G16",),
    ),
    Trap(
        id="registration.docker-environment",
        title="The entry's environment stays outside of the container",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_docker_environment,
        expected="docker run -e NAME for every variable",
        costs="the server runs with its defaults",
        repair="add -e NAME to the arguments",
        source="docker hands no variable on by itself",
        rows=("G16",),
    ),
    Trap(
        id="registration.docker-volume",
        title="A container without a volume for the database",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_docker_volume,
        expected="docker run -v VOLUME:/data",
        costs="every memory is lost when the container ends",
        repair="add -v cpersona-data:/data to the arguments",
        source="the image keeps its database in /data",
        rows=("G16",),
    ),
    Trap(
        id="registration.leftover-words",
        title="Arguments the server ignores",
        severity=Severity.HINT,
        needs=Needs.REGISTRATION,
        detect=_leftover,
        expected="the command without further words",
        costs="nothing today: the server never reads its arguments",
        repair="take the words out",
        source="measured on 2.6.14: any argument, also --help, starts the server",
        rows=("G20",),
    ),
    Trap(
        id="registration.startup-timeout",
        title="Codex waits too short a time for the first start",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_startup_timeout,
        expected="startup_timeout_sec = 60 where uvx may download a release at the start",
        costs="the first start after each release fails",
        repair="set startup_timeout_sec",
        source="Codex's documentation: 10 seconds unless set",
        rows=("G10",),
    ),
)
