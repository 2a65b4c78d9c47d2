"""The server's own reading of its environment: the names in its source, and the values its ``config.py`` ends up with.

Run it on released packages to see whether the table still describes them (nothing is installed):

    PYTHONPATH=tests python -m support.drift cpersona-2.6.15-py3-none-any.whl ...
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import distribution
from pathlib import Path

from support.forked import unmeasured

from cpersona_cli.install.settings.model import Reader
from cpersona_cli.install.settings.table import SETTINGS

_GETTERS = re.compile(r"(environ\.(get|pop|setdefault)|getenv|(^|\.)_?parse_(int|float|bool|choice|optional_int))$")
_NAME = re.compile(r"^(CPERSONA|EMBEDDING|CLOTO)_[A-Z0-9_]+$")

#: Parts of a bundled library that releases before 2.5.2 carried and that no module of the server imported.
UNUSED = ("_vendored_mcp_common/llm_provider.py", "_vendored_mcp_common/search.py")


@dataclass(slots=True)
class Names:
    """Environment names found in source code, with where; ``dynamic`` are reads whose name is not a constant."""

    found: dict[str, list[str]] = field(default_factory=dict)
    dynamic: list[str] = field(default_factory=list)


def names_in(sources: Mapping[str, str]) -> Names:
    """Every environment name that ``sources`` (path -> Python code) read, also through module constants.

    A string that is nothing but such a name counts too: it is how a name reaches a helper nobody here knows of.
    """
    names = Names()
    for path, code in sources.items():
        tree = ast.parse(code)
        constants = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name) and isinstance(node.value.value, str)
        }
        for node in ast.walk(tree):
            for expression in _read_by(node):
                name = _constant(expression, constants)
                if name is None:
                    names.dynamic.append(f"{path}: {ast.unparse(expression)}")
                else:
                    names.found.setdefault(name, []).append(f"{path}:{expression.lineno}")
    return names


def _read_by(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call) and node.args and _GETTERS.search(ast.unparse(node.func)):
        yield node.args[0]
    elif isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("environ"):
        yield node.slice
    elif isinstance(node, ast.Compare) and ast.unparse(node.comparators[0]).endswith("environ"):
        yield node.left
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAME.match(node.value):
        yield node


def _constant(expression: ast.expr, constants: Mapping[str, str]) -> str | None:
    if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
        return expression.value
    return constants.get(expression.id) if isinstance(expression, ast.Name) else None


def attributes_in(config: str) -> dict[str, str]:
    """Name of each variable -> the constant of ``config.py`` that holds its value at last."""
    holders: dict[str, str] = {}
    for node in ast.parse(config).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        target = node.targets[0].id
        used = {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
        for name in [name for name, holder in holders.items() if holder.startswith("_") and holder in used]:
            holders[name] = target  # a private step on the way to the constant
        for part in ast.walk(node.value):
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and _NAME.match(part.value):
                holders.setdefault(part.value, target)
    return holders


# Runs inside a fresh interpreter: config.py once per environment, its public constants and warnings as JSON lines.
_RUNNER = r"""
import json, logging, os, sys
path, environments = sys.argv[1], json.load(sys.stdin)
for name in [n for n in os.environ if n.startswith(("CPERSONA", "EMBEDDING"))]:
    del os.environ[name]
base = dict(os.environ)
warned = []
class Handler(logging.Handler):
    def emit(self, record):
        warned.append(record.getMessage())
logging.getLogger().addHandler(Handler())
logging.getLogger().setLevel(logging.INFO)
CALLS = {"transport": ("transport",), "timeout": ("embedding_timeout_secs",), "ledger": ("alias_ledger_path",),
         "port": ("parse_int", "CPERSONA_HTTP_PORT", 8402)}
CHECKS = ("validate_reconstruct_counts", "validate_block_gates", "validate_content_caps", "validate_transport",
          "assert_embedding_mode_supported")
code = compile(open(path, encoding="utf-8").read(), path, "exec")
for environment in environments:
    os.environ.clear(); os.environ.update(base); os.environ.update(environment)
    warned.clear()
    out = {"constants": {}, "called": {}, "refused": "", "crashed": "", "has_transport_check": False}
    try:
        module = {"__name__": "config", "__file__": path}
        exec(code, module)
    except Exception as error:
        out["crashed"] = f"{type(error).__name__}: {error}"
    else:
        out["constants"] = {k: v for k, v in module.items() if k.isupper() and not k.startswith("_")
                            and (v is None or isinstance(v, (str, int, float, bool)))}
        for key, (function, *args) in CALLS.items():
            if function in module:
                out["called"][key] = module[function](*args)
        for check in CHECKS:
            try:
                module.get(check, lambda: None)()
            except Exception as error:
                out["refused"] = f"{check}: {error}"
                break
        out["has_transport_check"] = "validate_transport" in module
    out["warned"] = list(warned)
    print(json.dumps(out))
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What ``config.py`` made of one environment.

    ``called`` are settings it reads when asked (transport, timeout, ledger, port); ``refused`` is the first start-up
    check that fails, ``crashed`` the error that already ended the import.
    """

    constants: Mapping[str, object]
    called: Mapping[str, object]
    warned: Sequence[str]
    refused: str
    crashed: str
    has_transport_check: bool


def outcomes(config: Path, environments: Sequence[Mapping[str, str]]) -> list[Outcome]:
    """``config.py`` run once for each environment, all in one fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", _RUNNER, str(config)],
        env=unmeasured(),
        input=json.dumps(environments),
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    )
    return [Outcome(**json.loads(line)) for line in done.stdout.splitlines()]


