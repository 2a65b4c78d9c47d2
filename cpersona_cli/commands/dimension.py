"""``cpersona-cli dimension``: whether the stored vectors and the endpoint go together, and what to do where not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cpersona_cli.commands import options
from cpersona_cli.commands.options import Job
from cpersona_cli.commands.probe import KeyFile, Mode, Model

if TYPE_CHECKING:
    from cpersona_cli.report.model import Report

HELP = """Find out whether stored vectors fit the embedding endpoint: their width, their model, and what they hold.

\b
  cpersona-cli dimension                                 every database beside its own endpoint
  cpersona-cli dimension --client claude-code --deep     read every vector, not a sample of them
  cpersona-cli dimension --db memory.db --url http://127.0.0.1:8401/embed
  cpersona-cli dimension --env --json                    in CI: this environment, for machines

Embeds a few stored texts again and compares: a model that was swapped for another of the same width shows in nothing
else. Texts go to another computer only after consent (--yes); without it width and label alone are judged. Changes
nothing. Exit codes: 0 they fit, 1 they do not, 2 usage, 3 no verdict (the endpoint is down, or could not be compared).
"""

Url = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="Beside this endpoint, in place of those of the registrations."),
]
Sample = Annotated[
    int,
    typer.Option("--sample", metavar="N", help="Stored texts to embed again; 0 compares widths and labels only."),
]
Deep = Annotated[bool, typer.Option("--deep", help="Read every stored vector, not some thousands of them.")]
Yes = Annotated[bool, typer.Option("--yes", help="Send stored texts to another computer without asking.")]
Offline = Annotated[bool, typer.Option("--offline", help="Call nothing: the stored side alone.")]
Timeout = Annotated[
    float | None, typer.Option("--timeout", metavar="SECONDS", help="For the whole run (120; with --deep 3600).")
]


def dimension(
    *,
    client: options.Clients = None,
    registration: options.Registrations = None,
    env: options.Env = False,
    db: options.Db = None,
    url: Url = None,
    mode: Mode = None,
    model: Model = None,
    api_key_file: KeyFile = None,
    sample: Sample = 24,
    deep: Deep = False,
    yes: Yes = False,
    offline: Offline = False,
    timeout: Timeout = None,
    config: options.Config = None,
    form: options.Format = None,
    json: options.Json = False,
    output: options.Files = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = 0,
    color: options.Colors = None,
) -> Job:
    """Understand the command line; nothing is read or called yet."""
    preferences = options.settle(
        {**options.output_flags(chosen=form, json=json, color=color), "client": client}, config
    )

    def run() -> Report:
        # The client, the store and all that they bring: not imported where only help or an error is shown.
        from cpersona_cli.commands.chosen import Chosen  # noqa: PLC0415
        from cpersona_cli.commands.fitting import Request, examine  # noqa: PLC0415

        return examine(
            Request(
                selection=options.selection(preferences, client=client, registration=registration, env=env, db=db),
                chosen=Chosen(url=url, mode=mode, model=model, key_file=api_key_file),
                notes=preferences.notes,
                sample=sample,
                deep=deep,
                yes=yes,
                offline=offline,
                timeout=timeout,
            )
        )

    return Job(options.output(preferences, output, quiet=quiet, verbose=verbose), run)
