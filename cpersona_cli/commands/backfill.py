"""``cpersona-cli backfill``: bring old conversations into a memory, and leave what is there as it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cpersona_cli.commands import options
from cpersona_cli.commands.options import Job
from cpersona_cli.commands.reembed import Form, KeyFile, Mode, Model, Url

if TYPE_CHECKING:
    from cpersona_cli.report.model import Report

HELP = """Bring old conversations into a memory, with their own dates, and harm none of the memories that are there.

\b
  cpersona-cli backfill export.zip --no-penalty --dry-run    what would be stored, and what it would change
  cpersona-cli backfill export.zip --no-penalty              show the plan, ask, store; a second run adds what is new
  cpersona-cli backfill ~/.claude/projects --agent atlas --since 2025-01-01
  cpersona-cli backfill export.zip --as episodes             a summary of each conversation in place of its messages
  cpersona-cli backfill undo                                 take the last import out again
  cpersona-cli backfill repair --dry-run                     is there harm from an earlier import? mend it

PATH is a file, a folder or a zip: exports of ChatGPT, Claude and Open WebUI, transcripts of Claude Code, rollouts of
Codex, CPersona's own export, or plain JSONL. Nothing is dated today: what has no date is reported and left out.
Exit codes: 0 all is stored, was there already or was left out by rule, 1 something failed or has no vector, or nothing
could be imported, 2 usage, 3 no verdict, 130 and 143 interrupted.
"""

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH... | repair | undo",
        show_default=False,
        help="Files, folders and zips to read; or what to do about an earlier import.",
    ),
]
NoPenalty = Annotated[
    bool, typer.Option("--no-penalty", help="Refuse whatever would lower the scores of memories that are there.")
]
Clamp = Annotated[
    bool, typer.Option("--clamp", help="With --no-penalty: date such episodes no later than what is there.")
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="FORMAT",
        help="chatgpt, claude, claude-code, codex, cpersona, open-webui or plain; else told by the content.",
    ),
]
As = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="memories|episodes|both",
        help="Each message as a memory (default), each conversation as an episode, or both.",
    ),
]
Agent = Annotated[
    str | None, typer.Option("--agent", metavar="ID", help="Whose memory; not needed where there is only one agent.")
]
Project = Annotated[str | None, typer.Option("--project", metavar="ID", help="Store under this project (global pool).")]
Channel = Annotated[str | None, typer.Option("--channel", metavar="NAME", help="Store under this channel (none).")]
Since = Annotated[
    str | None, typer.Option("--since", metavar="DATE", help="Only what was said at or after this day or time.")
]
Until = Annotated[str | None, typer.Option("--until", metavar="DATE", help="Only what was said before it.")]
Undated = Annotated[
    str | None,
    typer.Option("--undated", metavar="DATE", help="Date what has no date of its own here, not leave it out."),
]
AssumeTz = Annotated[
    str | None,
    typer.Option("--assume-tz", metavar="ZONE", help="Zone of times that name none, as Europe/Berlin or +02:00 (UTC)."),
]
NoEmbed = Annotated[bool, typer.Option("--no-embed", help="Store without vectors; `reembed --only missing` adds them.")]
Summaries = Annotated[
    Path | None,
    typer.Option(
        "--summaries",
        parser=options.file,
        metavar="FILE",
        help="Ready summaries by conversation id; else the most telling sentences.",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Fail when anything could not be read or has no date.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it without asking; also send texts to another computer.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan and stop. Nothing is written.")]


def backfill(
    paths: Paths,
    *,
    client: options.Clients = None,
    registration: options.Registrations = None,
    env: options.Env = False,
    db: options.Db = None,
    agent: Agent = None,
    project: Project = None,
    channel: Channel = None,
    form_of_rows: As = None,
    no_penalty: NoPenalty = False,
    clamp: Clamp = False,
    source: From = None,
    since: Since = None,
    until: Until = None,
    undated: Undated = None,
    assume_tz: AssumeTz = None,
    summaries: Summaries = None,
    no_embed: NoEmbed = False,
    strict: Strict = False,
    url: Url = None,
    mode: Mode = None,
    model: Model = None,
    api_key_file: KeyFile = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    progress: Form = None,
    config: options.Config = None,
    form: options.Format = None,
    json: options.Json = False,
    output: options.Files = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = 0,
    color: options.Colors = None,
) -> Job:
    """Understand the command line; nothing is looked at yet."""
    preferences = options.settle(
        {**options.output_flags(chosen=form, json=json, color=color), "client": client}, config
    )

    def run() -> Report:
        # The readers, the client and all that they bring: not imported where only help or an error is shown.
        from cpersona_cli.commands.chosen import Chosen  # noqa: PLC0415
        from cpersona_cli.commands.import_request import Request  # noqa: PLC0415
        from cpersona_cli.commands.importing import run as bring_in  # noqa: PLC0415

        return bring_in(
            Request(
                words=tuple(paths),
                selection=options.selection(
                    preferences, client=client, registration=registration, env=env, db=db, elsewhere=bool(url)
                ),
                chosen=Chosen(url=url, mode=mode, model=model, key_file=api_key_file),
                notes=preferences.notes,
                agent=agent,
                project=project,
                channel=channel,
                form=form_of_rows,
                no_penalty=no_penalty,
                clamp=clamp,
                source=source,
                since=since,
                until=until,
                undated=undated,
                assume_tz=assume_tz,
                summaries=summaries,
                no_embed=no_embed,
                strict=strict,
                yes=yes,
                dry_run=dry_run,
                progress=progress,
                quiet=quiet,
            )
        )

    return Job(options.output(preferences, output, quiet=quiet, verbose=verbose), run)
