"""Environments for settings tests: built from a mapping, one per class of value, and mixed at random but repeatably."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path

from cpersona_cli.install.model import Environment, Place, Value
from cpersona_cli.install.settings.model import Kind, Reader, Setting
from cpersona_cli.install.settings.table import SETTINGS


def process(env: Mapping[str, str]) -> Environment:
    """``env`` as the environment of a process."""
    place = Place(words="this process's environment")
    return Environment("process", {name: Value(text, place, "process", text) for name, text in env.items()})


def block(env: Mapping[str, str], file: Path = Path("/home/u/.claude.json")) -> Environment:
    """``env`` as an env block that stands in a client's file from line 11 on."""
    values = {
        name: Value(text, Place(file=file, line=line), "env block", text)
        for line, (name, text) in enumerate(env.items(), 11)
    }
    return Environment("none", values)


#: Texts every server setting is given in turn.
TEXTS = (
    "", " ", "0", "1", "-1", "2", "7", "17", " 5 ", "5 ", "1_000", "99999999999999999999", "70000", "0.5", "-0.5",
    "1.5", "1e3", "1e999", "nan", "-inf", "30s", "10,000", "16k", "0x10", "\u0663", "true", "TRUE", " true ",
    "True", "yes", "on", "ON", "no", "off", "Off", "false", "FALSE ", "disabled", "auto", "AUTO ", "none", "none ",
    "http", "HTTP", "api", "stdio", "streamable-http", "warn", "Warn", "reject ", "rrf", "RSF", "cascade", "strict",
    " lenient", "HIGH", "local", "Remote", "separation", "zscore", "newest", "now", "fusion", "legacy", "items",
    "evidence", '"http"', "${X}", "~/c.db", "/tmp/a b.db", "caf\xe9",
)  # fmt: skip


def server_settings() -> Iterator[Setting]:
    return (setting for setting in SETTINGS if setting.reader is Reader.SERVER)


def classes() -> list[dict[str, str]]:
    """One environment per text, in which every server setting and alias holds it; and aliases alone; and nothing."""
    rows = list(server_settings())
    own = [{row.name: text for row in rows} for text in TEXTS]
    second = [{alias: text for row in rows for alias in row.aliases} for text in TEXTS]
    both = [
        {row.name: "" for row in rows if row.aliases} | {alias: text for row in rows for alias in row.aliases}
        for text in TEXTS
    ]
    return [{}, *own, *second, *both]


def mixed(count: int, seed: int = 20) -> list[dict[str, str]]:
    """``count`` environments with a random third of the settings, the numbers near the bounds that matter."""
    chooser = random.Random(seed)
    rows = list(server_settings())
    environments = []
    for _ in range(count):
        environment = {}
        for row in rows:
            for name in row.names:
                if chooser.random() < 0.3:
                    environment[name] = _text(row, chooser)
        environments.append(environment)
    return environments


def _text(row: Setting, chooser: random.Random) -> str:
    if chooser.random() < 0.15:
        return chooser.choice(TEXTS)
    match row.kind:
        case Kind.INT | Kind.OPTIONAL_INT:
            return str(chooser.choice([1, 2, 5, 9, 10, 11, 300, 400, 401, 799, 801, 3999, 4001, 19999, 20001, 50000]))
        case Kind.FLOAT:
            return str(chooser.choice([0.0, 0.25, 1.0, 1.5, 30.0, 101.0, -2.0]))
        case Kind.BOOL | Kind.TRUE_ONLY | Kind.TRISTATE:
            return chooser.choice(["true", "false", "1", "0", "on", "off"])
        case Kind.TEXT | Kind.OFF_ONLY:
            return chooser.choice(["a", "off", "/tmp/x.db"])
        case _:
            return chooser.choice(row.choices)
