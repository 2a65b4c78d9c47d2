"""Static completions for four shells and the man page, made from the application as it declares itself.

A static file costs no start of Python for a TAB, and has no side effects. `make docs` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from support.commands_page import commands

from cpersona_cli import __version__
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.history.model import Format
from cpersona_cli.install.clients.table import CLIENTS
from cpersona_cli.record import field, record
from cpersona_cli.report.exits import Exit
from cpersona_cli.report.output import FORMATS
from cpersona_cli.traps.model import Group
from cpersona_cli.traps.registry import ALL
from cpersona_cli.words import COMMANDS

ROOT = Path(__file__).parents[2]
PROGRAMS = ("cpersona-cli", "cpersona")

_TRAPS = tuple(trap.id for trap in ALL)
_TRAPS_AND_GROUPS = (*_TRAPS, *map(str, Group))
#: Values of options and arguments that are words of a list, where the help does not spell them as ``a|b``.
_VALUES: Mapping[str, Sequence[str]] = {
    "--client": tuple(CLIENTS),
    "--format": tuple(FORMATS),
    "--only": _TRAPS_AND_GROUPS,
    "--skip": _TRAPS_AND_GROUPS,
    "--require": _TRAPS,
    "traps explain": _TRAPS_AND_GROUPS,
    "--replay": tuple(map(str, Kind)),
    "--from": tuple(map(str, Format)),
    "--group": tuple(map(str, Group)),
    "--command": COMMANDS,
}
#: What every command takes beside what it declares, and the program alone.
_HELP = ("--help", "-h"), "What a command does, with examples and options"
_VERSION = ("--version",), "Which release this is"


@record(kw_only=True)
class Flag:
    """One option: its spellings, whether a value follows, and what that may be (``files`` or words).

    With ``formats`` a file may stand after the name of a format and a colon.
    """

    names: tuple[str, ...]
    takes: bool
    values: tuple[str, ...] = ()
    files: bool = False
    formats: bool = False
    meaning: str = ""


@record(kw_only=True)
class Word:
    """One command, by the words that follow the program's name."""

    path: str
    meaning: str
    inner: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()
    values: tuple[str, ...] = field(default=())
    files: bool = False


def words() -> list[Word]:
    """Every command with its options, the program itself first under an empty path."""
    return [_word(path.partition(" ")[2], command) for path, command in commands()]


def _word(path: str, command: Any) -> Word:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    names = [path, *(f"{path} {argument.name}" for argument in arguments)]
    values = next((tuple(_VALUES[name]) for name in names if arguments and name in _VALUES), ())
    metavars = " ".join(argument.metavar or "" for argument in arguments)
    limited = _only(path)
    own = [_flag(param, limited) for param in command.params if param.param_type_name == "option"]
    common = (_HELP,) if path else (_HELP, _VERSION)
    return Word(
        path=path,
        meaning=command.help.partition("\n")[0].rstrip("."),
        inner=tuple(getattr(command, "commands", {})),
        flags=(*own, *(Flag(names=names, takes=False, meaning=meaning) for names, meaning in common)),
        values=values or tuple(re.findall(r"\b[a-z]+\b", metavars)),
        files="PATH" in metavars or "FILE" in metavars,
    )


def _only(path: str) -> bool:
    """Whether ``--only`` of this command takes checks."""
    return path == "doctor"


def _flag(param: Any, checks: bool) -> Flag:
    metavar = param.metavar or ""
    name = max(param.opts, key=len)
    spelled = tuple(metavar.split("|")) if re.fullmatch(r"[a-z0-9-]+(?:\|[a-z0-9-]+)+", metavar) else ()
    listed = () if name in {"--only", "--skip", "--require"} and not checks else tuple(_VALUES.get(name, ()))
    return Flag(
        names=(*param.opts, *param.secondary_opts),
        takes=not (param.is_flag or param.count),
        values=spelled or listed,
        files="FILE" in metavar or "PATH" in metavar,
        formats=metavar.startswith("[FORMAT:]"),
        meaning=" ".join((param.help or "").split()).rstrip("."),
    )


# Bash: one function for both programs; the longest known row of words before the cursor is the command.


