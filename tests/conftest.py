"""What every test may use."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from support.real_endpoints import e5, embed_python, minilm, supercat
from support.stores import copy_store, write_store

# pytest --hypothesis-profile=nightly
settings.register_profile("nightly", max_examples=10_000, deadline=None)

__all__ = ["e5", "embed_python", "minilm", "server_store", "store", "supercat"]

# Where the tests run in the background, an ignored SIGINT would be handed on to every program that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """A command that runs in the process of the tests leaves its signals ignored, and every child would inherit it."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def server_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store written by the installed server; not to be changed."""
    return write_store(tmp_path_factory.mktemp("written"))


@pytest.fixture
def store(server_store: Path, tmp_path: Path) -> Path:
    """A copy of ``server_store`` to do anything with."""
    return copy_store(server_store, tmp_path / "store")
