from __future__ import annotations

import sys

import pytest
from support.rebuilt import PLAN

from cpersona_cli.commands import talk as talking
from cpersona_cli.commands.errors import UsageError
from cpersona_cli.commands.talk import Talk
from cpersona_cli.embedding.model import Endpoint
from cpersona_cli.rebuild.judgement import Judgement, Verdict
from cpersona_cli.report.progress import Form, Teller
from cpersona_cli.report.reembed import plan_section

AWAY = Endpoint(mode="http", url="http://user:secret@192.0.2.1:8401/embed?key=k")
HERE = Endpoint(mode="http", url="http://127.0.0.1:8401/embed")


class Somebody:
    """A user who types the same to every question; ``asked`` are the questions."""

    def __init__(self, types: str) -> None:
        self.types, self.asked = types, list[str]()

    def __call__(self, question: str) -> str:
        self.asked.append(question)
        return self.types


def talk(monkeypatch: pytest.MonkeyPatch, somebody: Somebody | None, *, yes: bool = False) -> Talk:
    monkeypatch.setattr(talking, "asking", lambda: somebody)
    return Talk(Teller(form=Form.TEXT, stream=sys.stderr, terminal=True), "/home/aya", yes)


def test_texts_go_to_this_computer_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    talk(monkeypatch, None).consent(HERE, "stored texts")


def test_texts_go_elsewhere_only_after_a_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    talk(monkeypatch, None, yes=True).consent(AWAY, "stored texts")
    agreeing = Somebody("yes")
    talk(monkeypatch, agreeing).consent(AWAY, "stored texts")
    assert agreeing.asked == ["stored texts would be sent to http://192.0.2.1:8401/embed. Type yes to allow it:"]
    for somebody in (None, Somebody("no"), Somebody("")):
        with pytest.raises(UsageError, match="which is not this computer; add --yes to allow it"):
            talk(monkeypatch, somebody).consent(AWAY, "stored texts")


def test_what_changes_files_is_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    talk(monkeypatch, None, yes=True).confirm("It would be gone.")
    talk(monkeypatch, Somebody("yes")).confirm("It would be gone.")
    with pytest.raises(UsageError, match=r"^it would be gone, and nobody is here to confirm it; add --yes$"):
        talk(monkeypatch, None).confirm("It would be gone.")
    with pytest.raises(UsageError, match=r"^not confirmed; nothing was changed$"):
        talk(monkeypatch, Somebody("")).confirm("It would be gone.")


def test_the_plan_is_shown_before_it_is_confirmed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    somebody = Somebody("yes")
    section = plan_section(PLAN)
    talk(monkeypatch, somebody).plan([section], "Rebuild?")
    assert somebody.asked == ["Rebuild? Type yes:"]
    assert "stored texts to api.example.com, which is not this computer" in capsys.readouterr().err
    talk(monkeypatch, None, yes=True).plan([section], "Rebuild?")
    with pytest.raises(UsageError, match="the plan was not confirmed"):
        talk(monkeypatch, Somebody("no")).plan([section], "Rebuild?")
    with pytest.raises(UsageError, match=r"add --yes to carry it out, and to send stored texts to api\.example\.com$"):
        talk(monkeypatch, None).plan([section], "Rebuild?", "stored texts to api.example.com")


@pytest.mark.parametrize("verdict", list(Verdict))
def test_only_worse_search_is_asked_about(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verdict: Verdict
) -> None:
    judgement = Judgement(verdict=verdict, sentences=("so it is",))
    for types, wanted in (("yes", True), ("no", verdict is not Verdict.WORSE)):
        somebody = Somebody(types)
        assert talk(monkeypatch, somebody).better(judgement) is wanted
        assert len(somebody.asked) == (verdict is Verdict.WORSE)
    assert ("so it is" in capsys.readouterr().err) == (verdict is Verdict.WORSE)
    assert talk(monkeypatch, None).better(judgement)
    assert talk(monkeypatch, Somebody("no"), yes=True).better(judgement)


def test_waiting_needs_somebody_to_wait_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not talk(monkeypatch, None).wait(("process 12 (python)",))
    waiting = talk(monkeypatch, Somebody(""))
    for names in (("process 12 (python)",), ("process 12 (python)",), ("process 13 (python)",)):
        assert waiting.wait(names)
    said = capsys.readouterr().err
    assert said.count("the database is open in process 12 (python); quit that, and the switch follows by itself\n") == 1
    assert said.count("the database is open in process 13 (python); ") == 1
    assert said.count("waiting until nobody has the database open") == 3


def test_a_signal_is_told_with_the_next_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = talk(monkeypatch, None)
    conversation.stopping()
    assert capsys.readouterr().err == ""
    conversation.teller.done(130)
    assert capsys.readouterr().err.startswith("stopping when what is on its way has arrived")
