"""Calls as a C file and its header."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from zlib import crc32

from ..run.c_source import NAME, c_source
from ..run.execute import Executable
from .write_atomically import write_atomically


def c_file(path: str | os.PathLike[str], calls: Mapping[str, Executable]) -> None:
    """Writes both; the header first, so that there is never a file without one."""
    header = Path(path).with_suffix(".h")
    named = header.name if NAME.fullmatch(header.stem) else f"model_{crc32(header.stem.encode()):08x}.h"
    source, declarations = c_source(calls, named)
    write_atomically(header.with_name(named), declarations)
    write_atomically(path, source)
