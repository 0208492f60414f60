"""The wheel, installed outside of the checkout, is whole: kernels/, the grammar, the type marker and the playground's
page included."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent

SESSION = """
import pathlib, sys
import numpy as np
import tensorswap as ts

here = pathlib.Path(ts.__file__).parent
assert str(here).startswith(sys.argv[1]), here
assert (here / "py.typed").exists() and (here / "language" / "grammar.lark").exists()
playground = here / "playground"
assert (playground / "page" / "codemirror.js").exists() and (playground / "page" / "codemirror.LICENSE.txt").exists()
assert len(list((playground / "gallery").glob("*.loop"))) == 40 and not (playground / "editor").exists()
softmax = ts.load("softmax")
result = softmax(input=np.zeros((2, 4)))
assert np.allclose(result, 0.25), result
print(softmax.adjoint(wrt=["input"]))
"""


def test_installed_wheel_works_outside_the_checkout(tmp_path: Path) -> None:
    site = tmp_path / "site"
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(CHECKOUT)]
    subprocess.run(build, check=True, capture_output=True)
    wheel = next(tmp_path.glob("*.whl"))
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": str(site)}
    run = subprocess.run(
        [sys.executable, "-c", SESSION, str(site)],
        cwd=tmp_path,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert "input.grad[...,j] +=" in run.stdout
