from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cpersona_cli.commands.chosen import Chosen
from cpersona_cli.commands.errors import UsageError
from cpersona_cli.commands.rebuild_request import Request, again, check
from cpersona_cli.rebuild.model import Only
from cpersona_cli.traps.gather import Selection


def request(**fields: Any) -> Request:
    return Request(**{"selection": Selection(), **fields})


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"only": "missin"}, "--only does not know 'missin'; did you mean missing?"),
        ({"only": "x"}, "--only does not know 'x'; it takes all, missing, mismatched, damaged, foreign"),
        ({"progress": "bar"}, "--progress takes text, json or none, not 'bar'"),
        ({"batch_size": 0}, "--batch-size takes a number from 1 to 2048, not 0"),
        ({"concurrency": 257}, "--concurrency takes a number from 1 to 256, not 257"),
        ({"max_errors": -1}, "--max-errors takes a number from 0 to 1000000000, not -1"),
        ({"sample": 2001}, "--sample takes a number from 0 to 2000, not 2001"),
        ({"dry_run": True, "compare_only": True}, "--dry-run and --compare-only do not go together"),
        ({"dry_run": True, "live": True}, "--dry-run and --live do not go together"),
        ({"compare_only": True, "sample": 0}, "--compare-only judges search by a sample, so it does not go with"),
        ({"action": "undo", "only": "all"}, "--only does not go with `reembed undo`"),
        ({"action": "status", "cut_long": True}, "--cut-long does not go with `reembed status`"),
        ({"action": "undo", "chosen": Chosen(url="http://h/embed")}, "--url does not go with `reembed undo`, which"),
        ({"chosen": Chosen(model="m")}, "--model goes with --url; without it the registration says it"),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as error:
        check(request(**fields))
    assert str(error.value).startswith(sentence)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"only": "foreign", "concurrency": 1, "batch_size": 2048, "max_errors": 0, "max_tokens": 1, "sample": 0},
        {"selection": Selection(clients=("codex",)), "chosen": Chosen(url="http://h/embed", mode="http", model="m")},
        {"action": "finish", "chosen": Chosen(url="http://h/embed")},
        {"action": "undo", "yes": True},
    ],
)
def test_what_makes_sense_is_let_through(fields: dict[str, Any]) -> None:
    check(request(**fields))


def test_rows_are_all_unless_told() -> None:
    assert request().rows is Only.ALL
    assert request(only="damaged").rows is Only.DAMAGED


def test_the_same_is_asked_for_again_in_full() -> None:
    asked = request(
        selection=Selection(clients=("codex",), registrations=("a b.json:memory",), env=True, db=Path("/d/m e.db")),
        chosen=Chosen(url="http://u:p@h:1/embed?key=k", mode="http", model="m 1", key_file=Path("/k")),
        only="missing", concurrency=3, batch_size=8, max_errors=0, max_tokens=512, sample=0,
        cut_long=True, live=True, yes=True, dry_run=True, compare_only=True,
    )  # fmt: skip
    assert again(asked) == (
        "cpersona-cli reembed --client codex --registration 'a b.json:memory' --env --db '/d/m e.db'"
        " --url http://h:1/embed --mode http --model 'm 1' --api-key-file /k --only missing"
        " --concurrency 3 --batch-size 8 --max-errors 0 --max-tokens 512 --sample 0 --cut-long --live --yes"
    )


def test_the_database_that_was_chosen_is_named() -> None:
    assert again(request()) == "cpersona-cli reembed"
    assert again(request(only="all"), database=Path("/m.db")) == "cpersona-cli reembed --db /m.db"
    assert (
        again(request(selection=Selection(db=Path("a.db"))), database=Path("/m/a.db"))
        == "cpersona-cli reembed --db a.db"
    )
