from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_cli.history.model import Role, Turn
from cpersona_cli.history.select import ANSWERS, EQUAL_TEXTS, QUESTION, SHORT_TURNS, is_short, question, select

U, A = Role.USER, Role.ASSISTANT


def _turns(*said: tuple[Role, str]) -> list[Turn]:
    return [Turn(id=str(number), role=role, text=text, at=None) for number, (role, text) in enumerate(said)]


@pytest.mark.parametrize(
    "text",
    [
        "ok",
        "OK!",
        "continue",
        "yes",
        "yes, please"[:8],
        "Thank you",
        "go ahead",
        "👍",
        "…",
        "はい",
        "続けて",
        "好的",
        "계속해",
        "да",
        "si",
    ],
)
def test_what_says_nothing_by_itself_is_short(text: str) -> None:
    assert is_short(text)


@pytest.mark.parametrize(
    "text",
    [
        "use 8080",
        "7",
        "²",
        "please continue",
        "I moved to Rome",
        "東京に引っ越す",
        "我搬到北京了",
        "서울로 이사했다",
        "call Bo now",
    ],
)
def test_what_says_something_is_not(text: str) -> None:
    assert not is_short(text)


def test_short_turns_are_left_out_unless_they_answer_a_question() -> None:
    found = select(
        _turns(
            (U, "continue"),
            (A, "I went on. Where do you live now?"),
            (U, "Rome"),
            (A, "A fine place."),
            (U, "ok"),
            (A, "Shall I book it? I can."),
            (U, "yes"),
            (A, "駅で待ちます。何時に着きますか？"),
            (U, "昼です"),
            (U, "はい"),
        )
    )
    assert [(turn.id, turn.text) for turn in found.turns] == [
        ("1", "I went on. Where do you live now?"),
        ("2", "> Where do you live now?\n\nRome"),
        ("3", "A fine place."),
        ("5", "Shall I book it? I can."),
        ("7", "駅で待ちます。何時に着きますか？"),
        ("8", "> 何時に着きますか？\n\n昼です"),
    ]
    assert found.left_out == {SHORT_TURNS: 4}
    assert found.merged == {ANSWERS: 2}


def test_of_equal_texts_the_first_is_kept_and_the_others_are_counted() -> None:
    turns = _turns(*[(U, "continue")] * 40, *[(U, "ok")] * 3)
    assert select(turns).left_out == {SHORT_TURNS: 43}
    every = select(turns, short=0)
    assert [turn.id for turn in every.turns] == ["0", "40"]
    assert every.left_out == {EQUAL_TEXTS: 41}
    asked = [(A, "Shall I go on?"), (U, "yes")]
    found = select(_turns(*asked, *asked))
    assert [turn.text for turn in found.turns] == ["Shall I go on?", "> Shall I go on?\n\nyes"]
    assert (found.left_out, found.merged) == ({EQUAL_TEXTS: 2}, {ANSWERS: 1})


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Done. **Shall I go on?**", "Shall I go on?**"),
        ("Why not?\nBecause.", ""),
        ("Two ways.\n- Which one do you\u00a0like?  ", "Which one do you like?"),
        ("(Is it v2.1?)", "1?)"),
        ("", ""),
        ("x" * 2000 + "?", "…" + "x" * (QUESTION - 2) + "?"),
    ],
)
def test_the_question_a_text_ends_with(text: str, asked: str) -> None:
    assert question(text) == asked


@given(st.lists(st.tuples(st.sampled_from([U, A]), st.text(max_size=30)), max_size=12), st.integers(0, 10))
def test_turns_add_up_and_stay_in_order_and_no_text_comes_twice(said: list[tuple[Role, str]], short: int) -> None:
    turns = _turns(*said)
    found = select(turns, short=short)
    assert len(found.turns) + sum(found.left_out.values()) == len(turns)
    assert [int(turn.id) for turn in found.turns] == sorted(int(turn.id) for turn in found.turns)
    assert len({turn.text for turn in found.turns}) == len(found.turns)
    assert all(turn.text.endswith(turns[int(turn.id)].text) for turn in found.turns)
    assert sum(turn.text != turns[int(turn.id)].text for turn in found.turns) == found.merged.get(ANSWERS, 0)
