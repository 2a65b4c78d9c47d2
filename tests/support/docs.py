"""What is generated: pages of docs/, blocks between two comments in README.md and docs/, and completions/.

make docs    # rewrites them all
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from support import clients_page, commands_page, settings_page, traps_page
from support.completions import FILES
from support.endpoints_small import serving
from support.exports import gpt, gpt_message, zipped
from support.markdown import code, plain, table

from cpersona_cli.embedding.kinds import MEANINGS, Kind
from cpersona_cli.install.model import Place
from cpersona_cli.report.exits import Exit
from cpersona_cli.traps.live import SAMPLES
from cpersona_cli.traps.model import Finding, Needs, Repair
from cpersona_cli.traps.registry import ALL
from examples import scratch
from examples.endpoint import WIDTH, endpoint

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"

#: What stands in the documents for the home directory of a machine.
HOME = "/home/you"

_BLOCK = re.compile(r"<!-- make docs: ([a-z-]+) -->\n(?:.*?\n)??<!-- end -->", re.DOTALL)
_LEFT_IN = {"settings": 2, "searched": 2}  # entries of long lists that the example keeps
_MACHINE: Mapping[str, object] = {"filesystem": "ext4", "bytes": 253952, "elapsed_seconds": 0.08}  # differ by machine

# What no two runs, days and machines have in common.
_SETTLED = (
    (r"^(cpersona-cli [a-z-]+    .*    )[0-9.]+ s$", r"\g<1>0.9 s"),
    (r"^(  \d  .*\S) +[0-9.]+ s$", r"\g<1>  9.0 s"),
    (r"[0-9.]+ [KM]iB beside the database, [0-9,.]+ [KMG]iB are free", "520 KiB beside the database, 60 GiB are free"),
    (r"a backup of [0-9.]+ KiB", "a backup of 250 KiB"),
    (r"[0-9,.]+ [KMG]iB\s+are free", "60 GiB are free"),
    (r"backfill-backup, [0-9.]+ KiB", "backfill-backup, 250 KiB"),
    (r"^(  took      )[^,;\n]+([,;])", r"\g<1>less than a second\g<2>"),
    (r"thers waited [0-9.]+ s", "thers waited 0.01 s"),
    (r"other writers waited [0-9.]+ s", "other writers waited 0.01 s"),
)

_EXITS = {
    Exit.OK: "pass: checks were made, and what they found, if anything, is milder than `--fail-on`",
    Exit.NEGATIVE: "a fault (or what `--fail-on` names), also when other checks could not find out",
    Exit.USAGE: "usage: an option, a value or a file of this tool cannot be used; nothing was looked at",
    Exit.NO_VERDICT: "no verdict: something could not be found out, a required check did not run, or nothing was found "
    "to check",
    Exit.INTERRUPTED: "interrupted (Ctrl-C)",
    Exit.TERMINATED: "terminated (SIGTERM)",
}


def block(name: str) -> str:
    """What stands between the comments of a block in the README."""
    found = re.search(rf"<!-- make docs: {name} -->\n(.*?)\n<!-- end -->", README.read_text("utf-8"), re.DOTALL)
    assert found is not None, name
    return found[1]


def documents(*, played: bool = False) -> Mapping[Path, str]:
    """Everything that is generated, as it should be. Only with ``played`` the demo is played for its block."""
    blocks: dict[str, str] = {}

    def made_anew(match: re.Match[str]) -> str:
        name = match[1]
        if name == PLAYED and not played:
            return match[0]
        if name not in blocks:
            blocks[name] = BLOCKS[name]()
        return f"<!-- make docs: {name} -->\n{blocks[name].rstrip()}\n<!-- end -->"

    made = {ROOT / name: page() for name, page in (*PAGES.items(), *FILES.items())}
    for path in (README, *sorted((ROOT / "docs").glob("*.md"))):
        if path not in made:
            made[path] = _BLOCK.sub(made_anew, path.read_text("utf-8"))
    return made


@cache
def _store() -> Mapping[str, bytes]:
    """The database of such a home, as the real server wrote it."""
    with tempfile.TemporaryDirectory() as folder, endpoint() as url:
        home = scratch.scratch_home(Path(folder).resolve(), url)
        return {file.name: file.read_bytes() for file in home.glob("memory.db*")}


@contextmanager
def broken_home() -> Iterator[Path]:
    """A home in order, but with a letter missing in a name; on a disk, because a database in memory is a finding."""
    disk = Path("/var/tmp")
    with tempfile.TemporaryDirectory(dir=disk if disk.is_dir() else None) as folder:
        home = Path(folder).resolve()
        for name, data in _store().items():
            (home / name).touch(0o600)
            (home / name).write_bytes(data)
        values = scratch.variables(home, "http://127.0.0.1:8401/embed")
        values["CPERSONA_EMBEDING_URL"] = values.pop("CPERSONA_EMBEDDING_URL")
        scratch.register(home, values)
        yield home


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The installed script in a scratch home, without a terminal, 80 columns wide. A crash is no document."""
    script = Path(sys.executable).with_name("cpersona-cli")
    env = {"HOME": str(home), "PATH": os.environ.get("PATH", ""), "COLUMNS": "80", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [script, *words], env=env, cwd=home, capture_output=True, text=True, encoding="utf-8", check=False
    )
    if done.returncode not in {Exit.OK, Exit.NEGATIVE}:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr}{done.stdout}")
    return done


