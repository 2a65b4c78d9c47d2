"""Why the server would refuse to start with these settings: its own start-up checks, replayed in its own order.

What only a file can tell (an ACL file that is missing or wrong) and what only the network library can (a malformed
proxy) is not here.
"""

from __future__ import annotations

from collections.abc import Iterator

from cpersona_cli.install.release.version import NEWEST_KNOWN, older
from cpersona_cli.install.settings.effective import Effective, Settings, preview
from cpersona_cli.install.settings.model import Invalid, Reader
from cpersona_cli.record import record
from cpersona_cli.text import safe

_MODE = "CPERSONA_EMBEDDING_MODE"
_TRANSPORT = "CPERSONA_TRANSPORT"
_PORT = "CPERSONA_HTTP_PORT"
_TIMEOUT = "CPERSONA_EMBEDDING_TIMEOUT_SECS"
_CAPS = ("CPERSONA_MAX_CONTENT_LENGTH", "CPERSONA_MAX_PROFILE_LENGTH")
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})

# Checked by the server after its import, each in a place of its own.
_LATER = frozenset({_MODE, _TRANSPORT, _PORT, _TIMEOUT, *_CAPS})


@record
class Refusal:
    """One reason: the settings that disagree (the one to change first) and the sentence that says how."""

    settings: tuple[str, ...]
    sentence: str


def refusals(settings: Settings, version: str | None) -> tuple[Refusal, ...]:
    """Every reason for release ``version`` (None: the newest) not to start; the server itself names the first only.

    Settings whose text could not be expanded are not judged.
    """
    release = version or NEWEST_KNOWN
    return tuple(
        refusal
        for refusal in _in_order(settings, release)
        if not any(name in settings and settings[name].unresolved for name in refusal.settings)
    )


def _in_order(settings: Settings, release: str) -> Iterator[Refusal]:
    yield from _at_import(settings)
    if not older(release, "2.6.0"):
        yield from _reconstruct(settings, release)
        yield from _blocks(settings)
    for name in _CAPS:
        yield from _own(settings, name)
    early = not older(release, "2.6.11")  # before, the transport was looked at last
    if early:
        yield from _own(settings, _TRANSPORT)
    yield from _authentication(settings, release)
    yield from _own(settings, _MODE)
    if settings[_MODE].value != "none":
        yield from _own(settings, _TIMEOUT)
    if not early:
        yield from _own(settings, _TRANSPORT)
    if settings[_TRANSPORT].value == "streamable-http":
        yield from _own(settings, _PORT)


def _own(settings: Settings, name: str) -> Iterator[Refusal]:
    found = settings[name]
    if found.outcome is Invalid.REFUSES:
        yield Refusal((name,), f"{found.name}: {found.invalid}")


def _at_import(settings: Settings) -> Iterator[Refusal]:
    """What the server reads into numbers as soon as it is imported (an error in releases before 2.5.0)."""
    for name, found in settings.values.items():
        if found.setting.reader is Reader.SERVER and name not in _LATER:
            yield from _own(settings, name)


def _number(found: Effective) -> int | None:
    return found.value if isinstance(found.value, int) else None


def _shown(found: Effective) -> str:
    return f"{found.name or found.setting.name}={found.value}"


def _above(settings: Settings, name: str, limit: str) -> Iterator[Refusal]:
    value, most = _number(settings[name]), _number(settings[limit])
    if value is not None and most is not None and value > most:
        both = (name, limit) if settings[name].given else (limit, name)
        yield Refusal(both, f"{_shown(settings[name])} is more than {_shown(settings[limit])}")


def _reconstruct(settings: Settings, release: str) -> Iterator[Refusal]:
    prefix = "CPERSONA_RECONSTRUCT_"
    yield from _above(settings, f"{prefix}DEFAULT_COUNT", f"{prefix}MAX_COUNT")
    yield from _above(settings, f"{prefix}FORCED_COUNT", f"{prefix}MAX_COUNT")
    budgets = ("MAX_BUDGET", "DEFAULT_BUDGET", "FORCED_BUDGET")
    if older(release, "2.6.11"):
        budgets = ("DEFAULT_BUDGET", "MAX_BUDGET", "FORCED_BUDGET")
    floor = preview(settings.values)
    chars = settings["CPERSONA_RECALL_PREVIEW_CHARS"]
    for name in (f"{prefix}{budget}" for budget in budgets):
        value = _number(settings[name])
        if value is not None and value < floor:
            both = (name, chars.setting.name) if settings[name].given else (chars.setting.name, name)
            yield Refusal(both, f"{_shown(settings[name])} is less than one preview ({_shown(chars)})")
    yield from _above(settings, f"{prefix}DEFAULT_BUDGET", f"{prefix}MAX_BUDGET")
    yield from _above(settings, f"{prefix}FORCED_BUDGET", f"{prefix}MAX_BUDGET")
    if not older(release, "2.6.4"):
        yield from _tail(settings, f"{prefix}TAIL_QUOTE_CHARS", f"{prefix}QUOTE_CHARS")


def _tail(settings: Settings, tail: str, quote: str) -> Iterator[Refusal]:
    later, first = _number(settings[tail]) or 0, _number(settings[quote]) or 0
    if first > 0 and not 0 < later <= first:
        both = (tail, quote) if settings[tail].given else (quote, tail)
        yield Refusal(both, f"{_shown(settings[tail])} must be above 0 and at most {_shown(settings[quote])}")


def _blocks(settings: Settings) -> Iterator[Refusal]:
    read, build = settings["CPERSONA_BLOCK_RETRIEVAL_ENABLED"], settings["CPERSONA_BLOCK_BUILD_ENABLED"]
    if read.value and not build.value:
        yield Refusal(
            (read.setting.name, build.setting.name),
            f"{read.setting.name} is on and {build.setting.name} is off: there would be no blocks to search",
        )


def _authentication(settings: Settings, release: str) -> Iterator[Refusal]:
    """The HTTP transport without a token. An ACL file takes the token's place."""
    acl = settings["CPERSONA_ACL_FILE"]
    if settings[_TRANSPORT].value != "streamable-http" or settings["CPERSONA_AUTH_TOKEN"].value:
        return
    if acl.value and not acl.ignored:
        return
    if older(release, "2.5.3"):
        host = settings["CPERSONA_HTTP_HOST"]
        if host.value not in _LOOPBACK:
            yield Refusal(
                ("CPERSONA_AUTH_TOKEN", host.setting.name),
                f"the HTTP transport on {safe(str(host.value), 60)} needs CPERSONA_AUTH_TOKEN",
            )
        return
    allowed = settings["CPERSONA_ALLOW_UNAUTHENTICATED_HTTP"]
    if not allowed.value:
        but = f" ({allowed.setting.name}: {allowed.invalid})" if allowed.invalid else ""
        yield Refusal(
            ("CPERSONA_AUTH_TOKEN", allowed.setting.name),
            f"the HTTP transport needs CPERSONA_AUTH_TOKEN or CPERSONA_ACL_FILE{but}",
        )
