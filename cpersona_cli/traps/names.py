"""Which embedding variables are set, under which of their names, and whether they fit each other."""

from __future__ import annotations

from collections.abc import Iterator

from cpersona_cli.install.settings.effective import Effective
from cpersona_cli.install.settings.model import Reader
from cpersona_cli.install.settings.table import BY_ALIAS, BY_NAME
from cpersona_cli.record import replace
from cpersona_cli.text import nearest, safe
from cpersona_cli.traps.model import Facts, Finding, Needs, Repair, Severity, Target, Trap
from cpersona_cli.traps.repairs import remove_variable, rename_variable, set_variable, set_variables
from cpersona_cli.traps.subject import missing, own, prompted, server, untyped

MODE = "CPERSONA_EMBEDDING_MODE"
URL = "CPERSONA_EMBEDDING_URL"
KEY = "CPERSONA_EMBEDDING_API_KEY"
API_URL = "CPERSONA_EMBEDDING_API_URL"
MODEL = "CPERSONA_EMBEDDING_MODEL"
EMBEDDING = (MODE, URL, KEY, API_URL, MODEL)

MODES = ("none", "http", "api")

_REFERENCE_URL = "http://127.0.0.1:8401/embed"

# Written for this server as often as for the embedding server, so no sign of a shared block.
_MISTAKEN = {"EMBEDDING_TIMEOUT_SECS", "EMBEDDING_DIMENSIONS"}

# What people write for a mode, and the mode they mean.
_MEANT = {
    "http": ("local", "onnx", "mlx", "jina", "cembedding", "server", "rest", "url", "true", "on", "yes", "1", "https"),
    "api": ("openai", "ollama", "lmstudio", "tei", "voyage", "cohere", "azure", "gemini", "litellm", "openrouter"),
    "none": ("false", "off", "no", "0", "null", "disabled", "fts"),
}


def reference_url(target: Target) -> str:
    """The address of the reference embedding server on this machine, as the server of ``target`` reaches it."""
    inside = target.registration.launch.inside == "container" and not target.registration.launch.network_host
    return _REFERENCE_URL.replace("127.0.0.1", "host.docker.internal") if inside else _REFERENCE_URL


def mode(facts: Facts) -> str:
    """The embedding mode in force, an empty string when it is unknown or unsupported."""
    found = facts.setting(MODE)
    return str(found.value) if found.value in MODES and not found.unresolved else ""


def renamed(target: Target, name: str) -> Repair | None:
    """The repair when a look-alike of ``name`` is set that nobody reads; None when there is none."""
    for unknown in target.settings.unknown:
        if unknown.meant == name:
            return rename_variable(target.registration, unknown.name, name, at=unknown.place)
    return None


def _mode_none(facts: Facts) -> Iterator[Finding]:
    target, found = server(facts), facts.setting(MODE)
    advisory = facts.setting("CPERSONA_DEGRADED_ADVISORY")
    consent = advisory.given and advisory.value is False
    if mode(facts) != "none" or consent or _set_in_vain(facts):
        return
    repair = renamed(target, MODE) or set_variables(target.registration, {MODE: "http", URL: reference_url(target)})
    finding = Finding(
        about=MODE,
        place=found.place if found.given else target.registration.place,
        measured=f"{found.name}=none" if found.given else "no embedding mode is set, and the default is none",
        repair=repair,
        severity=Severity.HINT,
    )
    yield finding if found.given else missing(finding, target)


def _mode_unsupported(facts: Facts) -> Iterator[Finding]:
    registration, found = server(facts).registration, facts.setting(MODE)
    if not found.invalid or untyped(facts.target, found.name):
        return
    text = found.text or ""
    meant = _meant_mode(text)
    if meant == "api" and _embeds(facts.setting(URL)) and not facts.setting(KEY).given:
        meant = "http"  # a local server by name, reached through an address of the other kind
    if meant:
        repair = set_variable(registration, found.name, meant, at=found.place)
    else:
        general = set_variable(registration, found.name, "http", at=found.place)
        choice = "http for an embedding server of your own, api for a service, none for neither"
        repair = replace(general, prose=f"{general.prose} ({choice})")
    guess = f"; “{meant}” is meant" if meant else ""
    yield Finding(
        about=MODE,
        place=found.place,
        measured=f"{found.name} is “{safe(text, 60)}”, compared letter by letter{guess}",
        repair=repair,
    )


def _embeds(url: Effective) -> bool:
    return url.given and (url.text or "").rstrip("/").endswith("/embed")


