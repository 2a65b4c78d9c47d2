"""The tool's own settings: flag, then ``CPERSONA_CLI_*``, then ``config.toml``, then default; each knows its source."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from cpersona_cli.commands.errors import UsageError
from cpersona_cli.record import record
from cpersona_cli.report.model import FailOn
from cpersona_cli.report.output import FORMATS
from cpersona_cli.text import nearest, safe
from cpersona_cli.traps.toolfile import ToolFile, load

PREFIX = "CPERSONA_CLI_"

#: Variables with the prefix that are no preferences.
_OTHERS = ("CPERSONA_CLI_CONFIG", "CPERSONA_CLI_DEBUG")

Plain = str | bool | float | tuple[str, ...] | None


@record(kw_only=True)
class Preference:
    """One setting. ``choices`` bound a text; a ``words`` value is a list, in the environment separated by commas."""

    name: str
    kind: Literal["text", "path", "flag", "seconds", "words"]
    default: Plain
    choices: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper().replace("-", "_")


#: Every preference, named like its option.
PREFERENCES = (
    Preference(name="format", kind="text", default="text", choices=tuple(FORMATS)),
    Preference(name="color", kind="text", default="auto", choices=("auto", "always", "never")),
    Preference(name="fail-on", kind="text", default="fault", choices=tuple(FailOn)),
    Preference(name="timeout", kind="seconds", default=20.0),
    Preference(name="offline", kind="flag", default=False),
    Preference(name="waivers", kind="path", default=None),
    Preference(name="client", kind="words", default=()),
    Preference(name="skip", kind="words", default=()),
)


@record
class Chosen:
    """A value and where it was chosen."""

    value: Plain
    source: str


@record(kw_only=True)
class Preferences:
    """All values in force; ``file`` is the configuration read; ``notes`` tell what was set and is read by nobody."""

    chosen: Mapping[str, Chosen]
    file: Path | None = None
    notes: tuple[str, ...] = ()

    def text(self, name: str) -> str:
        value = self.chosen[name].value
        return value if isinstance(value, str) else ""

    def words(self, name: str) -> tuple[str, ...]:
        value = self.chosen[name].value
        return value if isinstance(value, tuple) else ()

    def flag(self, name: str) -> bool:
        return self.chosen[name].value is True

    def seconds(self, name: str) -> float:
        value = self.chosen[name].value
        return value if isinstance(value, float) else 0.0

    def rows(self) -> list[tuple[str, str, str]]:
        """(name, value, source) of each, for people."""
        return [(name, _shown(chosen.value), chosen.source) for name, chosen in self.chosen.items()]


def resolve(flags: Mapping[str, object], env: Mapping[str, str], config: Path | None = None) -> Preferences:
    """Settle every preference. ``flags`` holds what options said, None or empty where they were not given.

    ``config`` is the file named on the command line; else ``CPERSONA_CLI_CONFIG``, else ``config.toml`` in the
    platform's folder, which need not exist. Raises ``UsageError`` or ``ToolFileError``.
    """
    file, notes = _file(config, env)
    chosen = {preference.name: _choose(preference, flags, env, file) for preference in PREFERENCES}
    known = [*(preference.variable for preference in PREFERENCES), *_OTHERS]
    for name in sorted(env):
        if name.startswith(PREFIX) and name not in known:
            near = nearest(name, known)
            notes.append(f"{name} is set and read by nobody{f'; did you mean {near}?' if near else ''}")
    return Preferences(chosen=chosen, file=file.path if file else None, notes=tuple(notes))


def _file(config: Path | None, env: Mapping[str, str]) -> tuple[ToolFile | None, list[str]]:
    """The file in force, and what is to be said of one that is not."""
    path = config or _named(env)
    if path is None:
        path = default_path()
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None, []
        except OSError as error:
            # A home of another user, as in a container: nobody put a file there for this user.
            return None, [f"{path} was not read: {error.strerror}"]
    file = load(path)
    file.expect_keys(file.data, (preference.name for preference in PREFERENCES))
    return file, []


def format_in_file(argv: Sequence[str], env: Mapping[str, str]) -> str:
    """The ``format`` of the file that ``resolve`` would read, even if something else in it is wrong; empty for none.

    ``argv`` is looked at, not parsed: this is for errors met before or while parsing. Raises what ``load`` raises.
    """
    named = re.search(r"(?:^|\0)--config[=\0]([^\0]+)", "\0".join(argv))
    path = Path(named[1]) if named else _named(env) or default_path()
    value = load(path).data.get("format")
    return value if isinstance(value, str) else ""


def _named(env: Mapping[str, str]) -> Path | None:
    return Path(env["CPERSONA_CLI_CONFIG"]) if env.get("CPERSONA_CLI_CONFIG") else None


def default_path() -> Path:
    """``config.toml`` in the folder that this platform keeps settings in."""
    from platformdirs import user_config_path  # noqa: PLC0415 - slow to import, and not needed with --config

    return user_config_path("cpersona-cli", appauthor=False) / "config.toml"


def _choose(
    preference: Preference, flags: Mapping[str, object], env: Mapping[str, str], file: ToolFile | None
) -> Chosen:
    given = flags.get(preference.name)
    if given is not None and given != []:
        return Chosen(_value(preference, given, f"--{preference.name}"), "option")
    written = env.get(preference.variable)
    if written:
        return Chosen(_value(preference, _parse(preference, written), preference.variable), preference.variable)
    if file is not None and preference.name in file.data:
        line = file.key_line(preference.name)
        where = f"{file.path}:{line}" if line else str(file.path)
        value = _value(preference, file.data[preference.name], f"{where}: {preference.name}")
        if preference.kind == "path" and isinstance(value, str):
            value = str(file.path.parent / Path(value).expanduser())
        return Chosen(value, where)
    return Chosen(preference.default, "default")


def _parse(preference: Preference, written: str) -> object:
    """The text of a variable as the value an option or a file would give."""
    if preference.kind == "words":
        return [written]
    if preference.kind == "flag":
        return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}.get(
            written.strip().lower(), written
        )
    if preference.kind == "seconds":
        try:
            return float(written)
        except ValueError:
            return written
    return written


def _value(preference: Preference, value: object, source: str) -> Plain:
    """``value`` if it is what the preference takes; raises ``UsageError`` that names ``source``."""
    if preference.kind == "flag":
        if isinstance(value, bool):
            return value
        raise UsageError(f"{safe(source)} takes true or false, not {_quoted(value)}")
    if preference.kind == "seconds":
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 86_400:
            return float(value)
        raise UsageError(f"{safe(source)} takes a number of seconds above 0 and up to 86400, not {_quoted(value)}")
    if preference.kind == "words":
        if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
            return tuple(word for item in value for part in str(item).split(",") if (word := part.strip()))
        raise UsageError(f"{safe(source)} takes a list of texts, not {_quoted(value)}")
    if not isinstance(value, str) or not value:
        raise UsageError(f"{safe(source)} takes a text, not {_quoted(value)}")
    if preference.choices and value not in preference.choices:
        near = nearest(value, preference.choices)
        hint = f"; did you mean {near}?" if near else ""
        raise UsageError(f"{safe(source)} takes one of {', '.join(preference.choices)}, not {_quoted(value)}{hint}")
    return value


def _quoted(value: object) -> str:
    return safe(repr(value), 60)


def _shown(value: Plain) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else value
