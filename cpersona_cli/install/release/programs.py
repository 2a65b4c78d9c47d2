"""The program a registration names: the file its client would start, and the Python behind that file."""

from __future__ import annotations

import re
from pathlib import Path

from cpersona_cli.install.environment import folder
from cpersona_cli.install.expand import context, expand
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Environment, Registration
from cpersona_cli.install.release import distributions, interpreter, locate
from cpersona_cli.record import record

_SHIMS = {
    "/.pyenv/shims/": "pyenv",
    "/.pyenv/pyenv-win/shims/": "pyenv",
    "/.asdf/shims/": "asdf",
    "/mise/shims/": "mise",
    "/.rbenv/shims/": "rbenv",
}
_HEAD = 4096
_TAIL = 1 << 17


@record
class Program:
    """A program word resolved: the file, or None; and why a client would fail to start it, as a sentence.

    ``write`` is the path that would work in its place, ``command`` what makes the file itself work. ``doubt`` is a
    sentence about a file that can be started and may still start the wrong thing.
    """

    path: Path | None = None
    problem: str = ""
    write: str = ""
    command: str = ""
    doubt: str = ""


@record
class Home:
    """The Python environment a script or interpreter belongs to; ``why`` says what could not be told."""

    python: Path | None = None
    site: Path | None = None
    why: str = ""


def find(word: str, registration: Registration, environment: Environment, machine: Machine) -> Program:
    """Look for a program the way the registration's client does: by its own PATH, not by this shell's."""
    values = environment.outer or environment.values
    where = context(registration, machine, lambda name: values[name].text if name in values else None)
    text, unresolved = expand(word, where)
    if not text or unresolved:
        return Program(problem=f"the program {word!r} cannot be told: {unresolved}" if unresolved else "")
    if not locate.readable(machine):
        return Program()
    path = values["PATH"].text if "PATH" in values else ""
    if locate.is_bare(text):
        return _on_path(text, path, registration, machine)
    if text.startswith("~"):
        meant = machine.home / text.lstrip("~/\\")
        return Program(problem=f"nothing expands the ~ in {text!r}", write=str(meant))
    base = folder(registration, machine)
    if not machine.pure(text).is_absolute() and base is None:
        return Program(problem=f"{text!r} is relative, and the folder the client starts it in is not fixed")
    full = (base or machine.root) / text
    return _checked(full)


def _on_path(word: str, path: str, registration: Registration, machine: Machine) -> Program:
    found = locate.which(word, path, machine)
    if found is not None:
        return Program(found, doubt=shim(found))
    shell = locate.which(word, machine.env.get("PATH", ""), machine)
    elsewhere = shell or locate.which(word, locate.usual_places(machine), machine)
    title = registration.client_title or "the client"
    if shell and registration.launch.wrapper.endswith("login shell"):
        return Program(shell, doubt=shim(shell))
    if elsewhere:
        told = "only this shell's PATH has it" if shell else "it is installed, but in no folder of that PATH"
        return Program(
            None,
            f"{word} is not on the PATH that {title} starts programs with; {told}: {elsewhere}",
            write=str(elsewhere),
        )
    blocked = _not_executable(word, path, machine)
    if blocked:
        return _blocked(blocked)
    return Program(None, f"{word} was not found, neither on the PATH of {title} nor on this shell's")


def _not_executable(word: str, path: str, machine: Machine) -> Path | None:
    if machine.system == "windows":
        return None
    for part in path.split(":"):
        try:
            if part and (Path(part) / word).is_file():
                return Path(part) / word
        except (OSError, ValueError):
            continue
    return None


def _checked(path: Path) -> Program:
    try:
        if path.is_dir():
            return Program(None, f"{path} is a folder, not a program")
        if not path.exists():
            broken = path.is_symlink()
            return Program(None, f"{path} is a link to nothing" if broken else f"{path} does not exist")
    except (OSError, ValueError):
        return Program(None, f"{path!r} cannot be looked at")
    if not locate.executable(path):
        return _blocked(path)
    return Program(path, doubt=shim(path))


