"""Which release would start, under which Python, beside which packages."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from cpersona_cli.install.model import LaunchKind
from cpersona_cli.install.release.version import NEWEST_KNOWN, older
from cpersona_cli.traps.model import (
    CannotTellError,
    Facts,
    Finding,
    Needs,
    Repair,
    Severity,
    SkipError,
    Target,
    Trap,
)
from cpersona_cli.traps.repairs import remove_variable

#: Releases that were withdrawn from the index.
YANKED = ("2.4.38", "2.4.39")


def known(target: Target) -> str:
    """The release that would start. Raises ``CannotTellError`` where it cannot be told without starting it."""
    if target.version.version is not None:
        return target.version.version
    if fetches_newest(target):
        raise SkipError("no release is here yet: the first start fetches the newest")
    if target.registration.launch.kind is LaunchKind.REMOTE or not target.registration.command:
        raise SkipError("the server runs elsewhere, so its release is not a matter of this entry")
    raise CannotTellError(f"{target.registration.label}: {target.version.evidence}")


def fetches_newest(target: Target) -> bool:
    """Whether nothing is installed or cached yet, so that the first start takes the newest release there is."""
    version = target.version
    runners = {LaunchKind.UVX, LaunchKind.PIPX}
    return version.version is None and version.floating and target.registration.launch.kind in runners


def _uv_tool(site: Path | None) -> bool:
    """Whether the environment is one of ``uv tool install``: uv keeps those in a folder named ``tools``."""
    return site is not None and "uv" in site.parts and "tools" in site.parts


def upgrade(target: Target) -> Repair:
    """How this registration comes to the newest release. No command here starts a server: that would migrate."""
    registration, site = target.registration, target.version.site
    first = "back the database up, then "
    last = f", then restart {registration.client_title}"
    kind = registration.launch.kind
    if _uv_tool(site):
        return Repair(prose=f"{first}upgrade the installed tool{last}", commands=("uv tool upgrade cpersona",))
    if kind is LaunchKind.UVX:
        return Repair(
            prose=f"{first}in {registration.place}, write cpersona@latest for cpersona, or refresh uv's cache with the "
            f"command{last}",
            edit='"cpersona@latest"',
            commands=("uvx --refresh --from cpersona@latest python -c pass",),
            place=registration.place,
        )
    if kind in {LaunchKind.DOCKER, LaunchKind.COMPOSE}:
        image = registration.launch.image.partition(":")[0]
        return Repair(
            prose=f"{first}pull a newer image{last}", commands=(f"docker pull {image}:{NEWEST_KNOWN}",) if image else ()
        )
    python = target.version.interpreter
    command = (shlex.join((str(python.python), "-m", "pip", "install", "--upgrade", "cpersona")),) if python else ()
    return Repair(prose=f"{first}upgrade cpersona in its environment{last}", commands=command)


def _cached(facts: Facts) -> Iterator[Finding]:
    target = facts.target
    launch = target.registration.launch
    if launch.kind is not LaunchKind.UVX:
        raise SkipError("not started by uvx")
    version = known(target)
    if (
        target.version.floating
        and not launch.fresh
        and older(version, NEWEST_KNOWN)
        and not _uv_tool(target.version.site)
    ):
        yield Finding(
            about="version",
            place=target.registration.place,
            measured=f"uvx would start {version} ({target.version.evidence}); {NEWEST_KNOWN} is known",
            repair=upgrade(target),
        )


def _tool_wins(facts: Facts) -> Iterator[Finding]:
    target = facts.target
    if target.registration.launch.kind is not LaunchKind.UVX or not _uv_tool(target.version.site):
        raise SkipError("no release installed with uv tool")
    version = known(target)
    if older(version, NEWEST_KNOWN):
        yield Finding(
            about="version",
            place=target.registration.place,
            measured=f"uvx starts {version}, which was installed with uv tool; {NEWEST_KNOWN} is known",
            repair=upgrade(target),
        )


def _old_python(facts: Facts) -> Iterator[Finding]:
    target = facts.target
    python = target.version.interpreter
    if python is None or not python.release:
        raise SkipError("the interpreter is not known")
    parts = python.release.split(".")
    if all(part.isdigit() for part in parts[:2]) and tuple(int(part) for part in parts[:2]) < (3, 11):
        yield Finding(
            about="python",
            place=target.registration.place,
            measured=f"{python.python} is Python {python.release}",
            repair=Repair(
                prose="let uv bring a Python of its own: command “uvx”, arguments [“--python”, “3.12”, “cpersona”]",
                commands=("uv python install 3.12",),
                place=target.registration.place,
            ),
        )


def _broken(facts: Facts) -> Iterator[Finding]:
    target = facts.target
    version = known(target)
    mcp = target.version.packages.get("mcp", "")
    if version in YANKED:
        said = f"release {version} was withdrawn from the index"
    elif older(version, "2.4.41") and mcp and not older(mcp, "2"):
        said = f"{version} beside mcp {mcp}, which it cannot be imported with"
    else:
        return
    yield Finding(
        about="version",
        place=target.registration.place,
        measured=said,
        repair=upgrade(target),
    )


def _beside_cembedding(facts: Facts) -> Iterator[Finding]:
    target = facts.target
    cembedding = target.version.packages.get("cembedding")
    if cembedding is None:
        return
    version = known(target)
    if older(version, NEWEST_KNOWN):
        yield Finding(
            about="cembedding",
            place=target.registration.place,
            measured=f"cembedding {cembedding} stands in the environment of cpersona {version}"
            + (f", with mcp {target.version.packages['mcp']}" if "mcp" in target.version.packages else ""),
            repair=Repair(
                prose="give the embedding server an environment of its own",
                commands=('uv tool install "cembedding[onnx]"', "uv tool install cpersona"),
            ),
        )


def _script_owner(facts: Facts) -> Iterator[Finding]:
    target = facts.target
    owner = target.version.script_owner
    # this tool owns the script too, and hands every start of the server on
    if target.registration.launch.kind is LaunchKind.SCRIPT and owner not in {"", "cpersona", "cpersona-cli"}:
        yield Finding(
            about="script",
            place=target.registration.place,
            measured=f"the cpersona script of {target.version.site} belongs to the distribution {owner!r}",
            repair=Repair(
                prose="start the server as a module instead, or install it into an environment of its own",
                commands=("uv tool install --force cpersona",),
                place=target.registration.place,
            ),
        )


def _update_check(facts: Facts) -> Iterator[Finding]:
    target = facts.target
    setting = target.settings["CPERSONA_UPDATE_CHECK"]
    if setting.given and setting.invalid:
        yield Finding(
            about=setting.name,
            place=setting.place,
            measured=f"{setting.name}={setting.text}, which counts as off",
            repair=remove_variable(target.registration, setting.name, at=setting.place),
        )


TRAPS = (
    Trap(
        id="version.cached",
        title="uvx starts an old release from its cache",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_cached,
        expected=f"{NEWEST_KNOWN} or newer, or a release that the entry pins",
        costs="an upgrade that seemed done was not: uvx keeps what it has until it is told to look again",
        repair="write cpersona@latest in the entry, or refresh uv's cache",
        source="uv's documentation of its cache",
        rows=("H1",),
    ),
    Trap(
        id="version.tool-wins",
        title="uvx prefers an older release that was installed with uv tool",
        severity=Severity.HINT,
        needs=Needs.REGISTRATION,
        detect=_tool_wins,
        expected=f"{NEWEST_KNOWN} or newer",
        costs="uvx cpersona starts the installed release, however old",
        repair="uv tool upgrade cpersona",
        source="uv's documentation: uvx uses an installed tool of the same name",
        rows=("H2",),
    ),
    Trap(
        id="version.python",
        title="Python is too old for the server",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_old_python,
        expected="Python 3.11 or newer",
        costs="the server cannot be installed, or an ancient release is",
        repair="let uv bring its own Python",
        source="requires-python of every release since 2.4",
        rows=("H5",),
    ),
    Trap(
        id="version.broken-release",
        title="A release that cannot work",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_broken,
        expected="a release that was not withdrawn, with an mcp library it knows",
        costs="the server stops while it is imported, or is one its authors took back",
        repair="start a newer release",
        source="the changelog of 2.4.40 and 2.4.41",
        rows=("H6",),
    ),
    Trap(
        id="version.beside-cembedding",
        title="The embedding server in the same environment holds the release back",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_beside_cembedding,
        expected="two environments",
        costs="cembedding needs mcp below 1.27, so the installer silently takes an older cpersona",
        repair="install them apart",
        source="measured: pip install cpersona cembedding gives cpersona 2.6.10",
        rows=("B35", "H7"),
    ),
    Trap(
        id="version.script-owner",
        title="Another distribution owns the cpersona script",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_script_owner,
        expected="a cpersona script that belongs to cpersona",
        costs="the client starts another program, and uninstalling that one removes the script",
        repair="install the server into an environment of its own",
        source="installers overwrite scripts of one name without a word",
        rows=("H11",),
    ),
    Trap(
        id="version.update-check",
        title="The update check is off by accident",
        severity=Severity.HINT,
        needs=Needs.REGISTRATION,
        detect=_update_check,
        expected="CPERSONA_UPDATE_CHECK=true or false",
        costs="you are not told of new releases",
        repair="write true or false, or remove it",
        source="config: an unreadable value counts as off",
        rows=("H12",),
        since="2.5",
    ),
)
