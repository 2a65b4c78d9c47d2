"""A stand-in for the server: a package named ``cpersona`` that misbehaves as it is told by ``IMPOSTOR``.

It is found through PYTHONPATH, so that a registration starts it with the words that start the real one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from support.starts import registered

from cpersona_cli.install.environment import environments
from cpersona_cli.install.machine import Machine, this_machine
from cpersona_cli.install.model import Registration
from cpersona_cli.install.release.versions import server_version
from cpersona_cli.install.settings.effective import effective
from cpersona_cli.record import replace
from cpersona_cli.start.plan import Candidate

SECRET = "sk-live-0123456789abcdef"

_CODE = """
import json, os, signal, subprocess, sys, time
HOW = set(os.environ.get("IMPOSTOR", "").split())
DATABASE = os.environ["CPERSONA_DB_PATH"]
WATCH = os.environ.get("WATCH")
def note(word):
    if WATCH:
        with open(WATCH, "a") as file:
            file.write(word + "\\n")
def say(text, end="\\n"):
    sys.stdout.write(text + end)
    sys.stdout.flush()
note("pid %d" % os.getpid())
note("cwd " + os.getcwd())
sys.stderr.write("starting with key %s\\n" % os.environ.get("CPERSONA_EMBEDDING_API_KEY", ""))
sys.stderr.flush()
if "banner" in HOW:
    say("\\x1b[1mWelcome to memory " + "m" * 200)
if "blank" in HOW:
    say("")
if "glued" in HOW:
    say("Loading...", end="")
if "die" in HOW:
    sys.exit("no model in reach")
if "hang" in HOW:
    time.sleep(600)
if "flood" in HOW:
    while True:
        say("garbage " * 10)
if "astray" not in HOW and not os.path.exists(DATABASE):
    open(DATABASE, "w").write("[]")
second = "astray" not in HOW and open(DATABASE).read() != "[]"
if "die-later" in HOW and second:
    sys.exit(7)
if "child" in HOW:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                             stdin=subprocess.DEVNULL, process_group=0 if "apart" in HOW else None)
    note("pid %d" % child.pid)
if "deaf" in HOW:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
def tool(name, asked):
    rows = json.loads(open(DATABASE).read())
    if name == "store":
        if "reject" in HOW:
            return {"ok": False, "result": "rejected", "reason": "content is forbidden here"}
        if "forget" not in HOW:
            open(DATABASE, "w").write(json.dumps(rows + [asked["message"]["content"]]))
        return {"ok": True, "result": "stored", "id": 1, "embedded": "unembedded" not in HOW}
    found = [] if "forget" in HOW or ("coy" in HOW and asked["query"]) else rows
    answer = {"messages": [{"content": row} for row in found]}
    if "advisory" in HOW:
        answer["advisory"] = {"severity": "fault", "reason": "backend unreachable", "evidence": "2 failures"}
    return answer
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    if "chatter" in HOW:
        say(json.dumps({"level": "info", "message": "a request"}))
    if "ask" in HOW:
        say(json.dumps({"jsonrpc": "2.0", "id": "a", "method": "ping"}))
        say(json.dumps({"jsonrpc": "2.0", "id": "b", "method": "roots/list"}))
        say(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}))
        note("answers %s" % [sorted(json.loads(sys.stdin.readline())) for _ in "ab"])
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    method = message["method"]
    if method == "initialize":
        version = "1999-01-01" if "old" in HOW else message["params"]["protocolVersion"]
        answer["result"] = {"protocolVersion": version, "capabilities": {},
                            "serverInfo": {"name": "impostor", "version": "1"}}
        if "shapeless" in HOW:
            answer["result"] = {"hello": 1}
        if "error" in HOW:
            del answer["result"]
            answer["error"] = {"code": -32603, "message": "out of order"}
    elif method == "tools/list":
        names = ["echo"] if "toolless" in HOW else ["store", "recall", "check_health"]
        pages = {None: names[:1], "more": names[1:]}
        cursor = message["params"].get("cursor")
        answer["result"] = {"tools": [{"name": n, "inputSchema": {}} for n in pages[cursor]]}
        if cursor is None and "toolless" not in HOW:
            answer["result"]["nextCursor"] = "more"
        if "listless" in HOW:
            answer["result"] = {}
    elif "mute" in HOW:
        continue
    else:
        text = "not a document" if "prose" in HOW else json.dumps(tool(message["params"]["name"],
                                                                         message["params"]["arguments"]))
        answer["result"] = {"content": [{"type": "text", "text": text}], "isError": "failing" in HOW}
    say(json.dumps(answer))
note("eof")
if "stay" in HOW or "deaf" in HOW:
    time.sleep(600)
"""


def package(folder: Path) -> Path:
    """The package in ``folder``; returns the folder, for PYTHONPATH."""
    inside = folder / "impostor" / "cpersona"
    inside.mkdir(parents=True, exist_ok=True)
    (inside / "__init__.py").write_text("")
    (inside / "__main__.py").write_text(_CODE)
    return inside.parent


def settings(folder: Path, how: str = "", **more: str) -> dict[str, str]:
    """An env block that has the stand-in started; ``folder / "watch"`` gets what it notes of itself."""
    return {
        "PYTHONPATH": str(package(folder)),
        "IMPOSTOR": how,
        "WATCH": str(folder / "watch"),
        "CPERSONA_DB_PATH": str(folder / "real" / "memory.db"),
        "CPERSONA_EMBEDDING_MODE": "http",
        "CPERSONA_EMBEDDING_URL": "http://127.0.0.1:9/embed",
        "CPERSONA_EMBEDDING_API_KEY": SECRET,
        **more,
    }


def noted(folder: Path, word: str) -> list[str]:
    """What the processes noted behind ``word``."""
    watch = folder / "watch"
    lines = watch.read_text().splitlines() if watch.exists() else []
    return [line.removeprefix(word).strip() for line in lines if line.startswith(word)]


def alive(pid: str) -> bool:
    """Whether a process runs; one that waits to be collected does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in {"Z", "X"}


def here(folder: Path) -> Machine:
    """This machine with ``folder`` for its home."""
    return replace(this_machine({"HOME": str(folder), "PATH": "/usr/bin:/bin"}), home=folder, cwd=folder)


def candidate(
    machine: Machine, env: Mapping[str, str], *words: str, client: str = "claude-code", **fields: object
) -> Candidate:
    """A registration of ``client``, ready to be started; without words, of the module ``cpersona``."""
    command = words or (sys.executable, "-m", "cpersona")
    return prepared(registered(machine, client, *command, env=env, **fields), machine)


def prepared(registration: Registration, machine: Machine) -> Candidate:
    environment = environments(registration, machine)[-1]
    version = server_version(registration, environment, machine)
    return Candidate(
        registration=registration,
        environment=environment,
        settings=effective(environment, version.version, system=machine.system),
        version=version,
    )
