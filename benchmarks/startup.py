"""CPU time of whole commands, against `python -c pass` and a bare typer command measured in the same run.

Usage: python -m benchmarks.startup [RUNS]. Figures are user + system time of the process and its children in
milliseconds. A run on a busy machine is only good for its ratios.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from examples.endpoint import endpoint
from examples.scratch import scratch_home

#: name of the measured command -> limit in milliseconds
LIMITS = {"cpersona-cli --version": 90, "cpersona-cli doctor --offline": 250}

BARE_TYPER = "import typer; app = typer.Typer(); app.command()(lambda: None); app()"


def cpu(command: list[str], env: Mapping[str, str], cwd: Path) -> float:
    """CPU milliseconds of one run, children included."""
    with subprocess.Popen(
        command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
    return (usage.ru_utime + usage.ru_stime) * 1000


def main() -> int:
    """Measure in turns, so that a drift of the machine's speed meets every command alike."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    script = str(Path(sys.executable).with_name("cpersona-cli"))
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "a bare typer command": [sys.executable, "-c", BARE_TYPER],
        "cpersona-cli --version": [script, "--version"],
        "cpersona-cli doctor --offline": [script, "doctor", "--offline"],
    }
    with tempfile.TemporaryDirectory() as folder:
        with endpoint() as url:
            home = scratch_home(Path(folder), url)
        env = {"PATH": os.environ["PATH"], "HOME": folder}
        figures: dict[str, list[float]] = {name: [] for name in commands}
        for turn in range(runs + 1):
            for name, command in commands.items():
                spent = cpu(command, env, home)
                if turn:  # the first turn fills caches
                    figures[name].append(spent)
    floor = statistics.median(figures["python -c pass"])
    print(f"{'CPU ms, ' + str(runs) + ' runs':<32}{'min':>7}{'median':>8}{'max':>7}{'x python':>10}{'limit':>7}")
    over = 0
    for name, values in figures.items():
        median = statistics.median(values)
        limit = LIMITS.get(name)
        over += limit is not None and median > limit
        row = f"{name:<32}{min(values):>7.0f}{median:>8.0f}{max(values):>7.0f}{median / floor:>10.1f}"
        print(f"{row}{limit or '':>7}{'  OVER' if limit and median > limit else ''}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
