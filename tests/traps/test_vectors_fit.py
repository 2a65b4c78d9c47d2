"""What was measured between stored vectors and an endpoint, as findings."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from support import fits
from support.fits import DB, URL, census, facts, fit, group, live, row
from support.traps import everything, targets
from support.traps import registration as entry

from cpersona_cli.fit.model import AgentCost, Basis, Break, Fit, Likeness, State
from cpersona_cli.record import replace
from cpersona_cli.store.model import Form, Kind
from cpersona_cli.traps.model import Facts, Finding, Severity
from cpersona_cli.traps.registry import ALL
from cpersona_cli.traps.run import Check, check
from cpersona_cli.traps.run import State as Ended
from cpersona_cli.traps.vectors_fit import JUDGES


def made(known: Facts) -> Mapping[str, Check]:
    checks = {one.trap.id: one for one in (check(trap, known) for trap in JUDGES)}
    assert not [one.reason for one in checks.values() if "the check itself failed" in one.reason]
    return checks


def found(known: Facts) -> dict[str, Finding]:
    return {name: one.findings[0] for name, one in made(known).items() if one.findings}


STATES = [
    ("ok", {}),
    ("healed", {}),
    ("changed", {"endpoint.dimension-mismatch": "fault"}),
    ("mixed", {"vectors.mixed-widths": "fault", "vectors.backlog": "warning"}),
    ("foreign", {"vectors.foreign-rows": "fault"}),
    ("swapped", {"endpoint.model-mismatch": "fault"}),
    ("drifted", {"vectors.drifted": "warning"}),
    ("damaged", {"vectors.unreadable": "fault", "vectors.zero": "fault", "vectors.not-unit": "warning"}),
    ("empty", {"vectors.none": "hint"}),
    ("down", {}),
]


@pytest.mark.parametrize(("name", "expected"), STATES)
def test_each_state_is_the_findings_it_deserves(name: str, expected: Mapping[str, str]) -> None:
    known = found(facts(fits.ALL[name]))
    assert {trap: str(finding.severity) for trap, finding in known.items()} == expected


def test_every_state_has_its_case() -> None:
    assert {one.state for one in fits.ALL.values()} | {State.UNREADABLE} == set(State)


@pytest.mark.parametrize("state", [State.UNREADABLE, State.CHANGED, State.MIXED, State.SWAPPED])
def test_a_bad_state_is_never_without_a_fault(state: State) -> None:
    """However little else is known of it."""
    counted = {
        State.MIXED: census(group(5, label="a"), group(5, label="b")),
        State.CHANGED: census(group(5, 384)),
    }.get(state, census(group(5)))
    bare = fit(state, counted, basis=Basis.LABEL, advisory="", live=None)
    assert Severity.FAULT in {finding.severity for finding in found(facts(bare)).values()}


@pytest.mark.parametrize(
    ("name", "trap", "says"),
    [
        (
            "changed",
            "endpoint.dimension-mismatch",
            (
                f"the endpoint {URL} makes 768 dimensions, and stored are 40 memories and 5 episodes with 384",
                "cannot find 45 of 45 memories and episodes now, 100 % (by agent: atlas 40 of 40, borealis 5 of 5)",
                "the server says nothing about it",
                "check_health(fix=true) would set 45 vectors to NULL",
                f"cpersona-cli reembed --db {DB}\n",
            ),
        ),
        (
            "mixed",
            "vectors.mixed-widths",
            (
                f"10 memories with 384 dimensions, and the endpoint {URL} makes 768",
                "up to 2026-03-04 11:20:30 (id 40) have 768, from 2026-03-04 11:41:00 (id 41) on have 384",
                "a fallback model?",
                "22 % (by agent: atlas 13 of 48)",
                "check_health(fix=true) would set 10 vectors to NULL",
                f"cpersona-cli reembed --db {DB} --only mismatched",
            ),
        ),
        (
            "mixed",
            "vectors.backlog",
            ("3 memories without a vector, of 58 in all", f"cpersona-cli reembed --db {DB} --only missing"),
        ),
        (
            "foreign",
            "vectors.foreign-rows",
            (
                "20 memories have the right width and are another model’s (measured",
                "(id 30) are the endpoint’s own, from 2026-03-04 11:41:00 (id 31) on are another model’s",
                f"cpersona-cli reembed --db {DB} --only foreign",
            ),
        ),
        (
            "swapped",
            "endpoint.model-mismatch",
            ("24 stored texts have a median cosine of 0.03", "the server calls this healthy", "lowest cosine: 0.0100"),
        ),
        ("drifted", "vectors.drifted", ("median cosine 0.87", "build, quantisation, window")),
        ("damaged", "vectors.zero", ("5 memories have a vector of nothing but zeros: id 4, 9, 12", "--only damaged")),
        ("damaged", "vectors.unreadable", ("1 memory with text where a vector should be", "--only damaged")),
        ("empty", "vectors.none", ("nothing is stored yet", "store a memory")),
    ],
)
def test_what_is_said(name: str, trap: str, says: tuple[str, ...]) -> None:
    told = everything(found(facts(fits.ALL[name]))[trap]) + "\n"
    assert [words for words in says if words not in told] == [], told


def test_widths_that_no_endpoint_judges_are_mixed_all_the_same() -> None:
    known = replace(fits.MIXED, live=None, expected_dim=None, basis=Basis.STORED, breaks=())
    finding = found(facts(known))["vectors.mixed-widths"]
    assert finding.measured.startswith("vectors of 2 widths: 40 memories and 5 episodes with 768, 10 memories with 384")
    assert "check_health" not in finding.costs
    assert "fallback" not in finding.repair.prose


def test_a_check_without_its_measurement_is_not_passed() -> None:
    ended = made(facts(fits.DOWN))
    compared = ("endpoint.model-mismatch", "vectors.foreign-rows", "vectors.drifted")
    for name in ("endpoint.dimension-mismatch", "endpoint.dimensions-misstated", *compared):
        assert (ended[name].state, bool(ended[name].reason)) == (Ended.SKIPPED, True), name
    by_width = made(facts(fit(State.OK, census(group(9)), basis=Basis.WIDTH)))
    assert by_width["endpoint.dimension-mismatch"].state is Ended.PASS
    assert {by_width[name].state for name in compared} == {Ended.SKIPPED}
    other = made(facts(fits.CHANGED))
    assert {other[name].state for name in compared} == {Ended.SKIPPED}


def test_the_other_model_by_its_label() -> None:
    counted = census(group(6, label="jina-v5"), group(4, label="nomic"))
    by_label = fit(State.MIXED, counted, basis=Basis.LABEL, foreign={Kind.MEMORY: 4})
    known = found(facts(by_label))
    assert list(known) == ["vectors.foreign-rows"]
    assert "4 memories have the right width and are another model’s (by their label)" in (
        known["vectors.foreign-rows"].measured
    )
    named = fit(State.SWAPPED, counted, basis=Basis.LABEL)
    assert "labelled with another model" in found(facts(named))["endpoint.model-mismatch"].measured


def test_several_labels_and_nothing_measured() -> None:
    counted = census(group(6, label="jina-v5"), group(4, label="nomic\x1b[31m"), group(3))
    finding = found(facts(fit(State.OK, counted, basis=Basis.LABEL)))["vectors.two-models"]
    assert finding.severity is Severity.WARNING
    assert finding.measured == "vectors of 2 models: jina-v5 (6), nomic\\x1b[31m (4)"


def test_rows_of_two_writers_among_each_other() -> None:
    mingled = replace(fits.FOREIGN, breaks=(), interleaved=(Kind.MEMORY,))
    measured = found(facts(mingled))["vectors.foreign-rows"].measured
    assert measured.startswith("about 20 memories")
    assert "in memories they stand among the others: two clients write" in measured


def test_many_changes_are_counted_not_listed() -> None:
    one = fits.FOREIGN.breaks[0]
    many = tuple(
        replace(one, before=row(number), after=row(number + 1, Likeness.UNJUDGED), exact=False)
        for number in range(10, 15)
    )
    measured = found(facts(replace(fits.FOREIGN, breaks=many)))["vectors.foreign-rows"].measured
    assert measured.startswith("about 20")
    assert measured.endswith(" and 2 more changes")
    assert "are not labelled" in measured


def test_a_break_of_labels_names_them() -> None:
    before, after = row(4, Likeness.NEAR, created=""), replace(row(5, Likeness.UNJUDGED, created=""), label="nomic")
    one = Break(kind=Kind.MEMORY, before=replace(before, created=""), after=replace(after, created=""))
    measured = found(facts(replace(fits.FOREIGN, breaks=(one,))))["vectors.foreign-rows"].measured
    assert "memories up to id 4 are near its own, from id 5 on are labelled nomic" in measured


@pytest.mark.parametrize(
    ("median", "severity"), [(0.49, Severity.FAULT), (0.5, Severity.WARNING), (0.97, Severity.WARNING)]
)
def test_drift_is_a_fault_where_little_is_left(median: float, severity: Severity) -> None:
    known = replace(fits.DRIFTED, median=median)
    assert found(facts(known))["vectors.drifted"].severity is severity


def test_a_drift_without_numbers() -> None:
    known = replace(fits.DRIFTED, median=None, lowest=None, basis=Basis.LABEL)
    assert found(facts(known))["vectors.drifted"].severity is Severity.WARNING


def test_unreadable_without_a_row_at_fault() -> None:
    known = fit(State.UNREADABLE, census(group(1, 3), group(1, 5)), detail="no width is frequent", expected_dim=None)
    finding = found(facts(known))["vectors.unreadable"]
    assert (finding.measured, finding.severity) == ("no width is frequent", Severity.FAULT)
    assert finding.repair.commands == (f"cpersona-cli reembed --db {DB}",)


def test_stated_numbers_are_shown_and_not_believed() -> None:
    stated = live(stated=(("GET /capabilities", 1536), ("EMBEDDING_DIMENSIONS", 1536), ("a reply", 768)))
    finding = found(facts(replace(fits.OK, live=stated)))["endpoint.dimensions-misstated"]
    assert finding.severity is Severity.WARNING
    assert finding.measured == (
        "768 dimensions were measured; GET /capabilities says 1536, EMBEDDING_DIMENSIONS says 1536"
    )


@pytest.mark.parametrize(
    ("nulls", "blank", "severity"),
    [(0, 0, None), (2, 2, None), (3, 1, "warning"), (5, 0, "warning"), (6, 0, "fault")],
)
def test_the_backlog(nulls: int, blank: int, severity: str | None) -> None:
    counted = census(group(10 - nulls), group(nulls, None), blank={Kind.MEMORY: blank})
    finding = found(facts(fit(State.OK, counted))).get("vectors.backlog")
    assert (finding and str(finding.severity)) == severity
    assert finding is None or ("1 blank text among them" in finding.measured) == bool(blank)


def test_no_backlog_where_vectors_are_kept_elsewhere() -> None:
    env = {"CPERSONA_VECTOR_SEARCH_MODE": "remote", "CPERSONA_STORE_BLOB": "false"}
    (target, *_) = targets(entry(env))
    counted = fit(State.OK, census(group(1), group(9, None)))
    assert "vectors.backlog" not in found(facts(counted, target=target))
    assert "vectors.backlog" in found(facts(counted))


def test_rows_without_a_single_vector() -> None:
    lost = (AgentCost(agent="", rows=7, lost=7, missing=7),)
    known = fit(State.EMPTY, census(group(7, None)), stored_dim=None, lost=lost)
    finding = found(facts(known))["vectors.none"]
    assert finding.measured == "7 memories, and not one vector"
    assert finding.costs.startswith("recall by meaning cannot find 7 of 7 memories and episodes now, 100 %")
    assert "by agent" not in finding.costs
    assert finding.repair.commands == (f"cpersona-cli reembed --db {DB} --only missing",)


def test_what_the_server_would_remove() -> None:
    """Text, empty and odd blobs are of another length too; rows without anything are left alone."""
    counted = census(
        group(4), group(3, 384), group(1, None), group(1, None, form=Form.TEXT), group(1, None, form=Form.ODD),
        group(9, 384, table="record_nodes"),
    )  # fmt: skip
    finding = found(facts(fit(State.MIXED, counted)))["vectors.mixed-widths"]
    assert "would set 5 vectors to NULL" in finding.costs


def test_the_server_that_does_say_something() -> None:
    known = replace(fits.CHANGED, advisory="a fault, once two calls in a row have failed")
    costs = found(facts(known))["endpoint.dimension-mismatch"].costs
    assert "the server tells its agent a fault, once two calls in a row have failed" in costs


def test_many_agents_are_summed_up() -> None:
    lost = tuple(AgentCost(agent=f"agent-{n}", rows=10, lost=n, width=n) for n in range(1, 8))
    costs = found(facts(replace(fits.CHANGED, lost=lost)))["endpoint.dimension-mismatch"].costs
    assert "28 of 70 memories and episodes now, 40 % (by agent: agent-7 7 of 10, agent-6 6 of 10" in costs
    assert "agent-3 3 of 10, 2 more agents)" in costs


@pytest.mark.parametrize("name", [name for name, expected in STATES if expected])
def test_repairs_choose_the_same_endpoint(name: str) -> None:
    options = ("--url", URL, "--mode", "http")
    for finding in found(facts(fits.ALL[name], options=options)).values():
        for command in finding.repair.commands:
            assert command.startswith(f"cpersona-cli reembed --db {DB} --url {URL} --mode http")


def test_ids_and_severities_are_those_of_the_list() -> None:
    """What this command decides in another way has the same id, and so the same explanation."""
    listed = {trap.id: trap for trap in ALL}
    assert len({trap.id for trap in JUDGES}) == len(JUDGES)
    for trap in JUDGES:
        assert (trap.title, trap.severity) == (listed[trap.id].title, listed[trap.id].severity)


def test_a_fit_of_nothing_is_no_subject() -> None:
    known = replace(facts(fits.OK), fits=())
    for trap in JUDGES:
        if trap.id == "vectors.drifted":
            assert check(trap, known).reason == "no stored vectors were compared (cpersona-cli dimension does)"


def test_the_fits_by_hand_are_consistent() -> None:
    one: Fit
    for one in fits.ALL.values():
        assert one.judged or one.median is None
