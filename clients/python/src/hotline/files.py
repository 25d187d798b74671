"""Files of a form. The body of a form is built here, so that each attempt sends the same bytes under the same key."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Iterable, Mapping, Sequence, Union

from hotline.errors import HotlineError

UPLOAD_BYTES_MAX = 256 * 1024 * 1024
"""Most that the files of one call may have in all, since they are kept for another attempt."""
_CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True)
class File:
    """A file to send, of its contents or a stream."""

    data: Union[bytes, BinaryIO, Iterable[bytes]]
    name: str
    """The name that the recipient sees."""
    mime_type: str | None = None
    """The MIME type. Default: the service detects it."""


Upload = Union[File, "os.PathLike[str]", BinaryIO]
"""A file to send: a `File`, the path of one, or one that is open for reading bytes."""


def form(fields: Mapping[str, Any], files: Sequence[Upload], boundary: str) -> bytes:
    """A form of these fields; what is no text is JSON."""
    body = bytearray()

    def add(head: str, content: bytes) -> None:
        body.extend(f"--{boundary}\r\ncontent-disposition: form-data; {head}\r\n\r\n".encode())
        body.extend(content)
        body.extend(b"\r\n")

    for name, value in fields.items():
        if value is not None:
            add(f'name="{_quoted(name)}"', (value if isinstance(value, str) else json.dumps(value)).encode())
    left = UPLOAD_BYTES_MAX
    for upload in files:
        file = _file(upload)
        content = _read(file, left)
        left -= len(content)
        kind = f"\r\ncontent-type: {_one_line(file.mime_type)}" if file.mime_type else ""
        add(f'name="medias"; filename="{_quoted(file.name)}"{kind}', content)
    body.extend(f"--{boundary}--\r\n".encode())
    return bytes(body)


def _file(upload: Upload) -> File:
    if isinstance(upload, File):
        return upload
    if isinstance(upload, os.PathLike):
        path = Path(upload)
        if path.stat().st_size > UPLOAD_BYTES_MAX:
            raise _too_large()
        return File(path.read_bytes(), path.name)
    return File(upload, Path(str(getattr(upload, "name", "file"))).name)


def _read(file: File, left: int) -> bytes:
    if isinstance(file.data, bytes):
        content = file.data
    else:
        collected = bytearray()
        for chunk in _chunks(file.data):
            collected.extend(chunk)
            if len(collected) > left:
                raise _too_large()
        content = bytes(collected)
    if len(content) > left:
        raise _too_large()
    return content


def _chunks(data: Union[BinaryIO, Iterable[bytes]]) -> Iterable[bytes]:
    read = getattr(data, "read", None)
    return iter(lambda: read(_CHUNK_BYTES), b"") if read else data


def _quoted(name: str) -> str:
    return name.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")


def _one_line(text: str) -> str:
    return text.replace("\r", "").replace("\n", "")


def _too_large() -> HotlineError:
    return HotlineError(f"the files of a message are larger than {UPLOAD_BYTES_MAX} bytes in all")
