"""One database or several: what registrations make of the same memory between them."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from cpersona_cli.store.reading import State
from cpersona_cli.text import bare_url
from cpersona_cli.traps.compare import differ, disagreements, where
from cpersona_cli.traps.database_path import DB, memories
from cpersona_cli.traps.model import Facts, Finding, Needs, Repair, Severity, Target, Trap
from cpersona_cli.traps.network import endpoint
from cpersona_cli.traps.repairs import set_variable

_MODE = "CPERSONA_EMBEDDING_MODE"
_URL = "CPERSONA_EMBEDDING_URL"
_API_URL = "CPERSONA_EMBEDDING_API_URL"
_MODEL = "CPERSONA_EMBEDDING_MODEL"
_FTS = "CPERSONA_FTS_ENABLED"

_NEAR = {"localhost", "127.0.0.1", "::1", "host.docker.internal"}


def _several(facts: Facts) -> Iterator[Finding]:
    """Databases of different registrations; a project's own one is a choice as long as no other entry serves it."""
    for condition, groups in disagreements(facts.targets, lambda target: _file(facts, target) or None):
        held = {str(database.path): memories(database.reading) for database in facts.databases}
        listed = tuple((path, f"{held.get(path, 'not looked at')}: {where(found)}") for path, found in groups.items())
        projects = [{target.registration.project for target in found} for found in groups.values()]
        own = all(None not in found for found in projects)
        yield _split(facts, condition, groups, listed, own=own)


def _split(
    facts: Facts,
    condition: str,
    groups: dict[str, list[Target]],
    listed: tuple[tuple[str, str], ...],
    *,
    own: bool,
) -> Finding:
    counts = {str(database.path): database.reading.counts.get("memories", 0) for database in facts.databases}
    kept = max(groups, key=lambda path: (counts.get(path, 0), len(groups[path])))
    other = next(found[0] for path, found in groups.items() if path != kept)
    setting = other.settings[DB]
    change = set_variable(other.registration, DB, kept, at=setting.place if setting.given else None)
    return Finding(
        subject="all registrations",
        about=DB,
        place=setting.place if setting.given else other.registration.place,
        severity=Severity.HINT if own else None,
        measured=f"{len(groups)} databases: " + "; ".join(f"{path} ({text})" for path, text in listed),
        depends=condition,
        repair=Repair(
            prose=f"if one memory is meant: {change.prose}; what the other database holds can be brought over with "
            "export_memories and import_memories",
            commands=change.commands,
            edit=change.edit,
            place=change.place,
        ),
        evidence=listed,
    )


def _file(facts: Facts, target: Target) -> str:
    """The database file of a target, equal for two spellings of one file."""
    for database in facts.databases:
        if any(target is one for one in database.targets):
            return str(database.path)
    return "" if target.database.path is None else str(target.database.path)


def _spellings(facts: Facts) -> Iterator[Finding]:
    def spelled(target: Target) -> str | None:
        # Inside a container the same file has another name; its sidecar lies in the same folder all the same.
        return target.database.text if target.registration.launch.inside == "host" else None

    for condition, groups in disagreements(facts.database.targets, spelled):
        yield differ(DB, condition, groups, best=lambda text: text == str(facts.database.path))


def _modes(facts: Facts) -> Iterator[Finding]:
    def mode(target: Target) -> str | None:
        setting = target.settings[_MODE]
        return None if setting.invalid or setting.unresolved else str(setting.value)

    for condition, groups in disagreements(facts.database.targets, mode):
        yield differ(_MODE, condition, groups, best=lambda value: value != "none")


def _same_place(target: Target) -> str | None:
    """The URL without secrets, two names of this computer counting as one."""
    setting = endpoint(target)
    if setting is None:
        return None
    url = bare_url(str(setting.value)).rstrip("/")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return url
    near = "127.0.0.1" if host in _NEAR else host
    return parts._replace(netloc=f"{near}:{port}" if port else near).geturl()


def _urls(facts: Facts) -> Iterator[Finding]:
    for mode, name in (("http", _URL), ("api", _API_URL)):
        targets = [t for t in facts.database.targets if t.settings[_MODE].value == mode]
        for condition, groups in disagreements(targets, _same_place):
            yield differ(name, condition, groups)


def _models(facts: Facts) -> Iterator[Finding]:
    api = [t for t in facts.database.targets if t.settings[_MODE].value == "api"]
    for condition, groups in disagreements(api, lambda target: str(target.settings[_MODEL].value)):
        yield differ(_MODEL, condition, groups)


def _labels(facts: Facts) -> Iterator[Finding]:
    http = [t for t in facts.database.targets if t.settings[_MODE].value == "http"]

    def label(target: Target) -> str:
        setting = target.settings[_MODEL]
        return str(setting.value) if setting.given else "not set"

    for condition, groups in disagreements(http, label):
        yield differ(_MODEL, condition, groups, best=lambda value: value != "not set")


