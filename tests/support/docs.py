"""The generated parts of README.md and docs/: whole pages, and blocks between two comments.

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
from support.endpoints_small import serving
from support.markdown import code, plain, table

from cpersona_cli.embedding.kinds import MEANINGS, Kind
from cpersona_cli.install.model import Place
from cpersona_cli.report.exits import Exit
from cpersona_cli.traps.live import SAMPLES
from cpersona_cli.traps.model import Finding, Needs, Repair
from cpersona_cli.traps.registry import ALL
from cpersona_cli.words import PLANNED
from examples import demo
from examples.endpoint import WIDTH, endpoint

ROOT = Path(__file__).parents[2]

#: What stands in the documents for the home directory of a machine.
HOME = "/home/you"

_BLOCK = re.compile(r"<!-- make docs: ([a-z-]+) -->\n(?:.*?\n)??<!-- end -->", re.DOTALL)
_LEFT_IN = {"settings": 2, "searched": 2}  # entries of long lists that the example keeps
_MACHINE: Mapping[str, object] = {"filesystem": "ext4", "bytes": 253952, "elapsed_seconds": 0.08}  # differ by machine

_EXITS = {
    Exit.OK: "pass: checks were made, and what they found, if anything, is milder than `--fail-on`",
    Exit.NEGATIVE: "a fault (or what `--fail-on` names), also when other checks could not find out",
    Exit.USAGE: "usage: an option, a value or a file of this tool cannot be used; nothing was looked at",
    Exit.NO_VERDICT: "no verdict: something could not be found out, a required check did not run, or nothing was found "
    "to check",
    Exit.INTERRUPTED: "interrupted (Ctrl-C)",
    Exit.TERMINATED: "terminated (SIGTERM)",
}


def documents() -> Mapping[Path, str]:
    """Every document, as it should be."""
    blocks: dict[str, str] = {}

    def block(match: re.Match[str]) -> str:
        name = match[1]
        if name not in blocks:
            blocks[name] = BLOCKS[name]()
        return f"<!-- make docs: {name} -->\n{blocks[name].rstrip()}\n<!-- end -->"

    made = {ROOT / name: page() for name, page in PAGES.items()}
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        if path not in made:
            made[path] = _BLOCK.sub(block, path.read_text("utf-8"))
    return made


@contextmanager
def broken_home() -> Iterator[Path]:
    """The home of the demo with a letter missing in a name; on a disk, because a database in memory is a finding."""
    disk = Path("/var/tmp")
    with tempfile.TemporaryDirectory(dir=disk if disk.is_dir() else None) as folder:
        home = Path(folder).resolve()
        with endpoint() as url:
            demo.scratch_home(home, url)
        values = demo.variables(home, "http://127.0.0.1:8401/embed")
        values["CPERSONA_EMBEDING_URL"] = values.pop("CPERSONA_EMBEDDING_URL")
        demo.register(home, values)
        yield home


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The installed script in a scratch home, without a terminal, 80 columns wide."""
    script = Path(sys.executable).with_name("cpersona-cli")
    env = {"HOME": str(home), "PATH": os.environ.get("PATH", ""), "COLUMNS": "80", "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        [script, *words], env=env, cwd=home, capture_output=True, text=True, encoding="utf-8", check=False
    )


@cache
def _runs() -> tuple[str, str, Any]:
    """The path of a broken home, and what the doctor says there, to people and of one trap to machines."""
    with broken_home() as home:
        document = run(home, "doctor", "--only", "names.url-missing", "--json").stdout
        return str(home), run(home, "doctor").stdout, json.loads(document)


def _first_run() -> str:
    _, said, _ = _runs()
    said = re.sub(r"    [0-9.]+ s$", "    0.08 s", said, count=1, flags=re.MULTILINE)
    return f"```console\n$ cpersona-cli doctor\n{said}```"


@cache
def _dimension_run() -> str:
    """The store of a home in order, beside another model of the same width."""
    with broken_home() as home, serving(width=WIDTH) as server:
        demo.register(home, demo.variables(home, server.url()))
        said = run(home, "dimension").stdout.replace(f":{server.port}/", ":8401/")
    said = re.sub(r"    [0-9.]+ s$", "    0.4 s", said, count=1, flags=re.MULTILINE)
    # the day on which the documents are made is none of theirs
    said = re.sub(r"\d{4}-\d\d-\d\d", "2026-03-03", said)
    return f"```console\n$ cpersona-cli dimension\n{said}```"


@cache
def _reembed_run() -> str:
    """The store of a home in order, given the vectors of another model."""
    with broken_home() as home, serving(width=96) as server:
        demo.register(home, demo.variables(home, server.url()))
        plan = run(home, "reembed", "--dry-run").stdout
        done = run(home, "reembed", "--yes").stdout
    said = f"$ cpersona-cli reembed --dry-run\n{plan}\n$ cpersona-cli reembed --yes\n{done}"
    said = said.replace(f":{server.port}/", ":8401/")
    said = re.sub(r"    [0-9.]+ s$", "    0.9 s", said, flags=re.MULTILINE)
    said = re.sub(
        r"[0-9.]+ [KM]iB beside the database, [0-9,.]+ [KMG]iB are free",
        "520 KiB beside the database, 60 GiB are free",
        said,
    )
    said = re.sub(r"other writers waited [0-9.]+ s", "other writers waited 0.01 s", said)
    return f"```console\n{said}```"


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


def _roadmap() -> str:
    return f"To come: {', '.join(code(word) for word in PLANNED)}."


#: Documents made as a whole.
PAGES: Mapping[str, Callable[[], str]] = {"docs/settings.md": settings_page.page, "docs/traps.md": traps_page.page}

#: Blocks inside documents that are written by hand.
BLOCKS: Mapping[str, Callable[[], str]] = {
    "clients": clients_page.clients,
    "clients-short": clients_page.short,
    "commands": commands_page.reference,
    "commands-short": commands_page.summary,
    "dimension-run": _dimension_run,
    "exit-codes": _exit_codes,
    "first-run": _first_run,
    "groups": traps_page.groups,
    "json-example": _json_example,
    "kinds": _kinds,
    "network": _network,
    "places": clients_page.places,
    "preferences": commands_page.preferences,
    "reembed-run": _reembed_run,
    "roadmap": _roadmap,
}


def main() -> None:
    """Write every document that is not as it should be."""
    for path, text in documents().items():
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
