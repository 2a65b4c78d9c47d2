"""The acts: each breaks one thing that really breaks, and has the installed commands find and mend it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cpersona_cli.demo.memories import AGENT, CONVERSATIONS, MEMORIES
from cpersona_cli.demo.play import Players, Scene

#: The imported episodes must be newer than no memory: the memories are this many days old, one a day.
_OLDEST = 40


def _well(players: Players) -> None:
    stage = players.stage
    players.change("a real embedding model starts: WordLlama, 256 wide", lambda: stage.start_model("wordllama-256"))
    stage.register()
    with stage.server() as server:

        def remember() -> None:
            for number, text in enumerate(MEMORIES):
                message = {"content": text, "timestamp": _days_ago(_OLDEST - number)}
                server.call("store", agent_id=AGENT, message=message)

        players.change(f"the real server stores {len(MEMORIES)} memories", remember)
    with stage.server() as server:
        players.recall(server, all_answered=True)
    players.command("doctor", code=0)


def _down(players: Players) -> None:
    stage = players.stage
    players.change("the embedding server ends, as after a crash or a reboot", stage.stop_model)
    players.command("doctor", code=1, trap="endpoint.refused")
    players.command("advisory-preview", code=1, trap="advisory.fault")
    players.change("it is started again", lambda: stage.start_model("wordllama-256"))
    players.command("doctor", "--quiet", code=0)


def _width(players: Players) -> None:
    players.change(
        "another model at the same address: 64 wide in place of 256", lambda: players.stage.start_model("static-64")
    )
    with players.stage.server() as server:
        players.recall(server, all_answered=False)
    players.command("dimension", code=1, status="changed")
    _heal(players)


def _swap(players: Players) -> None:
    players.change(
        "another model of the same width: nothing about it looks different",
        lambda: players.stage.start_model("wordllama-64"),
    )
    with players.stage.server() as server:
        players.recall(server, all_answered=False)
    players.command("dimension", code=1, status="swapped")
    _heal(players)


def _heal(players: Players) -> None:
    players.command("reembed", "--yes", code=0)
    players.command("dimension", "--quiet", code=0, status="healed")
    with players.stage.server() as server:
        players.recall(server, all_answered=True)


def _import(players: Players) -> None:
    stage = players.stage
    stage.register(CPERSONA_EPISODE_PENALTY_ENABLED="true")

    def archive() -> None:
        with stage.server() as server:
            for summary, days in CONVERSATIONS:
                history = [{"content": summary, "timestamp": _days_ago(_OLDEST + days)}]
                server.call("archive_episode", agent_id=AGENT, summary=summary, history=history)

    players.change("an importer archives old conversations, and the server dates them today", archive)
    players.command("doctor", "--only", "recall", "--fail-on", "warning", code=1, trap="recall.imported-episodes")
    players.command("backfill", "repair", "--yes", code=0)
    players.command("doctor", "--only", "recall", "--fail-on", "warning", "--quiet", code=0)


def _days_ago(days: int) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="seconds")


SCENES = (
    Scene(title="All is well", play=_well),
    Scene(title="The endpoint is down", play=_down),
    Scene(title="The model is switched to another width", play=_width),
    Scene(title="The model is switched to one of the same width", play=_swap),
    Scene(title="An import makes every memory look old", play=_import),
)
