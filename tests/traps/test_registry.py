"""The list as a whole: complete, permanent, and speaking only of what exists."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from support.uncheckable import UNCHECKABLE

from cpersona_cli.install.release.version import key
from cpersona_cli.traps.model import Group, Trap
from cpersona_cli.traps.registry import ALL, RETIRED
from cpersona_cli.words import COMMANDS

# Rows in each part of the catalogue of known ways to be wrong.
ROWS = {"A": 36, "B": 35, "C": 27, "D": 12, "E": 12, "F": 15, "G": 20, "H": 12, "I": 10, "J": 7}
CATALOGUE = [f"{part}{number}" for part, count in ROWS.items() for number in range(1, count + 1)]


def test_every_row_of_the_catalogue_is_a_trap_or_says_why_not() -> None:
    by_trap = {row for trap in ALL for row in trap.rows}
    explained = {line.row for line in UNCHECKABLE}
    assert by_trap | explained == set(CATALOGUE)
    assert not by_trap & explained
    assert len(explained) == len(UNCHECKABLE)


def test_ids_are_unique_and_never_used_again() -> None:
    counts = Counter([trap.id for trap in ALL] + list(RETIRED))
    assert [name for name, count in counts.items() if count > 1] == []


def test_groups_stand_together_in_their_order() -> None:
    order = [list(Group).index(trap.group) for trap in ALL]
    assert order == sorted(order)


@pytest.mark.parametrize("trap", ALL, ids=lambda trap: trap.id)
def test_a_trap_explains_itself(trap: Trap) -> None:
    assert re.fullmatch(r"[a-z]+\.[a-z0-9]+(-[a-z0-9]+)*", trap.id)
    for words in (trap.title, trap.expected, trap.costs, trap.repair, trap.source):
        assert words == words.strip() != ""
    # names of modes, programs and values keep their own small letters
    assert not trap.title[0].islower() or trap.title.split()[0] in {"api", "http", "https", "nan", "uvx"}
    for bound in (trap.since, trap.until):
        assert not bound or key(bound)


def test_only_commands_of_this_release_are_named() -> None:
    """A repair that names a command which is not there yet would be worse than none."""
    texts = [text for trap in ALL for text in (trap.expected, trap.costs, trap.repair)]
    named = set(re.findall(r"cpersona-cli ([a-z][a-z-]+)", " ".join(texts)))
    assert named <= {*COMMANDS}
