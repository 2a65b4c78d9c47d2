"""``cpersona-cli advisory-preview``: what the agent will be told about its memory, and what it will not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cpersona_cli.commands import options
from cpersona_cli.commands.options import Job

if TYPE_CHECKING:
    from cpersona_cli.report.model import Report

HELP = """Show what the agent will be told about its memory at the next recalls, and what it will not be told.

\b
  cpersona-cli advisory-preview                                every registration, measured now
  cpersona-cli advisory-preview --replay refused               as if nothing listened at the address
  cpersona-cli advisory-preview --sequence fail,ok,fail,fail   one blip, then an outage
  cpersona-cli advisory-preview --replay auth --session-key a --session-key b --transport streamable-http
  cpersona-cli advisory-preview --env --json                   in CI: this environment, for machines

The words are the server's own: its health module is asked in its own interpreter, with the environment its client
would give it. Where none can be asked, ours stand in their place and say so. The database is not touched. A replay
shows, and judges no endpoint. Exit codes: 0 healthy, or only a hint, 1 recall is broken, told or not, or a secret would
be shown, 2 usage, 3 it could not be found out.
"""

Live = Annotated[bool, typer.Option("--live", help="Measure now, with fresh texts; the default.")]
Replay = Annotated[
    str | None, typer.Option("--replay", metavar="KIND", help="As if each call ended so: none, ok, refused, auth, ...")
]
Sequence = Annotated[
    str | None,
    typer.Option(
        "--sequence",
        metavar="WORD[:KEY],...",
        help="One recall for each word: ok, fail, a KIND, recall (no call), check (a failing check_health).",
    ),
]
Recalls = Annotated[
    int | None, typer.Option("--recalls", metavar="N", help="How many recalls (3).", show_default=False)
]
Keys = Annotated[
    list[str] | None,
    typer.Option(
        "--session-key", parser=options.word, metavar="KEY", help="Callers with these keys take turns; repeatable."
    ),
]
Transport = Annotated[
    str | None,
    typer.Option("--transport", metavar="stdio|streamable-http", help="In place of the one of the registration."),
]
Lang = Annotated[
    str, typer.Option("--lang", metavar="en|ja", help="Our own words; those of the server stay as they are.")
]
Raw = Annotated[bool, typer.Option("--raw", help="Show secrets too, if the words of the server carry any; asks first.")]
Yes = Annotated[bool, typer.Option("--yes", help="With --raw: do not ask.")]
Timeout = Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", help="For the whole run (120).")]


def advisory_preview(
    *,
    client: options.Clients = None,
    registration: options.Registrations = None,
    env: options.Env = False,
    db: options.Db = None,
    live: Live = False,
    replay: Replay = None,
    sequence: Sequence = None,
    recalls: Recalls = None,
    session_key: Keys = None,
    transport: Transport = None,
    lang: Lang = "en",
    raw: Raw = False,
    yes: Yes = False,
    timeout: Timeout = None,
    config: options.Config = None,
    form: options.Format = None,
    json: options.Json = False,
    output: options.Files = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = 0,
    color: options.Colors = None,
) -> Job:
    """Understand the command line; nothing is started or called yet."""
    preferences = options.settle(
        {**options.output_flags(chosen=form, json=json, color=color), "client": client}, config
    )

    def run() -> Report:
        # The client, the store and all that they bring: not imported where only help or an error is shown.
        from cpersona_cli.commands.previewing import Request, examine  # noqa: PLC0415

        return examine(
            Request(
                selection=options.selection(
                    preferences, client=client, registration=registration, env=env, db=db, before_first_start=True
                ),
                notes=preferences.notes,
                live=live,
                replay=replay,
                sequence=sequence,
                recalls=recalls,
                keys=tuple(session_key or ()),
                transport=transport,
                language=lang,
                raw=raw,
                yes=yes,
                timeout=timeout,
            )
        )

    return Job(options.output(preferences, output, quiet=quiet, verbose=verbose), run)
