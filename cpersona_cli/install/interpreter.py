"""The Python that would run a server, asked directly, once per path and with a short limit."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Interpreter

#: Seconds an interpreter gets to answer.
LIMIT = 2.0
_NAME = re.compile(r"^(?:python|pypy)(?:\d+(?:\.\d+)*)?w?(?:\.exe)?$", re.IGNORECASE)
# Without site and without the user's variables: nothing of the environment's own code runs.
_QUESTION = """
import json, sys, sysconfig
told = {"release": "%d.%d.%d" % sys.version_info[:3], "sqlite": "", "fts5": False, "trigram": False}
told["sites"] = [sysconfig.get_path(name) for name in ("purelib", "platlib")]
try:
    told["sites"].append(sysconfig.get_path("purelib", sysconfig.get_preferred_scheme("user")))
except Exception:
    pass
try:
    import sqlite3
    told["sqlite"] = sqlite3.sqlite_version
    store = sqlite3.connect(":memory:")
    for key, options in (("fts5", ""), ("trigram", ", tokenize='trigram'")):
        try:
            store.execute("CREATE VIRTUAL TABLE %s USING fts5(x%s)" % (key, options))
            told[key] = True
        except sqlite3.Error:
            pass
except ImportError:
    pass
print(json.dumps(told))
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
    return _asked(str(python))


@lru_cache(maxsize=64)
def _asked(python: str) -> tuple[Interpreter, tuple[Path, ...]]:
    import json  # noqa: PLC0415 - only where an interpreter is asked
    import subprocess  # noqa: PLC0415

    path = Path(python)
    command = [python, "-I", "-S", "-c", _QUESTION]
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=LIMIT, check=False)
        told = json.loads(done.stdout.decode("utf-8", "replace"))
        sites = tuple(dict.fromkeys(Path(site) for site in told["sites"] if site))
        answer = Interpreter(
            python=path,
            release=str(told["release"]),
            sqlite=str(told["sqlite"]),
            fts5=told["fts5"] is True,
            trigram=told["trigram"] is True,
            problem="" if told["sqlite"] else f"{python} has no sqlite3 module",
        )
    except subprocess.TimeoutExpired:
        return Interpreter(python=path, problem=f"{python} did not answer within {LIMIT:g} seconds"), ()
    except (OSError, ValueError, KeyError, TypeError) as error:
        said = getattr(error, "strerror", None) or type(error).__name__
        return Interpreter(python=path, problem=f"{python} could not be asked about itself ({said})"), ()
    return answer, sites
