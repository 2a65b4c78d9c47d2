"""A report as one page that needs nothing else: no script, no font, no network; light and dark, on a phone too.

Figures are drawn by ``svg``. What stands on the page is what the text renderer shows: statistics, never a memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from cpersona_cli import __version__
from cpersona_cli.report.figures import Copied, Table
from cpersona_cli.report.layout import Style
from cpersona_cli.report.model import Report, Section
from cpersona_cli.report.svg import draw, is_picture
from cpersona_cli.report.wording import (
    account,
    cleaner,
    copied,
    counted,
    lines_to_copy,
    reasons,
    severity,
    tallies,
    title,
    waived,
    words,
)
from cpersona_cli.traps.model import Finding

_VERDICTS = {"pass": "pass", "fail": "fail", "unknown": "no verdict"}

_CSS = """
:root{color-scheme:light dark;--bg:#fbfaf8;--card:#fff;--ink:#1d1d1f;--soft:#5c5c66;--line:#dedcd6;--code:#f1efea;
--fault:#b3261e;--warning:#8a5a00;--hint:#0b5cad;--pass:#1b6e3a;--unknown:#6b4e00;--a:#3b6fb6;--b:#c0632b;--c:#8d8a83}
@media (prefers-color-scheme:dark){:root{--bg:#151517;--card:#1f1f23;--ink:#ececf0;--soft:#a5a5b0;--line:#36363d;
--code:#29292f;--fault:#ff8a80;--warning:#f2b84b;--hint:#8ab8ff;--pass:#7bd49b;--unknown:#e8c170;--a:#7fa8e6;
--b:#e99a66;--c:#7d7d86}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:60rem;margin:0 auto;padding:1.25rem 1rem 3rem}
h1{font-size:1.3rem;margin:0 .6rem .2rem 0;display:inline-block}
h2{font-size:1.05rem;margin:0 0 .4rem}
h2 code{font-weight:400;white-space:nowrap;font-size:.85em;background:none;padding:0;color:var(--soft)}
.verdict,.mark{display:inline-block;border:1px solid currentColor;border-radius:999px;padding:.05rem .65rem;
font-size:.85rem;font-weight:600}
.pass{color:var(--pass)}.fail,.fault{color:var(--fault)}.unknown{color:var(--unknown)}
.warning{color:var(--warning)}.hint{color:var(--hint)}
p{margin:.25rem 0 1rem}.soft{color:var(--soft)}
article,section,details{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:.9rem 1rem;
margin:0 0 1rem}
article{border-left:4px solid currentColor}article>*{color:var(--ink)}
article .mark{margin-right:.5rem}.mark.fault{color:var(--fault)}.mark.warning{color:var(--warning)}
.mark.hint{color:var(--hint)}
dl{margin:.3rem 0;display:grid;grid-template-columns:6.2rem 1fr;gap:.15rem .8rem}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
pre,code{font:.87em/1.45 ui-monospace,SFMono-Regular,Consolas,monospace;background:var(--code);border-radius:6px}
pre{padding:.6rem .7rem;margin:.5rem 0 0;white-space:pre-wrap;overflow-wrap:anywhere}code{padding:.05rem .3rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;padding:.25rem .9rem .25rem 0;border-bottom:1px solid var(--line);vertical-align:top}
th,.n{white-space:nowrap}th{font-weight:600;color:var(--soft)}.n{text-align:right;font-variant-numeric:tabular-nums}
.facts td{overflow-wrap:anywhere}.facts td:first-child{min-width:7rem}
summary{cursor:pointer;font-weight:600}ul{margin:.3rem 0;padding-left:1.2rem}
figure{margin:.8rem 0 0}svg{width:100%;height:auto;display:block;max-width:28rem}
svg text{font:12px system-ui,sans-serif;fill:var(--ink)}svg .soft{fill:var(--soft)}
.s0{fill:var(--a)}.s1{fill:var(--b)}.s2{fill:var(--fault)}.s3{fill:var(--c)}.s4{fill:var(--warning)}
.ground{fill:var(--line)}
footer{color:var(--soft);font-size:.85rem}
@media (max-width:34rem){dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.35rem}
thead,td:empty{display:none}tr{display:block;border-bottom:1px solid var(--line);padding:.2rem 0}
td{display:block;padding:.1rem 0;border:0;overflow-wrap:anywhere}.n{text-align:left;white-space:normal}
.facts td:first-child{color:var(--soft)}
[data-label]{display:grid;grid-template-columns:7.5rem 1fr}[data-label]::before{content:attr(data-label);
color:var(--soft)}}
@media print{article,section,details{break-inside:avoid}}
""".strip()


def render(report: Report, _style: Style) -> str:
    """The page."""
    return "\n".join(_Page(report).lines()) + "\n"


class _Page:
    def __init__(self, report: Report) -> None:
        self.report = report
        self._clean, self._literal, self.say = cleaner(report), copied(report), words(report)

    def text(self, text: str) -> str:
        return escape(self._clean(text))

    def code(self, text: str) -> str:
        return escape(self._literal(text))

    def lines(self) -> Iterator[str]:
        report = self.report
        name = f"cpersona-cli {report.command}".rstrip()
        verdict = str(report.verdict)
        said = self.say(_VERDICTS[verdict])
        yield "<!doctype html>"
        yield f'<html lang="{report.language}">'
        yield '<meta charset="utf-8">'
        yield '<meta name="viewport" content="width=device-width,initial-scale=1">'
        yield (
            '<meta http-equiv="Content-Security-Policy" '
            "content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">"
        )
        yield f"<title>{escape(name)}: {said}</title>"
        yield f"<style>{_CSS}</style>"
        yield "<main>"
        yield f'<header><h1>{escape(name)}</h1><span class="verdict {verdict}">{said}</span>'
        if report.error:
            yield f"<p>{self.text(report.error)}</p></header>"
        else:
            summary = self.say(". ").join(part for part in (report.headline, counted(report)) if part)
            yield f'<p class="soft">{self.text(summary)}</p></header>'
            yield from self._body()
        if report.next_command:
            yield f"<section><h2>{self.say('Next')}</h2><pre>{self.code(report.next_command)}</pre></section>"
        yield f"<footer>cpersona-cli {__version__}</footer>"
        yield "</main>"
        yield "</html>"

    def _body(self) -> Iterator[str]:
        report = self.report
        for finding in report.worst_first:
            yield from self._finding(finding)
        yield from self._list("No verdict", reasons(report))
        for section in report.sections:
            yield from self._section(section)
        yield from self._list("Waived", waived(report))
        yield from self._list("Looked at", report.looked)
        yield from self._groups()
        yield from self._list("Notes", report.notes)

    def _finding(self, finding: Finding) -> Iterator[str]:
        level = str(severity(finding))
        yield f'<article class="{level}">'
        yield (
            f'<h2><span class="mark {level}">{self.say(level)}</span>{self.text(self.say(title(finding.trap)))}'
            f" <code>{self.text(finding.trap)}</code></h2>"
        )
        rows = ((self.say(name), self.text(self.say(value))) for name, value in account(finding))
        shown = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows)
        yield f"<dl>{shown}</dl>"
        block = lines_to_copy(finding)
        if block:
            yield "<pre>" + "\n".join(self.code(line) for line in block) + "</pre>"
        yield "</article>"

    def _section(self, section: Section) -> Iterator[str]:
        """Shown open, or folded where it takes ``-v`` to see it in text and is no picture."""
        folded = section.verbosity > 0 and not any(map(is_picture, section.figures))
        name = self.text(section.title)
        heading = f"<h2>{name}</h2>" if name else ""
        yield f"<details><summary>{name}</summary>" if folded else f"<section>{heading}"
        if section.rows:
            with_where = any(where for _, _, where in section.rows)
            yield _facts([[self.text(cell) for cell in (row if with_where else row[:2])] for row in section.rows])
        for figure in section.figures:
            if isinstance(figure, Copied):
                yield from ("<pre>" + "\n".join(map(self.code, part.splitlines())) + "</pre>" for part in figure.text)
            else:
                yield f"<figure>{draw(figure, self.text)}</figure>"
        yield "</details>" if folded else "</section>"

    def _groups(self) -> Iterator[str]:
        rows = [(group, *map(str, counts)) for group, *counts in tallies(self.report)]
        if rows:
            header = tuple(map(self.say, ("group", "passed", "ran", "not made")))
            yield f"<details><summary>{self.say('Checks')}</summary>"
            yield draw(Table(header=header, rows=rows, numbers=frozenset({1, 2, 3})), self.text)
            yield "</details>"

    def _list(self, heading: str, sentences: Sequence[str]) -> Iterator[str]:
        if sentences:
            items = "".join(f"<li>{self.text(sentence)}</li>" for sentence in sentences)
            yield f"<section><h2>{self.say(heading)}</h2><ul>{items}</ul></section>"


def _facts(rows: Sequence[Sequence[str]]) -> str:
    """A table of names and values that are safe already."""
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table class="facts"><tbody>{body}</tbody></table></div>'
