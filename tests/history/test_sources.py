"""Streams from files, folders and archives: bounded before and while they are read, nothing written anywhere."""

from __future__ import annotations

import gzip
import os
import stat
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest
import zstandard
from support.exports import zipped

from cpersona_cli.history import sources, unpack
from cpersona_cli.history.model import HistoryError, Looked
from cpersona_cli.history.sources import Found, find
from cpersona_cli.history.unpack import StreamError


def found(path: Path) -> list[tuple[str, str]]:
    """Names below ``path`` with what they hold, or why they were passed over."""
    result = []
    for item in find(path, set()):
        if isinstance(item, Found):
            with item.open() as stream:
                result.append((Path(item.source.where).relative_to(path.parent).as_posix(), stream.read().decode()))
        else:
            result.append((Path(item.where).relative_to(path.parent).as_posix(), f"({item.reason})"))
    return result


def passed(path: Path) -> Looked:
    (item,) = find(path, set())
    assert isinstance(item, Looked)
    return item


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The one stream at ``path``, within its turn."""
    for item in find(path, set()):
        assert isinstance(item, Found)
        with item.open() as stream:
            yield stream


def test_a_file_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "export.txt"
    path.write_text("[]")
    assert found(path) == [("export.txt", "[]")]
    (item,) = find(path, set())
    assert isinstance(item, Found)
    assert item.source.size == 2


def test_a_folder_in_the_order_of_names(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    for name in (
        "b.json",
        "a/z.jsonl",
        "a/c.ndjson",
        "B.JSON",
        "chat.html",
        "._b.json",
        "a/photo.png",
        "r.jsonl.zst.txt",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    unnamed = f"({sources.UNNAMED})"
    assert found(folder) == [
        ("f/._b.json", unnamed),
        ("f/B.JSON", "B.JSON"),
        ("f/b.json", "b.json"),
        ("f/chat.html", unnamed),
        ("f/r.jsonl.zst.txt", unnamed),
        ("f/a/c.ndjson", "a/c.ndjson"),
        ("f/a/photo.png", unnamed),
        ("f/a/z.jsonl", "a/z.jsonl"),
    ]


def test_links_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    folder, outside = tmp_path / "f", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "secret.json").write_text("secret")
    (folder / "file.json").symlink_to(outside / "secret.json")
    (folder / "more").symlink_to(outside)
    (folder / "round").symlink_to(folder)
    (folder / "broken.json").symlink_to(tmp_path / "gone")
    assert found(folder) == [
        (f"f/{name}", "(a link, not followed)") for name in ("more", "round", "broken.json", "file.json")
    ]
    (tmp_path / "given.json").symlink_to(outside / "secret.json")
    assert found(tmp_path / "given.json") == [("given.json", "secret")]


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    assert found(tmp_path)[0][1] == "(not a regular file)"
    with pytest.raises(HistoryError, match=r"pipe.json is neither a file nor a folder: save what it gives"):
        list(find(tmp_path / "pipe.json", set()))
    with pytest.raises(HistoryError, match=r"gone cannot be read: No such file or directory\."):
        list(find(tmp_path / "gone", set()))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "f/closed").mkdir(parents=True)
    (tmp_path / "f/x.json").touch(0)
    (tmp_path / "f/closed").chmod(0)
    assert [reason for _, reason in found(tmp_path / "f")] == ["(cannot be read: Permission denied)"] * 2
    with pytest.raises(HistoryError, match=r"x.json cannot be read: Permission denied\."):
        list(find(tmp_path / "f/x.json", set()))


def test_failures_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f/x.json"
    path.parent.mkdir()
    path.write_text("x")

    def denied(_path: Path, _mode: str) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    assert found(path.parent) == [("f/x.json", "(cannot be read: Permission denied)")]
    with pytest.raises(HistoryError, match=r"x.json cannot be read: Permission denied\."):
        list(find(path, set()))


def test_a_folder_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = os.scandir

    def denied(path: str | Path) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    (tmp_path / "f/closed").mkdir(parents=True)
    monkeypatch.setattr(os, "scandir", denied)
    assert found(tmp_path / "f") == [("f/closed", "(cannot be read: Permission denied)")]


def test_a_file_that_went_away_has_no_size(tmp_path: Path) -> None:
    assert sources._passed(tmp_path / "gone", "x").size == 0


def test_a_file_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("x")
    seen: set[tuple[int, int]] = set()
    assert isinstance(next(find(tmp_path / "x.json", seen)), Found)
    again = next(find(tmp_path, seen))
    assert isinstance(again, Looked)
    assert again.reason == sources.READ_ALREADY


@pytest.mark.parametrize("name", ["x.json.gz", "x.jsonl.zst", "misnamed.json"])
def test_compressed_files(tmp_path: Path, name: str) -> None:
    text = "[{}]" * 50_000
    pack = zstandard.compress if name.endswith("zst") else gzip.compress
    (tmp_path / name).write_bytes(pack(text[:100_000].encode()) + pack(text[100_000:].encode()))
    assert found(tmp_path) == [(f"{tmp_path.name}/{name}", text)]


def test_compressed_entries_of_an_archive(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", {"a.json.gz": gzip.compress(b"[1]"), "b.jsonl.zst": zstandard.compress(b"{}")})
    assert found(path) == [("x.zip/a.json.gz", "[1]"), ("x.zip/b.jsonl.zst", "{}")]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_compressed_file_that_is_cut(tmp_path: Path, pack: object) -> None:
    data = os.urandom(300_000)
    path = tmp_path / "x.json"
    assert callable(pack)
    path.write_bytes(pack(data)[:200_000])
    with opened(path) as stream:
        assert stream.read(100_000) == data[:100_000]
        with pytest.raises(StreamError, match=r"x.json is damaged: .* \(after [0-9,]+ bytes\)\.$"):
            stream.read()


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_compressed_file_that_is_damaged(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    data = bytearray(pack(os.urandom(300_000)))
    data[20:] = b"\xff" * (len(data) - 20)
    (tmp_path / "x.json").write_bytes(data)
    with opened(tmp_path / "x.json") as stream, pytest.raises(StreamError, match=r"x.json is damaged"):
        stream.read()


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.jsonl.zst"
    path.write_bytes(zstandard.compress(b"{}"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with (
        pytest.raises(HistoryError, match=r"pip install 'cpersona-cli\[zstd\]', or unpack it with zstd -d"),
        opened(path),
    ):
        pass


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_compressed_file_that_grows_too_far(tmp_path: Path, pack: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "HARMLESS", 2**20)
    path = tmp_path / "x.json"
    assert callable(pack)
    path.write_bytes(pack(bytes(4 * 2**20)))
    with opened(path) as stream:
        assert len(stream.read(2**19)) == 2**19
        with pytest.raises(StreamError, match=r"x.json grows to more than 250 times its compressed size"):
            stream.read()


def test_an_archive_in_the_order_of_names(tmp_path: Path) -> None:
    entries = {"conversations-001.json": "1", "user.json": "u", "conversations-000.json": "0", "chat.html": "<html>"}
    path = zipped(tmp_path / "export.zip", entries | {"folder/": "", "folder/inner.zip": "PK"})
    assert found(path) == [
        ("export.zip/chat.html", f"({sources.UNNAMED})"),
        ("export.zip/conversations-000.json", "0"),
        ("export.zip/conversations-001.json", "1"),
        ("export.zip/folder/inner.zip", "(an archive within an archive, not opened)"),
        ("export.zip/user.json", "u"),
    ]
    assert list(tmp_path.iterdir()) == [path]
    assert zipped(tmp_path / "empty.zip", {}).exists()
    assert found(tmp_path / "empty.zip") == []


@pytest.mark.parametrize(
    "name", ["../evil.json", "a/../../evil.json", "/etc/evil.json", "C:\\evil.json", "..\\evil.json", "c:evil.json"]
)
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    path = zipped(tmp_path / "x.zip", {name: "[]"})
    item = passed(path)
    assert item.reason == "refused: its name leads out of the archive"
    assert "evil.json" in item.where


def test_other_entries_that_are_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("a-link.json")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("__MACOSX/b.json", "x")
        archive.writestr("._c.json", "x")
    assert [reason for _, reason in found(path)] == [f"({sources.UNNAMED})"] * 2 + ["(a link, not followed)"]


def test_an_encrypted_entry(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", {"a.json": "[]"})
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    path.write_bytes(data)
    assert passed(path).reason == "encrypted: unpack it with its password and give the folder"


def test_an_archive_that_claims_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "HARMLESS", 2**20)
    bomb = zipped(tmp_path / "bomb.zip", {"a.json": bytes(4 * 2**20)})
    assert passed(bomb).reason.startswith("an archive that claims to hold ")
    # Beside much that is honest, the one entry is refused.
    mixed = zipped(tmp_path / "mixed.zip", {"a.json": bytes(4 * 2**20), "b.json": os.urandom(2**16)})
    first, second = find(mixed, set())
    assert isinstance(first, Looked)
    assert first.reason == "refused: it claims to be more than 250 times its compressed size"
    assert isinstance(second, Found)
    monkeypatch.setattr(sources, "LARGEST_ENTRY", 2**21)
    first, _ = find(mixed, set())
    assert isinstance(first, Looked)
    assert first.reason == "refused: 0 GiB, more than the 0 GiB one may take"
    monkeypatch.setattr(sources, "MOST_ENTRIES", 1)
    assert passed(mixed).reason == "an archive of 2 files, more than 1"


def test_an_entry_that_lies_about_its_size(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", {"a.json": bytes(100_000)})
    data = path.read_bytes()
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = data.index(signature) + offset
        data = data[:at] + (10).to_bytes(4, "little") + data[at + 4 :]
    path.write_bytes(data)
    with pytest.raises(StreamError, match=r"a.json is damaged: Bad CRC-32"), opened(path):
        pass


def test_archives_that_are_damaged(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", {"a.json": "[]" * 1000})
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    assert passed(path).reason == "a damaged zip archive: its end is missing, as after a download that broke off"
    path.write_bytes(b"PK\x03\x04" + b"\xff" * 26 + whole[30:])
    with pytest.raises(StreamError, match=r"a.json cannot be unpacked: "), opened(path):
        pass
    method = whole.index(b"PK\x01\x02") + 10
    local = whole.index(b"PK\x03\x04") + 8
    path.write_bytes(whole[:local] + b"\x63\0" + whole[local + 2 : method] + b"\x63\0" + whole[method + 2 :])
    with pytest.raises(StreamError, match=r"a.json cannot be unpacked: .*compression"), opened(path):
        pass


def test_an_archive_of_other_compressions(tmp_path: Path) -> None:
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        path = tmp_path / "x.zip"
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("a.json", "[]" * 5_000)
        assert found(path) == [("x.zip/a.json", "[]" * 5_000)]


def test_a_stream_that_fails(tmp_path: Path) -> None:
    class Fails:
        def __init__(self, error: Exception) -> None:
            self.error = error

        def read(self, _size: int, /) -> bytes:
            raise self.error

        def close(self) -> None:
            pass

    watched = unpack._Watched(Fails(OSError(5, "Input/output error")), "x.json", None)
    with pytest.raises(StreamError, match=r"x.json cannot be read: Input/output error \(after 0 bytes\)\."):
        watched.read(10)
    with pytest.raises(ZeroDivisionError):
        unpack._Watched(Fails(ZeroDivisionError()), "x.json", None).read(10)
