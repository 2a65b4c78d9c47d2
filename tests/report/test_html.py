"""The page: whole by itself, safe, and readable at every width; looked at by a real browser where one is installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from support.reports import ALL, FAILING, HOME, SECRET, URL_MISSING

from cpersona_cli.record import replace
from cpersona_cli.report.figures import Bars, Copied, Spans, Strip, Table
from cpersona_cli.report.html import render
from cpersona_cli.report.layout import Style
from cpersona_cli.report.model import Report, Section
from cpersona_cli.report.svg import draw

GOLDEN = Path(__file__).parent / "golden"
BROWSER = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), "")

FIGURES = (
    Table(
        header=("table", "width", "label", "rows"),
        rows=[("memories", "768", "jina <small>", "1,204"), ("memories", "384", "", "96")],
        numbers=frozenset({1, 3}),
        elastic=2,
    ),
    Spans(
        rows=[
            ("768 numbers", "2025-01-02 10:00:00", "2026-03-04 11:19:00"),
            ("384 numbers", "2026-03-04 11:20:00", "2026-06-01 00:00:00"),
            ("no times", "", ""),
        ]
    ),
    Strip(
        rows=[("memories", "█" * 300 + "▒" * 4 + "░" * 12), ("episodes", "█░")],
        marks=[("█", "same model"), ("▒", "near"), ("░", "another model")],
        ends=("2025-01-02", "2026-06-01"),
    ),
    Bars(rows=[("0.98", 3), ("1.00", 1204), ("1.02", 0)]),
)
DRAWN = replace(FAILING, sections=(Section(title="vectors", rows=[], figures=FIGURES, verbosity=0), *FAILING.sections))
REPORTS = {**ALL, "drawn": DRAWN}

_VOID = {"meta", "link", "br", "img", "rect"}


class Tags(HTMLParser):
    """Every tag closed in its order; the attributes and the visible words collected."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        if tag not in _VOID or tag == "rect":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] not in (["style"], []):
            self.words.append(data)


@pytest.mark.parametrize("name", REPORTS)
def test_golden(name: str) -> None:
    """``UPDATE_GOLDEN=1 pytest tests/report`` writes the files anew; read the difference before committing it."""
    file = GOLDEN / f"{name}.html"
    text = render(REPORTS[name], Style())
    if os.environ.get("UPDATE_GOLDEN") == "1":
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", REPORTS)
def test_the_page_is_whole_by_itself(name: str) -> None:
    page = render(REPORTS[name], Style())
    tags = Tags(page)
    assert SECRET not in page
    assert not {"src", "href", "onclick", "style"} & {attribute for attribute, _ in tags.attributes}
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", page)


def test_foreign_text_stays_text() -> None:
    finding = replace(URL_MISSING, measured='<img src=x onerror=alert(1)> & "quoted" \'', subject="</article>")
    tags = Tags(render(Report(command="doctor", findings=(finding,), measured=1), Style()))
    assert "img" not in tags.open
    assert any("<img src=x onerror=alert(1)>" in word for word in tags.words)


def test_the_page_says_what_the_text_says() -> None:
    words = " ".join(Tags(render(FAILING, Style())).words)
    for finding in FAILING.findings:
        assert finding.trap in words
        assert finding.costs.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e") in words
    assert "the gate is on in production" in words
    assert "vectors.norm is required and did not run" in words


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: type(figure).__name__)
def test_a_figure_carries_its_numbers_as_text(figure: Table | Spans | Strip | Bars) -> None:
    drawn = draw(figure, lambda text: text.replace("<", "&lt;"))
    labels = [value or "" for name, value in Tags(drawn).attributes if name == "aria-label"]
    match figure:
        case Table():
            assert labels == []
        case Spans():
            assert labels == ["768 numbers 2025-01-02 to 2026-03-04; 384 numbers 2026-03-04 to 2026-06-01"]
        case Strip():
            assert labels == [
                "memories: 300 same model, 4 near, 12 another model; episodes: 1 same model, 1 another model"
            ]
        case Bars():
            assert labels == ["0.98: 3; 1.00: 1,204; 1.02: 0"]


def test_nothing_is_drawn_beyond_the_picture() -> None:
    for figure in FIGURES[1:]:
        drawn = draw(figure, str)
        bars = re.findall(r'<rect class="(\w+)" x="([0-9.]+)" y="\d+" width="([0-9.]+)"', drawn)
        assert bars
        assert all(float(x) + float(width) <= 400.1 for _, x, width in bars)


