"""How busy the pipeline of a rebuild keeps an endpoint, what padding costs, and whether its memory is flat.

Usage: python -m benchmarks.reembed_pipeline [serial] [parallel] [padding] [memory] [ROWS for memory]

The endpoint is another process that takes a known time for its work and writes down how long it was busy. Rows come
from a generator, vectors go to a real staging file.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cpersona_cli.embedding.loop import run
from cpersona_cli.embedding.model import Endpoint
from cpersona_cli.rebuild.model import Fetched, Options
from cpersona_cli.rebuild.pipeline import fetch
from cpersona_cli.store.job import Refused, Staged, Target
from cpersona_cli.store.model import Kind, Row
from cpersona_cli.store.writing.staging import Staging

#: name -> words of a text: short notes, whole conversations, and a mix of both
LENGTHS: dict[str, Callable[[random.Random], int]] = {
    "lognormal, median 40": lambda chance: int(chance.lognormvariate(3.69, 0.9)),
    "lognormal, median 120": lambda chance: int(chance.lognormvariate(4.79, 0.8)),
    "85 % short, 15 % long": lambda chance: (
        chance.randint(5, 40) if chance.random() < 0.85 else chance.randint(200, 450)
    ),
}
WORDS = [
    f"{a}{b}{c}" for a in ("ka", "mor", "tel", "vi", "san") for b in ("lu", "ret", "i") for c in ("na", "do", "st")
]


def corpus(count: int, shape: str) -> Iterator[Row]:
    chance = random.Random(7)
    for number in range(1, count + 1):
        length = min(450, max(1, LENGTHS[shape](chance)))
        yield Row(kind=Kind.MEMORY, id=number, text=" ".join([f"n{number}", *chance.choices(WORDS, k=length)]))


@contextmanager
def endpoint(slots: int, per_token: float, per_request: float, width: int) -> Iterator[int]:
    """The port of a timed endpoint (microseconds per token, milliseconds per request)."""
    command = [sys.executable, "-m", "benchmarks.timed_endpoint", *map(str, (slots, per_token, per_request, width))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def figures(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/figures", timeout=10) as reply:
        found: dict[str, float] = json.load(reply)
    return found


class Sink:
    """A staging file, as the pipeline sees it."""

    def __init__(self, staging: Staging) -> None:
        self.known = staging.vector_for
        self.staging = staging

    def add(self, staged: Sequence[Staged], refused: Sequence[Refused] = ()) -> None:
        self.staging.add(staged, refused)

    def discard(self, rows: Sequence[tuple[Kind, int]]) -> None:
        raise SystemExit(f"{len(rows)} vectors were taken back")


def rebuild(port: int, count: int, shape: str, width: int) -> tuple[Fetched, float]:
    """One run, and its seconds."""
    where = Endpoint(mode="http", url=f"http://127.0.0.1:{port}/embed")
    aim = Target(mode="http", url=where.url, model="", dim=width)
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "memory.db"
        database.touch()
        with Staging.create(database, aim) as staging:
            begun = time.perf_counter()
            result = run(fetch(corpus(count, shape), Sink(staging), where, Options(target=aim, total=count)))
            seconds = time.perf_counter() - begun
    if not result.counts.add_up or result.counts.done != count:
        raise SystemExit(f"not everything was done: {result}")
    return result, seconds


def serial() -> int:
    """One request at a time, as a model on one processor."""
    over = 0
    for shape in LENGTHS:
        with endpoint(1, 80, 20, 768) as port:
            _, seconds = rebuild(port, 2000, shape, 768)
            found = figures(port)
        ratio = seconds / found["busy"]
        over += ratio > 1.05
        print(
            f"serial    {shape:<24} {found['requests']:5.0f} requests  busy {found['busy']:6.2f} s"
            f"  wall {seconds:6.2f} s  wall/busy {ratio:.3f}  (limit 1.05)"
        )
    return over


def parallel() -> int:
    """Several at a time: the best there is, is all slots busy all the time."""
    over = 0
    for slots in (4, 8, 12):
        with endpoint(slots, 50 * slots, 20, 384) as port:
            result, seconds = rebuild(port, 12_000, "lognormal, median 40", 384)
            found = figures(port)
        share = found["busy"] / slots / seconds
        over += share < 0.9
        print(
            f"parallel  {slots:2} slots {found['requests']:5.0f} requests  best {found['busy'] / slots:6.2f} s"
            f"  wall {seconds:6.2f} s  {share:6.1%} of the best  (limit 90 %)  learned {dict(result.learned)}"
        )
    return over


def padding() -> int:
    """Padded tokens as the endpoint counts them, against the texts' own."""
    over = 0
    for shape in LENGTHS:
        with endpoint(1, 0, 0, 16) as port:
            rebuild(port, 12_000, shape, 16)
            found = figures(port)
        ratio = found["padded"] / found["tokens"]
        over += ratio > 1.1
        print(f"padding   {shape:<24} padded/real {ratio:.3f}  (limit 1.1)")
    return over


def memory(count: int) -> int:
    """Peak of resident memory, each in a process of its own."""
    peaks = []
    for rows in (1000, count):
        command = [sys.executable, "-m", "benchmarks.reembed_pipeline", "peak", str(rows)]
        peaks.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
        print(f"memory    {rows:9,} rows  peak {peaks[-1]:6.1f} MB")
    print(f"memory    difference {peaks[1] - peaks[0]:+.1f} MB  (limit 20)")
    return int(peaks[1] - peaks[0] > 20)


def peak(count: int) -> int:
    with endpoint(1, 0, 0, 16) as port:
        rebuild(port, count, "lognormal, median 40", 16)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return 0


def main() -> int:
    names = [name for name in sys.argv[1:] if not name.isdecimal()]
    count = next((int(name) for name in sys.argv[1:] if name.isdecimal()), 200_000)
    if names == ["peak"]:
        return peak(count)
    parts: dict[str, Callable[[], int]] = {
        "serial": serial,
        "parallel": parallel,
        "padding": padding,
        "memory": lambda: memory(count),
    }
    return 1 if sum(parts[name]() for name in names or parts) else 0


if __name__ == "__main__":
    sys.exit(main())
