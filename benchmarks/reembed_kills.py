"""Kill a rebuild at random moments, hold the store to all-old or all-new after each, and let the next run end it.

Usage: PYTHONPATH=tests python -m benchmarks.reembed_kills [KILLS] [SEED]. What the tests do a few times, as often as
wanted; it ends with the first run that leaves anything else, keeping its folder.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from pathlib import Path

from e2e.test_reembed_kill import ROWS, WIDTH, command, killed_and_continued
from support.endpoints_small import serving
from support.rebuilds import fill
from support.stores import copy_store, write_store
from support.warm import Warm


def main() -> int:
    """Kill so many runs, spread evenly over the time of one."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    chance = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    folder = Path(tempfile.mkdtemp(prefix="reembed-kills-"))
    (folder / "store").mkdir()
    store = fill(write_store(folder / "store"), rows=ROWS, width=64, label="old model")
    env = {"HOME": str(folder), "PATH": os.environ.get("PATH", os.defpath)}
    seen = {"old": 0, "new": 0}
    begin = time.monotonic()
    with Warm(folder, env) as warm, serving(width=WIDTH) as server:
        started = time.monotonic()
        warm.run(*command(copy_store(store, folder / "measured"), server))
        whole = time.monotonic() - started
        for number in range(kills):
            database = copy_store(store, folder / "run")
            seen[killed_and_continued(database, server, warm, chance.uniform(0, whole))] += 1
            for file in database.parent.iterdir():
                file.unlink()
            for file in folder.glob("*.out"):
                file.unlink()
            if (number + 1) % 50 == 0:
                print(f"{number + 1} kills, left {seen}")
    print(f"{kills} kills of a run of {whole:.2f} s, left {seen}, in {time.monotonic() - begin:.0f} s: nothing lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
