"""The site of the documentation: `make docs` builds it into docs/_build/html, and a warning is an error."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
sys.path[:0] = [str(FOLDER.parent), str(FOLDER)]

from loops_lexer import LoopsLexer  # noqa: E402  # it is found by the path above
from sphinx.highlighting import lexers  # noqa: E402

import tensorswap  # noqa: E402

project = "tensorswap"
author = "The tensorswap authors"
project_copyright = author
version = release = tensorswap.__version__

extensions = ["myst_nb"]
exclude_patterns = ["_build"]
nitpicky = True
nb_render_error_lexer = "none"  # messages of ours are no tracebacks of Python
nb_execution_mode = "off"  # notebooks are stored as they ran: `make notebooks`
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"tensorswap {version}"
html_show_sphinx = False

lexers["loops"] = LoopsLexer()

REPOSITORY = "https://github.com/tensorswap/tensorswap/blob/main"
OUTSIDE = re.compile(r"(?<!!)\[([^\]]*)\]\(\.\./([^)]+)\)")


def outside_of_docs(app: Any, name: str, source: list[str]) -> None:
    """Links to files of the repository that are no pages lead there."""
    source[0] = OUTSIDE.sub(rf"[\1]({REPOSITORY}/\2)", source[0])


def setup(app: Any) -> None:
    app.connect("source-read", outside_of_docs)
