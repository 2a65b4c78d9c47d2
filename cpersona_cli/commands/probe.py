"""``cpersona-cli probe``: what answers at the embedding endpoint, and which one thing to change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cpersona_cli.commands import options
from cpersona_cli.commands.options import Job

if TYPE_CHECKING:
    from cpersona_cli.report.model import Report

HELP = """Call the embedding endpoint as CPersona would, and name what answers.

\b
  cpersona-cli probe                                   the endpoint of every registration
  cpersona-cli probe --client claude-code --wait 120   wait until a model is loaded
  cpersona-cli probe --url http://127.0.0.1:11434/v1/embeddings --model nomic-embed-text
  cpersona-cli probe --env --json                      in CI: this environment, for machines

Sends texts made up for the purpose, never stored ones unless --sample-from-db asks for it. On other computers than
this one the large requests are left out unless --full asks for them. Changes nothing. Exit codes: 0 pass, 1 a fault
is named, 2 usage, 3 no verdict (still loading, too slow, nothing to call).
"""

Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="This endpoint, in place of registrations.")]
Mode = Annotated[
    str | None,
    typer.Option("--mode", metavar="http|api", help="With --url; else told by its path: api for .../embeddings."),
]
Model = Annotated[str | None, typer.Option("--model", metavar="NAME", help="With --url: the model to ask for.")]
KeyFile = Annotated[
    Path | None, typer.Option("--api-key-file", metavar="FILE", help="With --url: the key, in a file of its own.")
]
Wait = Annotated[float, typer.Option("--wait", metavar="SECONDS", help="Retry so long while it is loading or down.")]
Count = Annotated[int, typer.Option("--count", metavar="N", help="N more calls: what CPersona would tell its agent.")]
Sample = Annotated[
    int, typer.Option("--sample-from-db", metavar="N", help="Also send N stored texts, the longest among them.")
]
ShowText = Annotated[bool, typer.Option("--show-text", help="Show the stored texts that fail, not only their ids.")]
Yes = Annotated[bool, typer.Option("--yes", help="Send stored texts to another computer without asking.")]
Timeout = Annotated[
    float | None, typer.Option("--timeout", metavar="SECONDS", help="For each call (the server's own setting, 30).")
]
Identify = Annotated[bool, typer.Option("--identify", help="Ask the server which product and model it is.")]
Role = Annotated[
    str | None, typer.Option("--role", metavar="chat|embedding", help="What the model is, if you know better.")
]
Full = Annotated[bool, typer.Option("--full", help="Make the large requests on other computers too.")]


def probe(
    *,
    client: options.Clients = None,
    registration: options.Registrations = None,
    env: options.Env = False,
    db: options.Db = None,
    url: Url = None,
    mode: Mode = None,
    model: Model = None,
    api_key_file: KeyFile = None,
    wait: Wait = 0.0,
    count: Count = 0,
    sample_from_db: Sample = 0,
    show_text: ShowText = False,
    yes: Yes = False,
    timeout: Timeout = None,
    identify: Identify = False,
    role: Role = None,
    full: Full = False,
    config: options.Config = None,
    form: options.Format = None,
    json: options.Json = False,
    output: options.Files = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = 0,
    color: options.Colors = None,
) -> Job:
    """Understand the command line; nothing is called yet."""
    preferences = options.settle(
        {**options.output_flags(chosen=form, json=json, color=color), "client": client}, config
    )

    def run() -> Report:
        # The client and all that it brings: not imported where only help or an error is shown.
        from cpersona_cli.commands.chosen import Chosen  # noqa: PLC0415
        from cpersona_cli.commands.probing import Request, examine  # noqa: PLC0415

        return examine(
            Request(
                selection=options.selection(
                    preferences,
                    client=client,
                    registration=registration,
                    env=env,
                    db=db,
                    elsewhere=bool(url),
                    before_first_start=True,
                ),
                chosen=Chosen(url=url, mode=mode, model=model, key_file=api_key_file),
                notes=preferences.notes,
                wait=wait,
                count=count,
                samples=sample_from_db,
                show_text=show_text,
                yes=yes,
                timeout=timeout,
                identify=identify,
                role=role,
                full=full,
            )
        )

    return Job(options.output(preferences, output, quiet=quiet, verbose=verbose), run)
