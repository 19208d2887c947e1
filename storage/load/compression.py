"""Reads text files compressed with gzip, bzip2, Zstandard or Snappy, chosen by the file name's suffix."""

from __future__ import annotations

import bz2
import gzip
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa

from ivm.errors import SqlError

CHUNK_BYTES: Final = 1 << 20
COMPRESSED: Final = (".gz", ".bz2", ".zst", ".snappy")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def chunks(path: Path) -> Iterator[bytes]:
    """A file's decompressed bytes, in chunks of about a megabyte, without a byte order mark.

    Raises 42501, 58P01, and 22P04 if the file is not compressed as its name says.
    """
    try:
        first = True
        for chunk in _read(path):
            yield chunk.removeprefix(_BYTE_ORDER_MARK) if first else chunk
            first = False
    except PermissionError:
        raise SqlError("42501", f'could not open file "{path}" for reading: Permission denied') from None
    except FileNotFoundError:
        raise SqlError("58P01", f'could not open file "{path}" for reading: No such file or directory') from None
    except (OSError, EOFError, zlib.error, pa.ArrowInvalid, struct.error) as error:
        message = f'could not read file "{path}"'
        raise SqlError("22P04", message, str(error).partition("\n")[0] or type(error).__name__) from error


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        match path.suffix.lower():
            case ".gz":
                with gzip.open(file) as stream:
                    yield from _pieces(stream)  # type: ignore[arg-type]
            case ".bz2":
                with bz2.open(file) as stream:
                    yield from _pieces(stream)  # type: ignore[arg-type]
            case ".zst":
                with pa.CompressedInputStream(pa.PythonFile(file), "zstd") as stream:
                    yield from _pieces(stream)
            case ".snappy":
                yield from _snappy(file)
            case _:
                yield from _pieces(file)


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


def _snappy(file: BinaryIO) -> Iterator[bytes]:
    """Hadoop's framing, big-endian: the length of a block, then its parts, each preceded by its compressed length."""
    while head := file.read(4):
        (left,) = struct.unpack(">I", head)
        while left:
            (size,) = struct.unpack(">I", file.read(4))
            data = file.read(size)
            if len(data) < size:
                raise EOFError("the file ends in the middle of a block")
            part = pa.decompress(data, _length(data), "snappy", asbytes=True)
            left -= len(part)
            yield part


def _length(data: bytes) -> int:
    """The uncompressed length, Snappy's own varint."""
    length = shift = 0
    for byte in data[:5]:
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            return length
        shift += 7
    raise EOFError("a part of the file is not compressed by Snappy")
