"""What vectors hold: each defect is named, and no sound vector of any model is."""

from __future__ import annotations

import math
import random
import sqlite3
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.stores import insert, run_sql

from cpersona_cli.arrays import CLEARLY, quick
from cpersona_cli.store.cpersona import contents
from cpersona_cli.store.cpersona.contents import judge
from cpersona_cli.store.cpersona.store import CPersonaStore
from cpersona_cli.store.model import Contents, Defect, Flaw


def unit(width: int, seed: int = 1, scale: float = 1.0) -> list[float]:
    source = random.Random(seed)
    numbers = [source.gauss(0, 1) for _ in range(width)]
    length = math.sqrt(sum(number * number for number in numbers))
    return [number / length * scale for number in numbers]


def pack(numbers: Sequence[float], code: str = "<f") -> bytes:
    return struct.pack(f"{code[0]}{len(numbers)}{code[1]}", *numbers)


def seen(path: Path, *, deep: bool = False, live_width: int | None = None) -> Contents:
    store = CPersonaStore(path)
    return store.census(deep=deep, live_width=live_width, deadline=time.monotonic() + 60).contents


WIDTHS = st.sampled_from([8, 16, 64, 384, 768])
SEEDS = st.integers(0, 10_000)


@given(width=WIDTHS, seed=SEEDS)
@settings(max_examples=200, deadline=None)
def test_sound_vectors(width: int, seed: int) -> None:
    defect, norm = judge(pack(unit(width, seed)))
    assert defect is None
    assert math.isclose(norm, 1, abs_tol=1e-5)


@given(width=WIDTHS, seed=SEEDS, scale=st.sampled_from([0.01, 0.9, 1.002, 3.0, 17.5, 400.0]))
@settings(max_examples=200, deadline=None)
def test_vectors_of_another_length_are_only_that(width: int, seed: int, scale: float) -> None:
    defect, norm = judge(pack(unit(width, seed, scale)))
    assert defect is Defect.NOT_UNIT
    assert math.isclose(norm, scale, rel_tol=1e-5)


@given(width=st.sampled_from([64, 384, 768]), seed=SEEDS, scale=st.sampled_from([1.0, 0.9, 17.5]))
@settings(max_examples=200, deadline=None)
def test_another_order_of_bytes(width: int, seed: int, scale: float) -> None:
    assert judge(pack(unit(width, seed, scale), ">f"))[0] is Defect.BIG_ENDIAN


@given(width=st.sampled_from([64, 384, 768]), seed=SEEDS, scale=st.sampled_from([1.0, 17.5]))
@settings(max_examples=200, deadline=None)
def test_numbers_of_twice_the_size(width: int, seed: int, scale: float) -> None:
    assert judge(pack(unit(width, seed, scale), "<d"))[0] is Defect.FLOAT64


@pytest.mark.parametrize("width", [64, 384])
def test_numbers_of_twice_the_size_that_were_rounded_before(width: int) -> None:
    """Of 32 or 16 bits and then stored as 64: half of the bytes are noughts, and read as floats look harmless."""
    halves = [struct.unpack("<e", struct.pack("<e", number))[0] for number in unit(width)]
    singles = struct.unpack(f"<{width}f", pack(unit(width)))
    assert judge(pack(singles, "<d"))[0] is Defect.FLOAT64
    length = math.sqrt(sum(number * number for number in halves))
    assert abs(length - 1) < 1e-3
    assert judge(pack(halves, "<d"))[0] is Defect.FLOAT64


def test_round_numbers_in_another_order_of_bytes() -> None:
    assert judge(pack([0.5] * 4, ">f"))[0] is Defect.BIG_ENDIAN
    assert judge(pack([1.0, *[0.0] * 63], ">f"))[0] is Defect.BIG_ENDIAN


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("count", [1, 20, 64])
@pytest.mark.parametrize("width", [64, 768])
def test_numbers_that_are_not_finite(bad: float, count: int, width: int) -> None:
    numbers = unit(width)
    if count == 64:
        count = width
    numbers[:count] = [bad] * count
    if 1 < count < width and width == 64:
        return  # a third of it: no reading is to be believed in more than another
    defect, norm = judge(pack(numbers))
    assert defect is Defect.NON_FINITE
    assert not math.isfinite(norm)


