"""A database against an endpoint on a real socket: every state, and what leaves this computer for it."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.endpoints_small import Answer, Request, SmallEndpoint, embed, serving
from support.fit_stores import Written, store_of
from support.replies import closed_port
from support.stores import untouched

from cpersona_cli.embedding.kinds import Kind as CallKind
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.fit.measure import measure
from cpersona_cli.fit.model import Basis, Fit, Likeness, State
from cpersona_cli.store.cpersona.store import CPersonaStore
from cpersona_cli.store.job import record_path
from cpersona_cli.store.model import Kind, StoreError
from cpersona_cli.store.writing.finished import Finished, write_record

Vectors = Callable[[int], Sequence[float] | bytes | str | None]

WIDTH = 64
WORDS = [
    "apple", "river", "stone", "cloud", "paper", "forest", "engine", "candle", "window", "bridge", "garden", "silver",
    "copper", "basket", "thunder", "marble", "willow", "lantern", "harbor", "meadow",
]  # fmt: skip


def text(number: int, size: int = 12) -> str:
    chance = random.Random(number)
    return " ".join([*chance.choices(WORDS, k=size), str(number)])


def this(number: int) -> Sequence[float]:
    """What the endpoint makes of the text."""
    return embed(text(number), WIDTH)


def another(number: int) -> Sequence[float]:
    """What another model of the same width makes of it."""
    return embed(f"{number} of another kind {number * 7}", WIDTH)


def wide(number: int) -> Sequence[float]:
    return embed(text(number), 96)


def turned(vector: Sequence[float], cosine: float) -> Sequence[float]:
    """A vector of length one at that cosine from ``vector``."""
    side = [-vector[1], vector[0], *([0.0] * (len(vector) - 2))]
    if not any(side):
        side = [0.0] * (len(vector) - 1) + [1.0]
    along = sum(a * b for a, b in zip(side, vector, strict=True))
    side = [a - along * b for a, b in zip(side, vector, strict=True)]
    size = math.sqrt(sum(a * a for a in side))
    return [cosine * a + math.sqrt(1 - cosine**2) * b / size for a, b in zip(vector, side, strict=True)]


def filled(folder: Path, vectors: Vectors, count: int = 60, **fields: Any) -> CPersonaStore:
    rows = [
        Written(text=text(n), vector=vectors(n), created=f"2026-03-{n // 24 + 1:02d} {n % 24:02d}:00:00", **fields)
        for n in range(count)
    ]
    return CPersonaStore(store_of(folder, rows))


def at(server: SmallEndpoint, **fields: Any) -> Endpoint:
    return Endpoint(mode=Mode.HTTP, url=server.url(), **fields)


def fitted(store: CPersonaStore, endpoint: Endpoint | None, **options: Any) -> Fit:
    with untouched(store.path.parent):
        return measure(store, endpoint, deadline=time.monotonic() + 60, **options)


def sent(server: SmallEndpoint) -> int:
    """Texts of the store that the server was sent."""
    return sum(any(word in WORDS for word in found.split()) for call in server.calls for found in call.texts)


# ---- one width


def test_the_model_that_wrote_them(tmp_path: Path) -> None:
    with serving() as server:
        fit = fitted(filled(tmp_path, this), at(server))
        assert sent(server) == fit.texts_sent == len(fit.judged)
    assert (fit.state, fit.basis, fit.stored_dim, fit.expected_dim) == (State.OK, Basis.VECTORS, 64, 64)
    assert fit.median == pytest.approx(1.0)
    assert len(fit.judged) >= 24
    assert {row.likeness for row in fit.compared} == {Likeness.SAME}
    assert (fit.foreign, fit.breaks, fit.lost[0].lost) == ({}, (), 0)
    assert fit.overlooked is not None
    assert fit.overlooked < 0.13
    assert fit.live is not None
    assert fit.live.calls == len(server.requests)


def test_another_model_of_the_same_width(tmp_path: Path) -> None:
    with serving() as server:
        fit = fitted(filled(tmp_path, another), at(server))
    assert (fit.state, fit.basis) == (State.SWAPPED, Basis.VECTORS)
    assert (fit.foreign, fit.breaks) == ({Kind.MEMORY: 60}, ())
    (cost,) = fit.lost
    assert (cost.agent, cost.rows, cost.lost, cost.foreign) == ("atlas", 60, 60, 60)
    assert fit.advisory.startswith("nothing")


@pytest.mark.parametrize(
    ("cosine", "state"),
    [(0.0, State.SWAPPED), (0.49, State.SWAPPED), (0.51, State.DRIFTED), (0.85, State.DRIFTED), (0.981, State.OK)],
)
@pytest.mark.parametrize("label", ["", "the-model"])
def test_the_same_name_and_other_numbers(tmp_path: Path, cosine: float, state: State, label: str) -> None:
    """A label that agrees never overrules the vectors."""
    store = filled(tmp_path, lambda n: turned(this(n), cosine), label=label)
    with serving(gets={"/capabilities": capabilities("the-model")}) as server:
        fit = fitted(store, at(server))
    assert (fit.state, fit.basis) == (state, Basis.VECTORS)
    assert fit.median == pytest.approx(cosine, abs=1e-4)
    assert ("their labels name this one" in fit.detail) == (state is State.SWAPPED and label != "")
    assert not fit.interleaved


def test_vectors_kept_in_eight_bits(tmp_path: Path) -> None:
    def rounded(number: int) -> Sequence[float]:
        vector = this(number)
        top = max(map(abs, vector))
        return [round(value * 127 / top) for value in vector]

    with serving() as server:
        assert fitted(filled(tmp_path, rounded), at(server)).state is State.OK


def test_a_label_that_differs_does_not_overrule_equal_vectors(tmp_path: Path) -> None:
    with serving(gets={"/capabilities": capabilities("new-name", "1:" + "a" * 32)}) as server:
        fit = fitted(filled(tmp_path, this, label="1:" + "b" * 32), at(server))
    assert (fit.state, fit.foreign) == (State.OK, {})
    assert "their labels name another model" in fit.detail


def test_a_window_that_was_moved_differs_for_long_texts_only(tmp_path: Path) -> None:
    rows = [
        Written(text=text(n, 12 if n % 3 else 60), vector=embed(text(n, 12 if n % 3 else 60), 64)) for n in range(60)
    ]
    with serving(window=25) as server:
        fit = fitted(CPersonaStore(store_of(tmp_path, rows)), at(server))
    assert fit.state is State.DRIFTED
    assert "only texts of more than" in fit.detail
    assert (fit.breaks, fit.interleaved) == ((), ())


def test_a_window_that_cuts_as_before_is_no_difference(tmp_path: Path) -> None:
    rows = [Written(text=text(n, 60), vector=embed(text(n, 60), 64, 25)) for n in range(30)]
    with serving(window=25) as server:
        assert fitted(CPersonaStore(store_of(tmp_path, rows)), at(server)).state is State.OK


def test_an_endpoint_that_never_says_the_same_is_not_judged_by(tmp_path: Path) -> None:
    chance = random.Random(1)

    def noise(_request: Request, vectors: list[list[float]]) -> list[Any]:
        return [[value + chance.gauss(0, 0.2) for value in vector] for vector in vectors]

    with serving(after=noise) as server:
        fit = fitted(filled(tmp_path, this), at(server))
    assert fit.state is State.UNKNOWN
    assert fit.thresholds is not None
    assert not fit.thresholds.steady
    assert "the endpoint gives another vector each time" in fit.detail


# ---- where it changed


def test_a_change_in_time_is_found_to_the_row(tmp_path: Path) -> None:
    store = filled(tmp_path, lambda n: this(n) if n >= 357 else another(n), count=1000)
    with serving() as server:
        fit = fitted(store, at(server))
        calls = len(server.calls)
    (change,) = fit.breaks
    # ids begin at one
    assert (change.before.id, change.after.id, change.exact) == (357, 358, True)
    assert (change.rows_before, change.rows_after) == (357, 643)
    assert (change.before.likeness, change.after.likeness) == (Likeness.OTHER, Likeness.SAME)
    assert (fit.state, fit.foreign) == (State.MIXED, {Kind.MEMORY: 357})
    assert "2026-03-15 20:00:00" in fit.detail
    assert fit.lost[0].foreign == 357
    # four for the endpoint, two for the sample, and one for each halving
    assert calls <= 4 + 2 + math.log2(1000 / 24) + 4


def test_there_and_back(tmp_path: Path) -> None:
    store = filled(tmp_path, lambda n: another(n) if 100 <= n < 300 else this(n), count=500)
    with serving() as server:
        fit = fitted(store, at(server))
    assert [(change.before.id, change.after.id) for change in fit.breaks] == [(100, 101), (300, 301)]
    assert [(change.rows_before, change.rows_after) for change in fit.breaks] == [(100, 200), (200, 200)]
    assert fit.foreign == {Kind.MEMORY: 200}


def test_two_clients_at_the_same_time_make_no_break(tmp_path: Path) -> None:
    store = filled(tmp_path, lambda n: this(n) if n % 2 else another(n), count=400)
    with serving() as server:
        fit = fitted(store, at(server))
    assert (fit.state, fit.breaks, fit.interleaved) == (State.MIXED, (), (Kind.MEMORY,))
    assert 120 <= fit.foreign[Kind.MEMORY] <= 280
    assert "two clients" in fit.detail


def test_one_row_whose_vector_is_of_something_else_is_named(tmp_path: Path) -> None:
    store = filled(tmp_path, lambda n: another(n) if n == 21 else this(n))
    with serving() as server:
        fit = fitted(store, at(server), sample=80)
    assert (fit.state, fit.breaks, fit.interleaved) == (State.MIXED, (), ())
    assert [row.id for row in fit.isolated] == [22]
    assert "in memories, id 22 differs from all around it" in fit.detail
    assert fit.foreign == {Kind.MEMORY: 1}


def test_labels_say_exactly_which_rows_are_foreign(tmp_path: Path) -> None:
    rows = [
        Written(
            text=text(n), vector=this(n) if n % 3 else another(n), label="new" if n % 3 else "old", agent=f"a{n % 2}"
        )
        for n in range(120)
    ]
    with serving() as server:
        fit = fitted(CPersonaStore(store_of(tmp_path, rows)), at(server))
    assert (fit.state, fit.foreign) == (State.MIXED, {Kind.MEMORY: 40})
    assert {(cost.agent, cost.foreign) for cost in fit.lost} == {("a0", 20), ("a1", 20)}


def test_episodes_are_judged_by_themselves(tmp_path: Path) -> None:
    rows = [Written(text=text(n), vector=this(n)) for n in range(40)]
    rows += [Written(text=text(n), vector=another(n), kind=Kind.EPISODE) for n in range(20)]
    with serving() as server:
        fit = fitted(CPersonaStore(store_of(tmp_path, rows)), at(server))
    assert (fit.state, fit.foreign, fit.breaks) == (State.MIXED, {Kind.EPISODE: 20}, ())


# ---- widths


def test_all_of_another_width(tmp_path: Path) -> None:
    with serving() as server:
        fit = fitted(filled(tmp_path, wide), at(server))
        assert sent(server) == 0
    assert (fit.state, fit.basis, fit.stored_dim, fit.expected_dim) == (State.CHANGED, Basis.WIDTH, 96, 64)
    assert (fit.lost[0].lost, fit.lost[0].width) == (60, 60)
    assert fit.advisory.startswith("nothing, if it was started after the change")


def test_a_fallback_model_wrote_the_later_rows(tmp_path: Path) -> None:
    store = filled(tmp_path, lambda n: this(n) if n < 200 else wide(n), count=300)
    with serving() as server:
        fit = fitted(store, at(server))
        # the rows of another width cost no call
        assert sent(server) < 40
    (change,) = fit.breaks
    assert (change.before.id, change.after.id) == (200, 201)
    assert (change.before.created, change.after.created) == ("2026-03-09 07:00:00", "2026-03-09 08:00:00")
    assert (fit.state, fit.stored_dim) == (State.MIXED, 64)
    assert "100 of 300 stored vectors have another width than the endpoint’s 64" in fit.detail
    assert "2026-03-09 08:00:00" in fit.detail


def test_two_widths_and_rows_without_any(tmp_path: Path) -> None:
    rows = [Written(text=text(n), vector=embed(text(n), 768)) for n in range(40)]
    rows += [Written(text=text(n), vector=embed(text(n), 384)) for n in range(40, 50)]
    rows += [Written(text=text(n), vector=None) for n in range(50, 53)]
    rows += [Written(text=text(n), vector=embed(text(n), 768), kind=Kind.EPISODE) for n in range(5)]
    with serving(width=768) as server:
        fit = fitted(CPersonaStore(store_of(tmp_path, rows)), at(server))
    assert (fit.state, fit.stored_dim, fit.expected_dim) == (State.MIXED, 768, 768)
    assert "10 of 55 stored vectors" in fit.detail
    (cost,) = fit.lost
    assert (cost.rows, cost.lost, cost.missing, cost.width) == (58, 13, 3, 10)


def test_a_reply_that_states_another_width_is_not_believed(tmp_path: Path) -> None:
    def before(request: Request, _number: int) -> Answer | None:
        return Answer(200, {"embeddings": [embed(found, 64) for found in request.texts], "dimensions": 1536})

    with serving(before=before) as server:
        fit = fitted(filled(tmp_path, this), at(server))
    assert (fit.state, fit.expected_dim) == (State.OK, 64)
    assert fit.live is not None
    assert fit.live.misstated == (("its own reply", 1536),)


def test_stated_widths_are_shown_and_not_believed(tmp_path: Path) -> None:
    with serving(gets={"/capabilities": capabilities("m", dimensions=1536)}) as server:
        fit = fitted(filled(tmp_path, this), at(server), stated=[("EMBEDDING_DIMENSIONS", 1536), ("a note", 64)])
    assert (fit.state, fit.expected_dim) == (State.OK, 64)
    assert fit.live is not None
    assert fit.live.misstated == (("EMBEDDING_DIMENSIONS", 1536), ("GET /capabilities", 1536))


# ---- nothing is sent


def capabilities(model: str, fingerprint: str = "", dimensions: int = 64) -> dict[str, Any]:
    identity = {"model": model, "dimensions": dimensions}
    missing = [] if fingerprint else ["digests"]
    return {"identity": identity, "incomplete": missing, "fingerprint": fingerprint or None}


ONE, TWO = "1:" + "1" * 32, "1:" + "2" * 32


@pytest.mark.parametrize("options", [{"sample": 0}, {"texts_allowed": False}])
@pytest.mark.parametrize(
    ("labels", "gets", "state", "basis"),
    [
        (("",), {}, State.UNKNOWN, Basis.WIDTH),
        (("",), {"/capabilities": capabilities("m", ONE)}, State.UNKNOWN, Basis.WIDTH),
        ((ONE,), {"/capabilities": capabilities("m", ONE)}, State.OK, Basis.LABEL),
        ((ONE, ""), {"/capabilities": capabilities("m", ONE)}, State.UNKNOWN, Basis.WIDTH),
        (("m",), {"/capabilities": capabilities("m")}, State.UNKNOWN, Basis.WIDTH),
        (
            ("jina-embeddings-v5-text-nano",),
            {"/capabilities": capabilities("nomic-embed-text")},
            State.SWAPPED,
            Basis.LABEL,
        ),
        ((TWO,), {"/capabilities": capabilities("m", ONE)}, State.SWAPPED, Basis.LABEL),
        ((TWO, ONE), {"/capabilities": capabilities("m", ONE)}, State.MIXED, Basis.LABEL),
        ((TWO,), {}, State.UNKNOWN, Basis.WIDTH),
    ],
)
def test_width_and_label_alone(
    tmp_path: Path, options: dict[str, Any], *, labels: Sequence[str], gets: Any, state: State, basis: Basis
) -> None:
    rows = [
        Written(text=text(n), vector=this(n), label=labels[n * len(labels) // 60], created=f"2026-03-01 00:{n:02d}:00")
        for n in range(60)
    ]
    with serving(gets=gets) as server:
        fit = fitted(CPersonaStore(store_of(tmp_path, rows)), at(server), **options)
        assert sent(server) == 0
    assert (fit.state, fit.basis, fit.texts_sent) == (state, basis, 0)
    assert "no texts were compared" in fit.detail
    assert ("--sample" in fit.detail) == ("sample" in options)
    other = 60 if state is State.SWAPPED else 30 if state is State.MIXED else 0
    assert fit.foreign.get(Kind.MEMORY, 0) == other
    if state is State.MIXED:
        (change,) = fit.breaks
        assert (change.before.id, change.after.id, change.rows_before) == (30, 31, 30)


# ---- the live side is silent


def test_an_endpoint_that_is_down(tmp_path: Path) -> None:
    store = filled(tmp_path, this)
    fit = fitted(store, Endpoint(mode=Mode.HTTP, url=f"http://127.0.0.1:{closed_port()}/embed"))
    assert (fit.state, fit.stored_dim, fit.expected_dim) == (State.UNKNOWN, 64, None)
    assert fit.live is not None
    assert (fit.live.call, fit.live.dim) == (CallKind.REFUSED, None)
    assert "60 stored vectors have 64 dimensions" in fit.detail
    assert fit.advisory.startswith("a fault, once two calls in a row have failed: mode=http / POST ")
    assert fit.lost[0].lost == 0


def test_an_endpoint_that_fails_the_second_time_has_no_width(tmp_path: Path) -> None:
    def once(_request: Request, number: int) -> Answer | None:
        return Answer(500, {"error": "out of memory"}) if number > 1 else None

    with serving(before=once, width=96) as server:
        fit = fitted(filled(tmp_path, this), at(server))
    assert (fit.state, fit.expected_dim) == (State.UNKNOWN, None)
    assert "the same call again was not" in fit.detail


def test_an_endpoint_whose_width_changes_has_none(tmp_path: Path) -> None:
    def shrinking(request: Request, vectors: list[list[float]]) -> list[Any]:
        return [vector[: 32 + 8 * len(request.texts)] for vector in vectors]

    with serving(after=shrinking) as server:
        fit = fitted(filled(tmp_path, this), at(server))
    assert (fit.state, fit.expected_dim) == (State.UNKNOWN, None)


def test_vectors_of_zeros_are_no_width(tmp_path: Path) -> None:
    with serving(scale=0.0) as server:
        fit = fitted(filled(tmp_path, this), at(server))
    assert (fit.state, fit.expected_dim) == (State.UNKNOWN, None)
    assert fit.live is not None
    assert fit.live.call is CallKind.ZERO_VECTOR


def test_an_endpoint_that_hangs_takes_half_the_time_at_most(tmp_path: Path) -> None:
    hold = threading.Event()

    def hangs(_request: Request, _number: int) -> Answer | None:
        hold.wait(30)
        return None

    with serving(before=hangs) as server:
        fit = measure(filled(tmp_path, this), at(server), deadline=time.monotonic() + 1.0)
        hold.set()
    assert fit.state is State.UNKNOWN
    assert fit.live is not None
    assert fit.live.call is CallKind.TIMEOUT
    assert fit.stored_dim == 64


def test_mode_none(tmp_path: Path) -> None:
    fit = fitted(filled(tmp_path, this), Endpoint(mode=Mode.NONE, url=""))
    assert fit.state is State.UNKNOWN
    assert fit.live is not None
    assert fit.live.call is CallKind.DISABLED
    assert fit.advisory.startswith("a hint")


def test_no_endpoint_is_asked(tmp_path: Path) -> None:
    fit = fitted(filled(tmp_path, lambda n: this(n) if n < 40 else wide(n)), None)
    assert (fit.state, fit.basis, fit.live) == (State.MIXED, Basis.STORED, None)
    assert [(change.before.id, change.after.id) for change in fit.breaks] == [(40, 41)]
    assert fitted(filled(tmp_path / "other", this), None).state is State.UNKNOWN


# ---- rows that cannot be judged


def test_rows_that_cannot_be_judged_are_named(tmp_path: Path) -> None:
    def refused(request: Request, _number: int) -> Answer | None:
        if any("unwanted" in found for found in request.texts):
            return Answer(400, {"error": {"message": "no", "type": "invalid_request_error"}})
        return None

    rows = [Written(text=text(n), vector=this(n)) for n in range(20)]
    rows[3] = Written(text="an unwanted apple", vector=this(3))
    rows[5] = Written(text=text(5), vector=[0.0] * 64)
    rows[7] = Written(text=text(7), vector=[math.nan] * 64)
    rows[9] = Written(text="", vector=this(9))
    with serving(before=refused) as server:
        fit = fitted(CPersonaStore(store_of(tmp_path, rows)), at(server), sample=40)
    assert fit.state is State.OK
    why = {row.id: row.why for row in fit.compared if row.likeness is Likeness.UNJUDGED}
    assert sorted(why) == [4, 6, 8]
    assert why[4].startswith("the endpoint does not embed its text: ")
    assert why[6] == "its stored vector is all zeros"
    assert "no finite number" in why[8]


def test_an_endpoint_that_goes_away_leaves_it_unknown(tmp_path: Path) -> None:
    def leaves(_request: Request, number: int) -> Answer | None:
        return Answer(503, {"error": {"message": "Loading model", "code": 503}}) if number > 4 else None

    with serving(before=leaves) as server:
        fit = fitted(filled(tmp_path, this), at(server))
    assert (fit.state, fit.judged) == (State.UNKNOWN, ())
    assert "then the server is not ready yet" in fit.detail


# ---- nothing to judge, nothing readable, something healed


def test_a_store_without_vectors(tmp_path: Path) -> None:
    with serving() as server:
        fit = fitted(filled(tmp_path, lambda _: None), at(server))
    assert (fit.state, fit.stored_dim) == (State.EMPTY, None)
    assert fit.lost[0].missing == 60


@pytest.mark.parametrize("junk", ["0.1, 0.2", b"", b"odd"])
def test_what_stands_in_place_of_vectors_is_no_vector(tmp_path: Path, junk: str | bytes) -> None:
    with serving() as server:
        fit = fitted(filled(tmp_path, lambda n: this(n) if n < 20 else junk), at(server))
    assert fit.state is State.UNREADABLE
    assert "40 of 60 stored vectors" in fit.detail


def finished(**fields: Any) -> Finished:
    known = {"job": "j", "started": 1.0, "finished": 1772618400.0, "only": "all", "mode": "http", "url": "u"}
    return Finished(**{**known, "model": "", "dim": 64, "rows": 60, **fields})


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, State.HEALED),
        ({"dim": 96}, State.OK),
        ({"undone": 1772618401.0}, State.OK),
        ({"fingerprint": ONE, "label": ONE}, State.HEALED),
        ({"fingerprint": TWO}, State.OK),
    ],
)
def test_a_finished_job_on_record(tmp_path: Path, fields: dict[str, Any], state: State) -> None:
    store = filled(tmp_path, this)
    write_record(store.path, finished(**fields))
    with serving(gets={"/capabilities": capabilities("m", ONE)}) as server:
        fit = fitted(store, at(server))
    assert fit.state is state
    if state is State.HEALED:
        assert fit.past is not None
        assert (fit.past.finished, fit.past.rows) == ("2026-03-04 10:00:00", 60)
        assert "re-embedded on 2026-03-04 10:00 UTC" in fit.detail


def test_a_record_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    store = filled(tmp_path, this)
    record_path(store.path).write_text("{")
    with serving() as server:
        assert fitted(store, at(server)).past is None


@pytest.mark.parametrize("seconds", [1e30, -1e30])
def test_a_time_out_of_reach_is_none(tmp_path: Path, seconds: float) -> None:
    store = filled(tmp_path, this)
    write_record(store.path, finished(finished=seconds))
    with serving() as server:
        fit = fitted(store, at(server))
    assert fit.past is not None
    assert fit.past.finished == ""
    assert fit.detail.startswith("re-embedded; ")


# ---- a store that cannot be read to the end


class Failing(CPersonaStore):
    """One method fails, as it does when time is over or another process holds the file."""

    def __init__(self, store: CPersonaStore, method: str) -> None:
        super().__init__(store.path)

        def fail(*_args: object, **_options: object) -> Any:
            raise StoreError("it is locked by another process")

        setattr(self, method, fail)


def test_a_store_that_cannot_be_counted_is_an_error(tmp_path: Path) -> None:
    with serving() as server, pytest.raises(StoreError, match="locked"):
        fitted(Failing(filled(tmp_path, this), "census"), at(server))


def test_a_sample_that_cannot_be_read_leaves_it_unknown(tmp_path: Path) -> None:
    with serving() as server:
        fit = fitted(Failing(filled(tmp_path, this), "sample"), at(server))
        assert sent(server) == 0
    assert fit.state is State.UNKNOWN
    assert fit.unmeasured == ("stored texts could not be read: it is locked by another process",)
    assert fit.unmeasured[0] in fit.detail


def test_a_change_that_cannot_be_located_or_counted_is_said_so(tmp_path: Path) -> None:
    store = filled(tmp_path, lambda n: this(n) if n < 30 else another(n))
    with serving() as server:
        fit = fitted(Failing(store, "count"), at(server))
        assert [(change.before.id, change.rows_before) for change in fit.breaks] == [(30, 0)]
        assert [text.partition(":")[0] for text in fit.unmeasured] == [
            "how many memories stand before and after the change",
            "how many rows are another model’s",
        ]
        fit = fitted(Failing(store, "near"), at(server))
    assert (fit.state, fit.breaks) == (State.MIXED, ())
    assert [text.partition(":")[0] for text in fit.unmeasured] == [
        "the newest rows could not be read",
        "where the writer of memories changed",
    ]


def test_a_text_that_gets_another_width_alone_is_not_judged(tmp_path: Path) -> None:
    def short(request: Request, vectors: list[list[float]]) -> list[Any]:
        cut = any(found.split()[-1] in {"4", "5"} for found in request.texts)
        return [vector[:32] for vector in vectors] if cut else vectors

    with serving(after=short) as server:
        fit = fitted(filled(tmp_path, this), at(server))
    why = {row.why for row in fit.compared if row.likeness is Likeness.UNJUDGED}
    assert why == {"the endpoint gave 32 dimensions for its text"}