def bash() -> str:
    lines = ["# bash completion for cpersona-cli; made from the application, not by hand", "_cpersona_cli() {"]
    lines += [
        '    local current="${COMP_WORDS[COMP_CWORD]}" previous="" path="" word',
        '    ((COMP_CWORD > 0)) && previous="${COMP_WORDS[COMP_CWORD - 1]}"',
        "    # --option=value stands here as three words",
        "    if [[ $current == = ]]; then",
        "        current=",
        "    elif [[ $previous == = ]] && ((COMP_CWORD > 1)); then",
        '        previous="${COMP_WORDS[COMP_CWORD - 2]}"',
        "    fi",
        "    COMPREPLY=()",
        '    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
        '        case "${path:+$path }$word" in',
        *_branches(12, ((entry.path, ['path="${path:+$path }$word"']) for entry in words() if entry.path)),
        "        esac",
        "    done",
        '    case "$path:$previous" in',
    ]
    for entry in words():
        for flag in entry.flags:
            if flag.takes:
                patterns = "|".join(f'"{entry.path}:{name}"' for name in flag.names)
                lines.append(f"        {patterns})")
                lines += [f"            {line}" for line in _bash_values(flag.values, files=flag.files)]
                lines += ["            return", "            ;;"]
    lines += ["    esac", '    case "$path" in']
    for entry in words():
        offered = [*entry.inner, *entry.values]
        flags = [name for flag in entry.flags for name in flag.names]
        lines.append(f'        "{entry.path}")')
        lines.append("            if [[ $current == -* ]]; then")
        lines += [f"                {line}" for line in _bash_values(flags, files=False)]
        lines.append("            else")
        lines += [f"                {line}" for line in _bash_values(offered, files=entry.files)]
        lines += ["            fi", "            ;;"]
    lines += ["    esac", "}", f"complete -F _cpersona_cli {' '.join(PROGRAMS)}"]
    return "\n".join(lines) + "\n"


def _branches(indent: int, branches: Iterator[tuple[str, list[str]]]) -> Iterator[str]:
    space = " " * indent
    for pattern, body in branches:
        yield f'{space}"{pattern}")'
        yield from (f"{space}    {line}" for line in body)
        yield f"{space}    ;;"


def _bash_values(values: Sequence[str], *, files: bool) -> list[str]:
    given = [f"-W '{' '.join(values)}'"] if values else []
    lines = ["compopt -o filenames 2>/dev/null"] if files else []
    lines += [
        f'while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen {what} -- "$current")'
        for what in (*given, *(["-f"] if files else []))
    ]
    return lines or [":"]


# Zsh: works from a folder of autoloaded functions and when it is sourced.


def zsh() -> str:
    lines = [
        f"#compdef {' '.join(PROGRAMS)}",
        "# zsh completion for cpersona-cli; made from the application, not by hand",
    ]
    lines += ["", f"{_zsh_name('')}output() {{", "    compset -P '*:'", "    _files", "}"]
    by_path = {entry.path: entry for entry in words()}
    for entry in by_path.values():
        lines += ["", *_zsh_function(entry, by_path)]
    lines += [
        "",
        'if [ "${funcstack[1]}" = "_cpersona-cli" ]; then',
        '    _cpersona-cli_ "$@"',
        "else",
        f"    compdef _cpersona-cli_ {' '.join(PROGRAMS)}",
        "fi",
    ]
    return "\n".join(lines) + "\n"


def _zsh_name(path: str) -> str:
    return f"_cpersona-cli_{path.replace(' ', '_')}"