def test_noughts() -> None:
    assert judge(bytes(4 * 768)) == (Defect.ZERO, 0.0)
    assert judge(pack([-0.0] * 8))[0] is Defect.ZERO
    assert judge(pack([1e-9] * 8))[0] is Defect.ZERO


def test_a_base64_reply_taken_for_numbers() -> None:
    assert judge(bytes(4 * 192), {192})[0] is Defect.QUARTER_WIDTH
    assert judge(pack([200.0, 3.0] * 96), {192})[0] is Defect.QUARTER_WIDTH
    assert judge(pack(unit(192)), {192})[0] is None  # a sound vector of a smaller model


def test_bytes_and_unscaled_sums_are_vectors_too() -> None:
    assert judge(pack([float(n % 255 - 127) for n in range(1024)]))[0] is Defect.NOT_UNIT
    assert judge(pack([float(n % 7) for n in range(8)]))[0] is Defect.NOT_UNIT


def test_zero_vectors_at_rest(empty: Path) -> None:
    """M07."""
    rows: list[dict[str, Any]] = [{"embedding": pack(unit(768, n))} for n in range(50)]
    for number in (3, 9, 10, 30, 49):
        rows[number]["embedding"] = bytes(4 * 768)
    insert(empty, "memories", rows)
    found = seen(empty)
    assert (found.looked, found.total, found.complete) == (50, 50, True)
    assert found.flaws == (Flaw(table="memories", defect=Defect.ZERO, rows=5, ids=(4, 10, 11, 31, 50)),)
    assert found.norms == {0.0: 5, 1.0: 45}


def test_a_fourth_of_the_width_that_is_live_or_usual(empty: Path) -> None:
    insert(empty, "memories", [{"embedding": bytes(4 * 16)}, *[{"embedding": pack(unit(64, n))} for n in range(9)]])
    insert(empty, "episodes", [{"embedding": bytes(4 * 24)}])
    assert [(flaw.table, flaw.defect) for flaw in seen(empty, live_width=96).flaws] == [
        ("memories", Defect.QUARTER_WIDTH),
        ("episodes", Defect.QUARTER_WIDTH),
    ]
    assert [(flaw.table, flaw.defect) for flaw in seen(empty).flaws] == [
        ("memories", Defect.QUARTER_WIDTH),
        ("episodes", Defect.ZERO),
    ]


def test_lengths_of_vectors_that_are_not_scaled(empty: Path) -> None:
    scales = (0.254, 12.346, 99.994, 123456.0, 123499.0)
    insert(empty, "memories", [{"embedding": pack(unit(8, 3, scale))} for scale in scales])
    found = seen(empty)
    assert found.norms == {0.25: 1, 12.35: 1, 99.99: 1, 123000.0: 2}
    assert found.flaws[0].rows == 5


def test_what_cannot_be_read_is_not_looked_at(store: Path) -> None:
    good = pack(unit(8)).hex()
    run_sql(
        store,
        "UPDATE memories SET embedding = NULL",
        *(
            f"UPDATE memories SET embedding = {value} WHERE id = {n}"
            for n, value in ((1, "x'01'"), (2, "'t'"), (3, "x''"))
        ),
        f"UPDATE memories SET embedding = x'{good}' WHERE id = 4",
        f"INSERT INTO record_nodes VALUES ('mem', 4, 0, 0, 1, 1, 1, x'{'00' * 32}', '')",
        f"INSERT INTO record_nodes VALUES ('mem', 4, 1, 0, 1, 1, 1, x'{'00' * 32}', '')",
    )
    found = seen(store)
    assert (found.looked, found.total) == (3, 3)
    assert found.flaws == (Flaw(table="record_nodes", defect=Defect.ZERO, rows=2, ids=(4,)),)


