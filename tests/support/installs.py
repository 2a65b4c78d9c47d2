"""Real installations in scratch environments: the server's wheel and ours, put in by pip in a chosen order."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

from support.forked import unmeasured

REPOSITORY = Path(__file__).resolve().parents[2]


def build_wheel(folder: Path) -> Path:
    """Our own wheel, built from the working tree without the network."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-build-isolation", "-w", str(folder), str(REPOSITORY)]
    subprocess.run(command, check=True, timeout=120, env=unmeasured())
    (wheel,) = folder.glob("cpersona_cli-*.whl")
    return wheel


def server_wheel(folder: Path) -> Path:
    """The server of this environment as a wheel again, from the files its distribution recorded."""
    distribution = importlib.metadata.distribution("cpersona")
    name = f"cpersona-{distribution.version}"
    target = folder / f"{name}-py3-none-any.whl"
    record: list[str] = []
    with zipfile.ZipFile(target, "w") as archive:
        for entry in distribution.files or ():
            path = entry.as_posix()
            skip = path.startswith("..") or "__pycache__" in path
            if skip or path.endswith((".dist-info/RECORD", ".dist-info/INSTALLER", ".dist-info/REQUESTED")):
                continue
            data = Path(str(distribution.locate_file(entry))).read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}")
            archive.writestr(path, data)
        record.append(f"{name}.dist-info/RECORD,,")
        archive.writestr(f"{name}.dist-info/RECORD", "\n".join(record) + "\n")
    return target


def environment(folder: Path, *wheels: Path) -> Path:
    """A new virtual environment in ``folder`` with the wheels installed in this order; returns its scripts' folder.

    What the wheels depend on is borrowed from the environment that runs the tests.
    """
    venv.EnvBuilder(symlinks=os.name != "nt").create(folder)
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / ("python.exe" if os.name == "nt" else "python")
    paths = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", scheme="venv", vars=paths))
    (site / "borrowed.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    for wheel in wheels:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
        install = [*pip, "install", "--quiet", "--no-index", "--no-deps", "--ignore-installed", str(wheel)]
        subprocess.run(install, check=True, timeout=120, env=unmeasured())
    return scripts