def test_a_picture_is_never_folded_away_and_what_is_copied_keeps_its_paths() -> None:
    folded = (
        Section(title="times", rows=[], figures=(FIGURES[3],)),
        Section(title="by agent", rows=[], figures=FIGURES[:1]),
    )
    copied = Section(title="", rows=[], verbosity=0, figures=(Copied([f"cat {HOME}/a\n  <b>"]),))
    page = render(replace(FAILING, sections=(*folded, copied)), Style())
    assert "<section><h2>times</h2>" in page
    assert "<details><summary>by agent</summary>" in page
    assert f"<section>\n<pre>cat {HOME}/a\n  &lt;b&gt;</pre>" in page, "and no empty heading"


def test_a_long_name_does_not_run_into_its_bar() -> None:
    drawn = draw(Bars(rows=[("an agent of a very long name", 3)]), str)
    assert "<title>an agent of a very long name</title>an agent of a very lo…</text>" in drawn
    assert 'x="170.4"' in drawn


def test_what_is_in_order_is_blue_and_the_worst_is_red() -> None:
    marks = [("█", "same"), ("?", "not judged"), ("▒", "near"), ("▁", "another width"), ("░", "another model")]
    drawn = draw(Strip(rows=[("memories", "█?▒▁░")], marks=marks), str)
    assert re.findall(r'class="s(\d)" x="[0-9.]+" y="4"', drawn) == ["0", "3", "1", "4", "2"]
    assert 'class="s2"' not in draw(Strip(rows=[("memories", "██")], marks=marks), str)


def test_what_has_nothing_to_show_draws_nothing() -> None:
    assert draw(Spans(rows=[("a", "", "")]), str) == ""
    assert draw(Bars(rows=[]), str) == ""


def test_a_single_moment_fills_the_picture() -> None:
    drawn = draw(Spans(rows=[("a", "2026-01-01 00:00:00", "2026-01-01 00:00:00")]), str)
    assert drawn.count("2026-01-01</text>") == 1


def test_a_figure_of_another_kind_is_shown_in_characters() -> None:
    class Own:
        def lines(self, width: int) -> list[str]:
            return [f"{width} <columns>"]

    drawn = draw(Own(), lambda text: text.replace("<", "&lt;"))  # type: ignore[arg-type]
    assert drawn == "<pre>72 &lt;columns></pre>"


@pytest.mark.skipif(not BROWSER, reason="no Chromium is installed")
@pytest.mark.parametrize("width", [360, 800, 1200])
def test_a_browser_shows_it_without_a_complaint(tmp_path: Path, width: int) -> None:
    """Opened in a frame of that width: nothing is refused, nothing is missing, and nothing sticks out."""
    (tmp_path / "page.html").write_text(render(DRAWN, Style()), encoding="utf-8")
    frame = f'<iframe id="f" src="page.html" style="width:{width}px;height:2000px;border:0"></iframe>'
    measure = (
        "const d = document.getElementById('f').contentDocument;"
        "document.title = JSON.stringify({width: d.documentElement.scrollWidth,"
        " cut: Math.max(...[...d.querySelectorAll('.wide,pre,figure')].map(e => e.scrollWidth - e.clientWidth)),"
        " articles: d.querySelectorAll('article').length, pictures: d.querySelectorAll('svg').length,"
        " background: getComputedStyle(d.body).backgroundColor, title: d.title});"
    )
    (tmp_path / "frame.html").write_text(f"{frame}<script>onload = () => {{{measure}}}</script>", encoding="utf-8")
    answer = subprocess.run(
        [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
            f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", "--virtual-time-budget=5000",
            "--dump-dom", (tmp_path / "frame.html").as_uri(),
        ],
        capture_output=True, text=True, encoding="utf-8", check=True, timeout=120,
    )  # fmt: skip
    found = re.search(r"<title>(.*?)</title>", answer.stdout)
    assert found, answer.stderr
    seen = json.loads(found[1])
    assert seen["width"] <= width
    assert seen["cut"] <= 0
    assert seen["articles"] == 3
    assert seen["pictures"] == 3
    assert seen["background"] == "rgb(251, 250, 248)"
    assert seen["title"] == "cpersona-cli doctor: fail"
    assert "CONSOLE" not in answer.stderr