def _console(*runs: tuple[str, str]) -> str:
    """What was typed and what was said, without what no two runs have in common."""
    said = "\n".join(f"$ {typed}\n{said}" for typed, said in runs)
    for pattern, settled in _SETTLED:
        said = re.sub(pattern, settled, said, flags=re.MULTILINE)
    return f"```console\n{said}```"


def _excerpt(said: str, *openings: str) -> str:
    """The first and the last paragraph of a report, and those that begin so; ``[...]`` is for all others."""
    paragraphs = said.rstrip("\n").split("\n\n")
    kept: list[str] = []
    for number, paragraph in enumerate(paragraphs):
        if number in {0, len(paragraphs) - 1} or paragraph.startswith(openings):
            kept.append(paragraph)
        elif kept[-1] != "[...]":
            kept.append("[...]")
    return "\n\n".join(kept).replace("\n\n[...]\n\n", "\n[...]\n") + "\n"


@cache
def _runs() -> tuple[str, Mapping[str, str], Any]:
    """The path of a broken home; what is said there to people, by command line; of one trap to machines."""
    with broken_home() as home:
        document = run(home, "doctor", "--only", "names.url-missing", "--json").stdout
        lines = ("doctor", "doctor --format agent", "traps explain names.url-missing")
        said = {f"cpersona-cli {line}": run(home, *line.split()).stdout for line in lines}
        return str(home), said, json.loads(document)


def _first_run() -> str:
    return _console(("cpersona-cli doctor", _runs()[1]["cpersona-cli doctor"]))


def _agent_run() -> str:
    home, said, _ = _runs()
    line = "cpersona-cli doctor --format agent"
    return _console((line, said[line].replace(home, HOME).replace(f"{sys.prefix}/", f"{HOME}/.venv/")))


def _readme_doctor() -> str:
    return _console(("cpersona-cli doctor", _excerpt(_runs()[1]["cpersona-cli doctor"], "FAULT")))


def _readme_traps() -> str:
    line = "cpersona-cli traps explain names.url-missing"
    return _console((line, _runs()[1][line]))


@cache
def _swapped() -> Mapping[str, str]:
    """The store of a home in order, beside another model of the same width: what is said, by command line.

    The path is left out of the URL for ``probe``.
    """
    with broken_home() as home, serving(width=WIDTH) as server:
        scratch.register(home, scratch.variables(home, server.url()))
        lines = ("dimension", "advisory-preview --replay refused")
        said = {f"cpersona-cli {line}": run(home, *line.split()).stdout for line in lines}
        scratch.register(home, scratch.variables(home, server.url("")))
        said["cpersona-cli probe"] = run(home, "probe").stdout
        # the day on which the documents are made is none of theirs
        said["cpersona-cli dimension"] = re.sub(r"\d{4}-\d\d-\d\d", "2026-03-03", said["cpersona-cli dimension"])
        return {line: text.replace(f":{server.port}", ":8401") for line, text in said.items()}


def _swapped_run(line: str, *openings: str) -> str:
    """All of it, or an excerpt."""
    said = _swapped()[line]
    return _console((line, _excerpt(said, *openings) if openings else said))


@cache
def _reembed() -> tuple[tuple[str, str], tuple[str, str]]:
    """The store of a home in order, given the vectors of another model: a plan, and the whole."""
    with broken_home() as home, serving(width=96) as server:
        scratch.register(home, scratch.variables(home, server.url()))
        plan = run(home, "reembed", "--dry-run").stdout.replace(f":{server.port}/", ":8401/")
        done = run(home, "reembed", "--yes").stdout.replace(f":{server.port}/", ":8401/")
    return ("cpersona-cli reembed --dry-run", plan), ("cpersona-cli reembed --yes", done)


def _readme_reembed() -> str:
    _, (typed, done) = _reembed()
    return _console((typed, _excerpt(done, "result")))


@cache
def _backfill() -> tuple[tuple[str, str], tuple[str, str]]:
    """An export brought into the store of a home in order: a plan, and the whole."""
    talk = gpt(
        gpt_message("u1", "user", "How do I roll back a release of the chart?"),
        gpt_message("t1", "tool", "REVISION 41"),
        gpt_message("a1", "assistant", "Run helm rollback with the number of the revision before."),
        gpt_message("u2", "user", "ok"),
    )
    with broken_home() as home, endpoint() as url:
        scratch.register(home, scratch.variables(home, url))
        zipped(home / "export.zip", {"conversations.json": [talk], "user.json": {"id": "you"}})
        words = ("export.zip", "--as", "both", "--no-penalty")
        plan = run(home, "backfill", *words, "--dry-run").stdout.replace(url, "http://127.0.0.1:8401/embed")
        done = run(home, "backfill", *words, "--yes").stdout
    typed = f"cpersona-cli backfill {' '.join(words)}"
    return (f"{typed} --dry-run", plan), (f"{typed} --yes", done)


