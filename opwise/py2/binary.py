"""Pipes, sockets, hashes, archives and binary files that take text, as those of Python 2 did.

What pipes give is text if it is text: programs parse the output of other programs.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import functools
import gzip
import hashlib
import io
import os
import re
import socket
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from opwise.py2.builtin import ByteString, TextLines, Writable, _is_converted, _text_if


def _as_bytes(data: Any) -> Any:
    """Return text as bytes, and everything else as it is."""
    return data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data


def _as_text(data: Any) -> Any:
    """Return bytes as text if they are text, and everything else as it is."""
    if not isinstance(data, bytes):
        return data
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


# --- pipes ----------------------------------------------------------------------------------------


class Popen(subprocess.Popen):  # type: ignore[type-arg]
    """A process whose pipes take text and give text, without a buffer for what is written."""

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        for name in ("stdin", "stdout", "stderr"):
            pipe = getattr(self, name)
            if pipe is not None:
                setattr(self, name, _Pipe(pipe))

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        out, error = super().communicate(_as_bytes(input) if self._is_binary else input, timeout)
        return _as_text(out), _as_text(error)

    @property
    def _is_binary(self) -> bool:
        return not self.text_mode  # type: ignore[attr-defined]


class _Pipe:
    """An end of a pipe."""

    def __init__(self, file: Any):
        self._file = file

    def write(self, data: Any) -> None:
        if hasattr(self._file, "encoding"):
            self._file.write(data)
        else:
            self._file.write(_as_bytes(data))
        self._file.flush()

    def writelines(self, lines: Iterable[Any]) -> None:
        for line in lines:
            self.write(line)

    def read(self, *size: int) -> Any:
        return _as_text(self._file.read(*size))

    def readline(self, *size: int) -> Any:
        return _as_text(self._file.readline(*size))

    def readlines(self, *hint: int) -> list[Any]:
        return [_as_text(line) for line in self._file.readlines(*hint)]

    def __iter__(self) -> Iterator[Any]:
        return map(_as_text, self._file)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> _Pipe:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


def check_output(*args: Any, **options: Any) -> Any:
    """Return what a program prints."""
    return _as_text(subprocess.check_output(*args, **options))


# --- sockets --------------------------------------------------------------------------------------


class Socket(socket.socket):
    """A socket that takes text, and gives ByteStrings."""

    def send(self, data: Any, *flags: Any) -> int:
        return super().send(_as_bytes(data), *flags)

    def sendall(self, data: Any, *flags: Any) -> None:
        super().sendall(_as_bytes(data), *flags)

    def sendto(self, data: Any, *args: Any) -> int:
        return super().sendto(_as_bytes(data), *args)

    def recv(self, *args: Any) -> bytes:
        return ByteString(super().recv(*args))

    def recvfrom(self, *args: Any) -> Any:
        data, address = super().recvfrom(*args)
        return ByteString(data), address

    def accept(self) -> Any:
        made, address = super().accept()
        return _own(made), address

    def makefile(  # type: ignore[override]
        self, mode: str = "rb", bufsize: int = -1, **options: Any
    ) -> Any:
        """Return a file of the socket: every one had lines of text."""
        binary: Any = mode.replace("U", "").replace("b", "") + "b"
        return Writable(super().makefile(binary, None if bufsize < 1 else bufsize, **options))


def _own(made: socket.socket) -> Socket:
    timeout = made.gettimeout()
    own = Socket(made.family, made.type, made.proto, made.detach())
    own.settimeout(timeout)
    return own


def create_connection(*args: Any, **options: Any) -> Socket:
    return _own(socket.create_connection(*args, **options))


def socketpair(*args: Any) -> tuple[Socket, Socket]:
    first, second = socket.socketpair(*args)
    return _own(first), _own(second)


# --- functions of bytes ---------------------------------------------------------------------------


def _of_bytes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes text for bytes, and returns ByteStrings."""

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        found = function(*map(_as_bytes, args), **options)
        return ByteString(found) if isinstance(found, bytes) else found

    return called


b64encode, b64decode = _of_bytes(base64.b64encode), _of_bytes(base64.b64decode)
hexlify, unhexlify = _of_bytes(binascii.hexlify), _of_bytes(binascii.unhexlify)
compress, decompress = _of_bytes(zlib.compress), _of_bytes(zlib.decompress)


def pack(form: str, *values: Any) -> Any:
    """Return struct.pack of values; text has a byte for each character."""
    values = tuple(v.encode("latin-1") if isinstance(v, str) else v for v in values)
    return ByteString(struct.pack(form, *values))


def unpack(form: str, data: Any) -> Any:
    """Return struct.unpack of bytes, or of text that has a byte for each character."""
    found = struct.unpack(form, data.encode("latin-1") if isinstance(data, str) else data)
    return tuple(ByteString(value) if isinstance(value, bytes) else value for value in found)


