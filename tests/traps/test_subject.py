from __future__ import annotations

import pytest
from support.cases_names import GOOD, MODE, REMOTE, URL
from support.traps import MACHINE, UVX, docker, facts

from cpersona_cli.install.model import Environment, Launch, LaunchKind
from cpersona_cli.record import replace
from cpersona_cli.traps.model import CannotTellError, Facts, Finding, Repair, Severity, SkipError, Target
from cpersona_cli.traps.subject import missing, own, server, unless_set_elsewhere, written


def target(known: Facts) -> Target:
    return known.target


@pytest.mark.parametrize("kind", [LaunchKind.REMOTE, LaunchKind.PROXY])
def test_a_server_started_elsewhere_is_no_subject(kind: LaunchKind) -> None:
    with pytest.raises(SkipError, match="started elsewhere"):
        server(facts({}, launch=Launch(kind=kind)))
    with pytest.raises(SkipError, match="started elsewhere"):
        server(facts({}, **REMOTE))


def test_only_known_texts_are_written() -> None:
    found = written(facts(GOOD), URL)
    assert found is not None
    assert found.text == GOOD[URL]
    assert written(facts({}), URL) is None
    assert written(facts({URL: "${NOBODY_SET_THIS}"}), URL) is None
    assert written(facts({"CPERSONA_BLOCK_INDEX": "1"}, version="2.6.0"), "CPERSONA_BLOCK_INDEX") is None
    with pytest.raises(SkipError, match="asked for when the client starts"):
        written(facts({URL: "${input:u}"}, client="vscode"), URL)


def test_what_the_shell_hands_on_is_not_own() -> None:
    shell = replace(MACHINE, env={**MACHINE.env, "X": "1", MODE: "http"})
    inherited = facts({URL: "u"}, machine=shell)
    with_shell = next(one for one in inherited.targets if one.environment.base == "shell")
    assert own(with_shell, URL)
    assert not own(with_shell, "X")
    assert not own(with_shell, "ABSENT")
    assert own(target(facts({"X": "1"}, client="env")), "X")
    assert own(target(facts({}, launch=docker({"X": "1"}))), "X")


def test_what_else_may_set_a_variable() -> None:
    def condition(launch: Launch, problems: tuple[str, ...] = ()) -> str:
        one = target(facts({}, launch=launch))
        return unless_set_elsewhere(replace(one, environment=replace(one.environment, problems=problems)))

    assert condition(UVX) == ""
    assert "run.sh sets it" in condition(replace(UVX, wrapper="run.sh"))
    assert "mem.sh sets it" in condition(Launch(kind=LaunchKind.UNKNOWN, program="mem.sh"))
    assert "the command sets it" in condition(Launch(kind=LaunchKind.UNKNOWN))
    assert "compose.yaml is missing" in condition(replace(UVX, unclear=("compose.yaml is missing",)))
    assert "x.env: no such file" in condition(UVX, ("x.env: no such file",))
    assert Environment(base="none", values={}).problems == ()


def test_what_may_be_set_elsewhere_is_missing_only_perhaps() -> None:
    """A script that nobody read is no proof of a fault; a file that cannot be read is one."""
    finding = Finding(about=URL, measured="not set", repair=Repair(prose="set it"))

    def told(launch: Launch, problems: tuple[str, ...] = ()) -> Finding:
        one = target(facts({}, launch=launch))
        return missing(finding, replace(one, environment=replace(one.environment, problems=problems)))

    assert (told(UVX).severity, told(UVX).depends) == (None, "")
    perhaps = told(replace(UVX, wrapper="run.sh"))
    assert (perhaps.severity, perhaps.depends) == (Severity.WARNING, "unless run.sh sets it")
    assert told(UVX, ("x.env: no such file",)).severity is None
    hint = missing(replace(finding, severity=Severity.HINT), target(facts({}, launch=replace(UVX, wrapper="run.sh"))))
    assert hint.severity is Severity.HINT
    torn = facts({}).target
    with pytest.raises(SkipError, match="ends too early"):
        missing(finding, replace(torn, registration=replace(torn.registration, torn=True)))
    entered = replace(docker(), image="", unclear=("the container memory was made earlier",))
    with pytest.raises(CannotTellError, match=f"{URL} is not in the command, and the container memory"):
        told(entered)