def test_a_sample_is_of_every_width_and_label_and_of_all_ids(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "SAMPLE", 60)
    monkeypatch.setattr(contents, "_FEWEST", 5)
    good, short, zero = pack(unit(8)), pack(unit(4)), bytes(32)
    rows: list[dict[str, Any]] = [
        {"embedding": good, "embedding_model": "m" if n % 100 == 7 else ""} for n in range(900)
    ]
    rows[500]["embedding"] = short
    for number in range(0, 900, 9):
        rows[number]["embedding"] = zero
    insert(empty, "memories", rows)
    run_sql(empty, "DELETE FROM memories WHERE id BETWEEN 300 AND 400")
    found = seen(empty)
    assert found.total == 799
    assert 50 <= found.looked <= 75
    (flaw,) = found.flaws
    assert flaw.defect is Defect.ZERO
    assert 0 < flaw.rows < 20
    whole = seen(empty, deep=True)
    assert (whole.looked, whole.total, whole.complete) == (799, 799, True)
    assert [(flaw.rows, flaw.ids[:2], len(flaw.ids)) for flaw in whole.flaws] == [(89, (1, 10), 20)]
    assert whole.norms == {0.0: 89, 1.0: 710}


def test_a_sample_of_rows_that_share_their_parents(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "SAMPLE", 10)
    blob = pack(unit(8)).hex()
    nodes = (
        f"INSERT INTO record_nodes VALUES ('mem', {n // 10}, {n % 10}, 0, 1, 1, 1, x'{blob}', '')" for n in range(40)
    )
    run_sql(store, "UPDATE memories SET embedding = NULL", "DELETE FROM record_nodes", *nodes)
    found = seen(store)
    assert (found.looked, found.total, found.norms) == (40, 40, {1.0: 40})
    monkeypatch.setattr(contents, "_FEWEST", 1)
    found = seen(store)
    assert (found.looked, found.total, found.norms) == (10, 40, {1.0: 10})


def test_all_are_judged_alike_without_numpy(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scales = (1.0, 1 + CLEARLY / 2, 1 - CLEARLY / 2, 1 + 0.95e-3, 1 - 0.95e-3, 1 + 1.1e-3, 1 - 1.1e-3, 0.5, 2.0)
    blobs = [pack(unit(64, n, scale)) for n, scale in enumerate(scales * 5)]
    blobs += [bytes(256), pack([math.nan] * 64), pack([math.inf] * 64), pack(unit(64), ">f"), pack(unit(32), "<d")]
    insert(empty, "memories", [{"embedding": blob} for blob in blobs])
    pytest.importorskip("numpy")
    assert quick()(blobs[0])
    with_numpy = seen(empty, deep=True)
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert not quick()(blobs[0])
    assert seen(empty, deep=True) == with_numpy
    assert {flaw.defect for flaw in with_numpy.flaws} == set(Defect) - {Defect.QUARTER_WIDTH}


def test_time_that_is_up_leaves_what_was_seen(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    insert(empty, "memories", [{"embedding": pack(unit(8))} for _ in range(100)])
    look = contents._Look.good

    def late(self: contents._Look) -> None:
        look(self)
        if self.looked == 40:
            raise interrupted()

    monkeypatch.setattr(contents._Look, "good", late)
    monkeypatch.setattr(contents, "quick", lambda: lambda _: True)
    found = CPersonaStore(empty).census(deep=True, deadline=time.monotonic() + 60)
    assert (found.contents.looked, found.contents.total, found.contents.complete) == (40, 100, False)
    assert found.unmeasured == ("contents",)


def interrupted() -> Exception:
    error = sqlite3.OperationalError("interrupted")
    error.sqlite_errorcode = sqlite3.SQLITE_INTERRUPT
    return error
