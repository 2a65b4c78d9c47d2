"""Which release of the server a registration would start, told without starting it.

The program is looked for with the client's own PATH. From a script or interpreter the way leads to its site-packages
and the METADATA there; uv's tools and cache are read where uv keeps them. What cannot be told is None, with the reason.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from cpersona_cli.install.environment import folder
from cpersona_cli.install.launch.containers import tag
from cpersona_cli.install.launch.requirement import Requirement, requirement
from cpersona_cli.install.launch.understand import stem
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Environment, LaunchKind, Registration, ServerVersion
from cpersona_cli.install.release import distributions, interpreter, locate, programs, uvcache
from cpersona_cli.install.release.version import key
from cpersona_cli.record import replace

Env = Mapping[str, str]

_THIS_TOOL = "cpersona-cli"


def server_version(registration: Registration, environment: Environment, machine: Machine) -> ServerVersion:
    """The release, what told it, and where its files are; ``program`` and its problem in every case."""
    launch = registration.launch
    env = {name: value.text for name, value in (environment.outer or environment.values).items()}
    if launch.kind is LaunchKind.REMOTE or (registration.url and not registration.command):
        return ServerVersion(version=None, evidence="the server runs elsewhere; its release is not told here")
    if launch.kind is LaunchKind.PROCESS or not registration.command:
        return _of_this_process(registration, environment, machine)
    program = _program(registration, environment, machine)
    if launch.inside == "container":
        found = _in_container(launch.image)
    elif launch.inside == "wsl":
        found = _pinned(requirement(launch.requirement), "inside WSL, whose files were not looked at")
    elif launch.kind is LaunchKind.UVX or (launch.kind is LaunchKind.PROXY and stem(launch.program) in {"uvx", "uv"}):
        found = _by_uv(registration, env, machine)
    elif launch.kind is LaunchKind.PIPX:
        found = _by_pipx(requirement(launch.requirement), env, machine)
    elif launch.kind in {LaunchKind.SCRIPT, LaunchKind.MODULE, LaunchKind.PROXY} and program.path is not None:
        found = _by_program(program.path, registration, environment, machine)
    elif program.problem:
        found = ServerVersion(version=None, evidence=program.problem)
    else:
        found = ServerVersion(version=None, evidence="the command does not say which installation it starts")
    return replace(
        found,
        program=program.path,
        program_problem=program.problem or found.program_problem,
        program_write=program.write,
        program_command=program.command or found.program_command,
        program_doubt=program.doubt,
    )


def _program(registration: Registration, environment: Environment, machine: Machine) -> programs.Program:
    """The program the client starts itself and, where another one stands behind it on this host, that one."""
    launch = registration.launch
    first = programs.find(registration.command, registration, environment, machine)
    if first.problem or launch.inside != "host" or launch.program in {"", registration.command}:
        return first
    through_shell = stem(registration.command) in {"sh", "bash", "zsh", "dash", "ksh", "fish"}
    word = launch.program
    if through_shell and word.startswith(("~/", "$HOME/", "${HOME}/")):
        word = str(machine.home) + word[word.index("/") :]
    return programs.find(word, registration, environment, machine)


def _pinned(wanted: Requirement, where: str) -> ServerVersion:
    if wanted.pin:
        return ServerVersion(version=wanted.pin, evidence=f"pinned to {wanted.pin} by the command; {where}")
    return ServerVersion(version=None, evidence=f"the server runs {where}")


def _in_container(image: str) -> ServerVersion:
    if not image:
        return ServerVersion(version=None, evidence="the command does not name the container's image")
    label = tag(image)
    release = label.removeprefix("v").split("-", 1)[0]
    if key(release) is not None and "." in release:
        return ServerVersion(version=release, evidence=f"the tag of the image {image}")
    said = f"the tag {label!r} is no release" if label else "it has no tag, so it is whatever was pulled last"
    return ServerVersion(
        version=None, evidence=f"the image {image} does not tell: {said}", floating="@sha" not in image
    )


def _at(
    site: Path,
    python: Path | None,
    evidence: str,
    machine: Machine,
    *,
    script: Path | None = None,
    floating: bool = False,
) -> ServerVersion:
    """What a site-packages folder says."""
    listed = distributions.installed(site)
    found = distributions.server(site, listed)
    asked = interpreter.ask(python, machine)[0] if python and locate.executable(python) else None
    owner = distributions.script_owner(listed, script) if script else ""
    return ServerVersion(
        version=found.release if found else None,
        evidence=evidence if found else f"no CPersona is installed in {site}",
        interpreter=asked,
        site=site,
        floating=floating,
        packages=distributions.beside(listed),
        script_owner=owner,
        installed=found.installed if found else None,
    )


def _by_program(path: Path, registration: Registration, environment: Environment, machine: Machine) -> ServerVersion:
    shim = programs.shim(path)
    if shim:
        return ServerVersion(version=None, evidence=shim)
    ahead = _ahead_of_site(registration, environment, machine)
    if ahead:
        return ServerVersion(version=None, evidence=ahead)
    module = registration.launch.kind is not LaunchKind.SCRIPT
    found = programs.home_of_python(path, machine) if module else programs.home_of(path, machine)
    if found.site is None:
        return ServerVersion(version=None, evidence=found.why or f"{path} does not tell where its packages are")
    script = _script_beside(path, found.python, module=module)
    told = _at(found.site, found.python, f"installed in {found.site}", machine, script=script)
    certain = told.interpreter is not None and not told.interpreter.problem
    if told.version is None and not _more_places(found.site, environment):
        if module and certain:
            said = f"{path} cannot start it: no CPersona is installed in {found.site}"
            return replace(told, program_problem=said, program_command=_install_beside(path))
        if told.script_owner == _THIS_TOOL and found.python is not None:
            said = f"{path} is the script of this tool, and no CPersona is installed in {found.site} for it to start"
            return replace(told, program_problem=said, program_command=_install_beside(found.python))
    return told


def _install_beside(python: Path) -> str:
    """The command that installs the server into the environment of ``python``, by what made that environment."""
    if {"pipx", "venvs", _THIS_TOOL} <= set(python.parts):
        return f"pipx inject {_THIS_TOOL} cpersona"
    if {"uv", "tools"} <= set(python.parts):
        return shlex.join(("uv", "pip", "install", "--python", str(python), "cpersona"))
    return shlex.join((str(python), "-m", "pip", "install", "cpersona"))


def _more_places(site: Path, environment: Environment) -> bool:
    """Whether that Python may find modules in other folders too, which were not looked at."""
    if any(environment.values.get(name) for name in ("PYTHONPATH", "PYTHONHOME")):
        return True
    try:
        for file in set(site.glob("*.pth")) - {site / "pipx_shared.pth"}:  # that one adds pip alone
            lines = file.read_text("utf-8", "replace").splitlines()
            if any(line.strip() and not line.startswith(("#", "import ", "import\t")) for line in lines):
                return True
        settings = (site.parents[2] / "pyvenv.cfg").read_text("utf-8", "replace")
    except FileNotFoundError:
        return False
    except (OSError, ValueError, IndexError):
        return True
    return re.search(r"^include-system-site-packages\s*=\s*true", settings, re.MULTILINE | re.IGNORECASE) is not None


def _script_beside(path: Path, python: Path | None, *, module: bool) -> Path | None:
    if not module:
        return path
    beside = (python or path).parent / "cpersona"
    return beside if beside.is_file() else None


def _ahead_of_site(registration: Registration, environment: Environment, machine: Machine) -> str:
    """A sentence when PYTHONPATH, or the folder of ``python -m``, holds another ``cpersona`` that is found first."""
    value = environment.values.get("PYTHONPATH")
    separator = ";" if machine.system == "windows" else ":"
    places = [Path(part) for part in (value.text if value else "").split(separator) if part and "\0" not in part]
    base = folder(registration, machine)
    if registration.launch.kind in {LaunchKind.MODULE, LaunchKind.PROXY} and base is not None:
        places.insert(0, base)
    for place in places:
        try:
            if (place / "cpersona" / "__init__.py").is_file() and distributions.server(place) is None:
                return f"Python finds the source in {place / 'cpersona'} before any installed release"
        except (OSError, ValueError):
            continue
    return ""


def _by_uv(registration: Registration, env: Env, machine: Machine) -> ServerVersion:
    launch = registration.launch
    if launch.project and not launch.requirement:
        return _by_project(registration, machine)
    wanted = requirement(launch.requirement)
    if wanted.source and not wanted.pin:
        return ServerVersion(
            version=None, evidence=f"built from {wanted.source}, which names no release", floating=True
        )
    also = [requirement(part).name for part in launch.beside]
    installed = uvcache.tool(env, machine)
    whole_tool = stem(launch.program) == "uvx" or "tool" in launch.words
    if installed and whole_tool and not (launch.fresh or launch.python or "--isolated" in launch.words):
        listed = distributions.installed(installed.site)
        if wanted.allows(installed.server.release) and all(name in listed for name in also):
            said = f"uv runs its installed tool in {installed.prefix}"
            return _at(installed.site, distributions.venv_python(installed.prefix, machine), said, machine)
    cache = uvcache.cache_folder(env, machine)
    fitting = [
        held
        for held in uvcache.environments(cache, machine)
        if wanted.allows(held.server.release) and all(name in distributions.installed(held.site) for name in also)
    ]
    if wanted.pin:
        said = f"pinned to {wanted.pin} by the command"
        if not fitting:
            return ServerVersion(version=wanted.pin, evidence=said)
        return replace(_from_cache(fitting[0], said, machine), floating=False)
    releases = list(dict.fromkeys(held.server.release for held in fitting))
    how = "asks for the newest release at every start" if launch.fresh else "takes any release"
    if fitting:
        held = f"uv's cache holds {' and '.join(releases)}"
        more = "the highest of them, or a newer one," if len(releases) > 1 else "this or a newer one"
        return _from_cache(fitting[0], f"the command {how}; {held}, and {more} would start", machine)
    unpacked = [release for release in uvcache.wheels(cache) if wanted.allows(release)]
    if unpacked and not also:
        said = f"the command {how}; the highest release in uv's cache is {unpacked[0]}"
        return ServerVersion(version=unpacked[0], evidence=said, floating=True)
    said = f"the command {how}, and uv's cache {cache} holds none yet; the first start downloads it"
    return ServerVersion(version=None, evidence=said, floating=True)


def _from_cache(held: uvcache.Held, said: str, machine: Machine) -> ServerVersion:
    return _at(held.site, distributions.venv_python(held.prefix, machine), said, machine, floating=True)


def _by_project(registration: Registration, machine: Machine) -> ServerVersion:
    """``uv run`` inside a project: the project's own environment."""
    text = registration.launch.project
    base = folder(registration, machine)
    if not locate.readable(machine) or (base is None and not machine.pure(text).is_absolute()):
        return ServerVersion(version=None, evidence=f"the uv project {text!r} depends on the folder of the client")
    project = (base or machine.root) / text
    prefix = project / ".venv"
    site = distributions.venv_site(prefix, machine)
    if site is None:
        said = f"the uv project {project} has no environment yet; the first start makes it"
        return ServerVersion(version=None, evidence=said, floating=True)
    said = f"installed in the uv project {project}"
    return _at(site, distributions.venv_python(prefix, machine), said, machine)