def _blocked(path: Path) -> Program:
    import shlex  # noqa: PLC0415 - only where a command is to be shown

    return Program(None, f"{path} may not be executed", command=f"chmod +x {shlex.quote(str(path))}")


def shim(path: Path) -> str:
    """A sentence when ``path`` is the stand-in of a version manager, which chooses a program by the folder."""
    text = path.as_posix()
    manager = next((name for part, name in _SHIMS.items() if part in text), "")
    return (
        f"{path} belongs to {manager}, which chooses the real program by folder and shell settings" if manager else ""
    )


def home_of(script: Path, machine: Machine) -> Home:
    """The environment of an installed script: by its first line, or by the folder it stands in."""
    try:
        real = script.resolve()
        with real.open("rb") as stream:
            head = stream.read(_HEAD)
            binary = head[:2] == b"MZ"
            if binary:
                stream.seek(max(0, real.stat().st_size - _TAIL))
                head = stream.read(_TAIL)
    except (OSError, ValueError, RuntimeError) as error:
        said = getattr(error, "strerror", None) or type(error).__name__
        return Home(why=f"{script} cannot be read ({said})")
    beside = real.parent.parent
    python = _named_python(head, binary=binary)
    if python == "" or (binary and python is None):
        return _of_prefix(beside, machine) or Home(why=f"{script} does not say which Python runs it")
    if python is None:
        return Home(why=f"{script} is not a Python script; what it starts was not read")
    if python.startswith("/usr/bin/env") or not machine.pure(python).is_absolute():
        return _of_prefix(beside, machine) or Home(why=f"{script} is run by whichever python is first on PATH")
    return home_of_python(Path(python), machine)


def _named_python(head: bytes, *, binary: bool) -> str | None:
    """The interpreter a script names; an empty text for one beside it; None when it is no Python script.

    Long paths, paths with blanks and relocatable scripts are written as shell code with the Python in ``exec``.
    """
    if binary:
        lines = re.findall(rb"#!([^\r\n\0]+)", head)
        found = [line.decode("utf-8", "replace").strip().strip('"') for line in lines]
        return next((text for text in found if "python" in text.lower()), None)
    if not head.startswith(b"#!"):
        return None
    first, _, rest = head.partition(b"\n")
    line = first[2:].decode("utf-8", "surrogateescape").strip()
    if line.split("/")[-1].split(" ")[0] == "sh" and rest.startswith(b"'''exec'"):
        code = rest.split(b"\n", 1)[0].decode("utf-8", "surrogateescape")
        if "dirname" in code:
            return ""
        match = re.match(r"'''exec' \"?([^\"]*?)\"? \"\$0\"", code)
        return match.group(1) if match else None
    if re.match(r"^\S*/env\s+(?:-S\s+)?\S*python", line):
        return "/usr/bin/env python"
    return line if "python" in line.rsplit("/", 1)[-1] or "pypy" in line else None


def _of_prefix(prefix: Path, machine: Machine) -> Home | None:
    site = distributions.venv_site(prefix, machine)
    return Home(distributions.venv_python(prefix, machine), site) if site else None


def home_of_python(python: Path, machine: Machine) -> Home:
    """The environment of an interpreter: its virtual environment, or its own site-packages."""
    for prefix in (python.parent.parent, python.parent):
        site = distributions.venv_site(prefix, machine)
        if site is not None:
            return Home(python, site)
    if not locate.executable(python):
        return Home(why=f"{python} does not exist or may not be executed")
    asked, sites = interpreter.ask(python, machine)
    holding = [site for site in sites if "cpersona" in distributions.installed(site)]
    if holding:
        return Home(python, holding[0])
    return Home(python, sites[0] if sites else None, asked.problem)