@dataclass(frozen=True, slots=True)
class Package:
    """The Python sources of one release of the server, by path inside of it."""

    version: str
    sources: Mapping[str, str]

    @property
    def config(self) -> str:
        return self.sources["config.py"]

    @property
    def used(self) -> Mapping[str, str]:
        return {path: code for path, code in self.sources.items() if path not in UNUSED}


def installed() -> Package:
    """The server that is installed beside the tests."""
    found = distribution("cpersona")
    files = [file for file in found.files or () if file.suffix == ".py" and file.parts[0] == "cpersona"]
    sources = {"/".join(file.parts[1:]): Path(str(file.locate())).read_text("utf-8") for file in files}
    return Package(found.version, sources)


def wheel(path: Path) -> Package:
    """A released package that is not installed."""
    with zipfile.ZipFile(path) as archive:
        names = [n for n in archive.namelist() if n.startswith("cpersona/") and n.endswith(".py")]
        sources = {name.removeprefix("cpersona/"): archive.read(name).decode() for name in names}
    return Package(path.name.split("-")[1], sources)


def compare(package: Package, environments: Sequence[Mapping[str, str]]) -> list[str]:
    """Where the table and ``package`` disagree, one readable sentence each; an empty list when they agree."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.py"
        config.write_text(package.config, "utf-8")
        results = outcomes(config, environments)
    attributes = attributes_in(package.config)
    messages: dict[str, None] = {}
    for environment, outcome in zip(environments, results, strict=True):
        for message in _differences(package.version, attributes, environment, outcome):
            messages[message] = None
    return list(messages)


def _differences(
    version: str, attributes: Mapping[str, str], environment: Mapping[str, str], outcome: Outcome
) -> Iterator[str]:
    from support.environments import process  # noqa: PLC0415 - the tool's own code, not needed to read a package

    from cpersona_cli.install.settings.effective import effective  # noqa: PLC0415
    from cpersona_cli.install.settings.model import Reader  # noqa: PLC0415
    from cpersona_cli.install.settings.refusals import refusals  # noqa: PLC0415

    settings = effective(process(environment), version)
    ours = refusals(settings, version)
    if outcome.crashed:
        if not ours:
            yield f"{version} ends its import with {outcome.crashed}, our start-up checks pass"
        return
    held = {
        name: outcome.constants[attribute] for name, attribute in attributes.items() if attribute in outcome.constants
    }
    called = {
        "CPERSONA_TRANSPORT": "transport",
        "CPERSONA_EMBEDDING_TIMEOUT_SECS": "timeout",
        "CPERSONA_HTTP_PORT": "port",
        "CPERSONA_ALIAS_LEDGER_FILE": "ledger",
    }
    held |= {name: outcome.called[key] for name, key in called.items() if key in outcome.called}
    for name, theirs in held.items():
        if name not in settings or settings[name].setting.reader is not Reader.SERVER:
            continue  # an alias: its setting is compared under the first name
        found = settings[name]
        if not _same(found.value, theirs):
            given = _relevant(environment, found.setting.names)
            yield f"{version}: {name} with {given} is {theirs!r}, not {found.value!r}"
    # What another module decides is not to be seen here.
    elsewhere = {"CPERSONA_AUTH_TOKEN", "CPERSONA_HTTP_PORT", "CPERSONA_EMBEDDING_TIMEOUT_SECS"}
    if not outcome.has_transport_check:
        elsewhere.add("CPERSONA_TRANSPORT")
    checked = [refusal for refusal in ours if not elsewhere.intersection(refusal.settings)]
    if bool(checked) != bool(outcome.refused):
        yield f"{version}: the server says {outcome.refused!r}, we say {[refusal.sentence for refusal in checked]}"
    elif checked and not any(name in outcome.refused for name in _spellings(checked[0].settings)):
        yield f"{version}: the server says {outcome.refused!r}, we say first {checked[0].sentence!r}"


def _spellings(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield name
        yield {"CPERSONA_TRANSPORT": "transport"}.get(name, name)


def _relevant(environment: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    return {name: environment[name] for name in names if name in environment}


def _same(ours: object, theirs: object) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or (ours != ours and theirs != theirs)  # noqa: PLR0124 - both are nan
    return type(ours) is type(theirs) and ours == theirs


def names_read(version: str) -> frozenset[str]:
    """The names the table says release ``version`` of the server and its stdio proxy look at, aliases included."""
    readers = (Reader.SERVER, Reader.PROXY)
    rows = (s.at(version) for s in SETTINGS if s.reader in readers and s.known_to(version))
    return frozenset(name for row in rows for name in row.names)


def main(paths: Sequence[str]) -> int:
    """Compare the table with each package; the number of disagreements is the exit code (at most 99)."""
    from support.environments import classes, mixed  # noqa: PLC0415

    total = 0
    for path in paths:
        package = wheel(Path(path))
        found = set(names_in(package.used).found)
        ours = names_read(package.version)
        messages = [f"{name} is read by {package.version} and not in the table" for name in sorted(found - ours)]
        messages += [f"{name} is in the table and not read by {package.version}" for name in sorted(ours - found)]
        messages += compare(package, [*classes(), *mixed(400)])
        total += len(messages)
        sys.stdout.write("".join(f"{line}\n" for line in [f"{package.version}: {len(messages)}", *messages]))
    return min(total, 99)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
