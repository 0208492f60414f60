"""Links: a program and its sizes <-> the part of an address behind `#`, which a browser never sends anywhere."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from typing import Any

from ..errors import ArgumentError
from ..language.limits import TEXT_LENGTH

MARK = "p="


def fragment(text: str, sizes: Mapping[str, int] | None = None) -> str:
    """What stands behind `#`: JSON, deflated, in letters that an address may hold."""
    told = json.dumps({"text": text, "sizes": dict(sizes or {})}, separators=(",", ":")).encode()
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return MARK + base64.urlsafe_b64encode(packer.compress(told) + packer.flush()).decode().rstrip("=")


def from_link(link: str) -> tuple[str, dict[str, int]]:
    """The text and sizes of a link, whatever comes before its `#`."""
    code = link.rpartition("#")[2].removeprefix(MARK)
    try:
        packed = base64.b64decode(code + "=" * (-len(code) % 4), b"-_", validate=True)
        told: Any = json.loads(zlib.decompressobj(-15).decompress(packed, 8 * TEXT_LENGTH))
        text, sizes = told["text"], told["sizes"]
        if isinstance(text, str) and all(isinstance(n, int) for n in sizes.values()):
            return text, {str(name): size for name, size in sizes.items()}
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error, binascii.Error, RecursionError):
        pass  # told below, in one way for all of them
    raise ArgumentError("the link holds no program", hint="copy it whole, with all that follows its `#`")
