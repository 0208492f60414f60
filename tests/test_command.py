"""The command `tensorswap` as a user runs it: what it prints and leaves behind, its exit codes and refusals."""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import tensorswap as ts
from tensorswap.command import bench, completion, doctor, ops, show, train
from tensorswap.command.main import PARTS, main, parser
from tensorswap.errors import SwapWarning
from tensorswap.language import ir
from tensorswap.program import Program
from tensorswap.run import cache
from tensorswap.trust.inputs import Draw, random_inputs

pytestmark = pytest.mark.compiled

MATMUL = "Y[i,j] += A[i,k] * B[k,j]"
WORDS = ("explain", "playground", "ops", "bench", "profile", "train", "cluster-demo", "cache", "doctor", "completion")


class Command:
    """Runs the command in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Exit code, output and messages."""
        try:
            code = main(words)
        except SystemExit as end:  # argparse ends so
            code = int(end.code or 0)
        return code, *self.capsys.readouterr()

    def prints(self, *words: str) -> str:
        """The output of a run that succeeds."""
        code, output, messages = self(*words)
        assert code == 0, messages
        return output

    def refuses(self, *words: str) -> str:
        """The message of a run that is refused: one for people, on standard error."""
        code, _, messages = self(*words)
        assert code == 2
        assert messages.startswith("tensorswap: ")
        return messages


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def started(*words: str, **variables: str) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    line = [sys.executable, "-m", "tensorswap", *words]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent), **variables}
    return subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


# -- the command itself


def test_help_names_every_word(command: Command) -> None:
    output = command.prints("--help")
    assert [part.word for part in PARTS] == list(WORDS)
    for word in WORDS:
        assert re.search(rf"^ +{word}\s+\S", output, re.MULTILINE), word


@pytest.mark.parametrize("word", WORDS)
def test_help_of_a_word(command: Command, word: str) -> None:
    output = command.prints(word, "--help")
    assert output.startswith(f"usage: tensorswap {word} ")
    assert f"examples:\n  {'tensorswap' if word != 'completion' else 'eval'} " in output


def test_the_examples_are_taken_by_their_parser() -> None:
    """Every line of help that starts with the command is one."""
    lines = [line.strip() for part in PARTS for line in _examples(part.module).splitlines()]
    commands = [re.split(r" {2,}| > ", line)[0] for line in lines if line.startswith("tensorswap ")]
    assert len(commands) > 30
    for line in commands:
        chosen = parser().parse_args(shlex.split(line)[1:])
        assert chosen.word in WORDS
        if chosen.word in ("explain", "bench", "profile"):
            assert chosen.source == ["layer.loop"] or show.read_all(chosen.source), line


def _examples(module: str) -> str:
    text: str = importlib.import_module(f"tensorswap.command.{module}").EXAMPLES
    return text


def test_version() -> None:
    output, messages = started("--version").communicate(timeout=60)
    assert (output, messages) == (f"tensorswap {ts.__version__}\n", "")


@pytest.mark.parametrize("words", [(), ("bnech",), ("explain",), ("bench", MATMUL, "--dtype", "float16")])
def test_what_argparse_refuses(command: Command, words: tuple[str, ...]) -> None:
    code, output, messages = command(*words)
    assert (code, output) == (2, "")
    assert "usage: tensorswap" in messages