def _by_pipx(wanted: Requirement, env: Env, machine: Machine) -> ServerVersion:
    held = [found for found in uvcache.pipx_environments(env, machine) if wanted.allows(found.server.release)]
    if wanted.pin and not held:
        return ServerVersion(version=wanted.pin, evidence=f"pinned to {wanted.pin} by the command")
    if len({found.server.release for found in held}) == 1:
        prefix = held[0].prefix
        said = f"pipx keeps it in {prefix} for 14 days"
        python = distributions.venv_python(prefix, machine)
        return _at(held[0].site, python, said, machine, floating=not wanted.pin)
    said = "pipx installs the newest release for each run and keeps it for 14 days"
    return ServerVersion(version=None, evidence=said, floating=True)


def _of_this_process(registration: Registration, environment: Environment, machine: Machine) -> ServerVersion:
    """The environment this tool runs in; without a server there, the ``cpersona`` on PATH."""
    import sys  # noqa: PLC0415 - the only place that looks at this process
    import sysconfig  # noqa: PLC0415

    site = Path(sysconfig.get_path("purelib"))
    if machine.native and distributions.server(site):
        python = Path(sys.executable)
        script = python.parent / ("cpersona.exe" if machine.system == "windows" else "cpersona")
        return replace(
            _at(site, python, f"installed beside this tool in {site}", machine, script=script),
            program=script if script.is_file() else None,
        )
    program = programs.find("cpersona", registration, environment, machine)
    if program.path is None:
        said = "no CPersona is installed beside this tool, and no `cpersona` is on PATH"
        command = shlex.join((sys.executable, "-m", "pip", "install", "cpersona"))
        if program.write:
            command = f'export PATH={shlex.quote(str(Path(program.write).parent))}:"$PATH"'
        known = program.write or program.command or not program.problem
        return ServerVersion(
            version=None,
            evidence=said,
            program_problem=program.problem if known else said,
            program_command=program.command or command,
        )
    found = programs.home_of(program.path, machine)
    if found.site is None:
        return ServerVersion(version=None, evidence=found.why, program=program.path)
    said = f"installed in {found.site}, found through PATH"
    return replace(_at(found.site, found.python, said, machine, script=program.path), program=program.path)
