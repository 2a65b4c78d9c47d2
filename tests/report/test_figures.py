from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_cli.report.figures import FAINT, FULL, HALF, Bars, Spans, Strip, Table, minute, seconds
from cpersona_cli.report.layout import columns

MARKS = ((FULL, "same"), (HALF, "near"), (FAINT, "other"))


def test_a_table_lines_up() -> None:
    table = Table(header=("table", "rows"), rows=[("memories", "7"), ("ログ", "1,200")], numbers=frozenset({1}))
    assert list(table.lines(80)) == [
        "table      rows",
        "memories      7",
        "ログ      1,200",
    ]


def test_the_elastic_column_gives_way() -> None:
    table = Table(header=("table", "label"), rows=[("memories", "a-model-with-a-long-name")], elastic=1)
    assert list(table.lines(22)) == ["table     label", "memories  a-model-wit…"]
    assert list(table.lines(5))[1] == "memories  a-model…", "never below a readable width"


def test_spans_show_a_break_in_time() -> None:
    spans = Spans(rows=[("768", "2026-01-01 00:00:00", "2026-01-11 00:00:00"), ("384", "2026-01-11", "2026-01-21")])
    assert list(spans.lines(26)) == [
        f"768  {FULL * 11}{FAINT * 10}",
        f"384  {FAINT * 10}{FULL * 11}",
        "     2026-01-01 2026-01-21",
    ]


def test_spans_of_one_moment_and_of_no_time() -> None:
    assert list(Spans(rows=[("768", "2026-01-01", "2026-01-01")]).lines(20)) == [f"768  {FULL * 15}", "     2026-01-01"]
    assert list(Spans(rows=[("768", "soon", "")]).lines(20)) == []


def test_a_strip_has_a_cell_for_each_row_and_a_legend_of_what_is_there() -> None:
    strip = Strip(rows=[("memories", FULL * 6 + FAINT * 6)], marks=MARKS, ends=("old", "new"))
    assert list(strip.lines(60)) == [
        f"memories  {FULL * 6}{FAINT * 6}",
        "          old      new",
        f"          {FULL} same    {FAINT} other",
    ]


def test_where_cells_share_a_column_the_most_serious_is_seen() -> None:
    strip = Strip(rows=[("m", FULL * 500 + FAINT + FULL * 499)], marks=MARKS)
    drawn = next(strip.lines(13)).split()[1]
    assert drawn == FULL * 5 + FAINT + FULL * 4


def test_bars_show_what_is_there_at_all() -> None:
    bars = Bars(rows=[("1.00", 5000), ("0.98", 1), ("0.50", 0)])
    assert list(bars.lines(30)) == [
        f"1.00  5,000  {FULL * 17}",
        f"0.98      1  {FULL}",
        "0.50      0",
    ]
    assert list(Bars(rows=[]).lines(30)) == []
    assert list(Bars(rows=[("1.00", 0)]).lines(30)) == ["1.00  0"]


names = st.text(alphabet="ab", min_size=1, max_size=6)
stamps = st.datetimes().map(str) | st.text(max_size=5)


@given(
    st.one_of(
        st.builds(Spans, rows=st.lists(st.tuples(names, stamps, stamps), max_size=4)),
        st.builds(
            Strip,
            rows=st.lists(
                st.tuples(names, st.text(alphabet=FULL + HALF + FAINT, max_size=200)), min_size=1, max_size=3
            ),
            marks=st.just(MARKS),
        ),
        st.builds(Bars, rows=st.lists(st.tuples(names, st.integers(0, 10**6)), max_size=5)),
    ),
    st.integers(40, 160),
)
def test_no_figure_is_wider_than_it_may_be(figure: Spans | Strip | Bars, width: int) -> None:
    assert all(columns(line) <= width for line in figure.lines(width))


@pytest.mark.parametrize(
    ("stamp", "shown"),
    [
        ("2026-03-04 11:20:30", "2026-03-04 11:20"),
        ("2026-03-04T11:20:30+02:00", "2026-03-04 09:20"),
        ("2026-03-04T11:20:30Z", "2026-03-04 11:20"),
        ("yesterday\x1b", "yesterday\\x1b"),
    ],
)
def test_stamps_are_shown_in_one_form(stamp: str, shown: str) -> None:
    assert minute(stamp) == shown


def test_a_stamp_without_an_offset_is_utc() -> None:
    assert seconds("1970-01-02") == 86400
    assert seconds("") is None
