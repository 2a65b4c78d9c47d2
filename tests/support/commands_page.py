"""Commands, their options, and the settings that are named like options, as the application declares them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer
from support.markdown import code, plain, table

from cpersona_cli.app import _application
from cpersona_cli.commands.preferences import PREFERENCES, Preference


def commands() -> Iterator[tuple[str, Any]]:
    """Every command by the words that start it, the tool itself first."""

    def walk(words: str, command: Any) -> Iterator[tuple[str, Any]]:
        yield words, command
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(f"{words} {name}", inner)

    yield from walk("cpersona-cli", typer.main.get_command(_application()))


def options(command: Any) -> set[str]:
    """Every spelling of every option."""
    return {name for param in command.params for name in (*param.opts, *param.secondary_opts) if name.startswith("-")}


def summary() -> str:
    """The commands, for the README."""
    rows = [
        (code(words.removeprefix("cpersona-cli ")), plain(command.help.partition("\n")[0]))
        for words, command in commands()
        if " " in words and not hasattr(command, "commands")
    ]
    return "\n".join(table(("command", "what it is for"), rows))


def reference() -> str:
    """What the help of each command says."""
    return "\n".join(line for words, command in commands() for line in _command(words, command))


def _command(words: str, command: Any) -> Iterator[str]:
    first, _, rest = command.help.partition("\n\n\b\n")
    examples, _, more = rest.partition("\n\n")
    yield f"### {words}\n"
    yield f"{plain(first)}\n"
    yield "```console"
    yield from (f"$ {line.strip()}" for line in examples.splitlines())
    yield "```\n"
    if more:
        yield f"{plain(' '.join(more.split()))}\n"
    rows = [(_option(param), _meaning(param)) for param in command.params if param.name != "help"]
    if rows:
        yield from table(("option", "meaning"), rows)
        yield ""


def _option(param: Any) -> str:
    if param.param_type_name == "argument":
        return code(param.metavar)
    spelled = ", ".join(code(" ".join(filter(None, (name, param.metavar)))) for name in param.opts)
    return ", ".join([spelled, *map(code, param.secondary_opts)])


def _meaning(param: Any) -> str:
    return plain(getattr(param, "help", None) or "What to look up.")


def preferences() -> str:
    """The tool's own settings, each explained by the help of its option."""
    meanings: dict[str, str] = {}
    for _, command in commands():
        for param in command.params:
            for name in param.opts:
                meanings.setdefault(name.removeprefix("--"), _meaning(param))
    rows = [(code(p.name), code(p.variable), _values(p), _default(p), meanings[p.name]) for p in PREFERENCES]
    return "\n".join(table(("key and option", "variable", "takes", "default", "meaning"), rows))


def _values(preference: Preference) -> str:
    if preference.choices:
        return ", ".join(code(choice) for choice in preference.choices)
    return {"words": "list; in the variable, commas", "flag": "`true`, `false`", "path": "file"}.get(
        preference.kind, preference.kind
    )


def _default(preference: Preference) -> str:
    match preference.default:
        case None | ():
            return "—"
        case bool(value):
            return code(str(value).lower())
        case float(value):
            return code(f"{value:g}")
        case value:
            return code(str(value))
