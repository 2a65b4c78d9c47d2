"""No sentence of this tool tells anybody to remove SQLite's own files: they may hold the newest memories."""

from __future__ import annotations

import re
from pathlib import Path

import cpersona_cli

_ROOT = Path(cpersona_cli.__file__).parent
_DELETE = re.compile(r"\b(?:rm|del|erase|unlink|delet\w*|remov\w*|Remove-Item)\b", re.IGNORECASE)
_LOG = re.compile(r"-(?:wal|shm)\b|write-ahead log", re.IGNORECASE)
_DENIED = re.compile(r"\b(?:never|not|n't|neither|nobody|cannot)\b", re.IGNORECASE)


def _proposals(text: str) -> list[str]:
    """Sentences that speak of deleting and of a log, and deny neither."""
    flat = re.sub(r"[\"'`]\s*\n\s*f?[\"'`]", "", text)
    sentences = re.split(r"(?<=[.;:!?])\s|\n", flat)
    return [s for s in sentences if _DELETE.search(s) and _LOG.search(s) and not _DENIED.search(s)]


def test_the_search_finds_such_advice() -> None:
    assert _proposals("stop the client and delete c.db-wal")
    assert _proposals('commands=("rm c.db-shm",)')
    assert not _proposals("never delete c.db-wal")


def test_nothing_proposes_to_delete_a_log() -> None:
    texts = [*_ROOT.rglob("*.py"), *_ROOT.parent.glob("*.md"), *_ROOT.parent.glob("docs/**/*.md")]
    assert len(texts) > 10
    found = {str(file): lines for file in texts if (lines := _proposals(file.read_text(encoding="utf-8")))}
    # How SQLite itself behaves is told in one place.
    allowed = {str(_ROOT / "store" / "opening.py")}
    assert not found.keys() - allowed, found
