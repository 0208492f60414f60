"""The command `tensorswap` as a user runs it: its words, ops, completion, doctor and cache, its exit codes."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.command import completion, doctor, ops, show
from tensorswap.command.main import PARTS, parser
from tensorswap.errors import SwapWarning
from tensorswap.program import Program
from tensorswap.run import cache

from .running_command import MATMUL, Command, started

pytestmark = pytest.mark.compiled

WORDS = ("explain", "playground", "ops", "bench", "profile", "train", "cluster-demo", "cache", "doctor", "completion")


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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
@pytest.mark.parametrize(("output", "code", "message"), [("/dev/full", 2, "tensorswap: [Errno 28]"), ("&-", 0, "")])
def test_output_that_cannot_be_written_gives_no_traceback(output: str, code: int, message: str) -> None:
    line = f"{shlex.quote(sys.executable)} -m tensorswap explain 'Y[i] = X[i]' >{output}"
    ended = subprocess.run(line, shell=True, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == code
    assert ended.stderr.startswith(message)
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr


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
