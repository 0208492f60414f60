"""Examples: the gallery's files -> a title, a group, sizes and a text each.

A file opens with comments that tell of it: `# title`, `# group: ...`, and `# sizes: i=8, j=4` where sliders should not
start where they usually do. They stay in the text, as what a reader sees first.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "gallery"


@dataclass(frozen=True)
class Example:
    name: str
    title: str
    group: str
    sizes: dict[str, int]
    text: str

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@cache
def examples() -> tuple[Example, ...]:
    """All of them, in the order of their files."""
    return tuple(_read(path) for path in sorted(FOLDER.glob("*.loop")))


def _read(path: Path) -> Example:
    lines = path.read_text(encoding="utf-8").splitlines()
    told = {}
    for line in lines[1:]:
        name, colon, value = line.removeprefix("# ").partition(": ")
        if not line.startswith("# ") or not colon:
            break
        told[name] = value
    sizes = dict(pair.split("=") for pair in told.get("sizes", "").split(", ") if pair)
    kept = [lines[0], *(line for line in lines[1:] if not line.startswith(("# group: ", "# sizes: ")))]
    name = path.stem.partition("-")[2]
    return Example(
        name, lines[0].removeprefix("# "), told["group"], {i: int(n) for i, n in sizes.items()}, "\n".join(kept) + "\n"
    )