def _zsh_function(entry: Word, by_path: Mapping[str, Word]) -> Iterator[str]:
    yield f"{_zsh_name(entry.path)}() {{"
    specs = [spec for flag in entry.flags for spec in _zsh_specs(flag)]
    if entry.inner:
        yield '    local curcontext="$curcontext" state line'
        yield "    typeset -A opt_args"
    yield "    _arguments -C -s \\" if entry.inner else "    _arguments -s \\"
    for spec in specs:
        yield f"        {spec} \\"
    if entry.inner:
        yield "        '1: :->command' \\"
        yield "        '*:: :->rest'"
        yield "    case $state in"
        yield "        command)"
        yield "            local -a commands=("
        for name in entry.inner:
            inner = by_path[f"{entry.path} {name}".strip()]
            yield f"                {_quoted(f'{name}:{inner.meaning}')}"
        yield "            )"
        yield "            _describe -t commands command commands"
        yield "            ;;"
        yield "        rest)"
        yield "            case $line[1] in"
        for name in entry.inner:
            yield f"                {name}) {_zsh_name(f'{entry.path} {name}'.strip())} ;;"
        yield "            esac"
        yield "            ;;"
        yield "    esac"
    elif entry.values and entry.files:
        both = f'_alternative "words:what:({" ".join(entry.values)})" "files:file:_files"'
        yield f"        {_quoted(f'*:what:{{{both}}}')}"
    elif entry.values:
        yield f"        {_quoted('*:what:(' + ' '.join(entry.values) + ')')}"
    else:
        yield "        '*:file:_files'" if entry.files else "        && return 0"
    yield "}"


def _zsh_specs(flag: Flag) -> Iterator[str]:
    meaning = flag.meaning.replace("[", r"\[").replace("]", r"\]").replace(":", r"\:")
    action = ""
    if flag.takes:
        files = f"{_zsh_name('')}output" if flag.formats else "_files"
        values = f"({' '.join(flag.values)})" if flag.values else files if flag.files else " "
        action = f":value:{values}"
    for name in flag.names:
        yield _quoted(f"*{name}{'=' if flag.takes and name.startswith('--') else ''}[{meaning}]{action}")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# Fish.


def fish() -> str:
    lines = ["# fish completion for cpersona-cli; made from the application, not by hand"]
    every = words()
    lines += [
        "function __cpersona_cli_path",
        "    set -l path",
        "    for word in (commandline -opc)[2..-1]",
        "        set -l longer (string join -- ' ' $path $word)",
        f"        if contains -- $longer {' '.join(_quoted(entry.path) for entry in every if entry.path)}",
        "            set path $longer",
        "        end",
        "    end",
        "    string join -- ' ' $path",
        "end",
        "function __cpersona_cli_at",
        "    set -l path (__cpersona_cli_path)",
        '    test "$path" = "$argv[1]"',
        "end",
    ]
    for program in PROGRAMS:
        lines.append(f"complete -c {program} -f")
        for entry in every:
            at = f"-n {_quoted(f'__cpersona_cli_at {_fish_word(entry.path)}')}"
            for name in entry.inner:
                inner = next(e for e in every if e.path == f"{entry.path} {name}".strip())
                lines.append(f"complete -c {program} {at} -a {name} -d {_quoted(inner.meaning)}")
            if entry.values:
                lines.append(f"complete -c {program} {at} -a {_quoted(' '.join(entry.values))}")
            if entry.files:
                lines.append(f"complete -c {program} {at} -F")
            lines += [f"complete -c {program} {at} {_fish_flag(flag)}" for flag in entry.flags]
    return "\n".join(lines) + "\n"


def _fish_word(path: str) -> str:
    return f'"{path}"'


def _fish_flag(flag: Flag) -> str:
    parts = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names]
    if flag.takes:
        parts.append("-r")
        parts.append(f"-f -a {_quoted(' '.join(flag.values))}" if flag.values else "-F" if flag.files else "-f")
    return " ".join([*parts, f"-d {_quoted(flag.meaning)}"])


# PowerShell.


