"""The machine under inspection, as a value: no module below reads the real one."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

from cpersona_cli.install.model import System
from cpersona_cli.record import field, record


@record(kw_only=True)
class Machine:
    r"""Where things are on one machine.

    ``home``, ``appdata`` and ``localappdata`` are real directories of the running system even when ``system`` names
    another platform: that is how a Windows layout is examined, and tested, on Linux. ``root`` stands for ``/`` (or
    ``C:\\``) when system-wide files are looked up. ``env`` is this process's environment.
    """

    system: System
    home: Path
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    root: Path = Path("/")
    appdata: Path | None = None
    localappdata: Path | None = None

    @property
    def native(self) -> bool:
        """Whether paths found in files are paths of the system this process runs on."""
        return self.system == current_system()

    @property
    def roaming(self) -> Path:
        """``%APPDATA%``."""
        return self.appdata or self.home / "AppData" / "Roaming"

    @property
    def local(self) -> Path:
        """``%LOCALAPPDATA%``."""
        return self.localappdata or self.home / "AppData" / "Local"

    @property
    def config(self) -> Path:
        """Where XDG-minded programs keep their settings."""
        chosen = self.env.get("XDG_CONFIG_HOME", "")
        return Path(chosen) if chosen.startswith("/") else self.home / ".config"

    def pure(self, text: str) -> PurePath:
        """``text`` as a path of the inspected system."""
        return PureWindowsPath(text) if self.system == "windows" else PurePosixPath(text)


def current_system() -> System:
    """The platform this process runs on."""
    if sys.platform == "win32":
        return "windows"
    return "darwin" if sys.platform == "darwin" else "linux"


def this_machine(env: Mapping[str, str] | None = None) -> Machine:
    """The machine this process runs on.

    Raises ``RuntimeError`` when the home directory cannot be told and ``FileNotFoundError`` when the working
    directory no longer exists.
    """
    environment = dict(os.environ if env is None else env)
    system = current_system()
    roaming, local = environment.get("APPDATA"), environment.get("LOCALAPPDATA")
    return Machine(
        system=system,
        home=Path.home(),
        cwd=Path.cwd(),
        env=environment,
        root=Path(Path.cwd().anchor or "/"),
        appdata=Path(roaming) if system == "windows" and roaming else None,
        localappdata=Path(local) if system == "windows" and local else None,
    )
