"""From one text to one value, the way the reader of the variable does it."""

from __future__ import annotations

from cpersona_cli.install.settings.model import Invalid, Kind, Reader, Setting
from cpersona_cli.record import record
from cpersona_cli.text import safe, secret

Parsed = str | int | float | bool | None

TRUE_WORDS = ("true", "1", "yes", "on")
FALSE_WORDS = ("false", "0", "no", "off")

_SHOWN = 60  # characters of a wrong value that a sentence quotes


@record
class Result:
    """A value, and where the text could not be used: what happens (``outcome``) and the sentence (``wrong``)."""

    value: Parsed
    wrong: str = ""
    outcome: Invalid | None = None


def default_of(setting: Setting) -> Parsed:
    """The value of the default text."""
    if not setting.default:
        return "" if setting.kind is Kind.TEXT else None
    return _plain(setting, setting.default)


def parse(setting: Setting, text: str, default: Parsed) -> Result:
    """What ``setting`` (as of one release, see ``Setting.at``) becomes when ``text`` is written.

    ``default`` is the default in force, which may follow from other settings.
    """
    if setting.stripped:
        text = text.strip()
    if not text and setting.empty_is_unset:
        return Result(default)
    match setting.kind:
        case Kind.INT | Kind.OPTIONAL_INT | Kind.FLOAT:
            return _number(setting, text, default)
        case Kind.BOOL:
            return _bool(setting, text, default)
        case Kind.TRUE_ONLY:
            return _true_only(setting, text)
        case Kind.OFF_ONLY:
            return Result(text.lower() != "off")
        case Kind.TRISTATE:
            return _tristate(setting, text)
        case Kind.TEXT:
            return _text(setting, text)
        case _:
            return _choice(setting, text, default)


def _plain(setting: Setting, text: str) -> Parsed:
    match setting.kind:
        case Kind.INT | Kind.OPTIONAL_INT:
            return int(text)
        case Kind.FLOAT:
            return float(text)
        case Kind.BOOL | Kind.TRUE_ONLY:
            return text == "true"
        case Kind.OFF_ONLY:
            return text != "off"
        case _:
            return text


def _text(setting: Setting, text: str) -> Result:
    if not text and setting.effect:
        return Result(text, f"it is set but empty: {setting.effect}", setting.invalid)
    return Result(text)


def _number(setting: Setting, text: str, default: Parsed) -> Result:
    whole = setting.kind is not Kind.FLOAT
    value: float
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        instead = _plain(setting, setting.fallback) if setting.fallback else default
        return _unusable(setting, text, "is no whole number" if whole else "is no number", setting.invalid, instead)
    if outside := _outside(setting, value):
        return _unusable(setting, text, outside, setting.outside, value if _refused(setting.outside) else default)
    moved = _moved(setting, value)
    if moved == value or (value != value and moved != moved):  # noqa: PLR0124 - the second half asks for nan
        return Result(moved)
    return _unusable(setting, text, "is out of bounds", Invalid.CLAMPED, moved)


def _refused(outcome: Invalid) -> bool:
    return outcome is Invalid.REFUSES


def _outside(setting: Setting, value: float) -> str:
    """Why a number is outside of its bounds; each comparison is written so that ``nan`` fails it."""
    if setting.low is not None and not value >= setting.low:
        return f"is below {setting.low:g}"
    if setting.above is not None and not value > setting.above:
        return f"is not above {setting.above:g}"
    if setting.high is not None and not value <= setting.high:
        return f"is above {setting.high:g}"
    return ""


def _moved(setting: Setting, value: float) -> float:
    # max() and min() keep their first argument when the second is nan; the order is the server's.
    if setting.floor is not None:
        value = max(type(value)(setting.floor), value)
    if setting.ceiling is not None:
        value = min(type(value)(setting.ceiling), value)
    return value


def _bool(setting: Setting, text: str, default: Parsed) -> Result:
    word = text.strip().lower()
    if word in TRUE_WORDS or word in FALSE_WORDS:
        return Result(word in TRUE_WORDS)
    instead = False if setting.invalid is Invalid.OFF else default
    return _unusable(setting, text, "is neither true nor false", setting.invalid, instead)


def _true_only(setting: Setting, text: str) -> Result:
    if text.lower() == "true":
        return Result(value=True)
    if text.strip().lower() in FALSE_WORDS or (not text and setting.default != "true"):
        return Result(value=False)
    return _unusable(setting, text, "is not the word true", Invalid.OFF, instead=False)


def _tristate(setting: Setting, text: str) -> Result:
    word = text.strip().lower()
    if word in ("", "auto"):
        return Result("auto")
    if word in ("true", "false"):
        return Result("on" if word == "true" else "off")
    return _unusable(setting, text, "is none of auto, true and false", Invalid.OFF, "off")


def _choice(setting: Setting, text: str, default: Parsed) -> Result:
    word = text
    if setting.kind is not Kind.EXACT:
        word = word.lower()
    if setting.kind is Kind.CHOICE:
        word = word.strip()
    if word in setting.choices:
        return Result(word)
    instead = default if setting.invalid is Invalid.DEFAULT else word
    return _unusable(setting, text, f"is none of {', '.join(setting.choices)}", setting.invalid, instead)


def _unusable(setting: Setting, text: str, what: str, outcome: Invalid, instead: Parsed) -> Result:
    who = "the server" if setting.reader is Reader.SERVER else f"the {setting.reader.value}"
    match outcome:
        case Invalid.REFUSES:
            then = f"{who} refuses to start"
        case Invalid.OFF:
            then = f"{who} takes it as off"
        case Invalid.IGNORED:
            then = f"{who} goes on as if it were unset"
        case Invalid.UNCHECKED:
            then = f"{who} takes it as it is"
        case _:
            then = f"{who} uses {_spelled(instead)} instead"
    effect = f"; {setting.effect}" if setting.effect and outcome in {Invalid.REFUSES, Invalid.UNCHECKED} else ""
    return Result(instead, f"{_quoted(setting, text)} {what}: {then}{effect}", outcome)


def _quoted(setting: Setting, text: str) -> str:
    return f"the value ({secret(text)})" if setting.secret else f"“{safe(text, _SHOWN)}”"


def _spelled(value: Parsed) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "no value" if value is None else str(value)