def _text_search(facts: Facts) -> Iterator[Finding]:
    def enabled(target: Target) -> str:
        return "false" if target.settings[_FTS].value is False else "true"

    for condition, groups in disagreements(facts.database.targets, enabled):
        yield differ(_FTS, condition, groups, best=lambda value: value == "true")


def _shell(facts: Facts) -> Iterator[Finding]:
    """What the server's own check-up, started by hand here, would look at in place of the clients' database."""
    here = facts.machine.env.get(DB, "")
    targets = [t for t in facts.targets if t.environment.base not in {"process", "container"}]
    if not here or not targets:
        return
    path = facts.machine.cwd / here
    opened = {str(t.database.path) for t in targets} | {str(database.path) for database in facts.databases}
    if str(path) in opened or any(t.database.text == here for t in targets):
        return
    known = [f"{d.path} ({memories(d.reading)})" for d in facts.databases if d.reading.state is State.OK]
    clients = f"; the clients open {', '.join(known)}" if known else ""
    yield Finding(
        subject="this shell",
        about=DB,
        measured=f"{DB}={path} in this shell{clients}",
        repair=Repair(
            prose="take the variable out of the shell, or name the database whenever the check-up is started by hand",
            commands=(f"unset {DB}",),
        ),
    )


TRAPS = (
    Trap(
        id="database.several",
        title="Registrations open different databases",
        severity=Severity.WARNING,
        needs=Needs.MACHINE,
        detect=_several,
        expected="one database, unless separate memories are meant",
        costs="what is stored in one client is unknown in the other, which looks like forgetting",
        repair="give every registration the same absolute path",
        source="the server's setup skill: the database must be nameable",
        rows=("C9",),
    ),
    Trap(
        id="database.spellings-differ",
        title="One database is opened under several spellings of its path",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_spellings,
        expected="one value in every registration of one database",
        costs="the calibration and index files are named after the spelling, so each client keeps its own",
        repair="write the path the same way everywhere",
        source="admin_handlers.py and vector_index.py of 2.6.14",
        rows=("C10",),
    ),
    Trap(
        id="database.modes-differ",
        title="Clients of one database differ in their embedding mode",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_modes,
        expected="one value in every registration of one database",
        costs="memories stored by a client without embeddings cannot be found by meaning; two ways to embed usually "
        "mean "
        "two models",
        repair="give every registration the same mode and endpoint",
        source="config.py of 2.6.14: each process reads only its own environment",
        rows=("D2", "D3"),
    ),
    Trap(
        id="database.urls-differ",
        title="Clients of one database use different embedding endpoints",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_urls,
        expected="one value in every registration of one database",
        costs="unless both run the same model, each client is blind to the other's memories, and a repair from one "
        "removes "
        "the other's vectors",
        repair="give every registration the same URL",
        source="checks.py of 2.6.14: embedding_dimension",
        rows=("D2",),
    ),
    Trap(
        id="database.models-differ",
        title="Clients of one database ask for different models",
        severity=Severity.FAULT,
        needs=Needs.DATABASE,
        detect=_models,
        expected="one value in every registration of one database",
        costs="each client is blind to the other's memories, and a repair from one removes the other's vectors",
        repair="give every registration the same model, then re-embed",
        source="checks.py of 2.6.14: embedding_dimension and embedding_model",
        rows=("D2", "D5"),
    ),
    Trap(
        id="database.labels-differ",
        title="Clients of one database label the same vectors differently",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_labels,
        expected="one value in every registration of one database",
        costs="in http mode the name is only a label; when it flips, blocks and nodes are built again and again",
        repair="remove CPERSONA_EMBEDDING_MODEL in http mode, or write the same everywhere",
        source="generation.py of 2.6.14",
        rows=("D5",),
    ),
    Trap(
        id="database.text-search-differs",
        title="Some clients of one database keep its text index and some do not",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_text_search,
        expected="one value in every registration of one database",
        costs="the client without it neither searches nor repairs the index",
        repair="give CPERSONA_FTS_ENABLED the same value everywhere",
        source="database.py of 2.6.14",
        rows=("C25",),
    ),
    Trap(
        id="database.shell-differs",
        title="This shell names another database than the clients",
        severity=Severity.HINT,
        needs=Needs.MACHINE,
        detect=_shell,
        expected="the clients' own settings, or none, in the shell",
        costs="python -m cpersona.checkup, started here, judges another database; with --fix it changes rows and "
        "vectors "
        "there by the shell's settings",
        repair="unset CPERSONA_DB_PATH in the shell",
        source="checkup.py of 2.6.14 reads its own environment only",
        rows=("J1", "J5"),
    ),
)
