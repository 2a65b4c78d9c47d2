"""What is not said: of the stored vectors, of an endpoint whose vectors are worth nothing, and always."""

from __future__ import annotations

import pytest
from support import fits
from support.english import left
from support.fits import census, fit, group, live

from cpersona_cli.advisory.model import Call, Preview, Recall, Server
from cpersona_cli.advisory.unsaid import SHARE, Known, Unsaid, doubt, unsaid
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.fit.model import AgentCost, Basis, Fit, State
from cpersona_cli.record import replace

HEALTHY = Recall(number=1, word="measure", state="healthy", call=Call(attempted=True, ok=True))
LIVE = Preview(source="server", how="live", server=Server(version="2.6.14", mode="http"), recalls=(HEALTHY,))
ALWAYS = ["first", "stores", "cached"]


def of(made: Fit | None = fits.OK, **known: object) -> list[Unsaid]:
    return list(unsaid(replace(Known(preview=LIVE, mode="http", kind=Kind.OK, fit=made), **known)))


def names(found: list[Unsaid]) -> list[str]:
    return [part.name for part in found]


def test_all_well_leaves_what_is_always_so() -> None:
    found = of()
    assert names(found) == ALWAYS
    assert not any(part.broken for part in found)
    assert [part.shows for part in found] == ["probe", "dimension", "probe"]


@pytest.mark.parametrize(
    ("made", "name", "broken", "mends"),
    [
        (fits.CHANGED, "changed", True, "reembed"),
        (fits.MIXED, "mixed", True, "reembed"),
        (fits.SWAPPED, "swapped", True, "reembed"),
        (fits.DRIFTED, "drifted", False, ""),
    ],
)
def test_vectors_that_do_not_go_with_the_endpoint(made: Fit, name: str, broken: bool, mends: str) -> None:
    found = of(made)
    assert found[0].name == name
    assert (found[0].broken, found[0].shows, found[0].mends) == (broken, "dimension", mends)
    if name == "changed":
        assert f"{made.stored_dim} dimensions and the endpoint makes {made.expected_dim}" in found[0].measured


def test_vectors_that_cannot_be_read() -> None:
    found = of(fit(State.UNREADABLE, census(group(3))))
    assert (found[0].name, found[0].broken, found[0].shows) == ("unreadable", True, "dimension")


@pytest.mark.parametrize(("missing", "broken"), [(0, None), (1, False), (10, False), (11, True), (100, True)])
def test_missing_vectors_break_recall_from_one_in_ten_on(missing: int, broken: bool | None) -> None:
    lost = (AgentCost(agent="a", rows=60, lost=missing, missing=missing), AgentCost(agent="b", rows=40, lost=0))
    found = [part for part in of(replace(fits.OK, lost=lost)) if part.name == "missing"]
    assert SHARE == 0.1
    assert [part.broken for part in found] == ([] if broken is None else [broken])
    if found:
        assert found[0].measured.startswith(f"{missing} of 100 memories")
        assert (found[0].shows, found[0].mends) == ("dimension", "missing")


@pytest.mark.parametrize(("damaged", "broken"), [(1, False), (60, True)])
def test_damaged_vectors(damaged: int, broken: bool) -> None:
    lost = (AgentCost(agent="a", rows=100, lost=0),)
    found = [part for part in of(replace(fits.OK, lost=lost, damaged=damaged)) if part.name == "damaged"]
    assert [part.broken for part in found] == [broken]


@pytest.mark.parametrize("kind", [Kind.ZERO_VECTOR, Kind.CONSTANT_VECTOR, Kind.NOT_NORMALIZED])
def test_an_endpoint_whose_vectors_are_worth_nothing(kind: Kind) -> None:
    found = of(kind=kind)
    assert (found[0].name, found[0].broken, found[0].shows) == (str(kind), True, "probe")


@pytest.mark.parametrize("kind", [Kind.UNSTABLE, Kind.TRUNCATING, Kind.REFUSED, None])
def test_no_broken_silence_of_an_endpoint_that_works_or_is_told(kind: Kind | None) -> None:
    assert not any(part.broken for part in of(kind=kind))


def test_mode_none_has_nothing_to_hide() -> None:
    assert of(fits.CHANGED, mode="none", kind=Kind.DISABLED) == []


def test_what_could_not_be_found_out_is_said() -> None:
    (first, *_) = of(None, why="there is no database yet")
    assert (first.name, first.broken) == ("unknown", False)
    assert "there is no database yet" in first.measured
    unknown = fit(State.UNKNOWN, census(group(3)), detail="the endpoint did not answer")
    assert "the endpoint did not answer" in of(unknown)[0].measured


def test_a_replay_calls_nothing_and_says_so() -> None:
    replayed = replace(LIVE, how="replay")
    assert "a replay calls nothing" in of(None, preview=replayed)[0].measured
    stored = replace(fits.OK, live=None, lost=(AgentCost(agent="a", rows=4, lost=0),))
    assert "a replay calls nothing" in of(stored, preview=replayed)[0].measured
    assert names(of(replace(stored, lost=()), preview=replayed)) == ALWAYS


def test_a_failure_that_an_old_release_takes_for_a_success() -> None:
    recall = replace(HEALTHY, call=Call(attempted=True, ok=False, overlooked=True))
    found = of(preview=replace(LIVE, recalls=(recall,)))
    assert (found[0].name, found[0].broken) == ("overlooked", True)
    replayed = of(preview=replace(LIVE, how="replay", recalls=(recall,)))
    assert [part.broken for part in replayed if part.name == "overlooked"] == [False]


def test_an_exception_that_ends_the_recall() -> None:
    recall = replace(HEALTHY, call=None, escaped="ExceptionGroup: unhandled errors in a TaskGroup")
    found = of(preview=replace(LIVE, recalls=(recall, recall)))
    assert names(found).count("escaped") == 1
    assert found[0].broken
    assert "ExceptionGroup" in found[0].measured


def test_remote_search() -> None:
    server = Server(version="2.6.14", mode="http", remote=True)
    assert "remote" in names(of(preview=replace(LIVE, server=server)))


def test_a_server_that_does_not_start_says_nothing_at_all() -> None:
    assert of(preview=replace(LIVE, refused="ValueError: x")) == []


def test_in_japanese() -> None:
    found = unsaid(Known(preview=LIVE, mode="http", kind=Kind.OK, fit=fits.CHANGED), "ja")
    assert "次元" in found[0].measured
    assert not any(left(part.measured) for part in found)


def test_in_japanese_reasons_are_told_by_what_is_known() -> None:
    """The English sentence of another part of this tool is not shown."""
    detail = "3 stored vectors have 64 dimensions; nothing listens"
    silent = fit(State.UNKNOWN, census(group(3)), detail=detail, live=live(None, call=Kind.REFUSED))
    width = fit(State.UNKNOWN, census(group(3)), detail=detail, live=live(), basis=Basis.WIDTH)
    for made, told in ((silent, "待ち受けているプログラムがありません"), (width, "モデルは比べられませんでした")):
        (first, *_) = unsaid(Known(preview=LIVE, mode="http", kind=Kind.OK, fit=made), "ja")
        assert told in first.measured
        assert not left(first.measured)
        assert doubt(made, "en") == detail
