"""Vector search on the embedding server's own index."""

from __future__ import annotations

from collections.abc import Iterator

from cpersona_cli.install.embedding_server import EmbeddingServer
from cpersona_cli.text import bare_url, safe
from cpersona_cli.traps.model import Facts, Finding, Needs, Severity, Trap
from cpersona_cli.traps.network import split
from cpersona_cli.traps.network_server import assign, found_at, is_for, starts
from cpersona_cli.traps.repairs import remove_variable, set_variable
from cpersona_cli.traps.subject import server


def _index_off(facts: Facts) -> Iterator[Finding]:
    for start in _remote_servers(facts):
        written = start.variables.get("EMBEDDING_INDEX_ENABLED")  # on unless something else is written, even nothing
        if written is not None and written.strip().lower() != "true":
            yield found_at(
                start,
                "EMBEDDING_INDEX_ENABLED",
                f"EMBEDDING_INDEX_ENABLED={safe(written)}",
                assign(start, "EMBEDDING_INDEX_ENABLED", "true"),
            )


def _remote_servers(facts: Facts) -> Iterator[EmbeddingServer]:
    remote = [t for t in facts.targets if t.settings["CPERSONA_VECTOR_SEARCH_MODE"].value == "remote"]
    for start in starts(facts):
        if any(is_for(target, start) for target in remote):
            yield start


def _index_relative(facts: Facts) -> Iterator[Finding]:
    for start in _remote_servers(facts):
        path = start.get("EMBEDDING_INDEX_DB_PATH")
        if start.container or start.cwd or not start.whole or (path and facts.machine.pure(path).is_absolute()):
            continue
        absolute = facts.machine.home / ".local" / "share" / "cembedding" / "embedding_index.db"
        yield found_at(
            start,
            "EMBEDDING_INDEX_DB_PATH",
            f"EMBEDDING_INDEX_DB_PATH={safe(path)}" if path else "EMBEDDING_INDEX_DB_PATH is not set",
            assign(start, "EMBEDDING_INDEX_DB_PATH", str(absolute)),
        )


def _remote_route(facts: Facts) -> Iterator[Finding]:
    remote = server(facts).settings["CPERSONA_VECTOR_SEARCH_MODE"]
    setting = facts.setting("CPERSONA_EMBEDDING_URL")
    if remote.value != "remote":
        return
    parts = split(setting)
    if parts is None or not parts.path.rstrip("/").endswith("/embed"):
        yield Finding(
            about=remote.setting.name,
            place=remote.place,
            measured=f"{remote.name}=remote and "
            + (f"{setting.name}={bare_url(str(setting.value))}" if setting.value else "no embedding URL"),
            repair=set_variable(
                facts.target.registration,
                setting.setting.name,
                "http://127.0.0.1:8401/embed",
                at=setting.place if setting.given else None,
            ),
        )


def _blobless(facts: Facts) -> Iterator[Finding]:
    remote = server(facts).settings["CPERSONA_VECTOR_SEARCH_MODE"]
    blob = facts.setting("CPERSONA_STORE_BLOB")
    if remote.value == "remote" and blob.value is False:
        yield Finding(
            about=blob.setting.name,
            place=blob.place,
            measured=f"{remote.name}=remote with {blob.name}={blob.text}",
            repair=remove_variable(facts.target.registration, blob.name, at=blob.place),
        )


TRAPS = (
    Trap(
        id="network.remote-route",
        title="Remote vector search without a route to the index",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_remote_route,
        expected="an embedding URL that ends in /embed, from which the index routes are derived",
        costs="every remote search and every push to the index is skipped, with one line on stderr",
        repair="end the embedding URL in /embed, or search locally",
        source="the server's issues bug-669 and bug-786",
        rows=("B32",),
    ),
    Trap(
        id="network.remote-index-off",
        title="Remote vector search on a server whose index is off",
        severity=Severity.FAULT,
        needs=Needs.MACHINE,
        detect=_index_off,
        expected="EMBEDDING_INDEX_ENABLED=true on the embedding server",
        costs="the routes /index and /search do not exist, so nothing is found by meaning",
        repair="set EMBEDDING_INDEX_ENABLED=true on the embedding server",
        source="the embedding server 0.9.1",
        rows=("B32",),
    ),
    Trap(
        id="network.remote-without-blobs",
        title="Vectors are kept on the remote index only",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_blobless,
        expected="CPERSONA_STORE_BLOB left on",
        costs="when the index is away nothing is found by meaning, and widths and models of vectors cannot be checked",
        repair="remove CPERSONA_STORE_BLOB",
        source="the server's issues bug-180, bug-182 and bug-371",
        rows=("B33",),
    ),
    Trap(
        id="network.remote-index-relative",
        title="The remote index lies below the embedding server's working folder",
        severity=Severity.WARNING,
        needs=Needs.MACHINE,
        detect=_index_relative,
        expected="EMBEDDING_INDEX_DB_PATH is absolute, or the working folder is fixed",
        costs="started from another folder it begins an empty index, and nothing back-fills the older memories",
        repair="set EMBEDDING_INDEX_DB_PATH to an absolute path",
        source="the embedding server 0.9.1; the server's operations page",
        rows=("B34",),
    ),
)
