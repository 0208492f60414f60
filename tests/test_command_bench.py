"""`tensorswap bench` and `tensorswap profile`: rows for people, of results that were compared first."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.command import bench
from tensorswap.trust.inputs import random_inputs

from .running_command import INTERRUPTED, MATMUL, Command, started

pytestmark = pytest.mark.compiled


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
        ([f"Y += X[{','.join(f'i{k}' for k in range(64))}]"], "the arrays would take 1.58e+107 GB; X is 64 x 64"),
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
    assert process.returncode in INTERRUPTED, messages
    assert messages.endswith("tensorswap: interrupted\n")
    assert "Traceback" not in messages


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
    sizes = [option for size in ("k=50", "i=32", "j=64", "n=1000") for option in ("--size", size)]
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
