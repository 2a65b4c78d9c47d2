"""An endpoint named on the command line: what goes together, and what it comes to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cpersona_cli.commands.errors import UsageError
from cpersona_cli.embedding.endpoints import client_variables
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.record import record
from cpersona_cli.text import safe
from cpersona_cli.traps.gather import Selection

_KEY_BYTES = 65_536


@record(kw_only=True)
class Chosen:
    """An endpoint named on the command line, as it was typed."""

    url: str | None = None
    mode: str | None = None
    model: str | None = None
    key_file: Path | None = None


def check(chosen: Chosen, selection: Selection, *, beside: bool = False) -> None:
    """Refuse what does not go together. Raises ``UsageError``.

    ``beside``: a selection may stand beside the endpoint, because it says which database is meant.
    """
    extra = [
        option
        for option, value in (("--mode", chosen.mode), ("--model", chosen.model), ("--api-key-file", chosen.key_file))
        if value is not None
    ]
    if chosen.url is None and extra:
        raise UsageError(f"{extra[0]} goes with --url; without it the registration says it")
    if chosen.url is not None and not beside and (selection.clients or selection.registrations or selection.env):
        raise UsageError("--url names an endpoint, so it does not go with --client, --registration or --env")
    if chosen.mode not in {None, Mode.HTTP, Mode.API}:
        raise UsageError(f"--mode takes http or api, not {safe(repr(chosen.mode), 40)}")


def named(chosen: Chosen, environment: Mapping[str, str]) -> Endpoint:
    """The endpoint of ``--url``, with the proxies and certificates of this shell. Raises ``UsageError``."""
    url = chosen.url or ""
    return Endpoint(
        mode=chosen.mode or mode_of(url),
        url=url,
        key=_read_key(chosen.key_file) if chosen.key_file is not None else "",
        model=chosen.model or "text-embedding-3-small",
        environment=client_variables(environment),
        named=bool(chosen.model),
    )


def mode_of(url: str) -> Mode:
    """The mode that the path of an address tells, where no ``--mode`` does."""
    path = url.partition("?")[0].rstrip("/")
    return Mode.API if path.endswith(("/embeddings", "/v1")) else Mode.HTTP


def _read_key(path: Path) -> str:
    """The first line of ``path``; a key that spaces surround stays as it is, to be judged as such."""
    try:
        with path.open("rb") as file:
            raw = file.read(_KEY_BYTES + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "that is no file name"
        raise UsageError(f"cannot read --api-key-file {safe(str(path))}: {why}") from None
    if len(raw) > _KEY_BYTES:
        raise UsageError(f"--api-key-file {safe(str(path))} is too large to be a key")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"--api-key-file {safe(str(path))} is not UTF-8 text") from None
    key = text.removesuffix("\n").removesuffix("\r")
    if not key:
        raise UsageError(f"--api-key-file {safe(str(path))} is empty")
    return key


def terminal(stream: object) -> bool:
    """Whether somebody sits at ``stream``."""
    try:
        return bool(getattr(stream, "isatty", lambda: False)())
    except ValueError:  # closed
        return False