def _meant_mode(text: str) -> str:
    word = text.strip().strip("\"'").strip().lower()
    if word in MODES:
        return word
    for meant, words in _MEANT.items():
        if word in words:
            return meant
    return nearest(word, MODES, limit=1) or ""


def _url_missing(facts: Facts) -> Iterator[Finding]:
    target, found, url = server(facts), facts.setting(MODE), facts.setting(URL)
    if mode(facts) != "http" or url.given:
        return
    other = facts.setting(API_URL)
    beside = f"; {other.name} is set, which http mode does not read" if other.given else ""
    finding = Finding(
        about=URL,
        place=found.place,
        measured=f"{found.name}=http and no URL{beside}",
        repair=renamed(target, URL) or _url_repair(target, found, other),
    )
    yield missing(finding, target)


def _url_repair(target: Target, found: Effective, other: Effective) -> Repair:
    text = (other.text or "").rstrip("/")
    if text.endswith("/embeddings") and not other.unresolved:
        return set_variable(target.registration, found.name, "api", at=found.place)
    if text.endswith("/embed") and not other.unresolved and own(target, other.name):
        return rename_variable(target.registration, other.name, URL, at=other.place)
    return set_variable(target.registration, URL, reference_url(target))


def _set_in_vain(facts: Facts) -> Effective | None:
    """What was written for embedding although the mode is none: the URL first, else what only this server reads."""
    url = facts.setting(URL)
    if url.given:
        return url
    for name in (API_URL, KEY):
        found = facts.setting(name)
        if found.given and found.name == name:
            return found
    return None


def _url_without_mode(facts: Facts) -> Iterator[Finding]:
    target, found, vain = server(facts), facts.setting(MODE), _set_in_vain(facts)
    advisory = facts.setting("CPERSONA_DEGRADED_ADVISORY")
    if mode(facts) != "none" or vain is None or prompted(found):
        return
    if found.given and advisory.given and advisory.value is False:
        return  # switched off on purpose, and said so
    wanted = "http" if vain.setting.name == URL else "api"
    written_none = "is none" if found.given else "is not set, so it is none"
    repair = None if found.given else renamed(target, MODE)
    finding = Finding(
        about=vain.setting.name,
        place=vain.place,
        measured=f"{vain.name} is set and {MODE} {written_none}",
        repair=repair or set_variable(target.registration, MODE, wanted, at=found.place if found.given else None),
        severity=Severity.WARNING if found.given else None,
    )
    yield finding if found.given else missing(finding, target)


