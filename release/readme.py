"""The README as the package's page shows it: links and pictures of the checkout lead to the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = "https://github.com/tensorswap/tensorswap"
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)]+)\)")


def absolute(text: str, version: str) -> str:
    """Relative links as absolute ones, to the files of this version."""

    def replaced(found: re.Match[str]) -> str:
        kind = "raw" if found[1] else "blob"
        return f"{found[1]}[{found[2]}]({REPOSITORY}/{kind}/v{version}/{found[3]})"

    return LINK.sub(replaced, text)


class ReadmeHook(MetadataHookInterface):
    """Read by hatchling when a wheel or an sdist is built."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        code = (Path(self.root) / "tensorswap" / "__init__.py").read_text(encoding="utf-8")
        version = re.search(r'^__version__ = "(.*)"$', code, flags=re.MULTILINE)
        assert version is not None, "tensorswap/__init__.py has no version"
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, version[1])}
