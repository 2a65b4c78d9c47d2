"""What the stored vectors are, as far as their widths, labels and numbers tell; their contents are not read here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from cpersona_cli.install.release.version import older
from cpersona_cli.record import replace
from cpersona_cli.store.reading import Reading
from cpersona_cli.text import plural, safe
from cpersona_cli.traps.compare import differ, disagreements
from cpersona_cli.traps.database_calibration import calibrated_width, modal_width
from cpersona_cli.traps.model import Facts, Finding, Needs, Severity, Target, Trap
from cpersona_cli.traps.network_server import is_for
from cpersona_cli.traps.repairs import remove_variable, set_variable
from cpersona_cli.traps.subject import measured, readable
from cpersona_cli.traps.vectors_stored import reembed

_MODE = "CPERSONA_EMBEDDING_MODE"

#: Memories from which building their blocks over an API is worth a warning.
MANY = 500


def _shares(counts: Mapping[int, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return ", ".join(f"{plural(rows, 'memory has', 'memories have')} {width} numbers" for width, rows in ordered)


def _mixed(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "widths")
    if len(reading.widths) > 1:
        yield Finding(
            about="memories.embedding",
            measured=_shares(reading.widths),
            repair=reembed(
                facts, "give every client the same model, then re-embed; no check_health(fix) before", "--dry-run"
            ),
            evidence=tuple((f"{width} numbers", str(rows)) for width, rows in reading.widths.items()),
        )


def blobs_kept(target: Target) -> bool:
    """Whether the server stores vectors in its database at all."""
    settings = target.settings
    return (
        settings["CPERSONA_VECTOR_SEARCH_MODE"].value != "remote" or settings["CPERSONA_STORE_BLOB"].value is not False
    )


def _backlog(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "unembedded", "counts")
    targets = facts.database.targets
    if not reading.unembedded or (targets and not any(blobs_kept(target) for target in targets)):
        return
    total = reading.counts.get("memories", 0)
    embedding = not targets or any(target.settings[_MODE].value in {"http", "api"} for target in targets)
    severity = None
    if not embedding:
        severity = Severity.HINT
    elif total and reading.unembedded * 2 > total:
        severity = Severity.FAULT
    yield Finding(
        about="memories.embedding",
        severity=severity,
        measured=f"{reading.unembedded} of {plural(total, 'memory', 'memories')} "
        f"{'has' if reading.unembedded == 1 else 'have'} no vector" + ("" if embedding else ", as no client embeds"),
        repair=reembed(
            facts,
            "make sure that the endpoint answers, then fill them in"
            if embedding
            else "set up an embedding endpoint if they are to be found by meaning, then fill them in",
            "--only missing",
            "--dry-run",
        ),
    )


def _unlabelled(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "labels")
    rows = reading.labels.get("", 0)
    if rows and (reading.schema or 0) >= 18:
        total = sum(reading.labels.values())
        yield Finding(
            about="memories.embedding_model",
            measured=f"{rows} of {plural(total, 'vector')} name no model",
            repair=reembed(facts, "re-embed once with an endpoint that names its model", "--dry-run"),
        )


def _named(reading: Reading) -> dict[str, int]:
    return {label: rows for label, rows in reading.labels.items() if label and rows}


def _listed(labels: Mapping[str, int]) -> str:
    return ", ".join(f"{safe(label, 60)} ({rows})" for label, rows in sorted(labels.items(), key=lambda item: -item[1]))


def _two_models(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "labels")
    labels = _named(reading)
    if len(labels) > 1:
        yield Finding(
            about="memories.embedding_model",
            measured=f"vectors of {len(labels)} models: {_listed(labels)}",
            repair=reembed(facts, "decide on one model, give it to every client, then re-embed", "--dry-run"),
        )


def _rejected(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "labels")
    labels = _named(reading)
    for target in facts.database.targets:
        mode = target.settings["CPERSONA_EMBEDDING_MODEL_MODE"]
        if mode.value != "reject" or target.settings[_MODE].value not in {"http", "api"}:
            continue
        model = target.settings["CPERSONA_EMBEDDING_MODEL"]
        # Over api the label is the model's name; over http the endpoint alone knows its fingerprint.
        lost = (
            sum(rows for label, rows in labels.items() if label != str(model.value))
            if target.settings[_MODE].value == "api"
            else sum(labels.values()) - max(labels.values(), default=0)
        )
        if lost:
            without = remove_variable(target.registration, mode.name, at=mode.place)
            yield Finding(
                subject=target.registration.label,
                about=mode.setting.name,
                place=mode.place,
                measured=f"{mode.name}=reject, and at least {plural(lost, 'vector')} of another model: "
                + _listed(labels),
                repair=replace(
                    reembed(facts, f"re-embed first; until then {without.prose}", "--dry-run"), place=mode.place
                ),
            )
            return


def _blocks(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "counts")
    rows = reading.counts.get("memories", 0) + reading.counts.get("episodes", 0)
    if rows < MANY or reading.counts.get("record_blocks", 0):
        return
    for target in facts.database.targets:
        build = target.settings["CPERSONA_BLOCK_BUILD_ENABLED"]
        version = target.version.version
        if target.settings[_MODE].value != "api" or build.value is False or (version and older(version, "2.6.0")):
            continue
        yield Finding(
            subject=target.registration.label,
            about=build.setting.name,
            place=build.place if build.given else target.registration.place,
            measured=f"{rows} memories and episodes without blocks, and {target.settings[_MODE].name}=api",
            repair=set_variable(
                target.registration, build.setting.name, "false", at=build.place if build.given else None
            ),
        )
        return


def _frozen(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "widths")
    width, stored = calibrated_width(reading), modal_width(reading)
    if width is None or stored is None or width == stored:
        return
    for target in facts.database.targets:
        setting = target.settings["CPERSONA_CALIBRATE_ON_MODEL_CHANGE"]
        if setting.value is False:
            yield Finding(
                subject=target.registration.label,
                about=setting.setting.name,
                place=setting.place,
                measured=f"calibrated at {width} numbers, the vectors have {stored}, and {setting.name}={setting.text}",
                repair=remove_variable(target.registration, setting.name, at=setting.place),
            )
            return


def _flipping(facts: Facts) -> Iterator[Finding]:
    for name in ("CPERSONA_PRIOR_FAR_WEIGHT", "CPERSONA_RECALL_MODE", "CPERSONA_RECALL_PRECISION"):
        for condition, groups in disagreements(facts.database.targets, _value(name)):
            yield differ(name, condition, groups)


def _value(name: str) -> Callable[[Target], str | None]:
    def value(target: Target) -> str | None:
        setting = target.settings[name]
        return None if setting.ignored else str(setting.value)

    return value


def _provider(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    stored = modal_width(reading)
    if stored is None:
        return
    for start in facts.embedding_servers:
        serves = [target for target in facts.database.targets if is_for(target, start)]
        if serves and start.width is not None and start.width != stored:
            yield Finding(
                about="EMBEDDING_PROVIDER",
                place=start.place,
                measured=f"the {start.title} gives {start.width} numbers per vector "
                f"(EMBEDDING_PROVIDER={safe(start.get('EMBEDDING_PROVIDER'), 60)}), the stored vectors have {stored}",
                repair=reembed(facts, "put the earlier provider back, or re-embed with the new one", "--dry-run"),
            )
            return


TRAPS = (
    Trap(
        id="vectors.mixed-widths",
        title="Stored vectors have different widths",
        severity=Severity.FAULT,
        needs=Needs.DATABASE,
        detect=_mixed,
        expected="one width",
        costs="a question has one width and is compared with vectors of that width only; check_health(fix) from one "
        "client "
        "removes the other's vectors",
        repair="one model everywhere, then re-embed",
        source="checks.py of 2.6.14: embedding_dimension",
        rows=("D2",),
    ),
    Trap(
        id="vectors.backlog",
        title="Memories without a vector",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_backlog,
        expected="a vector for every memory",
        costs="they cannot be found by meaning",
        repair="make sure that the endpoint answers, then fill them in",
        source="checks.py of 2.6.14: null_embedding, critical above one half; it fills in 5000 rows a run",
        rows=("D3",),
    ),
    Trap(
        id="vectors.unlabelled",
        title="Vectors that do not say which model made them",
        severity=Severity.HINT,
        needs=Needs.DATABASE,
        detect=_unlabelled,
        expected="a label for every vector",
        costs="whether the model behind the endpoint was changed since cannot be told from them",
        repair="re-embed once with an endpoint that names its model",
        source="config.py of 2.6.14: the label exists since schema 18",
        rows=("D4",),
    ),
    Trap(
        id="vectors.two-models",
        title="Vectors of several models",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_two_models,
        expected="one label",
        costs="scores across models mean nothing, so part of the memories is ranked by chance",
        repair="decide on one model, then re-embed",
        source="checks.py of 2.6.14: embedding_model",
        rows=("D5",),
    ),
    Trap(
        id="vectors.rejected",
        title="Vectors of another model are kept out of the search",
        severity=Severity.FAULT,
        needs=Needs.DATABASE,
        detect=_rejected,
        expected="one label, before reject is switched on",
        costs="with CPERSONA_EMBEDDING_MODEL_MODE=reject those memories are found only by shared words",
        repair="re-embed before rejecting",
        source="config.py of 2.6.14",
        rows=("D6",),
    ),
    Trap(
        id="vectors.blocks-over-api",
        title="The next start embeds every memory again over the API",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_blocks,
        expected="blocks switched off until the cost is accepted",
        costs="since 2.6 the server builds blocks of the whole store in the background, at the API's price and rate "
        "limits",
        repair="set CPERSONA_BLOCK_BUILD_ENABLED=false before the first start, and switch it on when it suits",
        source="the server's upgrade page",
        rows=("D9",),
    ),
    Trap(
        id="vectors.calibration-frozen",
        title="A calibration of other vectors stays in force",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_frozen,
        expected="CPERSONA_CALIBRATE_ON_MODEL_CHANGE left on",
        costs="recall keeps too much or too little, and no restart mends it",
        repair="remove CPERSONA_CALIBRATE_ON_MODEL_CHANGE, restart, and calibrate each agent",
        source="config.py and admin_handlers.py of 2.6.14",
        rows=("D10",),
    ),
    Trap(
        id="vectors.calibration-flips",
        title="Clients of one database score differently",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_flipping,
        expected="one value in every registration of one database",
        costs="the calibration file is shared and remembers how it was measured, so each start of a client calibrates "
        "anew "
        "and overwrites the other's",
        repair="give every registration the same value",
        source="memory_handlers.py of 2.6.14: the fingerprint of the calibration",
        rows=("D11",),
    ),
    Trap(
        id="vectors.provider-width",
        title="The embedding server's model has another width than the stored vectors",
        severity=Severity.FAULT,
        needs=Needs.DATABASE,
        detect=_provider,
        expected="the provider the stored vectors were made with",
        costs="nothing is found by meaning, and the server says nothing about it",
        repair="put the earlier provider back, or re-embed",
        source="models of the embedding server 0.9.1: miniml 384, jina-v5-nano 768, bge-m3 1024 numbers",
        rows=("B4",),
    ),
)
