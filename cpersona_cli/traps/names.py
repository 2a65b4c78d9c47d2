"""Which embedding variables are set, and whether they fit each other."""

from __future__ import annotations

from collections.abc import Iterator

from cpersona_cli.traps.model import Facts, Finding, Needs, Severity, Trap
from cpersona_cli.traps.repairs import set_variable


def _url_missing(facts: Facts) -> Iterator[Finding]:
    mode, url = facts.setting("CPERSONA_EMBEDDING_MODE"), facts.setting("CPERSONA_EMBEDDING_URL")
    if mode.value == "http" and not url.value:
        yield Finding(
            about=url.setting.name,
            place=mode.place,
            measured=f"{mode.name}=http and no URL",
            repair=set_variable(facts.target.registration, url.setting.name, "http://127.0.0.1:8401/embed"),
        )


TRAPS = (
    Trap(
        id="names.url-missing",
        title="http mode without an embedding URL",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_url_missing,
        expected="CPERSONA_EMBEDDING_URL names the endpoint that answers POST …/embed",
        costs="memories are found only by shared words; the server calls it “unreachable”, which is not the reason",
        repair="set CPERSONA_EMBEDDING_URL to the full address, ending in /embed",
        source="measured on 2.6.14: the server starts, and every embedding call fails with UnsupportedProtocol",
        rows=("A5",),
    ),
)