def _alias_too_old(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    for name in EMBEDDING:
        for alias in BY_NAME[name].aliases:
            value = target.environment.values.get(alias)
            if value and value.text and not target.environment.get(name) and own(target, alias):
                yield Finding(
                    about=alias,
                    place=value.place,
                    measured=f"{alias} is set; this release reads {name} only",
                    repair=rename_variable(target.registration, alias, name, at=value.place),
                )


def _alias_shadowed(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    shared = shares_block(target)
    for name in EMBEDDING:
        found = facts.setting(name)
        for alias in found.shadowed:
            value = target.environment.values.get(alias)
            if value is None or not value.text or value.text == found.text or not own(target, alias):
                continue
            if shared and name in {KEY, API_URL, MODEL}:
                continue  # the alias is the embedding server's there, and the prefixed name is how to keep them apart
            yield Finding(
                about=alias,
                place=value.place,
                measured=f"{found.name} ({found.place}) and {alias} ({value.place}) are set to different values;"
                f" {found.name} wins",
                repair=_one_name(target, found, alias),
            )


def _one_name(target: Target, found: Effective, alias: str) -> Repair:
    place = target.environment.values[alias].place
    repair = remove_variable(target.registration, alias, at=place)
    return replace(repair, prose=f"{repair.prose} (if its value is the one you want, give it to {found.name} first)")


def _empty_alias(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    if mode(facts) != "api":
        return
    for name, becomes in ((API_URL, "no address at all"), (MODEL, "an empty model name in every request")):
        for alias in facts.setting(name).setting.aliases:
            value = target.environment.values.get(alias)
            if value is None or value.text or value.unresolved or target.environment.get(name):
                continue
            yield Finding(
                about=alias,
                place=value.place,
                measured=f"{alias} is set and empty, which gives {becomes}, not the default",
                repair=remove_variable(target.registration, alias, at=value.place),
                severity=Severity.FAULT if name == API_URL else None,
            )


def shares_block(target: Target) -> str:
    """A variable that only the embedding server reads and that stands among this server's own; else empty."""
    for name, found in target.settings.values.items():
        foreign = found.setting.reader is Reader.EMBEDDING_SERVER and name not in BY_ALIAS
        if foreign and found.given and name not in _MISTAKEN and own(target, found.name):
            return name
    return ""


def _shared_block(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    foreign = shares_block(target)
    if not foreign:
        return
    used = {"api": (KEY, API_URL, MODEL), "http": (MODEL,)}.get(mode(facts), ())
    for name in used:
        found = facts.setting(name)
        if found.given and found.name in found.setting.aliases:
            yield Finding(
                about=found.name,
                place=found.place,
                measured=f"{found.name} stands beside {foreign}, a variable of the embedding server: both programs read"
                f" {found.name}, each with its own meaning",
                repair=rename_variable(target.registration, found.name, name, at=found.place),
            )


TRAPS = (
    Trap(
        id="names.mode-none",
        title="No embedding mode",
        severity=Severity.HINT,
        needs=Needs.REGISTRATION,
        detect=_mode_none,
        expected=f"{MODE}=http or api, or CPERSONA_DEGRADED_ADVISORY=false when search by words alone is what you want",
        costs="memories are found only by the words they share with the question, never by meaning",
        repair=f"set {MODE}=http and {URL}; or set CPERSONA_DEGRADED_ADVISORY=false to say that this is on purpose",
        source="the server's embedding-backend-repair guide, section 3; config.py of 2.6.14",
        rows=("A1",),
    ),
    Trap(
        id="names.mode-unsupported",
        title="Embedding mode that does not exist",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_mode_unsupported,
        expected=f"{MODE} is exactly none, http or api: small letters, no spaces, no quotes",
        costs="the server refuses to start and the client shows it as failed (before 2.5.10: it starts, and every"
        " embedding call fails)",
        repair=f"write one of none, http, api for {MODE}",
        source="config.py of 2.6.14, assert_embedding_mode_supported; measured with HTTP, “http ”, true, openai",
        rows=("A6", "A26"),
    ),
    Trap(
        id="names.url-missing",
        title="http mode without an embedding URL",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_url_missing,
        expected=f"{URL} names the endpoint that answers POST …/embed",
        costs="memories are found only by shared words; the server will call it “unreachable”, which is not the reason",
        repair=f"set {URL} to the full address, ending in /embed",
        source="measured on 2.6.14: the server starts, and every embedding call fails with UnsupportedProtocol",
        rows=("A5",),
    ),
    Trap(
        id="names.url-without-mode",
        title="Embedding settings that the mode leaves unused",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_url_without_mode,
        expected=f"{MODE}=http beside {URL}, or {MODE}=api beside {API_URL}",
        costs="the address is ignored without a word: memories are found only by shared words",
        repair=f"add {MODE}=http (or api)",
        source="config.py of 2.6.14: the mode defaults to none, whatever the URL",
        rows=("A7",),
    ),
    Trap(
        id="names.alias-too-old",
        title="Unprefixed embedding names with a release that does not read them",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_alias_too_old,
        expected="the CPERSONA_ names, or a release from 2.4.23 on",
        costs="the setting is ignored without a word: memories are found only by shared words",
        repair="rename the variable to its CPERSONA_ name, or upgrade the server",
        source="the server's issue registry, bug-001: the unprefixed names are read since 2.4.23",
        rows=("A3",),
        until="2.4.23",
    ),
    Trap(
        id="names.alias-shadowed",
        title="One setting under two names with different values",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_alias_shadowed,
        expected="each setting under one name, the CPERSONA_ one",
        costs="edits of the other name change nothing: a repair that does not take",
        repair="keep the CPERSONA_ name and remove the other",
        source="config.py of 2.6.14: the prefixed value wins unless it is empty; embedding-backend-repair guide, 3",
        rows=("A4",),
    ),
    Trap(
        id="names.empty-alias",
        title="Unprefixed embedding name set to nothing",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_empty_alias,
        expected="EMBEDDING_API_URL and EMBEDDING_MODEL are either absent or hold a value",
        costs="every request goes out with an empty address or an empty model name and is refused",
        repair="remove the empty variable (a compose file writes it for an unset ${NAME})",
        source="config.py of 2.6.14: the unprefixed name is read with a default that an empty value does not reach",
        rows=("A22",),
    ),
    Trap(
        id="names.shared-block",
        title="One block of EMBEDDING_ variables for two programs",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_shared_block,
        expected="CPERSONA_ names for the memory server, EMBEDDING_ names for the embedding server",
        costs="the embedding server's key, address or model name is used by the memory server as well: a key may be"
        " sent to another host, and vectors are labelled with the wrong model",
        repair="give the memory server's settings their CPERSONA_ names",
        source="config.py of 2.6.14 and the embedding server's own settings share these names",
        rows=("A34",),
    ),
)
