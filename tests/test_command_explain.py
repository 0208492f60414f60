"""`tensorswap explain`: what it prints of statements, ops and files, and what it refuses."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.command import show
from tensorswap.command.main import main
from tensorswap.trust.inputs import Draw, random_inputs

from .running_command import MATMUL, Command, started

pytestmark = pytest.mark.compiled


def test_explain_statements(command: Command) -> None:
    output = command.prints("explain", MATMUL)
    assert "for i, j, k   Y[i,j] += A[i,k] * B[k,j]\n" in output
    assert "for i, k, j   -> A.grad[i,k] += Y.grad[i,j] * B[k,j]  # swap\n" in output
    assert "The swap rule: A[i,k] and Y[i,j] change places" in output
    assert "forward   2*i*j*k operations\n" in output
    assert "\x1b" not in output  # it is no terminal


def test_explain_several_statements(command: Command) -> None:
    output = command.prints("explain", "Z[i] += W[i,j] * x[j]", "Y[i] = tanh(Z[i])", "--wrt", "W")
    assert "-> W.grad[i,j] += Z.grad[i] * x[j]" in output
    assert "-> Z.grad[i] += Y.grad[i] * (1 - Y[i] * Y[i])" in output
    assert "x.grad" not in output


@pytest.mark.parametrize("name", ["softmax", "relu", "mlp", "models/lstm"])
def test_explain_an_op_or_a_model(command: Command, name: str) -> None:
    output = command.prints("explain", name)
    plain = [line.split("  # ")[0].strip() for line in show.read(name).explain().splitlines()]
    assert [line for line in plain if line not in output and "-> nothing" not in line] == []


def test_a_model_is_told_from_the_op_of_its_name(command: Command) -> None:
    assert show.read("models/lstm") != show.read("lstm")
    assert "did you mean `mlp`?" in command.refuses("explain", "models/mpl")


def test_explain_with_sizes(command: Command) -> None:
    output = command.prints("explain", MATMUL, "--size", "i=10", "--size", "j=20", "--size", "k=30")
    assert "forward   2*i*j*k operations: 12,000\n" in output
    assert "Plan, forward\nkernel " in output
    assert "Plan, forward and backward\nkernel " in output
    assert "the program has no index or static integer 'q'" in command.refuses("explain", MATMUL, "--size", "q=3")


def test_explain_counts_batches_and_computed_places(command: Command) -> None:
    assert "6*...*j operations: 180\n" in command.prints("explain", "softmax", "--size", "...=3", "--size", "j=10")
    made = json.loads(command.prints("explain", "Y[i] = X[2*i]", "--size", "i=4", "--json"))
    assert made["statements"][0]["cost"]["elements"] == "X:0 + i"
    assert made["statements"][0]["cost"]["element_count"] == 7 + 4


def test_explain_stages(command: Command) -> None:
    adjoint = command.prints("explain", MATMUL, "--stage", "adjoint", "--wrt", "A")
    assert ts.program(adjoint) == ts.program(MATMUL).adjoint(wrt=["A"])
    assert command.prints("explain", MATMUL, "--stage", "plan").startswith("forward\nkernel ")
    source = command.prints("explain", "Y[i] = 2 * X[i]", "--stage", "source", "--gradient")
    compile(source, "source", "exec")
    assert "a2[i0] += 2 * a3[i0]" in source  # a user's names are not in generated code
    llvm = command.prints("explain", "Y[i] = 2 * X[i]", "--stage", "llvm")
    assert llvm.startswith("; kernel 1\n; Y[i] = 2 * X[i]\n")
    assert "define void @kernel_1(" in llvm
    asm = json.loads(command.prints("explain", "Y[i] = 2 * X[i]", "--stage", "asm", "--json"))
    assert asm["stage"] == "asm"
    assert "kernel_1:" in asm["text"]


def test_explain_forms(command: Command) -> None:
    made = json.loads(command.prints("explain", MATMUL, "--json"))
    assert [item["text"] for item in made["adjoints"]] == str(ts.program(MATMUL).adjoint(["A", "B"])).splitlines()
    assert "plans" not in made
    planned = json.loads(command.prints("explain", MATMUL, "--json", "--size", "i=3"))["plans"]
    assert planned["forward"]["rows"][0]["operations"] == 2 * 3 * 64 * 64
    assert command.prints("explain", MATMUL, "--latex").startswith("\\begin{align}\n  Y_{i,j} &")
    assert command.prints("explain", MATMUL, "--html").startswith("<!doctype html>")
    assert "not a stage" in command.refuses("explain", MATMUL, "--latex", "--stage", "plan")
    assert command("explain", MATMUL, "--latex", "--json")[0] == 2


def test_explain_without_a_derivative(command: Command) -> None:
    assert "no input has a derivative here" in command.prints("explain", "a argmax= X[i]")
    assert "no input has a derivative here" in command.refuses("explain", "a argmax= X[i]", "--stage", "adjoint")
    assert "no input has a derivative" in command.refuses(
        "explain", "a argmax= X[i]", "--stage", "source", "--gradient"
    )
    assert "the derivative is refused: line 1, column 1: W is " in command.prints("explain", "W[i] = W[i] - g[i]")
    assert "C is not an input" in command.refuses("explain", MATMUL, "--wrt", "C")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_are_for_terminals(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    plain = command.prints("explain", MATMUL)

    def in_a_terminal() -> str:
        screen = Terminal()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", screen)
            assert main(["explain", MATMUL]) == 0
        return screen.getvalue()

    shown = in_a_terminal()
    assert "\x1b[33mA.grad\x1b[0m[i,k]" in shown
    assert plain in re.sub(r"\x1b\[[0-9;]*m", "", shown)
    monkeypatch.setenv("NO_COLOR", "1")
    assert in_a_terminal() == plain
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert in_a_terminal() == plain
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[33m" in command.prints("explain", MATMUL)


def test_a_caret_is_red_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    assert main(["explain", "Y[i] = X[i"]) == 2
    assert "    Y[i] = X[i\n\x1b[1;31m            ^\x1b[0m\n" in screen.getvalue()


def test_a_reader_that_has_enough_is_no_error() -> None:
    """As `| head` is. Buffered, so that the last of it is written at the end of the process."""
    process = started("ops", PYTHONUNBUFFERED="")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.wait(60) == 0
    with process.stderr:
        assert process.stderr.read() == ""


def test_explain_a_file(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "double.loop"
    path.write_text("def double(X[i]) -> Y[i]:\n    Y[i] = 2 * X[i]\n")
    assert "-> X.grad[i] += 2 * Y.grad[i]" in command.prints("explain", str(path))
    other = tmp_path / "statements.txt"
    other.write_text("Y[i] = 2 * X[i]\n")
    assert "-> X.grad[i] += 2 * Y.grad[i]" in command.prints("explain", str(other))


def test_explain_standard_input(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("Y[i] = sin(X[i])\n"))
    assert "-> X.grad[i] += Y.grad[i] * cos(X[i])" in command.prints("explain", "-")


def test_explain_a_mistake(command: Command) -> None:
    assert command.refuses("explain", "y[i] = A[i,k] * x[k]") == (
        "tensorswap: line 1, column 12: index k stands on the right of `=` but not in the target\n"
        "    y[i] = A[i,k] * x[k]\n"
        "               ^\n"
        "  write `+=` to sum over k, or add k to y[i]\n"
    )


def test_explain_what_is_not_there(command: Command, tmp_path: Path) -> None:
    assert "did you mean `softmax`?" in command.refuses("explain", "sofmax")
    for name in ("none.loop", "none.txt", "no\0ne.txt"):
        assert "cannot be read" in command.refuses("explain", str(tmp_path / name))


def test_explain_a_file_without_a_statement(command: Command, tmp_path: Path) -> None:
    for name in ("empty.loop", "empty.txt"):
        path = tmp_path / name
        path.write_text("# nothing yet\n")
        message = command.refuses("explain", str(path))
        assert "holds no statement" in message
        assert "write `Y[i] = X[i]`" in message


@pytest.mark.parametrize("name", ["good.loop", "my good.loop", "softmax", "models/mlp", "-", ""])
def test_explain_takes_names_alone(command: Command, name: str) -> None:
    for words in ((name, MATMUL), (MATMUL, name)):
        message = command.refuses("explain", *words)
        assert f"{name!r} stands beside others, and is no statement\n  give a file, an op or a model alone" in message


def test_explain_lines_that_name_no_tensor(command: Command) -> None:
    output = command.prints(
        "explain", "# steps", "for t:", "    H[t] = 0.5 * H[t-1] + x[t]", "return H", "--stage", "adjoint"
    )
    assert "for t down:" in output


def test_a_plan_needs_no_memory(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorswap.trust.inputs.physical", lambda: 2**20)
    words = ("Y[i,j] += A[i,k] * B[k,j]", "--size", "i=1000000", "--size", "j=100000", "--size", "k=10000")
    output = command.prints("explain", *words, "--stage", "plan")
    assert output.count("parallel over i") == 2
    assert "memory: 400 GB of results" in output
    assert "reshape((1000000, 100000))" in command.prints("explain", *words, "--stage", "source", "--gradient")
    assert "the arrays would take" in command.refuses("bench", *words)
    # whole numbers are looked at, so that they are there
    gathered = ("Y[i] = X[at[i]]", "--size", "i=1000000")
    assert "the arrays would take" in command.refuses("explain", *gathered, "--shape", "X=9", "--stage", "plan")
    assert "more than any memory" in command.refuses(
        "explain", "Y[i,j] = X[i] * Z[j]", "--size", "i=100000000000", "--size", "j=10000000000", "--stage", "plan"
    )


@pytest.mark.parametrize("name", ["softmax", "conv2d", "lstm_cell", "embedding", "layer_norm", "cross_entropy"])
def test_the_plan_of_shapes_is_that_of_arrays(name: str) -> None:
    loops = ts.load(name).loops
    both = [
        random_inputs(loops, {}, {}, np.dtype(np.float32), Draw((9,), shapes_alone=alone)) for alone in (True, False)
    ]
    plans = [str(ts.load(name).plan(made.arguments)) for made in both]
    assert plans[0] == plans[1]
    held = [v for v in both[0].arguments.values() if isinstance(v, np.ndarray) and v.dtype.kind == "f"]
    assert held
    assert all(array.base is not None and not any(array.strides) for array in held)


def test_explain_gives_the_adjoint_as_data(command: Command) -> None:
    told = json.loads(command.prints("explain", "Y[i] = sin(X[i])", "--stage", "adjoint", "--json"))
    assert told == {"stage": "adjoint", "text": "X.grad[i] += Y.grad[i] * cos(X[i])"}


def test_a_file_may_begin_with_the_mark_of_windows_editors(command: Command, tmp_path: Path) -> None:
    for name in ("marked.loop", "marked.txt"):
        (tmp_path / name).write_text("\ufeffY[i] = sin(X[i])\n", encoding="utf-8")
        assert "cos(X[i])" in command.prints("explain", str(tmp_path / name))
