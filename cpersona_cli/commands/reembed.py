"""``cpersona-cli reembed``: rebuild the vectors of a store with the endpoint that is in use now, and lose none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cpersona_cli.commands import options
from cpersona_cli.commands.options import Job
from cpersona_cli.text import nearest, safe

if TYPE_CHECKING:
    from cpersona_cli.report.model import Report

HELP = """Rebuild every vector with the model in use now; lose none, and keep the way back.

\b
  cpersona-cli reembed --dry-run           what it would do, how long it takes, what it needs
  cpersona-cli reembed                     show the plan, ask, rebuild; the same command continues
  cpersona-cli reembed --only missing      only the rows without a vector
  cpersona-cli reembed --url http://127.0.0.1:8402/embed    before the configuration names it
  cpersona-cli reembed --compare-only      is the new model better on these memories?
  cpersona-cli reembed status              how far it is, from any terminal
  cpersona-cli reembed undo                put the old vectors back
  cpersona-cli reembed finish              after --live: what a server wrote meanwhile
  cpersona-cli reembed abandon             give up a job that has not switched; nothing was changed
  cpersona-cli reembed forget              remove the old vectors and the backup that are kept for undo

New vectors are collected beside the database, checked, and switched to in one step: at every moment the store is all
old or all new. Stored texts are sent to the endpoint, to another computer only after a yes. Exit codes: 0 done, 1 not
everything done or refused, 2 usage, 3 no verdict (no answer from the endpoint), 130 and 143 interrupted.
"""

#: What the first word may ask for, besides the rebuild itself.
ACTIONS = ("status", "undo", "abandon", "finish", "forget")


def _action(text: str) -> str:
    if text in ACTIONS:
        return text
    near = nearest(text, ACTIONS)
    hint = f"did you mean {near}?" if near else f"there are {', '.join(ACTIONS)}"
    raise typer.BadParameter(f"there is no reembed {safe(text, 40)!r}; {hint}")


def _complete(incomplete: str) -> list[str]:
    return [word for word in ACTIONS if word.startswith(incomplete)]


Action = Annotated[
    str | None,
    typer.Argument(
        metavar="[status|undo|abandon|finish|forget]",
        parser=_action,
        autocompletion=_complete,
        show_default=False,
        help="What to do about a job that was begun; without it, rebuild.",
    ),
]
Only = Annotated[
    str | None,
    typer.Option(
        "--only",
        metavar="all|missing|mismatched|damaged|foreign",
        help="Which rows: all (default), or those without a vector, of another width, unusable, of another model.",
    ),
]
Url = Annotated[
    str | None, typer.Option("--url", metavar="URL", help="This endpoint, before the configuration names it.")
]
Mode = Annotated[
    str | None,
    typer.Option("--mode", metavar="http|api", help="With --url; else told by its path: api for .../embeddings."),
]
Model = Annotated[str | None, typer.Option("--model", metavar="NAME", help="With --url: the model to ask for.")]
KeyFile = Annotated[
    Path | None, typer.Option("--api-key-file", metavar="FILE", help="With --url: the key, in a file of its own.")
]
Concurrency = Annotated[
    int | None, typer.Option("--concurrency", metavar="N", help="At most N requests at a time (found out, up to 16).")
]
BatchSize = Annotated[int | None, typer.Option("--batch-size", metavar="N", help="At most N texts in a request (32).")]
MaxErrors = Annotated[
    int | None, typer.Option("--max-errors", metavar="N", help="Stop when more than N rows could not be embedded.")
]
MaxTokens = Annotated[
    int | None, typer.Option("--max-tokens", metavar="N", help="At most N tokens in a request, as estimated.")
]
CutLong = Annotated[
    bool, typer.Option("--cut-long", help="Cut texts that are longer than the model reads, in place of leaving them.")
]
Live = Annotated[
    bool, typer.Option("--live", help="Switch while a server has the database open; then restart it, and `finish`.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do it without asking; also send texts to another computer.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan and stop. Nothing is written.")]
CompareOnly = Annotated[
    bool, typer.Option("--compare-only", help="Embed a sample and say whether search gets better. Nothing is written.")
]
Sample = Annotated[
    int | None, typer.Option("--sample", metavar="N", help="Rows that the search is judged by (200; 0: do not judge).")
]
Form = Annotated[
    str | None,
    typer.Option(
        "--progress", metavar="text|json|none", help="How progress is told on stderr; json: events, one a line."
    ),
]


def reembed(
    action: Action = None,
    *,
    client: options.Clients = None,
    registration: options.Registrations = None,
    env: options.Env = False,
    db: options.Db = None,
    only: Only = None,
    url: Url = None,
    mode: Mode = None,
    model: Model = None,
    api_key_file: KeyFile = None,
    concurrency: Concurrency = None,
    batch_size: BatchSize = None,
    max_errors: MaxErrors = None,
    max_tokens: MaxTokens = None,
    cut_long: CutLong = False,
    live: Live = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    compare_only: CompareOnly = False,
    sample: Sample = None,
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
        # The client and all that it brings: not imported where only help or an error is shown.
        from cpersona_cli.commands.chosen import Chosen  # noqa: PLC0415
        from cpersona_cli.commands.rebuild_request import Request  # noqa: PLC0415
        from cpersona_cli.commands.rebuilding import rebuild  # noqa: PLC0415

        return rebuild(
            Request(
                action=action or "",
                selection=options.selection(
                    preferences, client=client, registration=registration, env=env, db=db, elsewhere=bool(url)
                ),
                chosen=Chosen(url=url, mode=mode, model=model, key_file=api_key_file),
                notes=preferences.notes,
                only=only,
                concurrency=concurrency,
                batch_size=batch_size,
                max_errors=max_errors,
                max_tokens=max_tokens,
                cut_long=cut_long,
                live=live,
                yes=yes,
                dry_run=dry_run,
                compare_only=compare_only,
                sample=sample,
                progress=progress,
                quiet=quiet,
            )
        )

    return Job(options.output(preferences, output, quiet=quiet, verbose=verbose), run)
