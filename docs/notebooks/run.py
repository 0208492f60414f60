"""Runs the notebooks of this folder and stores what they show: `python docs/notebooks/run.py [--check] [NAME ...]`.

With --check nothing is written, and texts must be those that are stored, unless a cell is tagged `varies`: plans and
the last digits of a training differ from machine to machine. A cell may fail only if it is tagged `raises-exception`.
What is stored holds no times, no versions and no places of this machine.

It needs `pip install 'tensorswap[notebooks]'`, and PyTorch for the notebook about it: `make notebooks` installs both.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent
CHECKOUT = FOLDER.parent.parent
PLACES = re.compile(r"(?<![\w.:/])/(?:home|root|tmp|usr|opt|var|Users|private|mnt)/[\w./-]+")


def executed(path: Path) -> Any:
    """The notebook with the outputs of a run in a process of its own. An error that no tag allows is raised."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": folder}})
        client.execute()
    tidy(notebook)
    check_places(notebook)
    return notebook


def tidy(notebook: Any) -> None:
    """Leaves out what differs from run to run and from machine to machine."""
    notebook.metadata.language_info = {"name": "python"}
    notebook.metadata.kernelspec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            for output in cell.outputs:
                if output.get("name") == "stderr" and "Warning" in output.text:
                    raise SystemExit(f"a cell warns:\n{cell.source}\n\n{output.text}")
            # a first call says how far the compiler is
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]


def texts(cell: Any) -> list[str]:
    """What a cell says, without pictures and markup. What it prints may arrive in one piece or in several."""
    if cell.cell_type != "code":
        return []
    said: list[str] = []
    printing = False
    for output in cell.outputs:
        goes_on, printing = printing, output.output_type == "stream"
        text = output.get("text") or output.get("data", {}).get("text/plain") or "\n".join(output.get("traceback", []))
        if goes_on and printing:
            said[-1] += text
        else:
            said.append(text)
    return said


def check_texts(stored: Any, made: Any) -> None:
    for old, new in zip(stored.cells, made.cells, strict=True):
        if texts(old) != texts(new) and "varies" not in old.metadata.get("tags", []):
            raise SystemExit(f"a cell says something else now:\n{old.source}\n\n{texts(old)}\n{texts(new)}")


def check_places(notebook: Any) -> None:
    found = PLACES.search(nbformat.writes(notebook))
    if found is not None:
        raise SystemExit(f"a place of this machine would be stored: {found[0]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="notebooks, without .ipynb; all if none is named")
    parser.add_argument("--check", action="store_true", help="run, and write nothing")
    asked = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH", "")]))
    names = asked.names or sorted(path.stem for path in FOLDER.glob("*.ipynb"))
    for name in names:
        path = FOLDER / f"{name}.ipynb"
        made = executed(path)
        if asked.check:
            check_texts(nbformat.read(path, as_version=4), made)
        else:
            nbformat.write(made, path)
        print(f"{name}: {sum(cell.cell_type == 'code' for cell in made.cells)} cells ran", file=sys.stderr)


if __name__ == "__main__":
    main()
