r"""Where a folder really lies: the type of its file system, and folders that other programs copy away.

SQLite's write-ahead log needs memory shared by all processes that have the file open, and byte locks that work.
Network file systems and the folders a virtual machine shares with its host promise neither
(https://www.sqlite.org/wal.html, https://www.sqlite.org/useovernet.html).
"""

from __future__ import annotations

import re
from pathlib import Path, PurePath

from cpersona_cli.install.model import System
from cpersona_cli.record import record
from cpersona_cli.store.files import names_in, real_path

_MOUNTINFO = Path("/proc/self/mountinfo")

_NETWORK = {
    "nfs": "an NFS share",
    "nfs4": "an NFS share",
    "cifs": "a Windows (SMB) share",
    "smb3": "a Windows (SMB) share",
    "smbfs": "a Windows (SMB) share",
    "9p": "a folder shared over 9p",
    "drvfs": "a Windows drive seen from WSL",
    "afs": "an AFS share",
    "ceph": "a Ceph share",
    "glusterfs": "a Gluster share",
    "lustre": "a Lustre share",
    "ncpfs": "a NetWare share",
    "beegfs": "a BeeGFS share",
    "davfs": "a WebDAV share",
}
_SHARED_BY_HOST = {
    "virtiofs": "a folder the host shares with this virtual machine (virtiofs)",
    "fakeowner": "a bind mount of Docker Desktop",
    "fuse.grpcfuse": "a bind mount of Docker Desktop",
    "fuse.osxfs": "a bind mount of Docker Desktop",
    "osxfs": "a bind mount of Docker Desktop",
    "vboxsf": "a shared folder of VirtualBox",
    "prl_fs": "a shared folder of Parallels",
    "vmhgfs": "a shared folder of VMware",
    "fuse.vmhgfs-fuse": "a shared folder of VMware",
}
_LOST_AT_RESTART = {"tmpfs": "memory", "ramfs": "memory"}

#: Folder names by which clouds are known, each a full match of one part of the path.
_CLOUDS = (
    (re.compile(r"com~apple~CloudDocs|iCloudDrive|iCloud Drive", re.IGNORECASE), "iCloud Drive"),
    (re.compile(r"Dropbox(?: \(.+\))?", re.IGNORECASE), "Dropbox"),
    (re.compile(r"OneDrive(?:[ -].+)?", re.IGNORECASE), "OneDrive"),
    (re.compile(r"Google ?Drive(?:-.+)?|GoogleDriveFS", re.IGNORECASE), "Google Drive"),
    (re.compile(r"Nextcloud\d*|ownCloud", re.IGNORECASE), "Nextcloud"),
    (re.compile(r"Box(?: Sync|-Box)", re.IGNORECASE), "Box"),
    (re.compile(r"pCloud ?Drive|MEGAsync|Sync\.com", re.IGNORECASE), "a cloud client"),
)
#: Files a synchronizer leaves at the top of what it copies.
_MARKS = (
    (".stfolder", "Syncthing"),
    (".dropbox.cache", "Dropbox"),
    (".tmp.driveupload", "Google Drive"),
)
_STRONG_COPY = re.compile(r"conflict|-(?:DESKTOP|LAPTOP|MacBook)\b", re.IGNORECASE)
_WEAK_COPY = re.compile(r" \(\d+\)| \d+")

#: Copies beside one database that are named in a report.
_COPIES = 20


@record
class Ground:
    """The file system under a folder, and why it is no place for a database (empty words where it is one)."""

    filesystem: str = ""
    risk: str = ""
    detail: str = ""


def mountinfo_of_this_process() -> str:
    """The kernel's list of mounts as this process sees them; empty where there is none."""
    try:
        return _MOUNTINFO.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def ground(folder: Path, mountinfo: str, system: System) -> Ground:
    """What ``folder``, an existing one, lies on. ``mountinfo`` is in the format of proc(5); empty elsewhere."""
    real = real_path(folder)
    filesystem, mount_point, options = _mount(real, mountinfo)
    risk, detail = _by_type(real, filesystem, mount_point, options) if filesystem else _by_path(real, system)
    if risk not in {"network", "bind-mount"}:
        cloud = _synced(real)
        if cloud:
            risk, detail = "synced", cloud
    if not risk:
        top = next((p for p in (real, *real.parents) if _stands(p / ".git")), None)
        if top is not None:
            risk, detail = "git", f"inside the git working tree {top}"
    return Ground(filesystem, risk, detail)


