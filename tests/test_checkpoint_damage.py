"""Checkpoints that are damaged, foreign or hostile: refused with an error of ours, and never believed."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import tensorswap as ts
from tensorswap.training import checkpoint, tensorfile
from tensorswap.training.checkpoint import Position

from .damage import checkpoints_survive
from .damage import small_training as fit

X = np.random.default_rng(0).standard_normal((20, 3))
DATA: dict[str, Any] = {"X": X, "t": X @ np.array([1.0, -2.0, 3.0])}


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("run") / "run.safetensors"
    fit(checkpoint=path)
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path, content: bytes) -> Path:
    (tmp_path / "run.safetensors").write_bytes(content)
    return tmp_path / "run.safetensors"


def resume(path: Path, **options: Any) -> Any:
    return fit(**{"resume": path, "epochs": 3, **options})


def test_no_damage_is_believed(tmp_path: Path) -> None:
    assert checkpoints_survive(tmp_path, 84, seed=2) > 70


def change(path: Path, edit: Callable[[dict[str, Any], dict[str, Any]], None], sealed: bool = True) -> None:
    arrays, told = tensorfile.read(path)
    parts = {name: json.loads(told[name]) for name in ("settings", "position", "history")}
    edit(arrays, parts)
    told |= {name: json.dumps(part) for name, part in parts.items()}
    if sealed:
        told["checksum"] = checkpoint.checksum(arrays, told)
    tensorfile.write(path, arrays, told)


@pytest.mark.parametrize(
    "position",
    [
        {"example": 10**18}, {"example": 5}, {"example": -8}, {"example": 8}, {"example": 24}, {"epoch": 10**9},
        {"chunk": 1}, {"chunk": 10**9}, {"chunk": -1}, {"step": 2**62}, {"step": -1}, {"step": 5}, {"step": 6.0},
        {"epoch": True}, {"epoch": None}, {"epoch": "2"}, {"example": [0]},
    ],
)  # fmt: skip
def test_a_position_where_no_run_stands_is_refused(path: Path, position: dict[str, Any]) -> None:
    change(path, lambda arrays, parts: parts["position"].update(position))
    with pytest.raises(ts.SwapError, match=r"damaged|no run"):
        resume(path)


def test_weights_state_and_losses_are_covered(path: Path, content: bytes) -> None:
    for name in ("W", "W_m", "W_v", "history loss"):
        path.write_bytes(content)

        def edit(arrays: dict[str, Any], parts: dict[str, Any], name: str = name) -> None:
            arrays[name] = np.nextafter(arrays[name], 9)

        change(path, edit, sealed=False)
        with pytest.raises(ts.SwapError, match="checksum"):
            resume(path)


@pytest.mark.parametrize(
    ("message", "edit"),
    [
        ("its W is float32", lambda arrays, parts: arrays.update(W=arrays["W"].astype("f4"))),
        ("its W is float64.2", lambda arrays, parts: arrays.update(W=arrays["W"][:2])),
        ("its W_m is missing", lambda arrays, parts: arrays.pop("W_m")),
        ("a tensor further", lambda arrays, parts: arrays.update(further=np.zeros(3))),
        ("other losses", lambda arrays, parts: arrays.update({"history more": np.zeros(6)})),
        ("number of steps", lambda arrays, parts: arrays.update({"history loss": np.zeros(5)})),
        ("its seed is 7", lambda arrays, parts: parts["settings"].update(seed=7)),
        ("its number of examples is 21", lambda arrays, parts: parts["settings"].update({"number of examples": 21})),
        ("other epochs", lambda arrays, parts: parts["history"].update(epochs=[])),
        ("other epochs", lambda arrays, parts: parts["history"].update(epochs=[{"loss": "small"}] * 2)),
        ("no position", lambda arrays, parts: parts["position"].update(more=1)),
        ("no position", lambda arrays, parts: parts["position"].pop("step")),
    ],
)
def test_fields_of_another_training_are_refused(path: Path, message: str, edit: Any) -> None:
    change(path, edit)
    with pytest.raises(ts.SwapError, match=message):
        resume(path)


def header(text: bytes | dict[str, Any], data: bytes = b"", length: int | None = None) -> bytes:
    head = text if isinstance(text, bytes) else json.dumps(text).encode()
    return struct.pack("<Q", len(head) if length is None else length) + head + data


def tensor(**entry: Any) -> dict[str, Any]:
    return {"W": {"dtype": "F64", "shape": [2], "data_offsets": [0, 16], **entry}}


HOSTILE = {
    "nothing": b"",
    "a length alone": b"\x10",
    "a header beyond the file": header(b"{}", length=2**63),
    "a header of 100 GB": header(b"{}", length=10**11),
    "no JSON": header(b"{x}"),
    "no object": header(b"[1]"),
    "no text": header(b"\xff\xfe{}"),
    "deep": header(b'{"a":' * 10**5),
    "deep lists": header(b"[" * 10**6),
    "many parts": header(b'{"a":[' + b"[]," * 2 * 10**6 + b"0]}"),
    "names twice": header(b'{"__metadata__":{},"__metadata__":{}}'),
    "numbers without end": header(b'{"W":' + b"9" * 10**5 + b"}"),
    "metadata of numbers": header({"__metadata__": {"format": 1}}),
    "metadata that is a list": header({"__metadata__": [1]}),
    "a tensor that is a number": header({"W": 5}),
    "no dtype": header({"W": {"shape": [2], "data_offsets": [0, 16]}}, bytes(16)),
    "another dtype": header(tensor(dtype="I64"), bytes(16)),
    "a dtype that is a list": header(tensor(dtype=["F64"]), bytes(16)),
    "a negative shape": header(tensor(shape=[-2, -1]), bytes(16)),
    "a shape of floats": header(tensor(shape=[2.0]), bytes(16)),
    "a huge shape": header(tensor(shape=[2**40, 2**40], data_offsets=[0, 2**83]), bytes(16)),
    "a huge empty shape": header(tensor(shape=[0, 2**61, 2**61], data_offsets=[0, 0])),
    "axes without end": header(tensor(shape=[1] * 10**4, data_offsets=[0, 8]), bytes(8)),
    "offsets backwards": header(tensor(data_offsets=[16, 0]), bytes(16)),
    "offsets beyond": header(tensor(data_offsets=[8, 24]), bytes(24)),
    "one offset": header(tensor(data_offsets=[0]), bytes(16)),
    "overlapping": header({**tensor(), "V": tensor()["W"]}, bytes(16)),
    "a gap": header({**tensor(), "V": {**tensor()["W"], "data_offsets": [24, 40]}}, bytes(40)),
    "cut": header(tensor(), bytes(15)),
    "too long": header(tensor(), bytes(17)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_headers_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "hostile"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(ts.SwapError, match=r"damaged|no checkpoint"):
        checkpoint.load(path)


def test_hostile_files_take_no_memory(tmp_path: Path) -> None:
    """Each of them within a few megabytes of what Python has anyway."""
    for name, bad in HOSTILE.items():
        (tmp_path / name).write_bytes(bad)
    code = (
        "import resource, sys\nfrom pathlib import Path\nfrom tensorswap.errors import SwapError\n"
        "from tensorswap.training import checkpoint\n"
        "used = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20),) * 2)\n"
        "for path in sorted(Path(sys.argv[1]).iterdir()):\n"
        "    try:\n        checkpoint.load(path)\n    except SwapError as error:\n"
        "        assert 'MemoryError' not in repr(error.__cause__), path\n        continue\n"
        "    raise SystemExit(path)\n"
        "print('all refused')"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert done.stdout == "all refused\n", done.stderr


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # to open it as a file would wait for ever
    for place in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(ts.SwapError, match="damaged"):
            checkpoint.load(place)


def test_a_checkpoint_without_a_checksum_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "old"
    told = {"format": "tensorswap checkpoint 1", "program": "", "settings": {}, "position": {}, "history": {}}
    save_file({"W": np.zeros(3)}, path, {"tensorswap": json.dumps(told)})
    with pytest.raises(ts.SwapError, match="earlier version"):
        checkpoint.load(path)


def test_others_can_read_it_and_a_reader_of_ours_reads_theirs(path: Path, tmp_path: Path) -> None:
    found = load_file(path)
    assert sorted(found) == ["W", "W_m", "W_v", "history loss"]
    np.testing.assert_array_equal(found["W"], checkpoint.load(path).arrays["W"])
    arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.zeros((0, 4)), "c": np.array(2.5)}
    save_file(arrays, tmp_path / "theirs", {"who": "they"})
    read, told = tensorfile.read(tmp_path / "theirs")
    assert told == {"who": "they"}
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)


def test_a_run_in_chunks_goes_on_or_says_why_not(tmp_path: Path) -> None:
    parts = [{name: array[k : k + 10] for name, array in DATA.items()} for k in (0, 10)]
    path = tmp_path / "run.safetensors"
    fit(data=parts, checkpoint=path)
    assert fit(data=parts, resume=path, epochs=3).history == fit(data=parts, epochs=3).history
    change(path, lambda arrays, parts: parts["position"].update(chunk=5))
    with pytest.raises(ts.SwapError, match="ends after 2 chunks"):
        fit(data=parts, resume=path, epochs=3)
    change(path, lambda arrays, parts: parts["position"].update(chunk=1, example=16))
    with pytest.raises(ts.SwapError, match="example 16 of 10"):
        fit(data=parts, resume=path, epochs=3)


def test_what_killed_runs_have_left_goes(path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = path.with_name(f".{path.name}.1.{dead.pid}.part")
    others = path.with_name(f".{path.name}.1.{os.getppid()}.part")
    for file in (left, others):
        file.write_bytes(b"half")
    fit(checkpoint=path)
    assert sorted(path.parent.iterdir()) == sorted([path, others])


def test_a_link_in_the_place_of_the_part_leads_nowhere(path: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    tensorfile._part(path).symlink_to(victim)
    fit(checkpoint=path)
    assert victim.read_text() == "precious"
    assert checkpoint.load(path).position == Position(step=6, epoch=2)