def _readme_backfill() -> str:
    _, (typed, done) = _backfill()
    return _console((typed, _excerpt(done, "result")))


def demo_run(said: str) -> str:
    """How the demo ends, of all that it says."""
    end = said[said.rindex("\ncpersona-cli demo    ") + 1 :]
    return _console(("cpersona-cli demo", f"[...]\n{end}"))


def _demo_run() -> str:
    with tempfile.TemporaryDirectory() as home:
        return demo_run(run(Path(home), "demo").stdout)


def _json_example() -> str:
    home, _, said = _runs()
    text = json.dumps(_short(said), indent=2, ensure_ascii=False).replace(home, HOME)
    text = re.sub(r"/lib/python3\.\d+/", "/lib/python3.11/", text.replace(sys.prefix, f"{HOME}/.venv"))
    found = said["findings"][0]
    told = Finding(
        trap=found["trap"], subject=found["subject"], about=found["about"], measured="", repair=Repair(prose=""),
        place=Place(file=Path(found["place"]["file"].replace(str(home), HOME))),
    )  # fmt: skip
    text = text.replace(found["fingerprint"], told.fingerprint)
    return f"```json\n{text}\n```"


def _short(value: Any, name: str = "") -> Any:
    """A document with its long lists cut: of the checks, those that were made; of others, the first entries."""
    if isinstance(value, dict):
        return {key: _short(item, key) for key, item in value.items()}
    if name == "checks":
        return [check for check in value if check["state"] != "skipped"]
    if name in _MACHINE:
        return _MACHINE[name]
    if isinstance(value, list):
        return [_short(item) for item in value[: _LEFT_IN.get(name)]]
    return value


def _exit_codes() -> str:
    return "\n".join(table(("code", "meaning"), ((f"{code}", _EXITS[code]) for code in Exit)))


def _kinds() -> str:
    """Every way a call to the endpoint can end."""
    rows = (
        (
            code(kind),
            str(meaning.stage),
            plain(meaning.sentence),
            " or ".join(meaning.fault),
            plain(meaning.advice),
            ", ".join(["warning"] * (not meaning.fatal) + ["again"] * meaning.retryable),
        )
        for kind, meaning in MEANINGS.items()
        if kind is not Kind.OK
    )
    return "\n".join(table(("kind", "stage", "what happened", "to be mended in", "advice", ""), rows))


def _network() -> str:
    """What doctor says over the network: nothing, unless the list has traps that ask an endpoint."""
    if any(trap.needs is Needs.ENDPOINT for trap in ALL):
        return (
            "It contacts nothing but the embedding endpoints in use: each gets a few made-up texts, and one on this\n"
            f"computer also {SAMPLES} stored memories, to be compared with their vectors. `--offline` leaves that out."
        )
    return "It contacts nothing over the network in this release; `--offline` keeps it so in coming ones."


#: Documents made as a whole.
PAGES: Mapping[str, Callable[[], str]] = {"docs/settings.md": settings_page.page, "docs/traps.md": traps_page.page}

#: The block that takes a whole demo, and is compared where one is played anyway.
PLAYED = "demo-run"

#: Blocks inside documents that are written by hand.
BLOCKS: Mapping[str, Callable[[], str]] = {
    "backfill-run": lambda: _console(*_backfill()),
    "agent-run": _agent_run,
    "clients": clients_page.clients,
    "clients-short": clients_page.short,
    "commands": commands_page.reference,
    "commands-short": commands_page.summary,
    PLAYED: _demo_run,
    "dimension-run": lambda: _swapped_run("cpersona-cli dimension"),
    "exit-codes": _exit_codes,
    "first-run": _first_run,
    "groups": traps_page.groups,
    "json-example": _json_example,
    "kinds": _kinds,
    "network": _network,
    "places": clients_page.places,
    "preferences": commands_page.preferences,
    "probe-run": lambda: _swapped_run("cpersona-cli probe"),
    "readme-advisory": lambda: _swapped_run("cpersona-cli advisory-preview --replay refused", "what each"),
    "readme-backfill": _readme_backfill,
    "readme-dimension": lambda: _swapped_run("cpersona-cli dimension", "FAULT"),
    "readme-doctor": _readme_doctor,
    "readme-probe": lambda: _swapped_run("cpersona-cli probe", "FAULT"),
    "readme-reembed": _readme_reembed,
    "readme-traps": _readme_traps,
    "reembed-run": lambda: _console(*_reembed()),
}


def main() -> None:
    """Write every document that is not as it should be."""
    for path, text in documents(played=True).items():
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
