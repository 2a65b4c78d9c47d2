"""Python environments and uv's folders, laid out as the real ones are, without installing anything."""

from __future__ import annotations

import base64
import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path


def distribution(site: Path, name: str, release: str, *, script: Path | None = None) -> Path:
    """An installed distribution: its ``.dist-info`` with METADATA and RECORD, and with ``script`` its entry point."""
    info = site / f"{name.replace('-', '_')}-{release}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {release}\n\nVersion: 0\n")
    record = f"{info.name}/METADATA,,\n"
    if script is not None:
        digest = base64.urlsafe_b64encode(hashlib.sha256(script.read_bytes()).digest()).decode().rstrip("=")
        record = f"../../../bin/{script.name},sha256={digest},1\n{record}"
        (info / "entry_points.txt").write_text(f"[console_scripts]\n{script.name} = {name}:run\n")
    (info / "RECORD").write_text(record)
    return info


def venv(prefix: Path, packages: Mapping[str, str], *, windows: bool = False, release: str = "3.12") -> Path:
    """A virtual environment with ``packages`` (name -> release); its interpreter is a link to the one of the tests."""
    site = prefix / "Lib/site-packages" if windows else prefix / f"lib/python{release}/site-packages"
    scripts = prefix / ("Scripts" if windows else "bin")
    site.mkdir(parents=True)
    scripts.mkdir()
    (prefix / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion_info = {release}.1\n")
    (scripts / ("python.exe" if windows else "python")).symlink_to(sys.executable)
    for name, number in packages.items():
        distribution(site, name, number)
    return site


def script(path: Path, first: str) -> Path:
    """An executable console script whose first line is ``first``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{first}\nimport sys\nfrom cpersona.server import run\nsys.exit(run())\n")
    path.chmod(0o755)
    return path


def cached(cache: Path, key: str, packages: Mapping[str, str]) -> Path:
    """An environment in uv's cache: a link in ``environments-v2`` to a folder of ``archive-v0``."""
    prefix = cache / "archive-v0" / f"archive{key}"
    site = venv(prefix, packages)
    link = cache / "environments-v2" / "8b0cbae4892decd7" / key
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(prefix)
    (link.parent / f"{key}.lock").touch()
    return site


def wheel(cache: Path, release: str, *, old: bool = False) -> None:
    """A wheel unpacked in uv's cache; ``old`` in the layout before uv 0.5."""
    folder = cache / ("wheels-v1" if old else "wheels-v8") / "pypi" / "cpersona"
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{'cpersona-' if old else ''}{release}-py3-none-any"
    for name in (stem, f"{stem}.http", f"{stem}.msgpack"):
        (folder / name).touch()