def test_ctrl_c_is_no_traceback(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(source: str) -> Program:
        raise KeyboardInterrupt

    monkeypatch.setattr(show, "read", interrupted)
    assert command("explain", "softmax") == (130, "", "tensorswap: interrupted\n")


# -- explain


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
    assert "# a2[i0] += 2 * a3[i0]" in source  # a user's names are not in generated code
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


# -- ops


def test_ops_are_listed_and_searched(command: Command) -> None:
    lines = command.prints("ops").splitlines()
    assert len(lines) == len(ts.ops())
    assert any(re.fullmatch(r"softmax +exp\(x_j\).*", line) for line in lines)
    found = command.prints("ops", "--search", "POOL1D", "--search", "mean")
    assert "avg_pool1d " in found
    assert "max_pool1d " not in found
    long = command.prints("ops", "--search", "log_softmax", "--long")
    assert "log_softmax(input[...,j]) -> out[...,j]\n    x_j - log(" in long
    assert "no op has the words 'sofmax'\n  did you mean `softmax`?" in command.refuses("ops", "--search", "sofmax")


def test_ops_as_data(command: Command) -> None:
    found = json.loads(command.prints("ops", "--json"))
    assert {item["name"] for item in found} == set(ts.ops())
    for item in found:  # a signature is the whole head of a definition
        assert item["signature"].startswith(f"{item['name']}(")
        assert "\n" not in item["signature"]
        assert "\\" not in item["signature"]
    assert json.loads(command.prints("ops", "--json", "--search", "nothing has this")) == []
    names = command.prints("ops", "--names").split()
    assert {"softmax", "models/gpt"} <= set(names)


def test_signatures_are_those_of_the_definitions() -> None:
    for name in ("fractional_max_pool2d", "adaptive_max_pool3d_with_indices", "softmax", "cross_entropy"):
        text = ops.library.signatures()[name]
        again = ts.program(f"def {text}:\n" + str(ts.load(name)).partition("\n")[2])
        assert again.loops.header == ts.load(name).loops.header


# -- profile


def test_profile_shows_each_kernel(command: Command) -> None:
    sizes = ("--size", "n=6", "--size", "i=5", "--size", "j=7", "--seconds", "0")
    text = "Y[n,i] += W[i,j] * tanh(X[n,j])\nloss += Y[n,i] ** 2"
    output = command.prints("profile", text, "--gradient", *sizes)
    lines = output.splitlines()
    assert lines[0] == "gradient by W, X"
    assert lines[1].endswith("threads; W 5 x 7, X 6 x 7")
    assert lines[2].split() == ["kernel", "share", "time", "GFLOP/s", "GB/s", "threads", "statement"]
    rows = [re.match(r" +(\d+) +(\d+)% +[\d.,]+ (?:us|ms|s) ", line) for line in lines[3:-1]]
    shares = [int(row[2]) for row in rows if row]
    assert shares
    assert 95 <= sum(shares) <= 105
    assert "X.grad[n,j] += " in output
    assert re.fullmatch(r"kernels \S+ \S+, whole call \S+ \S+, first call \S+ \S+", lines[-1])


def test_profile_of_a_kernel_that_computes_nothing(command: Command) -> None:
    sizes = [option for size in ("k=50", "i=32", "j=32", "n=1000") for option in ("--size", size)]
    text = "R[n,k,i] += Q[k,i,j] * x[n,j]\nM[n] max= R[n,k,i]"
    assert "packs panels for all threads" in command.prints("profile", text, *sizes, "--seconds", "0")


def test_profile_of_what_has_no_kernels(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no input has a derivative here" in command.refuses("profile", "a argmax= X[i]", "--gradient")
    assert "--seconds is a number of seconds" in command.refuses("profile", MATMUL, "--seconds", "nan")
    big = [option for index in "ijk" for option in ("--size", f"{index}=600")]
    output = command.prints("profile", MATMUL, *big, "--seconds", "0")
    assert "kernel" in output


@pytest.mark.filterwarnings("ignore:a call is interpreted")
def test_profile_of_what_is_interpreted(command: Command) -> None:
    deep = "Y[i] = " + " + ".join(["X[i]"] * 160)
    message = command.refuses("profile", deep, "--size", "i=8", "--seconds", "0")
    assert "this call has no kernels, it is interpreted: an expression of Y is nested more than" in message


def test_kernels_that_are_timed_compute_what_a_call_does() -> None:
    """One by one, on the arrays of a call."""
    program = ts.program("Y[n,i] += W[i,j] * tanh(X[n,j])\nloss += Y[n,i] ** 2").grad(wrt=["W", "X"])
    generator = np.random.default_rng(0)
    arrays = {"W": generator.random((5, 7)), "X": generator.random((6, 7))}
    found = program.kernel_times(arrays, seconds=0)
    assert all(item.seconds > 0 and item.threads >= 1 for item in found)
    planned = [row.statements for row in program.plan(arrays).rows]
    assert [item.row.statements for item in found if item.row.statements in planned] == [
        i.row.statements for i in found
    ]
    assert len(found) >= 2
    np.testing.assert_allclose(program(arrays)["W.grad"], program.run_reference(arrays)["W.grad"])


# -- completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_names_every_word_and_option(command: Command, shell: str) -> None:
    script = command.prints("completion", shell)
    known = completion.words()
    assert [word.name for word in known] == list(WORDS)
    for word in known:
        assert word.name in script
        for option in word.options:
            assert all(name.lstrip("-") in script for name in option.names)
    if shutil.which(shell):
        check = [shell, "--no-execute"] if shell == "fish" else [shell, "-n"]
        subprocess.run(check, input=script, check=True, text=True)


def test_bash_completes(command: Command) -> None:
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    script = command.prints("completion", "bash")

    def completed(*words: str) -> list[str]:
        line = " ".join(map(shlex.quote, ["tensorswap", *words]))
        ask = f"tensorswap() {{ echo softmax softmin relu; }}\n{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words)}\n"
        run = ["bash", "-c", ask + '_tensorswap; echo "${COMPREPLY[@]}"']
        return subprocess.run(run, check=True, capture_output=True, text=True).stdout.split()

    assert completed("ex") == ["explain"]
    assert completed("explain", "--stage", "") == ["adjoint", "plan", "source", "llvm", "asm"]
    assert completed("explain", "soft") == ["softmax", "softmin"]
    assert completed("bench", "--dt") == ["--dtype"]
    assert completed("cache", "w") == ["warm"]


# -- doctor and cache


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache of this test's own; the folder is asked for once in a process."""
    place = tmp_path / "kernels"
    monkeypatch.setenv("TENSORSWAP_CACHE", str(place))
    cache.folder.cache_clear()
    yield place
    cache.folder.cache_clear()


def test_doctor_fills_a_cache_that_can_be_shown_and_cleared(command: Command, own_cache: Path) -> None:
    assert command.prints("cache") == f"{own_cache}: 0 kernels, 0.0 MB\n"
    process = started("doctor", "--seconds", "0.01")
    output, messages = process.communicate(timeout=300)
    assert process.returncode == 0, messages
    assert f"numpy {np.__version__}\n" in output
    assert re.search(r"^compiled a gradient in [0-9.]+ s; it is right$", output, re.MULTILINE)
    kernels = list(own_cache.glob("*.kernel"))
    size = sum(path.stat().st_size for path in kernels)
    assert kernels
    line = f"{own_cache}: {len(kernels)} kernels, {size / 1e6:.1f} MB\n"
    assert re.search(r"^CPU \S+ \(\w+\), \d+ cores\nvectors of \d+ bits: ", output, re.MULTILINE)
    assert f"cache {own_cache}: 0 kernels\n" in output
    assert command.prints("cache", "info") == line
    assert command.prints("cache") == line
    assert list(own_cache.glob("*.kernel")) == kernels  # to look is not to touch
    (own_cache / "letter.txt").write_text("not ours")
    assert command.prints("cache", "clear") == line + "cleared\n"
    assert [path.name for path in own_cache.iterdir()] == ["letter.txt"]
    assert command.prints("cache") == f"{own_cache}: 0 kernels, 0.0 MB\n"


def test_cache_is_warmed(command: Command, own_cache: Path) -> None:
    output = command.prints("cache", "warm", "Y[i] = 2 * X[i]", "--size", "i=9")
    assert output.startswith("Y[i] = 2 * X[i]: gradient by X, ")
    assert list(own_cache.glob("*.kernel"))
    assert command.prints("cache", "--clear").endswith("cleared\n")
    assert not list(own_cache.glob("*.kernel"))
    assert "what is to be compiled?" in command.refuses("cache", "warm")
    assert "takes no program" in command.refuses("cache", "info", "softmax")


def test_cache_without_a_folder(command: Command, own_cache: Path) -> None:
    own_cache.write_text("in the way")
    with pytest.warns(SwapWarning, match="kernels are not kept"):
        assert command.prints("cache") == "no folder can be written to: kernels are not kept\n"
    assert "kernels are not kept" in command.refuses("cache", "warm", "softmax")


def test_doctor_tells_what_is_missing(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "NEEDED", ("numpy", "no_such_package"))
    code, output, _ = command("doctor")
    assert code == 1
    assert "no_such_package: MISSING: pip install no_such_package\n" in output
    assert "compiled" not in output


def test_doctor_tells_what_is_wrong(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Program.run_reference

    def other(self: Program, *arguments: Any) -> dict[str, Any]:
        return {name: value + 1 for name, value in run(self, *arguments).items()}

    monkeypatch.setattr(Program, "run_reference", other)
    monkeypatch.setattr(doctor, "TESTED", {"mse_loss": {}, "cumsum": {}})
    code, output, _ = command("doctor")
    assert code == 1
    assert "it is WRONG: please report it" in output
    assert "self-test: 2 ops with their gradients in " in output
    assert "mse_loss is WRONG: please report it" in output


def test_doctor_tests_ops_of_the_library() -> None:
    assert doctor.TESTED.keys() <= ts.ops().keys()
    assert doctor._op_agrees("mse_loss", {})


def test_doctor_refuses_no_number_of_seconds(command: Command) -> None:
    assert "--seconds is a number of seconds, not nan" in command.refuses("doctor", "--seconds", "nan")


# -- train

TINY = ("train", "logistic_regression", "--batch-size", "479")  # three steps for each pass over the digits


def test_train_leaves_parameters_plot_and_summary(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "run"
    output = command.prints(*TINY, "--epochs", "1", "--out", str(out))
    assert sorted(path.name for path in out.iterdir()) == ["checkpoint.safetensors", "loss.png", "summary.json"]
    summary = json.loads((out / "summary.json").read_text())
    assert summary["model"] == "logistic_regression"
    assert (summary["parameters"], summary["steps"]) == (650, 3)
    assert 0 < summary["validation loss"] < 2.303  # what guessing among ten digits would cost
    told = [f"{name}: {value}" for name, value in summary.items()]
    assert output.splitlines() == [*told, f"parameters, plot and summary are in {out}"]
    assert (out / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert load_file(out / "checkpoint.safetensors")["W"].shape == (10, 64)


def test_train_goes_on_where_it_stopped(command: Command, tmp_path: Path) -> None:
    halves, whole = tmp_path / "halves", tmp_path / "whole"
    command.prints(*TINY, "--epochs", "1", "--out", str(halves))
    half = load_file(halves / "checkpoint.safetensors")
    command.prints(*TINY, "--epochs", "2", "--out", str(halves), "--resume")
    command.prints(*TINY, "--epochs", "2", "--out", str(whole))
    assert json.loads((halves / "summary.json").read_text())["steps"] == 6
    found, wanted = (load_file(folder / "checkpoint.safetensors") for folder in (halves, whole))
    np.testing.assert_array_equal(found["W"], wanted["W"])
    assert not np.array_equal(found["W"], half["W"])
    message = command.refuses(*TINY, "--epochs", "3", "--out", str(halves), "--resume", "--seed", "1")
    assert "is of another training: its seed is 0, not 1" in message


def test_train_uses_its_own_folder(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And tells by its exit code that it was ended early."""

    def ended_early(*arguments: Any, **options: Any) -> Any:
        return replace(fit(*arguments, **options), interrupted=True)

    fit = train.fit
    monkeypatch.setattr(train, "fit", ended_early)
    monkeypatch.chdir(tmp_path)
    code, _, _ = command(*TINY, "--epochs", "1", "--lr", "0.2")
    assert code == 130
    assert (tmp_path / "runs" / "logistic_regression" / "summary.json").is_file()


def test_train_on_data_from_a_file(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    generator = np.random.default_rng(0)
    x = generator.standard_normal((200, 64)).astype(np.float32)
    np.savez(path, x=x, label=(x[:, 0] > 0).astype(np.int64))
    command.prints("train", "logistic_regression", "--data", str(path), "--epochs", "1", "--batch-size", "60", "--out",
                   str(tmp_path / "run"))  # fmt: skip
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["parameters"], summary["steps"]) == (130, 3)  # a tenth of the examples is for validation


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.txt"
    path.write_text("the quick brown fox jumps over the lazy dog. " * 30)
    return path


def test_train_a_character_model(command: Command, book: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    settings = ("--set", "width=4", "--set", "length=8", "--batch-size", "2", "--seed", "-1")
    output = command.prints("train", "lstm", "--text", str(book), "--iterations", "2", *settings, "--sample", "25",
                            "--out", str(out))  # fmt: skip
    assert json.loads((out / "summary.json").read_text())["steps"] == 2
    _, _, written = output.partition(f"parameters, plot and summary are in {out}\n")
    assert len(written) == 25 + 1
    assert set(written) <= {*book.read_text(), "\n"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mpl"], "there is no model 'mpl'\n  did you mean `mlp`?"),
        (["mlp", "--set", "widht=3"], "the model mlp has no setting 'widht'\n  did you mean `width`?"),
        (["mlp", "--set", "width"], "--set takes NAME=NUMBER, not 'width'"),
        (["mlp", "--set", "width=wide"], "--set takes NAME=NUMBER, not 'width=wide'"),
        (["mlp", "--set", "width=0"], "width is a whole number of 1 or more, not 0"),
        (["mlp", "--text", "BOOK"], "--text is for the models gpt, lstm; mlp does not read it\n  its arrays come from"),
        (["cnn", "--iterations", "5"], "--iterations is for the models gpt, lstm; cnn does not read it\n  --epochs"),
        (["mlp", "--sample", "0"], "--sample is for the models gpt, lstm; mlp does not read it"),
        (["gpt", "--text", "BOOK", "--epochs", "2"], "gaussian_mixture; gpt does not read it\n  --iterations says"),
        (["lstm", "--text", "BOOK", "--data", "x.npz"], "--data is for the models logistic_regression, mlp, cnn, "),
        (["mlp", "--epochs", "0"], "--epochs is a whole number of 1 or more, not 0"),
        (["mlp", "--batch-size", "0"], "--batch-size is a whole number of 1 or more, not 0"),
        (["gpt", "--text", "BOOK", "--iterations", "0"], "--iterations is a whole number of 1 or more, not 0"),
        (["gpt", "--text", "BOOK", "--sample", "-1"], "--sample is a whole number of 0 or more, not -1"),
        (["gpt", "--text", "BOOK", "--set", "length=0"], "length is a whole number of 1 or more, not 0"),
        (["gpt", "--text", "BOOK", "--set", "length=9999"], "too few for windows of 9999"),
        (["gpt"], "a character model learns from a text\n  --text FILE"),
        (["gpt", "--text", "none.txt"], "none.txt cannot be read"),
        (["matrix_factorization"], "matrix_factorization has no data of its own\n  --data FILE.npz"),
        (["mlp", "--data", "none.npz"], "none.npz cannot be read"),
        (["mlp", "--data", "BOOK"], "book.txt cannot be read"),
        (["mlp", "--data", "ONE.npy"], "one.npy holds no arrays with names\n  give a file that np.savez wrote"),
        (["mlp", "--data", "TORN.npz"], "torn.npz cannot be read"),
        (["mlp", "--lr", "nan"], "lr is a positive number, not nan"),
    ],
)  # fmt: skip
def test_train_refuses(command: Command, book: Path, tmp_path: Path, words: list[str], message: str) -> None:
    np.save(tmp_path / "one.npy", np.ones(3))
    (tmp_path / "torn.npz").write_bytes(b"PK\x03\x04 and no more")
    files = {"BOOK": book, "ONE.npy": tmp_path / "one.npy", "TORN.npz": tmp_path / "torn.npz"}
    out = tmp_path / "run"
    told = command.refuses("train", *(str(files.get(word, word)) for word in words), "--out", str(out))
    assert message in told
    assert not out.exists()


# -- bench

ROW = re.compile(r"^(\S.*?\S) {2,}(?:([\d.,]+) s)? +([\d.,]+) ms +(?:([\d.,]+) +)?([\d,]+)$", re.MULTILINE)


def timed(command: Command, *words: str) -> tuple[list[str], list[str]]:
    """What stands above the table, and the names of its rows, each with its numbers."""
    output = command.prints("bench", *words, "--seconds", "0")
    head, _, table = output.partition("\n\n")
    lines = table.splitlines()
    assert lines[0].split() == ["first", "call", "median", "GFLOP/s", "calls"]
    rows = [ROW.match(line) for line in lines[1:]]
    assert all(row is not None and int(row[5].replace(",", "")) >= bench.CALLS for row in rows), output
    return head.splitlines(), [row[1] for row in rows if row]


def test_bench_statements(command: Command) -> None:
    head, rows = timed(command, MATMUL, "--size", "i=5", "--size", "k=7")
    assert head[0] == MATMUL
    assert re.fullmatch(r"float32, \d+ threads; A 5 x 7, B 7 x 64", head[1])
    assert head[2] == "gradient by A, B"
    assert rows == ["forward", "forward and backward", "numpy.einsum, forward"]


def test_bench_an_op(command: Command) -> None:
    head, rows = timed(command, "softmax", "--size", "...=3", "--dtype", "float64")
    assert head[0] == "def softmax(input[...,j]) -> out[...,j]: ..."
    assert head[1].startswith("float64, ")
    assert head[1].endswith("; input 3 x 64")
    assert rows == ["forward", "forward and backward"]


def test_bench_a_convolution(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "window.loop"
    path.write_text("Y[i] += X[2*i+u] * W[u]\n")
    head, rows = timed(command, str(path), "--size", "i=5", "--size", "u=3", "--wrt", "W")
    assert head[1].endswith("; X 11, W 3")
    assert head[2] == "gradient by W"
    assert rows == ["forward", "forward and backward"]


def test_bench_a_gather(command: Command) -> None:
    head, rows = timed(command, "Y[b,d] = E[tok[b],d]", "--size", "b=6", "--shape", "E=9,4")
    assert head[1].endswith("; E 9 x 4, tok 6 whole numbers")
    assert head[2] == "gradient by E"
    assert rows == ["forward", "forward and backward"]


def test_bench_without_a_gradient(command: Command) -> None:
    head, rows = timed(command, "a argmax= X[i]")
    assert head[2] == "no input has a derivative here"
    assert rows == ["forward"]
    head, rows = timed(command, "W[i] = W[i] - 0.1 * g[i]")
    assert head[2].startswith("no gradient: line 1, column 1: W is updated in place")
    assert rows == ["forward"]


@pytest.mark.filterwarnings("ignore:a call is interpreted")
def test_bench_tells_what_is_not_compiled(command: Command) -> None:
    deep = "Y[i] = " + " + ".join(["X[i]"] * 160)
    output = command.prints("bench", deep, "--size", "i=8", "--seconds", "0")
    assert "  not compiled: an expression of Y is nested more than 150 levels deep" in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([MATMUL, "--size", "i"], "--size takes NAME=NUMBER, not 'i'\n  --size i=128"),
        ([MATMUL, "--size", "i=many"], "--size takes NAME=NUMBER, not 'i=many'"),
        ([MATMUL, "--size", "i=3,4"], "--size takes NAME=NUMBER, not 'i=3,4'"),
        ([MATMUL, "--size", "i=0"], "index i cannot have the size 0 here"),
        ([MATMUL, "--size", "i=3", "--size", "i=4"], "--size names i twice"),
        (["softmax", "--size", "widht=3"], "the program has no index or static integer 'widht'\n  it has ..., j"),
        ([MATMUL, "--shape", "A=3"], "A has 2 axes, but --shape gives it 1\n  --shape A=64,64"),
        ([MATMUL, "--shape", "A=3,x"], "--shape takes NAME=NUMBER,NUMBER, not 'A=3,x'"),
        ([MATMUL, "--shape", "A=3,0"], "A cannot have the shape 3 x 0 here"),
        ([MATMUL, "--shape", "Y=3,4"], "the program has no input 'Y'\n  its inputs are A, B"),
        ([MATMUL, "--shape", "A=3,4", "--size", "k=5"], "`--shape A=3,4` and `--size k=5` disagree"),
        ([MATMUL, "--size", "i=1000000", "--size", "j=1000000", "--size", "k=1"], "GB; Y is 1000000 x 1000000"),
        (["Z[i,j] = A[i,j] + A[j,i]", "--size", "i=3", "--size", "j=4"], "`--size i=3` and `--size j=4` disagree"),
        ([f"Y += X[{','.join(f'i{k}' for k in range(500))}]"], "the arrays would take 4.92e+894 GB; X is 64 x 64"),
        (["conv3d"], "GB; input is 64 x 64 x 64 x 64 x 64\n  choose smaller sizes, of ..., c, d, h, w, o, r, u, v"),
        (["conv1d", "--size", "i=9"], "`--size i=9` disagrees with size(i), which is declared as"),
        (["conv1d", "--size", "u=99"], "size(i) would be -34, by"),
        (["cnn", "--size", "u=9", "--size", "y=8"], "give other sizes: --size y, --size u, --size p"),
        (["one_hot"], "the static integer num_classes has no default\n  give it: --size num_classes=1"),
        (["gpt"], "no whole number in start keeps tokens[start[b]+i+1] in bounds"),
        (["Y[i] = X[min(i+1, size(X, 0)-1)]"], "the shape of X cannot be found: its axis 0 is read at"),
        (["Y[i] = size(X, 0) * Z[i]"], "the shape of X cannot be found: only its size is asked for"),
        ([MATMUL, "--wrt", "C"], "C is not an input"),
        (["Y[b,d] = E[tok[b],d]", "--wrt", "tok"], "tok is used as an index, and an integer has no derivative"),
        ([MATMUL, "--seconds", "-1"], "--seconds is a number of seconds, not -1.0"),
        ([MATMUL, "--seconds", "nan"], "--seconds is a number of seconds, not nan"),
        (["Y[i] = X[i"], "    Y[i] = X[i\n            ^\n"),
        (["sofmax"], "did you mean `softmax`?"),
    ],
)  # fmt: skip
def test_bench_refuses(command: Command, words: list[str], message: str) -> None:
    assert message in command.refuses("bench", *words)


def test_bench_offers_a_shape_that_works(command: Command) -> None:
    text = "Y[i] = X[min(i+1, size(X, 0)-1)]"
    offered = re.search(r"give it: (--shape) (\S+)", command.refuses("bench", text))
    assert offered is not None
    assert timed(command, text, *offered.groups())[1] == ["forward", "forward and backward"]


def test_bench_times_nothing_that_is_wrong(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    einsum = np.einsum
    monkeypatch.setattr(np, "einsum", lambda *given, **options: 1.01 * einsum(*given, **options))
    code, output, messages = command("bench", MATMUL, "--size", "i=5", "--size", "k=7", "--seconds", "0")
    assert code == 2
    assert "the program and numpy.einsum('ab,bc->ac') differ by 9.9e-03 of the largest element" in messages
    assert "forward" not in output


@pytest.mark.parametrize(
    ("text", "subscripts"),
    [
        (MATMUL, "ab,bc->ac"),
        ("Y[j] = A[j,j]", "aa->a"),
        ("s += A[i,j] * B[j,k] * C[k,i]", "ab,bc,ca->"),
        ("Y[...,o] += X[...,i] * W[o,i]", "ab,cb->ac"),
        ("Y[i,j] += A[i,k] * B[k,j] if j <= i", None),
        ("Y[i] += X[i+u] * W[u]", None),
        ("Y[i] += 2 * X[i,j]", None),
        ("Y[i] max= X[i,j]", None),
        ("Y[i,i] = X[i]", None),
        ("Y[i] += X[i,j] + Z[i,j]", None),
        ("Y[i] += a * X[i,j]", None),
        ("for t:\n    Y[t] += X[t,j] * Z[j]", None),
        (f"{MATMUL}\nZ[i] += Y[i,j]", None),
    ],
)  # fmt: skip
def test_what_is_an_einsum(text: str, subscripts: str | None) -> None:
    made = random_inputs(ts.program(text).loops, {}, {}, np.dtype(np.float32))
    found = bench.as_einsum(made.bound.loops)
    assert (found and found[0]) == subscripts


@pytest.mark.parametrize(
    "text", [MATMUL, "loss += sin(A[i,j]) * B[j]", "Y[i] = A[i] ** 2\ns += Y[i] * B[i]\nreturn Y, s"]
)
def test_forward_and_backward_are_one_program(text: str) -> None:
    program = ts.program(text)
    made = random_inputs(program.loops, dict.fromkeys(program.loops.indices, 3), {}, np.dtype(np.float64))
    both, told = bench.with_gradient(program, made, None)
    assert both is not None
    assert told == "gradient by A, B"
    assert {*both.outputs} == {*program.outputs, "A.grad", "B.grad"}
    seeds = bench.seeds(both, made, "float64")
    found = both.run_reference({**made.arguments, **seeds})
    given = seeds or {"loss.grad": 1.0}
    wanted = program.adjoint(wrt=["A", "B"]).run_reference({**made.arguments, **given})
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value)


def test_bench_ends_by_ctrl_c() -> None:
    process = started("bench", MATMUL, "--size", "i=5", "--size", "k=7", "--seconds", "100")
    assert process.stdout is not None
    while "first call" not in process.stdout.readline():
        assert process.poll() is None
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 130, messages
    assert messages.endswith("tensorswap: interrupted\n")
    assert "Traceback" not in messages


# -- random inputs


@pytest.mark.parametrize(
    ("text", "sizes", "shapes"),
    [
        (MATMUL, {"i": 2}, {"A": (2, 64), "B": (64, 64)}),
        ("Y[i] += X[i+u] * W[u]", {"i": 5, "u": 3}, {"X": (7,), "W": (3,)}),
        ("Y[i] = X[3*i] + X[i+40]", {"i": 10}, {"X": (50,)}),
        ("Y[i] = X[size(i)-1-i]", {"i": 10}, {"X": (10,)}),
        ("Y[i] = X[i//2] + Z[i%3]", {"i": 10}, {"X": (5,), "Z": (3,)}),
        ("Y[i] = X[3,i]", {"i": 2}, {"X": (4, 2)}),
        ("size(i) = size(X, 0)\nY[i] += X[i+p-1] * W[p] if inside", {"p": 3}, {"X": (64,), "W": (3,)}),
        ("size(i) = size(X, 0) // stride\nY[i] = X[stride*i]", {"stride": 3, "i": 7}, {"X": (21,)}),
        ("size(j) = 2 * size(i)\nY[i,j] = X[j] * Z[i]", {"i": 3}, {"X": (6,), "Z": (3,)}),
        ("size(j) = 3 * size(Z, 0)\nZ[2*i] = X[i]\nY[j] = W[j]", {"i": 3}, {"X": (3,), "W": (15,)}),
        ("Z[i,j] = A[i,j] + A[j,i]", {"j": 3}, {"A": (3, 3)}),
        ("Z[i] = X[i]\nY[j] = Z[j] * W[j]", {"j": 3}, {"X": (3,), "W": (3,)}),
        ("Y[b,d] = E[tok[b],d]", {"b": 2, "d": 3}, {"E": (64, 3), "tok": (2,)}),
        ("Y[...,o] += X[...,i] * W[o,i]", {"...": 2, "o": 3, "i": 4}, {"X": (2, 4), "W": (3, 4)}),
        ("for step:\n    x[i] = 0.5 * x[i] + b[i]", {"step": 3, "i": 2}, {"x": (2,), "b": (2,)}),
        ("Y[i] = a * X[i]", {"i": 2}, {"X": (2,)}),
    ],
)  # fmt: skip
def test_shapes(text: str, sizes: dict[str, int], shapes: dict[str, tuple[int, ...]]) -> None:
    program = ts.program(text)
    made = random_inputs(program.loops, sizes, {}, np.dtype(np.float32)).arguments
    assert {name: value.shape for name, value in made.items() if isinstance(value, np.ndarray)} == shapes
    assert {value.dtype for name, value in made.items() if name in shapes and name != "tok"} == {np.dtype(np.float32)}
    program.run_reference(made)  # in bounds, and nothing is missing


@pytest.mark.parametrize(
    ("text", "shapes", "name", "low", "high"),
    [
        ("Y[b] = E[tok[b]]", {"E": (5,), "tok": (999,)}, "tok", 0, 4),
        ("Y[b] = E[tok[b]-1] + E[tok[b]]", {"E": (5,), "tok": (999,)}, "tok", 1, 4),
        ("Y[b] = E[2*tok[b]+1]", {"E": (6,), "tok": (999,)}, "tok", 0, 2),
        ("Y[b,i] = E[tok[b]+i] * W[i]", {"E": (6,), "W": (4,), "tok": (999,)}, "tok", 0, 2),
        ("size(H, 0) = 3\nH[bin[n]] += w[n]", {"bin": (999,)}, "bin", 0, 2),
    ],
)  # fmt: skip
def test_whole_numbers_are_in_bounds(
    text: str, shapes: dict[str, tuple[int, ...]], name: str, low: int, high: int
) -> None:
    program = ts.program(text)
    made = random_inputs(program.loops, {}, shapes, np.dtype(np.float64)).arguments
    assert (made[name].dtype, made[name].min(), made[name].max()) == (np.dtype(np.int64), low, high)
    program.run_reference(made)


def test_an_index_stops_where_it_is_told_to() -> None:
    program = ts.program("Y[i] += X[i+u] * W[u]")
    made = random_inputs(program.loops, {"i": 5, "u": 3}, {"X": (20,)}, np.dtype(np.float64)).arguments
    assert program.run_reference(made).shape == (5,)  # where 18 would fit


def test_what_is_scattered_by_assignment_does_not_meet() -> None:
    program = ts.program("size(Z, 0) = 50\nZ[p[i]] = X[i]")
    made = random_inputs(program.loops, {"i": 40}, {}, np.dtype(np.float64)).arguments
    assert len(np.unique(made["p"])) == 40
    program.run_reference(made)


@pytest.mark.parametrize("name", ["conv2d", "attention", "embedding_bag", "lstm", "max_pool2d", "ctc_loss"])
def test_ops_take_what_is_made_for_them(name: str) -> None:
    loops = ts.load(name).loops
    declared = {d.subject.index for d in loops.sizes if isinstance(d.subject, ir.Size)}
    sizes = {index: 5 for index in loops.indices if index not in declared}
    sizes |= {static: 2 for static in loops.static_names if static not in loops.static_defaults}
    ts.load(name).run_reference(random_inputs(ts.load(name).loops, sizes, {}, np.dtype(np.float64)).arguments)


def test_explain_gives_the_adjoint_as_data(command: Command) -> None:
    told = json.loads(command.prints("explain", "Y[i] = sin(X[i])", "--stage", "adjoint", "--json"))
    assert told == {"stage": "adjoint", "text": "X.grad[i] += Y.grad[i] * cos(X[i])"}


def test_a_file_may_begin_with_the_mark_of_windows_editors(command: Command, tmp_path: Path) -> None:
    for name in ("marked.loop", "marked.txt"):
        (tmp_path / name).write_text("\ufeffY[i] = sin(X[i])\n", encoding="utf-8")
        assert "cos(X[i])" in command.prints("explain", str(tmp_path / name))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
@pytest.mark.parametrize(("output", "code", "message"), [("/dev/full", 2, "tensorswap: [Errno 28]"), ("&-", 0, "")])
def test_output_that_cannot_be_written_gives_no_traceback(output: str, code: int, message: str) -> None:
    line = f"{shlex.quote(sys.executable)} -m tensorswap explain 'Y[i] = X[i]' >{output}"
    ended = subprocess.run(line, shell=True, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == code
    assert ended.stderr.startswith(message)
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr
