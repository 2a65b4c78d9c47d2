"""What the server will not say: a pure function of the preview, of our own call, and of the stored vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from cpersona_cli.advisory.model import Preview
from cpersona_cli.advisory.phrases import phrase, sentence
from cpersona_cli.advisory.texts import Language
from cpersona_cli.embedding.kinds import MEANINGS, Kind, Stage
from cpersona_cli.fit.model import Basis, Fit, State
from cpersona_cli.record import record

#: Share of memories without a vector from which recall by meaning counts as broken: one in ten is missed.
SHARE = 0.1

#: The commands that show a thing and that mend it; the caller knows how to choose the same database and endpoint.
Shows = Literal["dimension", "probe"]
Mends = Literal["", "reembed", "missing"]

_MISFITS = {
    State.CHANGED: "unsaid.width",
    State.MIXED: "unsaid.mixed",
    State.SWAPPED: "unsaid.swapped",
    State.DRIFTED: "unsaid.drifted",
    State.UNREADABLE: "unsaid.unreadable",
}


@record(kw_only=True)
class Known:
    """All that is known beside the server's words.

    ``kind`` is how our own call ended, or the calls of a replay; ``fit`` what the stored vectors are beside the
    endpoint; None: not looked at, for the reason ``why`` (empty: because a replay calls nothing).
    """

    preview: Preview
    mode: str
    kind: Kind | None = None
    fit: Fit | None = None
    why: str = ""


@record(kw_only=True)
class Unsaid:
    """One thing that no advisory says; ``name`` is stable. ``broken``: recall by meaning does not work for it."""

    name: str
    measured: str
    shows: Shows
    mends: Mends = ""
    broken: bool = False


def doubt(fit: Fit, language: Language) -> str:
    """Why it cannot be told whether the stored vectors go with the endpoint."""
    call = None if fit.live is None or fit.basis is Basis.WIDTH else fit.live.call
    said = "" if call is None else sentence(language, call)
    return phrase(language, "why.call" if said else "why.model", detail=fit.detail, sentence=said)


def unsaid(known: Known, language: Language = "en") -> tuple[Unsaid, ...]:
    """The things that matter first, those that are always so last."""
    return tuple(_all(known, language))


def _all(known: Known, language: Language) -> Iterator[Unsaid]:
    preview = known.preview
    if preview.refused:
        return
    for recall in preview.recalls:
        if recall.escaped:
            name = recall.escaped.partition(":")[0]
            yield Unsaid(
                name="escaped", measured=phrase(language, "unsaid.escaped", error=name), shows="probe", broken=True
            )
            break
    if any(recall.call is not None and recall.call.overlooked for recall in preview.recalls):
        yield Unsaid(
            name="overlooked",
            measured=phrase(language, "unsaid.overlooked"),
            shows="probe",
            broken=preview.how == "live",
        )
    if known.mode != "none":
        yield from _of_endpoint(known, language)
        yield from _of_store(known, language)
    if preview.server is not None and preview.server.remote:
        yield Unsaid(name="remote", measured=phrase(language, "unsaid.remote"), shows="probe")
    if known.mode != "none":
        always: Mapping[str, Shows] = {"first": "probe", "stores": "dimension", "cached": "probe"}
        for name, shows in always.items():
            yield Unsaid(name=name, measured=phrase(language, f"unsaid.{name}"), shows=shows)


def _of_endpoint(known: Known, language: Language) -> Iterator[Unsaid]:
    """Vectors came back, and they are worth nothing."""
    kind = known.kind
    if kind is None or MEANINGS[kind].stage is not Stage.MEANING or not MEANINGS[kind].fatal:
        return
    told = phrase(language, "unsaid.meaningless", sentence=sentence(language, kind))
    yield Unsaid(name=str(kind), measured=told, shows="probe", broken=True)


def _of_store(known: Known, language: Language) -> Iterator[Unsaid]:
    fit = known.fit
    if fit is None:
        gap = phrase(language, "unsaid.unknown", why=known.why) if known.why else phrase(language, "unsaid.not-asked")
        yield Unsaid(name="unknown", measured=gap, shows="dimension")
        return
    rows = sum(cost.rows for cost in fit.lost)
    missing = sum(cost.missing for cost in fit.lost)
    lost = sum(cost.lost - cost.missing for cost in fit.lost)
    if fit.state in _MISFITS:
        told = phrase(
            language,
            _MISFITS[fit.state],
            stored=fit.stored_dim,
            live=fit.expected_dim,
            lost=f"{lost:,}",
            rows=f"{rows:,}",
        )
        mends: Mends = "" if fit.state in {State.DRIFTED, State.UNREADABLE} else "reembed"
        broken = fit.state is not State.DRIFTED
        yield Unsaid(name=str(fit.state), measured=told, shows="dimension", mends=mends, broken=broken)
    elif fit.state is State.UNKNOWN and known.preview.how == "live":
        why = doubt(fit, language) or known.why
        yield Unsaid(name="unknown", measured=phrase(language, "unsaid.unknown", why=why), shows="dimension")
    elif known.preview.how == "replay" and fit.live is None and rows:
        yield Unsaid(name="unknown", measured=phrase(language, "unsaid.not-asked"), shows="dimension")
    if missing:
        told = phrase(language, "unsaid.missing", missing=f"{missing:,}", rows=f"{rows:,}")
        broken = missing / rows > SHARE
        yield Unsaid(name="missing", measured=told, shows="dimension", mends="missing", broken=broken)
    if fit.damaged:
        told = phrase(language, "unsaid.damaged", count=f"{fit.damaged:,}")
        yield Unsaid(name="damaged", measured=told, shows="dimension", broken=rows > 0 and fit.damaged / rows > SHARE)
