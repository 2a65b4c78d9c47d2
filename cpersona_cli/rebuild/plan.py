"""What a rebuild would do and take, and every reason why it cannot be done, before anything is written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from cpersona_cli.embedding.texts import passage
from cpersona_cli.fit.model import Fit
from cpersona_cli.install.proxies import is_loopback
from cpersona_cli.install.settings.effective import Settings
from cpersona_cli.rebuild.batches import estimate_tokens
from cpersona_cli.rebuild.disk import need
from cpersona_cli.rebuild.model import Only, Pilot, Plan
from cpersona_cli.rebuild.objections import BLOB, SEARCH, Circumstances, Seen, refusals, warnings
from cpersona_cli.rebuild.select import Range, selector
from cpersona_cli.rebuild.survey import Survey, Tell, survey
from cpersona_cli.rebuild.target import Identified
from cpersona_cli.store.files import existing_folder, free_bytes, may_write
from cpersona_cli.store.job import Target
from cpersona_cli.store.model import Census, Kind, Store
from cpersona_cli.store.writing.cutover import predict_lock

#: Texts and padded tokens of one request, as the pipeline begins.
_BATCH, _TOKENS, _BYTES = 32, 16_384, 1_000_000
#: How much longer a batch is than its texts, which are padded to the longest.
_PADDING = 1.1


def circumstances(
    settings: Settings | None,
    database: Path,
    *,
    holders: Sequence[str] = (),
    objections: Sequence[str] = (),
    job: Target | None = None,
    beside: Fit | None = None,
) -> Circumstances:
    """Look around; ``settings`` are the server's, where a registration is known."""
    folder = existing_folder(database)
    return Circumstances(
        database=database,
        search="local" if settings is None else str(settings[SEARCH]),
        blobs=settings is None or settings[BLOB].value is not False,
        holders=tuple(holders),
        free=None if folder is None else free_bytes(folder),
        objections=tuple(objections),
        job=job,
        beside=beside,
        may_write=folder is not None and may_write(folder) and may_write(database),
    )


def make_plan(
    store: Store,
    census: Census,
    found: Identified,
    only: Only,
    *,
    around: Circumstances,
    foreign: Sequence[Range] = (),
    skip_current: bool = False,
    pilot: Pilot | None = None,
    tell: Tell | None = None,
) -> Plan:
    """Read every row once and put the plan together; constant memory, nothing is written or sent.

    ``found`` must be a target (``found.ok``). Raises ``StoreError``, and ``ValueError`` for what is no target.
    """
    target = found.target
    if target is None:
        raise ValueError("an endpoint that is no target has no plan")
    select = selector(only, target, foreign=foreign, skip_current=skip_current, unit=found.unit)
    rows = survey(store, select, vectors=only is not Only.ALL or skip_current, window=_window(found), tell=tell)
    widths = census.widths()
    old_dim = next(iter(widths), None)
    blocks = sum(group.rows for group in census.of("record_blocks"))
    disk = need(
        around.database,
        rows=rows.chosen,
        distinct=rows.distinct,
        characters=rows.characters,
        dim=target.dim,
        old_dim=old_dim,
    )
    seen = Seen(
        target=target,
        found=found,
        only=only,
        census=census,
        around=around,
        survey=rows,
        need=disk,
        lock=predict_lock(rows.chosen, target.dim, blocks),
    )
    requests = _requests(rows, found)
    return Plan(
        target=target,
        only=only,
        rows={kind: rows.rows.get(kind, 0) for kind in Kind},
        blank=rows.blank,
        left_out=rows.left_out,
        distinct=rows.distinct,
        characters=rows.characters,
        tokens=rows.tokens,
        requests=requests,
        seconds=None if pilot is None or not rows.chosen else rows.tokens / max(pilot.tokens_per_second, 1e-6),
        staging_bytes=disk.staging,
        undo_bytes=disk.undo,
        backup_bytes=disk.backup,
        wal_bytes=disk.log + disk.growth,
        free_bytes=around.free,
        old_dim=old_dim,
        old_labels=_labels(census),
        lock_seconds=seen.lock,
        holders=around.holders,
        consent=_host(found) if rows.chosen else "",
        pilot=pilot,
        refusals=tuple(refusals(seen)),
        warnings=tuple(warnings(seen)),
    )


def _window(found: Identified) -> int | None:
    """Tokens that count of a long text, by the estimate that rows are measured with; None where no end was found."""
    window = found.window
    if window is None or window.at_least:
        return None
    return estimate_tokens(passage("", window.words))


def _requests(rows: Survey, found: Identified) -> int:
    """About how many requests the pipeline makes: whatever ceiling is reached most often."""
    batch = min(_BATCH, found.largest_batch or _BATCH)
    return max(
        math.ceil(rows.distinct / batch),
        math.ceil(rows.tokens * _PADDING / _TOKENS),
        math.ceil(rows.characters / _BYTES),
    )


def _labels(census: Census) -> Mapping[str, int]:
    """Rows with a vector by their label, the most frequent first."""
    counts: dict[str, int] = {}
    for group in census.of("memories", "episodes"):
        if group.width is not None:
            counts[group.label] = counts.get(group.label, 0) + group.rows
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def _host(found: Identified) -> str:
    """The host that stored texts would go to, where that is not this computer."""
    if is_loopback(found.endpoint.url):
        return ""
    try:
        return urlsplit(found.endpoint.url).hostname or found.endpoint.address
    except ValueError:
        return found.endpoint.address
