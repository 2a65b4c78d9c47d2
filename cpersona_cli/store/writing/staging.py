"""The staging file: new vectors beside the database, batch by batch, until every row has one or a reason why not.

An SQLite file of its own, written by one process at a time. Vectors are kept per text, so that equal texts are
embedded once, also across runs; rows point to them. Every change is one durable commit.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from cpersona_cli.store.files import sibling
from cpersona_cli.store.job import JobError, JobState, Refused, Staged, Target, record_path, staging_path
from cpersona_cli.store.model import Kind, StoreError
from cpersona_cli.store.writing import stagingfile
from cpersona_cli.store.writing.disk import Held, is_plain, publish, remove, told
from cpersona_cli.store.writing.joblock import JobLock
from cpersona_cli.store.writing.mainfile import finite
from cpersona_cli.store.writing.stagingfile import Meta, StagingCounts
from cpersona_cli.store.writing.undofile import next_path

#: Ids in one question to SQLite.
_ASKED = 500


class Staging(Held):
    """An open job: the lock on it, and its file. Use as a context manager, from one thread at a time.

    Every method may raise ``StoreError``. ``notes`` are sentences for the user about what was found when it was
    opened. ``fresh`` tells a job that was just begun from one that goes on.
    """

    def __init__(
        self, database: Path, connection: sqlite3.Connection, lock: JobLock, *, fresh: bool, notes: Sequence[str] = ()
    ) -> None:
        self.database = database
        self.path = staging_path(database)
        self.fresh = fresh
        self.notes = tuple(notes)
        self.connection = connection
        self._lock = lock
        with told(self.path):
            self._meta = stagingfile.read_meta(connection)

    @classmethod
    def create(cls, database: Path, target: Target, *, only: str = "all", cut_texts: bool = False) -> Self:
        """Begin a job. Raises ``StoreError`` when an unfinished one is there, or another process works on one.

        A finished or undone job's staging file is replaced; what undoes it is kept until the new one's cut-over.
        """
        lock = JobLock(database).acquire()
        try:
            return cls._begin(database, lock, target, only=only, cut_texts=cut_texts)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def _begin(
        cls, database: Path, lock: JobLock, target: Target, *, only: str, cut_texts: bool, notes: Sequence[str] = ()
    ) -> Self:
        path = staging_path(database)
        for later in (next_path(database), record_path(database)):  # found in the way only after the switch otherwise
            is_plain(later)
        opened = stagingfile.open_file(path)
        if opened is not None:
            try:
                with told(path):
                    state = stagingfile.read_meta(opened.connection).state
            finally:
                opened.connection.close()
            if state not in {JobState.CUT, JobState.UNDONE}:
                raise JobError(
                    f"{path} holds an unfinished job: continue it with the same command,"
                    " or give it up with cpersona-cli reembed abandon"
                )
        meta = Meta(
            job=secrets.token_hex(8),
            target=target,
            only=only,
            cut_texts=cut_texts,
            state=JobState.STAGING,
            started=time.time(),
            heartbeat=time.time(),
        )
        new = sibling(path, ".new")
        with told(path):
            remove(new)
            stagingfile.make(new, meta)
            remove(path)
            publish(new, path)
        return cls._opened(database, lock, fresh=True, notes=notes)

    @classmethod
    def open_existing(cls, database: Path) -> Self | None:
        """The job of ``database``, whatever its state; None where there is none.

        A file that lost its end with the power is mended first: what is whole is kept, and ``notes`` says what was
        lost. Where not even the job's own description is left, the file counts as none. Raises ``StoreError`` when it
        is not a file of this tool, or another process works on the job.
        """
        lock = JobLock(database).acquire()
        try:
            found = cls.under(database, lock)
        except BaseException:
            lock.release()
            raise
        if found is None:
            lock.release()
        return found

    @classmethod
    def under(cls, database: Path, lock: JobLock) -> Self | None:
        """``open_existing`` for a caller that holds the lock already; it keeps it where there is no job."""
        if not os.path.lexists(staging_path(database)):
            return None
        try:
            return cls._opened(database, lock, fresh=False)
        except stagingfile.LostError:
            return None

    @classmethod
    def _opened(cls, database: Path, lock: JobLock, *, fresh: bool, notes: Sequence[str] = ()) -> Self:
        opened = stagingfile.open_file(staging_path(database), lost_is_error=True)
        assert opened is not None  # noqa: S101 - the file was seen a moment ago, under the lock
        staging = cls(database, opened.connection, lock, fresh=fresh, notes=(*notes, *opened.notes))
        staging.beat()
        return staging

    def close(self) -> None:
        """Close the file and give the lock back; harmless when done twice."""
        with contextlib.suppress(sqlite3.Error):
            super().close()
        self._lock.release()

    @property
    def meta(self) -> Meta:
        return self._meta

    @property
    def target(self) -> Target:
        return self._meta.target

    @property
    def state(self) -> JobState:
        return self._meta.state

    @property
    def whole(self) -> bool:
        """Whether the job is about every row of the store."""
        return self._meta.only == "all"

    def set_state(self, state: JobState) -> None:
        """Write how far the job has come; durable when this returns."""
        self._write_meta(state=state)

    def beat(self) -> None:
        """Say that this process is at work on it; every ``add`` does so too."""
        self._write_meta()

    def keep(self, name: str, value: object) -> None:
        """Keep something of the caller's with the job (plan figures, learned limits), as JSON."""
        with told(self.path), self.connection:
            stagingfile.write_values(self.connection, {f"kept.{name}": value})

    def kept(self, name: str) -> Any:  # noqa: ANN401 - JSON
        """What ``keep`` kept under a name; None where nothing was."""
        with told(self.path):
            return stagingfile.read_values(self.connection).get(f"kept.{name}")

    def _write_meta(self, **changes: object) -> None:
        with told(self.path), self.connection:
            stagingfile.write_values(self.connection, {**changes, "heartbeat": time.time()})
            self._meta = stagingfile.read_meta(self.connection)

    def add(self, staged: Iterable[Staged], refused: Iterable[Refused] = ()) -> None:
        """Keep the outcome of a batch in one commit. What was known of the same rows before is replaced.

        A vector of another width than the target's, or with a component that is no number, is never kept: that raises
        ``StoreError``, and nothing of the batch is.
        """
        wanted = 4 * self.target.dim
        staged = list(staged)
        for entry in staged:
            if len(entry.vector) != wanted:
                raise StoreError(
                    f"the endpoint gave a vector of {len(entry.vector) / 4:g} dimensions for a job of"
                    f" {self.target.dim}: widths are never mixed, so nothing of this batch was kept"
                )
            if not finite(entry.vector):
                raise StoreError(
                    f"the endpoint gave a vector that holds no finite numbers (row {entry.kind}:{entry.id}):"
                    " nothing of this batch was kept"
                )
        with told(self.path), self.connection:
            for entry in staged:
                self.connection.execute(
                    "INSERT INTO vectors(digest, vector, sum) VALUES (?, ?, ?)"
                    " ON CONFLICT(digest) DO UPDATE SET vector = excluded.vector, sum = excluded.sum",
                    (entry.digest, entry.vector, stagingfile.sum_of(entry.digest, entry.vector)),
                )
            self.connection.executemany(
                "INSERT OR REPLACE INTO rows(kind, id, digest, ref)"
                " SELECT ?, ?, digest, ref FROM vectors WHERE digest = ?",
                ((entry.kind, entry.id, entry.digest) for entry in staged),
            )
            self.connection.executemany(
                "INSERT OR REPLACE INTO rows(kind, id, digest, ref, reason, detail, tokens)"
                " VALUES (?, ?, ?, NULL, ?, ?, ?)",
                ((r.kind, r.id, r.digest, r.reason, r.detail, r.tokens) for r in refused),
            )
            stagingfile.write_values(self.connection, {"heartbeat": time.time()})

    def discard(self, rows: Iterable[tuple[Kind, int]]) -> None:
        """Forget the vectors of some rows, in one commit: they may be another model's. Equal texts forget theirs."""
        with told(self.path), self.connection:
            for kind, identifier in rows:
                found = self.connection.execute(
                    "SELECT ref FROM rows WHERE kind = ? AND id = ?", (kind, identifier)
                ).fetchone()
                if found is not None and found[0] is not None:
                    self.connection.execute("DELETE FROM vectors WHERE ref = ?", found)
            self.connection.execute("DELETE FROM rows WHERE ref IS NOT NULL AND ref NOT IN (SELECT ref FROM vectors)")

    def staged_digests(self, kind: Kind, ids: Sequence[int]) -> dict[int, bytes]:
        """The digests of the texts for which rows have a vector here; rows without one are left out."""
        return dict(self._asked("SELECT id, digest FROM rows WHERE kind = ? AND ref IS NOT NULL AND id IN", kind, ids))

    def refused_digests(self, kind: Kind, ids: Sequence[int]) -> dict[int, bytes]:
        """The digests of the texts for which rows were refused."""
        return dict(self._asked("SELECT id, digest FROM rows WHERE kind = ? AND ref IS NULL AND id IN", kind, ids))

    def vectors(self, kind: Kind, ids: Sequence[int]) -> dict[int, bytes]:
        """The new vectors of some rows; rows without one are left out."""
        return dict(
            self._asked(
                "SELECT id, vector FROM rows JOIN vectors ON vectors.ref = rows.ref WHERE kind = ? AND id IN", kind, ids
            )
        )

    def _asked(self, query: str, kind: Kind, ids: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        with told(self.path):
            for start in range(0, len(ids), _ASKED):
                part = ids[start : start + _ASKED]
                yield from self.connection.execute(f"{query} ({','.join('?' * len(part))})", (kind, *part))

    def vector_for(self, digest: bytes) -> bytes | None:
        """The vector of a text, by its digest; None where it was not embedded yet."""
        with told(self.path):
            found = self.connection.execute("SELECT vector FROM vectors WHERE digest = ?", (digest,)).fetchone()
        return None if found is None else bytes(found[0])

    def counts(self) -> StagingCounts:
        """What is here; one look at every entry, not at the vectors."""
        with told(self.path):
            return stagingfile.counts_of(self.connection)

    def refused(self, kind: Kind | None = None) -> Iterator[Refused]:
        """Rows that have a reason in the place of a vector, in order of kind and id."""
        with told(self.path):
            for entry in self.connection.execute(
                "SELECT kind, id, digest, reason, detail, tokens FROM rows"
                " WHERE ref IS NULL AND kind = ifnull(?, kind) ORDER BY kind, id",
                (kind,),
            ):
                yield Refused(Kind(entry[0]), *entry[1:])

    def staged(self, kind: Kind, *, after: int = 0) -> Iterator[Staged]:
        """Rows of a kind with their new vectors, in order of id, in constant memory."""
        with told(self.path):
            for entry in self.connection.execute(
                "SELECT id, rows.digest, vector FROM rows JOIN vectors ON vectors.ref = rows.ref"
                " WHERE kind = ? AND id > ? ORDER BY id",
                (kind, after),
            ):
                yield Staged(kind, *entry)

    def sample(self, count: int) -> list[Staged]:
        """At most ``count`` rows with their vectors, spread evenly over all."""
        total = self.counts().staged
        wanted = {total * n // count for n in range(min(count, total))} if total > count else range(total)
        chosen = "SELECT kind, id, digest, ref FROM rows WHERE ref IS NOT NULL ORDER BY kind, id"
        found = []
        with told(self.path):
            for place, (kind, identifier, text, ref) in enumerate(self.connection.execute(chosen)):
                if place in wanted:
                    one = self.connection.execute("SELECT vector FROM vectors WHERE ref = ?", (ref,)).fetchone()
                    found.append(Staged(Kind(kind), identifier, text, one[0]))
        return found


def open_job(database: Path, target: Target, *, only: str = "all", cut_texts: bool = False) -> Staging:
    """The job for ``target``: the one under way, or a new one (``fresh``).

    A job whose cut-over was undone goes on with the vectors it has; one that is done is followed by a new one. A job
    in ``CUTTING`` is returned as it is: ``cut_over`` settles what became of it. Raises ``StoreError`` when one is
    under way that makes other vectors, or is about other rows.
    """
    lock = JobLock(database).acquire()
    try:
        path = staging_path(database)
        notes: tuple[str, ...] = ()
        if os.path.lexists(path):
            try:
                staging = Staging._opened(database, lock, fresh=False)  # noqa: SLF001 - the other half of the class
            except stagingfile.LostError as lost:
                notes = (str(lost),)
            else:
                if staging.state is not JobState.CUT and _goes_on(staging, target, only, cut_texts):
                    return staging
                staging.connection.close()  # without its lock, which the new job takes over
        return Staging._begin(database, lock, target, only=only, cut_texts=cut_texts, notes=notes)  # noqa: SLF001
    except BaseException:
        lock.release()
        raise


def _goes_on(staging: Staging, target: Target, only: str, cut_texts: bool) -> bool:
    """Whether a job is the wanted one; False when it is over. Raises ``StoreError`` when it is another one."""
    meta = staging.meta
    same = identity(meta.target) == identity(target)
    if meta.state is JobState.UNDONE:
        if not same or (meta.only, meta.cut_texts) != (only, cut_texts):
            return False
        staging.set_state(JobState.STAGING)
    elif not same:
        raise JobError(
            f"a job for other vectors is under way here ({described(meta.target)}; the endpoint gives"
            f" {described(target)}): continue it with the endpoint it was begun with,"
            " or give it up with cpersona-cli reembed abandon"
        )
    elif other := otherwise(meta, only, cut_texts):
        raise JobError(other)
    staging._write_meta(target=stagingfile.packed(target))  # noqa: SLF001 - address and label may be newer
    return True


def otherwise(meta: Meta, only: str, cut_texts: bool) -> str:
    """Why an unfinished job cannot be continued by these options; empty where it can."""
    if meta.only != only:
        return (
            f"a job about other rows is under way here (--only {meta.only}, not --only {only}): continue it with"
            f" --only {meta.only}, or give it up with cpersona-cli reembed abandon"
        )
    if meta.cut_texts != cut_texts:
        with_or_without = "with" if meta.cut_texts else "without"
        return (
            f"the job under way here was begun {with_or_without} --cut-long: continue it in the same way,"
            " or give it up with cpersona-cli reembed abandon"
        )
    return ""


def identity(target: Target) -> tuple[object, ...]:
    """What two targets must agree in for their vectors to be of one kind."""
    return target.mode, target.model, target.dim, target.fingerprint


def described(target: Target) -> str:
    """A target in words."""
    parts = [f"{target.dim} dimensions", f"mode {target.mode}", f"model {target.model or 'not named'}"]
    if target.fingerprint:
        parts.append(f"fingerprint {target.fingerprint}")
    return ", ".join(parts)