def _of_text(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of a regular expression that takes bytes for text."""

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        if isinstance(args[0], str | re.Pattern):
            args = tuple(str(arg) if isinstance(arg, ByteString) else arg for arg in args)
        return function(*args, **options)

    return called


re_findall, re_finditer, re_split = _of_text(re.findall), _of_text(re.finditer), _of_text(re.split)
re_match, re_search, re_sub = _of_text(re.match), _of_text(re.search), _of_text(re.sub)


# --- archives -------------------------------------------------------------------------------------


class ZipFile(zipfile.ZipFile):
    """An archive whose members have lines of text for converted code."""

    def read(self, *args: Any, **options: Any) -> Any:
        return ByteString(super().read(*args, **options))

    def open(self, name: Any, mode: Any = "r", *args: Any, **options: Any) -> Any:
        return Writable(super().open(name, mode.replace("U", ""), *args, **options))


class TarFile(tarfile.TarFile):
    """An archive whose members have lines of text for converted code, and may be text."""

    def extractfile(self, member: Any) -> Any:
        file = super().extractfile(member)
        return None if file is None else Writable(file)

    def addfile(self, tarinfo: tarfile.TarInfo, fileobj: Any = None) -> None:
        if isinstance(fileobj, io.TextIOBase | InMemory):
            fileobj = io.BytesIO(_as_bytes(fileobj.read()))
        super().addfile(tarinfo, fileobj)


tar_open = TarFile.open


class BytesInMemory(TextLines, io.BytesIO):
    """A file in memory; text can be written into it."""

    def write(self, data: Any) -> int:
        return super().write(_as_bytes(data))

    def getvalue(self) -> Any:
        return ByteString(super().getvalue())


class InMemory(Writable):
    """A file in memory: of text, but of bytes as soon as it holds bytes."""

    def __init__(self, initial: Any = ""):
        super().__init__(io.StringIO() if isinstance(initial, str) else BytesInMemory())
        self._file.write(initial)
        self._file.seek(0)

    def write(self, data: Any) -> int:
        if isinstance(data, bytes) and isinstance(self._file, io.StringIO):
            text, position = self._file.getvalue(), self._file.tell()
            self._file = BytesInMemory(_as_bytes(text))
            self._file.seek(len(_as_bytes(text[:position])))
        written: int = self._file.write(data)
        return written

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        line = self._file.readline()
        if not line:
            raise StopIteration
        return _text_if(_is_converted(sys._getframe(1)), line)


# --- hashes ---------------------------------------------------------------------------------------


class _Hash:
    """A hash of bytes, and of text as UTF-8."""

    def __init__(self, own: Any, data: Any = b""):
        self._own = own
        self.update(data)

    def update(self, data: Any) -> None:
        self._own.update(_as_bytes(data))

    def copy(self) -> _Hash:
        return _Hash(self._own.copy())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)


def new_hash(name: str, data: Any = b"") -> _Hash:
    return _Hash(hashlib.new(name), data)


def _hash(name: str) -> Callable[..., _Hash]:
    return lambda data=b"": new_hash(name, data)


md5, sha1, sha224 = _hash("md5"), _hash("sha1"), _hash("sha224")
sha256, sha384, sha512 = _hash("sha256"), _hash("sha384"), _hash("sha512")


def crc32(data: Any, *start: int) -> int:
    """Return a checksum; that of Python 2 had a sign."""
    return _signed(zlib.crc32(_as_bytes(data), *start))


def adler32(data: Any, *start: int) -> int:
    """Return a checksum; that of Python 2 had a sign."""
    return _signed(zlib.adler32(_as_bytes(data), *start))


def _signed(number: int) -> int:
    return number - (1 << 32) if number >= 1 << 31 else number


# --- files ----------------------------------------------------------------------------------------


class GzipFile(TextLines, gzip.GzipFile):
    """A compressed file; text can be written into it."""

    def write(self, data: Any) -> int:
        return super().write(_as_bytes(data))


class BZ2File(TextLines, bz2.BZ2File):
    """A compressed file; text can be written into it."""

    def write(self, data: Any) -> int:
        return super().write(_as_bytes(data))

    def writelines(self, lines: Iterable[Any]) -> None:
        super().writelines(map(_as_bytes, lines))


def gzip_open(filename: Any, mode: str = "rb", *args: Any, **options: Any) -> Any:
    """Open a compressed file; text can be written into it."""
    if "t" in mode or options or len(args) > 1:
        return gzip.open(filename, mode, *args, **options)
    if isinstance(filename, str | bytes | os.PathLike):
        return GzipFile(filename, mode.replace("U", ""), *args)
    level = args[0] if args else 9
    return GzipFile(None, mode.replace("U", ""), level, fileobj=filename)


def urlopen(*args: Any, **options: Any) -> Any:
    """Open what is behind a URL, whose lines are text."""
    from urllib.request import urlopen  # few programs need it

    if len(args) > 1 or options.get("data") is not None:  # the body of a POST
        args = tuple(map(_as_bytes, args))
        options = {name: _as_bytes(value) for name, value in options.items()}
    return Writable(urlopen(*args, **options))


def temporary_file(mode: str = "w+b", *args: Any, **options: Any) -> Any:
    """Open a file without a name; text can be written into it."""
    file = tempfile.TemporaryFile(mode, *args, **options)  # noqa: SIM115
    return Writable(file) if "b" in mode else file


def named_temporary_file(mode: str = "w+b", *args: Any, **options: Any) -> Any:
    """Open a temporary file; text can be written into it."""
    file = tempfile.NamedTemporaryFile(mode, *args, **options)  # noqa: SIM115
    return Writable(file) if "b" in mode else file