def powershell() -> str:
    lines = [
        "# PowerShell completion for cpersona-cli; made from the application, not by hand",
        "$cpersonaCliWords = @{",
    ]
    for entry in words():
        offered = [*entry.inner, *entry.values, *(name for flag in entry.flags for name in flag.names)]
        lines.append(f"    '{entry.path}' = @({', '.join(_power(word) for word in offered)})")
    lines += ["}", "$cpersonaCliValues = @{"]
    for entry in words():
        for flag in entry.flags:
            if flag.takes:
                for name in flag.names:
                    values = ", ".join(_power(value) for value in flag.values)
                    lines.append(f"    '{entry.path}:{name}' = @({values})")
    lines += [
        "}",
        f"Register-ArgumentCompleter -Native -CommandName {', '.join(PROGRAMS)} -ScriptBlock {{",
        "    param($wordToComplete, $commandAst, $cursorPosition)",
        "    $path = ''",
        "    $previous = ''",
        "    foreach ($element in $commandAst.CommandElements | Select-Object -Skip 1) {",
        "        if ($element.Extent.EndOffset -ge $cursorPosition) { break }",
        "        $previous = $element.Extent.Text",
        '        $longer = "$path $previous".Trim()',
        "        if ($cpersonaCliWords.ContainsKey($longer)) { $path = $longer }",
        "    }",
        '    $key = "${path}:$previous"',
        (
            "    $offered = if ($cpersonaCliValues.ContainsKey($key)) { $cpersonaCliValues[$key] }"
            " else { $cpersonaCliWords[$path] }"
        ),
        '    $offered | Where-Object { $_ -like "$wordToComplete*" } | ForEach-Object {',
        "        [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)",
        "    }",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _power(word: str) -> str:
    return "'" + word.replace("'", "''") + "'"


# The man page.


def man() -> str:
    """The page, in the man macros that every roff knows. Without a date, so that it changes only with the tool."""
    program, *others = commands()
    lines = [
        f'.TH CPERSONA-CLI 1 "" "cpersona-cli {__version__}" "User Commands"',
        ".SH NAME",
        r"cpersona\-cli \- operator toolkit and install gate for CPersona, the MCP memory server",
        ".SH SYNOPSIS",
        r".B cpersona\-cli",
        r".I command",
        "[options]",
        ".SH DESCRIPTION",
        *_paragraphs(program[1].help),
    ]
    lines += [".SH OPTIONS"]
    for names, meaning in (_HELP, _VERSION):
        lines += [".TP", ", ".join(rf"\fB{_roff(name)}\fR" for name in names), f"{meaning}."]
    lines += _man_options(program[1])
    for path, command in others:
        if hasattr(command, "commands"):
            continue
        lines += [f".SH {_roff(path.partition(' ')[2].upper())}", *_paragraphs(command.help)]
        lines += _man_options(command)
    lines += [".SH EXIT STATUS", *(line for code in Exit for line in (".TP", f".B {code.value}", _EXITS[code]))]
    lines += [
        ".SH ENVIRONMENT",
        ".TP",
        ".B NO_COLOR",
        "No colours.",
        ".TP",
        ".B CPERSONA_CLI_*",
        "Settings of this tool, named like its options; see docs/commands.md.",
    ]
    return "\n".join(lines) + "\n"


_EXITS = {
    Exit.OK: "Pass.",
    Exit.NEGATIVE: "A fault, a negative verdict, or not everything done.",
    Exit.USAGE: "Usage.",
    Exit.NO_VERDICT: "No verdict: something could not be found out, or nothing was checked.",
    Exit.INTERRUPTED: "Interrupted.",
    Exit.TERMINATED: "Terminated.",
}


def _man_options(command: Any) -> Iterator[str]:
    for param in command.params:
        if param.param_type_name == "option":
            yield from (".TP", _man_option(param), _roff(" ".join((param.help or "").split())))


def _man_option(param: Any) -> str:
    names = ", ".join(rf"\fB{_roff(name)}\fR" for name in (*param.opts, *param.secondary_opts))
    takes = not (param.is_flag or param.count) and param.metavar
    return f"{names}{f' {chr(92)}fI{_roff(param.metavar)}{chr(92)}fR' if takes else ''}"


def _paragraphs(help_text: str) -> Iterator[str]:
    """The help: plain paragraphs, and those that click keeps as they are (after a line with a backspace)."""
    for number, paragraph in enumerate(help_text.strip().split("\n\n")):
        if number:  # a section begins a paragraph by itself
            yield ".PP"
        if paragraph.startswith("\b"):
            yield ".nf"
            yield from (_roff(line) for line in paragraph.splitlines()[1:])
            yield ".fi"
        else:
            yield _roff(" ".join(paragraph.split()))


def _roff(text: str) -> str:
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


#: Every file by its path in the project.
FILES = {
    "completions/cpersona-cli.bash": bash,
    "completions/_cpersona-cli": zsh,
    "completions/cpersona-cli.fish": fish,
    "completions/cpersona-cli.ps1": powershell,
    "completions/cpersona-cli.1": man,
}
