"""What a trap may rely on before it judges a registration's variables, or what a database holds."""

from __future__ import annotations

from cpersona_cli.install.model import LaunchKind
from cpersona_cli.install.settings.effective import Effective
from cpersona_cli.record import replace
from cpersona_cli.store.reading import Reading, State
from cpersona_cli.traps.model import CannotTellError, Facts, Finding, Severity, SkipError, Target

_ELSEWHERE = {LaunchKind.REMOTE, LaunchKind.PROXY}
_PROMPT = "${input:"
_ABSENT = {State.MISSING, State.NO_FOLDER, State.VOLATILE}


def elsewhere(target: Target) -> bool:
    """Whether the registration only connects to a server that is started elsewhere, with settings of its own."""
    return target.registration.launch.kind in _ELSEWHERE or target.registration.transport == "http"


def server(facts: Facts) -> Target:
    """The target, when its registration starts the server itself.

    Raises ``SkipError`` for an entry that only connects to a server started elsewhere: its variables are not here.
    """
    target = facts.target
    if elsewhere(target):
        raise SkipError("the server is started elsewhere, its settings do not stand in this file")
    return target


def written(facts: Facts, name: str) -> Effective | None:
    """The setting when somebody wrote a non-empty text for it and that text is known; else None.

    A text that the client could not expand is not judged here (that it could not is a finding of its own).
    Raises ``SkipError`` when the client asks the user for the value at every start, and for an entry that only
    connects to a server started elsewhere.
    """
    found = server(facts).settings[name]
    if prompted(found):
        raise SkipError(f"{found.name} is asked for when the client starts, so its value stands in no file")
    return found if found.given and not (found.unresolved or found.ignored) else None


def prompted(setting: Effective) -> bool:
    """Whether the client asks the user for the value."""
    return bool(setting.unresolved) and _PROMPT in (setting.text or "")


def untyped(target: Target, name: str) -> bool:
    """Whether the file gives ``name`` as no text at all (a number, a list): that is a finding of its own."""
    return any(v.name == name and not isinstance(v.raw, str) for v in target.registration.variables)


def own(target: Target, name: str) -> bool:
    """Whether ``name`` was written for this server, and is not merely inherited from the shell around the client."""
    value = target.environment.values.get(name)
    if value is None:
        return False
    return value.place.file is not None or target.environment.base in {"process", "container", "wsl"}


def unless_set_elsewhere(target: Target) -> str:
    """The condition under which a missing variable is not missing after all; empty when nothing else can set it."""
    launch = target.registration.launch
    if target.environment.problems:
        return f"unless it is set in what could not be read: {target.environment.problems[0]}"
    if launch.wrapper:
        return f"unless {launch.wrapper} sets it"
    if launch.kind is LaunchKind.UNKNOWN:
        return f"unless {launch.program or 'the command'} sets it"
    return f"unless it is set in what could not be told: {launch.unclear[0]}" if launch.unclear else ""


def missing(finding: Finding, target: Target) -> Finding:
    """A finding about a variable that is not set, as far as that can be known.

    What a wrapper or a shell's start files may set after all is a warning and says so. Raises ``CannotTellError`` for
    a container that was made earlier, whose variables are all unknown, and ``SkipError`` for an entry in a file that
    breaks off, which is a finding of its own.
    """
    launch = target.registration.launch
    if target.registration.torn:
        raise SkipError(f"{target.registration.place.file} ends too early; what was to follow is not known")
    if launch.made_earlier:
        raise CannotTellError(f"{finding.about} is not in the command, and {launch.unclear[0]}")
    condition = unless_set_elsewhere(target)
    certain = not condition or target.environment.problems or finding.severity is not None
    return replace(finding, depends=condition, severity=finding.severity if certain else Severity.WARNING)


def readable(facts: Facts) -> Reading:
    """The reading, where the content could be read; else the check is skipped, with the reason."""
    reading = facts.database.reading
    if reading.state is not State.OK:
        raise SkipError(f"{reading.path}: {obstacle(reading)}")
    return reading


def measured(reading: Reading, *fields: str) -> None:
    """Raise ``CannotTellError`` when one of ``fields`` was not looked at for lack of time."""
    missed = [name for name in fields if name in reading.unmeasured]
    if missed:
        raise CannotTellError(f"{reading.path}: there was no time to look at {', '.join(missed)}")


def present(facts: Facts) -> Reading:
    """The reading, where something exists at the path; else the check is skipped."""
    reading = facts.database.reading
    if reading.state in _ABSENT:
        raise SkipError(f"{reading.path}: {obstacle(reading)}")
    return reading


def obstacle(reading: Reading) -> str:
    """What stood in the way of reading, in words."""
    return reading.detail or f"its state is “{reading.state}”"
