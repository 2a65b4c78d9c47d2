"""The Python that would run a server, asked directly, once per path and with a short limit."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path

from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Interpreter
from cpersona_cli.record import replace

#: Seconds an interpreter gets to answer.
LIMIT = 2.0
_NAME = re.compile(r"^(?:python|pypy)(?:\d+(?:\.\d+)*)?w?(?:\.exe)?$", re.IGNORECASE)
# Without site and without the user's variables: nothing of the environment's own code runs. Kept free of json and of
# the sqlite3 package, each of which costs as much as the interpreter itself. One fact a line, then the folders.
_QUESTION = """
import sys, sysconfig
told = ["%d.%d.%d" % sys.version_info[:3], "", "", ""]
try:
    try:
        import _sqlite3 as sqlite
    except ImportError:
        import sqlite3 as sqlite
    told[1] = sqlite.sqlite_version
    store = sqlite.connect(":memory:")
    for place, options in ((2, ""), (3, ", tokenize='trigram'")):
        try:
            store.execute("CREATE VIRTUAL TABLE t%d USING fts5(x%s)" % (place, options))
            told[place] = "yes"
        except sqlite.Error:
            pass
except ImportError:
    pass
sites = [sysconfig.get_path(name) for name in ("purelib", "platlib")]
try:
    sites.append(sysconfig.get_path("purelib", sysconfig.get_preferred_scheme("user")))
except Exception:
    pass
sys.stdout.buffer.write("\\n".join(told + [site for site in sites if site]).encode("utf-8", "surrogateescape"))
"""


def named_like_python(path: Path) -> bool:
    """Whether a file's name is one that only Python interpreters have."""
    return _NAME.match(path.name) is not None


def ask(python: Path, machine: Machine) -> tuple[Interpreter, tuple[Path, ...]]:
    """What the interpreter says of itself, and the site-packages folders it would use outside of an environment.

    Only a native file with an interpreter's name is run; otherwise, and when it does not answer properly, the
    ``Interpreter`` carries the ``problem``.
    """
    if not machine.native or not named_like_python(python):
        return Interpreter(python=python, problem=f"{python} was not run: it is no Python of this machine"), ()
    try:
        real = os.path.realpath(python)
    except (OSError, ValueError):
        real = str(python)
    answer, sites = _asked(real)
    return replace(answer, python=python), sites


@lru_cache(maxsize=64)
def _asked(python: str) -> tuple[Interpreter, tuple[Path, ...]]:
    """The answer of one interpreter; environments link to a common one, which is run only once."""
    import subprocess  # noqa: PLC0415 - only where an interpreter is asked

    path = Path(python)
    command = [python, "-I", "-S", "-c", _QUESTION]
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return Interpreter(python=path, problem=f"{python} did not answer within {LIMIT:g} seconds"), ()
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or type(error).__name__
        return Interpreter(python=path, problem=f"{python} could not be started ({said})"), ()
    told = done.stdout.decode("utf-8", "surrogateescape").replace("\r", "").split("\n")
    if len(told) < 4 or not re.fullmatch(r"\d+\.\d+\.\d+", told[0]):
        return Interpreter(python=path, problem=f"{python} did not answer as a Python does"), ()
    release, sqlite, fts5, trigram, *sites = told
    problem = "" if sqlite else f"{python} has no sqlite3 module"
    answer = Interpreter(
        python=path, release=release, sqlite=sqlite, fts5=fts5 == "yes", trigram=trigram == "yes", problem=problem
    )
    return answer, tuple(dict.fromkeys(Path(site) for site in sites if site))