def conflict_copies(path: Path, *, synced: bool) -> tuple[str, ...]:
    """Names beside ``path`` that a synchronizer gives to a second version of it.

    Numbered copies (``c (1).db``, ``c 2.db``) count only in a synced folder: elsewhere people make them.
    """
    stem, suffix = path.stem.casefold(), path.suffix.casefold()
    found = []
    for name in names_in(path.parent):
        lower = name.casefold()
        if name == path.name or not (lower.startswith(stem) and lower.endswith(suffix)):
            continue
        middle = name[len(stem) : len(name) - len(suffix)]
        if _STRONG_COPY.search(middle) or (synced and _WEAK_COPY.fullmatch(middle)):
            found.append(name)
    return tuple(sorted(found)[:_COPIES])


def _stands(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _mount(folder: PurePath, mountinfo: str) -> tuple[str, PurePath, str]:
    """(type, mount point, options) of the mount ``folder`` lies on; the last of equal mount points hides the others."""
    best: tuple[str, PurePath, str] = ("", folder, "")
    depth = -1
    for line in mountinfo.splitlines():
        left, separator, right = line.partition(" - ")
        fields, tail = left.split(" "), right.split(" ")
        if not separator or len(fields) < 6 or not tail[0]:
            continue
        point = PurePath(_unescaped(fields[4]))
        if folder.is_relative_to(point) and len(point.parts) >= depth:
            best, depth = (tail[0], point, right), len(point.parts)
    return best


def _unescaped(text: str) -> str:
    r"""``\040`` and its like, which the kernel writes for blanks in a mount point."""
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), text)


def _by_type(folder: PurePath, filesystem: str, point: PurePath, options: str) -> tuple[str, str]:
    name = filesystem.lower()
    where = f"{point} is"
    if folder.is_relative_to("/mnt/wsl/docker-desktop-bind-mounts"):
        return "bind-mount", f"{where} a bind mount of Docker Desktop"
    if name == "9p" and ("drvfs" in options or re.match(r"/mnt/[a-z](?:/|$)", str(point))):
        name = "drvfs"
    if name in _NETWORK:
        return "network", f"{where} {_NETWORK[name]} ({filesystem})"
    if name in _SHARED_BY_HOST:
        return "bind-mount", f"{where} {_SHARED_BY_HOST[name]}"
    if name == "fuse" or name.startswith("fuse."):
        return "network", f"{where} served by a program ({filesystem}), whose locks cannot be relied on"
    if name in _LOST_AT_RESTART:
        return "volatile", f"{where} kept in {_LOST_AT_RESTART[name]} ({filesystem}) and empty after the next start"
    if name == "overlay" and str(point) == "/":
        return "volatile", "it lies in the writable layer of a container, which goes when the container goes"
    return "", ""


def _by_path(folder: PurePath, system: System) -> tuple[str, str]:
    text = str(folder)
    if system == "windows" and text.startswith(("\\\\", "//")) and not text.startswith(("\\\\?\\", "\\\\.\\")):
        share = "WSL's own share" if re.match(r"[\\/]{2}wsl(?:\$|\.localhost)", text, re.IGNORECASE) else "a share"
        return "network", f"{text} lies on {share}"
    if system == "darwin" and len(folder.parts) > 2 and folder.parts[1] == "Volumes":
        return (
            "network",
            f"/Volumes/{folder.parts[2]} is an attached volume; if it is a network share, locks fail there",
        )
    return "", ""


def _synced(folder: Path) -> str:
    for part in folder.parts:
        for pattern, name in _CLOUDS:
            if pattern.fullmatch(part):
                return f"{part} is copied away by {name}"
    for parent in (folder, *folder.parents):
        for mark, name in _MARKS:
            if _stands(parent / mark):
                return f"{parent} is copied away by {name} ({mark})"
    return ""
