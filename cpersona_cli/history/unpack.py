"""A stream as it was before it was compressed, bounded while it is read, its failures under one name."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from typing import BinaryIO, NoReturn, Protocol, cast

from cpersona_cli.history.model import HistoryError
from cpersona_cli.text import safe

#: How many times its size a compressed stream may grow, and up to which size nobody minds (text repeats itself).
RATIO = 250
HARMLESS = 64 * 2**20

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"

_NEEDED = (
    "is compressed with zstd, which needs one more package: pip install 'cpersona-cli[zstd]', "
    "or unpack it with zstd -d and give the result"
)

# Of a zstd stream so few bytes at a time: four of them may become 128 KiB.
_STEP = 1024


class StreamError(HistoryError):
    """A stream cannot be read, or not to its end; ``what`` says why without its name."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where} {what}.")
        self.what = what


def unpacked(stream: BinaryIO, size: int, where: str) -> BinaryIO:
    """``stream`` (``size`` bytes) without its gzip or zstd, whatever its name says; with neither, as it is.

    Reading raises ``StreamError`` for what is cut, broken or grows beyond ``RATIO``, and so does this where zstd needs
    a package that is not there.
    """
    buffered = cast("BinaryIO", io.BufferedReader(_Watched(stream, where, None), 2**16))
    inner: _Readable
    try:
        start = cast("io.BufferedReader[_Watched]", buffered).peek(4)[:4]
        if start.startswith(_GZIP):
            inner = gzip.GzipFile(fileobj=buffered)
        elif start == _ZSTD:
            inner = _Zstd(buffered, where)
        else:
            return buffered
    except StreamError:
        buffered.close()
        raise
    return cast("BinaryIO", io.BufferedReader(_Watched(inner, where, size, buffered), 2**16))


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Closable(Protocol):
    def close(self) -> None: ...


class _Zstd:
    """The frames of a zstd stream, one after the other; the package's own reader takes a cut one for a whole one."""

    def __init__(self, stream: BinaryIO, where: str) -> None:
        try:
            import zstandard  # noqa: PLC0415 - an extra that few need
        except ImportError:
            raise StreamError(where, _NEEDED) from None
        self._stream, self._start = stream, zstandard.ZstdDecompressor().decompressobj
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._packed = b""
        self._ready = io.BytesIO()

    def read(self, size: int, /) -> bytes:
        while not (data := self._ready.read(size)):
            packed = self._packed or self._stream.read(_STEP)
            if not packed:
                if self._frame is not None:
                    raise EOFError("it ends within a frame")
                break
            self._frame = self._frame or self._start()
            self._ready = io.BytesIO(self._frame.decompress(packed))
            self._packed = self._frame.unused_data
            if self._frame.eof:
                self._frame = None
        return data


class _Watched(io.RawIOBase):
    """A stream whose failures are ``StreamError``; with ``packed`` (its size before) also one that grows too far."""

    def __init__(self, stream: _Readable, where: str, packed: int | None, below: _Closable | None = None) -> None:
        super().__init__()
        self._stream, self._where, self._packed = stream, where, packed
        self._below = below or cast("_Closable", stream)
        self._given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = cast("memoryview", buffer)
        try:
            data = self._stream.read(len(view))
        except (EOFError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile) as error:
            self._fail(f"is damaged: {safe(str(error))}", error)
        except OSError as error:
            self._fail(f"cannot be read: {error.strerror or error}", error)
        except Exception as error:
            # These classes are known only where their modules are installed.
            if type(error).__name__ not in {"ZstdError", "LZMAError"}:
                raise
            self._fail(f"is damaged: {safe(str(error))}", error)
        self._given += len(data)
        if self._packed is not None and self._given > max(HARMLESS, RATIO * self._packed):
            self._fail(f"grows to more than {RATIO} times its compressed size", None)
        view[: len(data)] = data
        return len(data)

    def _fail(self, what: str, cause: BaseException | None) -> NoReturn:
        raise StreamError(self._where, f"{what} (after {self._given:,} bytes)") from cause

    def close(self) -> None:
        self._below.close()
        super().close()
