"""A file that is written whole, or not at all."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from ..errors import ArgumentError


def write_atomically(path: str | os.PathLike[str], text: str) -> None:
    """A reader of the path sees the old file or the new one."""
    try:
        target = Path(path)
    except TypeError as error:
        raise ArgumentError(
            f"export takes a path, not {type(path).__name__}", hint='write p.export("model.py")'
        ) from error
    if not target.name or target.is_dir():
        raise ArgumentError(f"{str(target)[:200]!r} is a folder", hint='name a file: p.export("model.py")')
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(8)}.part")
    try:
        with open(temporary, "x", encoding="ascii") as file:
            file.write(text)
        os.replace(temporary, target)
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        with suppress(OSError, ValueError):
            os.unlink(temporary)
        raise ArgumentError(
            f"{str(target)[:200]!r} cannot be written: {str(error)[:200]}",
            hint="name a file in a folder that exists and that you may write to",
        ) from error
