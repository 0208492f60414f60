"""What notebooks show: programs, plans and trainings, a bar, a magic with carets; and the notebooks of docs/."""

from __future__ import annotations

import ast
import io
import json
import re
import runpy
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.errors import ArgumentError, ProgramError
from tensorswap.notebook.loop_magic import read
from tensorswap.notebook.shown_program import STATEMENTS
from tensorswap.plan.table import PlanTable
from tensorswap.training.history import History
from tensorswap.training.progress import Progress

DOCS = Path(__file__).parent.parent / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
OPEN = {"br", "progress", "hr"}  # elements that need no end


class _Balance(HTMLParser):
    """Raises where an element ends that is not open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag not in OPEN:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in OPEN:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def checked(page: str) -> _Balance:
    """A page that is well-formed and fetches nothing."""
    found = _Balance()
    found.feed(page)
    assert not found.open
    assert not found.seen & {"script", "link", "img", "iframe"}
    return found


def test_the_check_of_pages_can_fail() -> None:
    with pytest.raises(AssertionError):
        checked("<p><b>x</p></b>")
    with pytest.raises(AssertionError):
        checked("<script>1</script>")


def test_a_program_shows_its_derivative_and_its_dataflow() -> None:
    found = checked(ts.program("Y[i] += A[i,k] * x[k] if k < i")._repr_html_())
    assert "svg" in found.seen
    assert "A, x → Y" in found.words
    assert "k < i" in found.words
    assert "A[i,k] and Y[i] change places" in found.words


@pytest.mark.parametrize("name", ["softmax", "attention", "lstm", "conv2d", "ctc_loss", "embedding", "adam"])
def test_ops_of_the_library_are_shown(name: str) -> None:
    assert name in checked(ts.load(name)._repr_html_()).words


def test_derived_programs_are_shown() -> None:
    p = ts.program("loss += exp(x[i]) * y[i]")
    for derived in (p.grad(), p.hessian_vector(), p.tangent(["x"]), p.grad().batch("n", over=["x"])):
        assert "loss" in checked(derived._repr_html_()).words or ".dot" in str(derived)


def test_of_a_long_program_only_the_text_is_shown() -> None:
    text = "\n".join(f"Y{k}[i] = X[i] * {k}" for k in range(300))
    assert len(ts.program(text).loops.statements) > STATEMENTS
    found = checked(ts.program(text)._repr_html_())
    assert "svg" not in found.seen
    assert "100 more lines" in found.words


def test_a_plan_shows_each_kernel() -> None:
    plan = ts.program("H[b,h] += X[b,i] * W[h,i]\nY[b,h] = tanh(H[b,h])").plan(X=(64, 32), W=(128, 32))
    found = checked(plan._repr_html_())
    assert "Y[b,h] = tanh(H[b,h])" in found.words
    assert plan.rows[0].why in found.words
    assert "532 k" in found.words
    assert "interpreted: because a < b" in checked(PlanTable((), reason="because a < b")._repr_html_()).words


def test_a_history_shows_its_curve_and_epochs() -> None:
    losses = [1 / k for k in range(1, 2001)]
    epochs = [{"epoch": float(k), "step": 100.0 * k, "loss": 1 / k, "validation loss": 2 / k} for k in range(1, 21)]
    found = checked(History({"loss": losses}, epochs)._repr_html_())
    assert "2000 steps" in found.words
    assert "the last 10 of 20" in found.words
    assert "validation" in found.words
    assert "no step" in checked(History()._repr_html_()).words
    checked(History({"loss": [np.nan, np.inf, 0.0, -1.0]})._repr_html_())
    checked(History({"loss": [np.nan]})._repr_html_())


@pytest.mark.compiled
def test_a_result_shows_its_parameters() -> None:
    line = ts.program("Y[b] += X[b,i] * w[i]\nloss += (Y[b] - y[b]) ** 2 / size(b)")
    data = {"X": np.ones((20, 3)), "y": np.ones(20)}
    found = checked(ts.fit(line, {"w": "zeros"}, data, batch_size=10, progress=False)._repr_html_())
    assert "2 steps" in found.words
    assert "(3,)" in found.words
    assert "float64" in found.words


SHOWS = """
import tensorswap as ts
ts.program("Y[i,j] += A[i,k] * B[k,j]")._repr_html_()
"""


def test_to_show_a_program_imports_nothing_heavy() -> None:
    code = f"import sys\n{SHOWS}\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=DOCS.parent, check=True, capture_output=True, text=True)
    assert not {"numba", "llvmlite", "matplotlib", "IPython", "jax", "torch"} & set(run.stdout.split())


# -- the magic


class _Shell:
    """As much of IPython as the extension asks for."""

    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = {}
        self.magics: dict[str, Any] = {}

    def register_magic_function(self, func: Any, magic_kind: str = "line", magic_name: str | None = None) -> None:
        self.magics[f"{magic_kind} {magic_name}"] = func

    def loop(self, line: str, cell: str) -> Any:
        return self.magics["cell loop"](line, cell)


@pytest.fixture
def shell() -> _Shell:
    made = _Shell()
    ts.load_ipython_extension(made)
    return made


def test_a_cell_becomes_a_program(shell: _Shell) -> None:
    shown = shell.loop("product", "Y[i,j] += A[i,k] * B[k,j]\n")
    assert shell.user_ns["product"] is shown
    assert shown == ts.program("Y[i,j] += A[i,k] * B[k,j]")
    assert shell.loop("", "y = x * x\n") == ts.program("y = x * x")
    assert shell.loop("p --quiet --outputs Z,Y", "Y[i] = X[i]\nZ[i] = Y[i]\n") is None
    assert shell.user_ns["p"].outputs == ("Z", "Y")
    assert "--outputs" in shell.magics["cell loop"].__doc__


def test_a_mistake_is_shown_with_its_caret_and_the_line_of_the_cell(shell: _Shell) -> None:
    with pytest.raises(ProgramError) as caught:
        shell.loop("broken", "Z[i] = B[i]\ny[i] = A[i,k] * Z[k]\n")
    told = caught.value._render_traceback_()  # type: ignore[attr-defined]
    plain = [line.replace("\x1b[31m", "").replace("\x1b[0m", "") for line in told]
    assert plain[0] == "ProgramError: line 3, column 12: index k stands on the right of `=` but not in the target"
    assert plain[1:3] == ["    y[i] = A[i,k] * Z[k]", "               ^"]
    assert told[2] != plain[2]  # in red
    assert "broken" not in shell.user_ns


@pytest.mark.parametrize("line", ["2x", "a b", "--outputs", "--loud", "lambda", "Y[i] = X[i]"])
def test_a_line_that_the_magic_does_not_know_is_refused(line: str) -> None:
    with pytest.raises(ArgumentError, match="statements begin below it"):
        read(line)


def test_the_extension_loads_in_ipython() -> None:
    testing = pytest.importorskip("IPython.core.interactiveshell", reason="IPython is not installed")
    real = testing.InteractiveShell()
    real.run_line_magic("load_ext", "tensorswap")
    real.run_line_magic("reload_ext", "tensorswap")
    done = real.run_cell("%%loop p\nY[i] = 2 * X[i]\n", store_history=True)
    assert done.success
    assert real.user_ns["p"] == done.result == ts.program("Y[i] = 2 * X[i]")
    assert not real.run_cell("%%loop q\ny[i] = A[i,k] * x[k]\n").success


# -- progress


def test_progress_is_a_bar_that_is_replaced_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, str]] = []
    place = SimpleNamespace(update=lambda what, raw: shown.append(what))

    def display(what: dict[str, str], raw: bool, display_id: bool) -> SimpleNamespace:
        shown.append(what)
        return place

    ipython = SimpleNamespace(
        get_ipython=lambda: SimpleNamespace(kernel=True), display=SimpleNamespace(display=display)
    )
    monkeypatch.setitem(sys.modules, "IPython", ipython)  # type: ignore[arg-type]
    now = [100.0]
    monkeypatch.setattr("tensorswap.training.progress.time.monotonic", lambda: now[0])
    bar = Progress(100, start=0.0)
    for done in (10, 50, 100):
        now[0] += 1.0
        bar.tell(done, {"loss <x>": 0.5}, last=done == 100)
    assert len(shown) == 3
    assert "step 50/100" in shown[1]["text/plain"]
    assert "loss &lt;x&gt; 0.5" in checked(shown[2]["text/html"]).words or "loss <x> 0.5" in shown[2]["text/plain"]
    assert 'value="1.0000"' in shown[2]["text/html"]


def test_a_shell_without_a_page_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    ipython = SimpleNamespace(get_ipython=lambda: SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython", ipython)  # type: ignore[arg-type]
    stream = io.StringIO()
    bar = Progress(100, stream=stream, start=-100.0)
    bar.tell(10, {"loss": 0.5})
    assert stream.getvalue().startswith("step 10/100")


# -- the notebooks of docs/


def cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_as_they_ran(path: Path) -> None:
    code = [cell for cell in cells(path) if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1)), "run make notebooks"
    for cell in code:
        failed = [output for output in cell["outputs"] if output["output_type"] == "error"]
        assert bool(failed) == ("raises-exception" in cell["metadata"].get("tags", []))
        assert not [output for output in cell["outputs"] if output.get("name") == "stderr"]
    text = path.read_text(encoding="utf-8")
    assert not re.findall(r"(?<![\w./<:])/[a-zA-Z]+/[\w.-]+", text), "a path of one machine"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_programs_in_notebooks_parse_and_python_compiles(path: Path) -> None:
    for cell in cells(path):
        text = "".join(cell["source"])
        if cell["cell_type"] != "code" or "raises-exception" in cell["metadata"].get("tags", []):
            continue
        if text.startswith("%%loop"):
            ts.program(text.partition("\n")[2])
        else:
            ast.parse("\n".join(line for line in text.splitlines() if not line.startswith("%")))


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["attention_in_pytorch", "first_adjoint", "physics_informed_network"]


@pytest.mark.compiled
def test_a_notebook_runs_and_says_what_is_stored() -> None:
    """The shortest; `make notebooks-test` runs all of them."""
    pytest.importorskip("nbclient", reason="nbclient is not installed: pip install 'tensorswap[notebooks]'")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: pip install 'tensorswap[notebooks]'")
    line = [sys.executable, str(DOCS / "notebooks" / "run.py"), "--check", "first_adjoint"]
    run = subprocess.run(line, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_a_changed_text_and_a_place_of_this_machine_are_found() -> None:
    pytest.importorskip("nbclient", reason="nbclient is not installed: pip install 'tensorswap[notebooks]'")
    import nbformat

    script = runpy.run_path(str(DOCS / "notebooks" / "run.py"), run_name="run")
    one, other = (nbformat.v4.new_notebook() for _ in range(2))
    for notebook, text in ((one, "/home/me/x.py"), (other, "b")):
        notebook.cells = [nbformat.v4.new_code_cell("print(1)", outputs=[nbformat.v4.new_output("stream", text=text)])]
    script["check_texts"](one, one)
    pieces = nbformat.v4.new_notebook()
    outputs = [nbformat.v4.new_output("stream", text=text) for text in ("/home/me", "/x.py")]
    pieces.cells = [nbformat.v4.new_code_cell("print(1)", outputs=outputs)]
    script["check_texts"](one, pieces)
    with pytest.raises(SystemExit, match="says something else"):
        script["check_texts"](one, other)
    script["check_places"](other)
    with pytest.raises(SystemExit, match="/home/me"):
        script["check_places"](one)
