"""The cache of kernels: kept, found again, shared by many processes, and harmless when damaged."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import tensorswap as ts
from tensorswap.run import cache

from .damage import kernels_survive

SESSION = """
import numpy as np, tensorswap as ts
from tensorswap.run import known_code as c
program = ts.program("Y[i,j] += A[i,k] * B[k,j]\\nZ[i] max= tanh(Y[i,j])")
A, B = np.arange(12.0).reshape(3, 4), np.ones((4, 9))
found, wanted = program(A=A / 20, B=B / 9), program.run_reference(A=A / 20, B=B / 9)
assert np.allclose(found, wanted), (found, wanted)
made = [c.kernels[row.code].fresh for known in program._caller.prepared.values() for row in known.runs.rows]
print("fresh" if any(made) else "kept")
"""


FUNCTIONS = """
import numpy as np, tensorswap as ts
from tensorswap.language.functions import FUNCTIONS
from tensorswap.run import known_code as c
one = [name for name, row in FUNCTIONS.items() if row.most == 1]
text = "".join(f"Y_{name}[i] = {name}(X[i])\\n" for name in one)
text += "P[i] = pow(X[i], Z[i]) + atan2(X[i], Z[i]) + hypot(X[i], Z[i]) + X[i] % 0.3\\nU[i] = normal(3, i)"
program = ts.program(text)
arrays = {"X": np.linspace(0.1, 0.9, 9), "Z": np.linspace(0.3, 1.9, 9)}
found, wanted = program(arrays), program.run_reference(arrays)
assert all(np.allclose(found[name], wanted[name], rtol=1e-12) for name in wanted)
made = [c.kernels[row.code].fresh for known in program._caller.prepared.values() for row in known.runs.rows]
print("fresh" if any(made) else "kept")
"""


def session(folder: Path, code: str = SESSION) -> subprocess.Popen[str]:
    environment = {**os.environ, "TENSORSWAP_CACHE": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def outcome(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.strip()


def test_kernels_are_kept_and_found_again(tmp_path: Path) -> None:
    assert outcome(session(tmp_path)) == "fresh"
    assert outcome(session(tmp_path)) == "kept"


def test_every_function_is_found_again(tmp_path: Path) -> None:
    """Code from the cache may name functions of Numba's runtime and of the C library, which must be known then."""
    assert outcome(session(tmp_path, FUNCTIONS)) == "fresh"
    assert outcome(session(tmp_path, FUNCTIONS)) == "kept"


@pytest.mark.parametrize("damage", ["flipped", "header", "swapped"])
@pytest.mark.parametrize("kind", ["kernel", "object"])
def test_a_damaged_file_is_compiled_again(tmp_path: Path, kind: str, damage: str) -> None:
    assert outcome(session(tmp_path)) == "fresh"
    files = sorted(tmp_path.glob(f"*.{kind}"))
    assert len(files) >= 2
    contents = [file.read_bytes() for file in files]
    for position, (file, content) in enumerate(zip(files, contents, strict=True)):
        middle = len(content) // 2
        file.write_bytes({
            "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
            "header": re.sub(rb'"symbol": "', b'"symbol": "x', content) if kind == "kernel" else content[1:],
            "swapped": contents[position - 1],
        }[damage])  # fmt: skip
    assert outcome(session(tmp_path)) == "fresh"
    assert outcome(session(tmp_path)) == "kept"


def test_a_folder_that_cannot_be_used_is_no_reason_to_fail(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    assert outcome(session(blocked)) == "fresh"
    link = tmp_path / "link"
    link.symlink_to(tmp_path, target_is_directory=True)
    assert outcome(session(link)) == "fresh"
    assert not list(tmp_path.glob("*.kernel"))


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache in a folder of its own, in this process."""
    place = tmp_path / "kernels"
    monkeypatch.setenv("TENSORSWAP_CACHE", str(place))
    for kept in (cache.folder, cache._warn):
        kept.cache_clear()
    yield place
    for kept in (cache.folder, cache._warn):
        kept.cache_clear()


MADE = cache.ObjectCode(cache.symbol("source"), {"one": b"code", "two": b"of two modules"})


def test_no_damage_to_any_part_of_a_file_is_believed(own_cache: Path) -> None:
    assert kernels_survive(240, seed=1) > 200
    assert own_cache.stat().st_mode & 0o777 == 0o700


def test_every_bit_counts(own_cache: Path) -> None:
    cache.save("source", MADE)
    paths = sorted(own_cache.iterdir())
    assert [path.suffix for path in paths].count(".object") == 2
    for path in paths:
        content = path.read_bytes()
        for place in range(len(content)):
            for bit in range(8):
                path.write_bytes(content[:place] + bytes([content[place] ^ (1 << bit)]) + content[place + 1 :])
                assert cache.load("source", ()) is None, (path, place, bit)
        path.write_bytes(content)
    assert cache.load("source", ()) == MADE


def test_objects_in_memory_are_not_read(own_cache: Path) -> None:
    cache.save("source", MADE)
    (own_cache / "one.object").unlink()
    assert cache.load("source", ()) is None
    assert cache.load("source", {"one"}) == cache.ObjectCode(MADE.symbol, {"two": MADE.objects["two"]}, ("one",))


@pytest.mark.parametrize("kind", ["kernel", "object"])
def test_a_file_that_is_not_ours_is_not_read(own_cache: Path, tmp_path: Path, kind: str) -> None:
    cache.save("source", MADE)
    path = min(own_cache.glob(f"*.{kind}"))
    others = set(own_cache.iterdir())
    assert cache.load("source", ()) == MADE
    path.chmod(0o666)
    assert cache.load("source", ()) is None
    path.chmod(0o600)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert cache.load("source", ()) is None
    path.unlink()
    os.mkfifo(path, 0o600)  # reading it would wait for ever
    assert cache.load("source", ()) is None
    path.unlink()
    path.mkdir(0o700)
    opened = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    assert cache.load("source", ()) is None
    assert not opened or len(os.listdir("/proc/self/fd")) == opened
    if kind == "kernel":
        with pytest.warns(ts.SwapWarning, match="nothing can be written"):
            cache.save("source", MADE)
    assert set(own_cache.iterdir()) == others


@pytest.mark.parametrize("fault", ["open to others", "a link", "a file", "foreign"])
def test_a_folder_that_others_may_write_is_not_used(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    if fault == "open to others":
        own_cache.mkdir()
        own_cache.chmod(0o777)
    elif fault == "a link":
        own_cache.symlink_to(tmp_path, target_is_directory=True)
    elif fault == "a file":
        own_cache.write_text("in the way")
    else:
        own_cache.mkdir(mode=0o700)
        user = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: user + 1)
    with pytest.warns(ts.SwapWarning, match="compiled kernels are not kept"):
        cache.save("source", MADE)
    assert cache.load("source", ()) is None  # without a second warning
    assert not list(tmp_path.glob("**/*.kernel"))


def test_a_full_disk_is_said_once_and_leaves_nothing(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(ts.SwapWarning, match="No space left"):
        cache.save("source", MADE)
    cache.save("another", MADE)  # without a second warning
    assert not list(own_cache.iterdir())


def test_code_that_the_linker_refuses_is_compiled_again(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorswap.run import known_code

    def broken(*_: object) -> int:
        raise RuntimeError("no such symbol")

    cache.save("source", MADE)
    monkeypatch.setattr(known_code, "link", broken)
    assert not known_code.found("source")


def test_what_kernels_call_is_part_of_their_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel of another source, or one that a changed helper would make otherwise, is another kernel."""
    assert cache.key("one source") != cache.key("another")
    package = Path(cache.__file__).parent.parent
    for part in cache.ROOMS:
        shutil.copytree(package / part, tmp_path / part)
    for path in package.glob("*.py"):
        shutil.copy(path, tmp_path)
    monkeypatch.setattr(cache, "__file__", str(tmp_path / "run" / "cache.py"))
    for known in (cache._texts, cache.stamp, cache.planners):
        monkeypatch.setattr(cache, known.__name__, known.__wrapped__)
    stamps, planners = [cache.stamp()], [cache.planners()]
    for changed in ("kernel/functions/elementary.py", "kernel/tile.py", "run/launch.py"):
        with (tmp_path / changed).open("a") as file:
            file.write("# changed\n")
        stamps.append(cache.stamp())
        planners.append(cache.planners())
    assert len(set(stamps)) == len(set(planners)) == 4
    for changed in ("plan/nest.py", "rules/inline.py", "language/sizes.py", "run/words.py", "room.py"):
        with (tmp_path / changed).open("a") as file:
            file.write("# changed\n")
        assert cache.stamp() == stamps[-1]  # machine code is the same
        planners.append(cache.planners())
    assert len(set(planners)) == 9


SHARED = """
import numpy as np, tensorswap as ts
from tensorswap.run import compile, known_code as c
A = np.random.default_rng(0).random((64, 64))
made = {}
for name in NAMES:
    program = ts.program({
        "product": "Y[i,j] += A[i,k] * A[k,j]",
        "softplus": "Y[i,j] += A[i,k] * A[k,j]\\nZ[i,j] = log(1 + exp(Y[i,j]))",
        "turned": "Y[i,j] += A[i,k] * A[j,k]",
    }[name])
    assert np.allclose(program(A=A), program.run_reference(A=A)), name
    rows = [row for known in program._caller.prepared.values() for row in known.runs.rows]
    made[name] = any(c.kernels[row.code].fresh for row in rows)
print(" ".join("fresh" if fresh else "kept" for fresh in made.values()), len(compile.common))
"""


def shared(names: list[str]) -> str:
    return SHARED.replace("NAMES", repr(names))


def test_programs_share_tiles_in_a_process_and_find_them_again_one_by_one(tmp_path: Path) -> None:
    """The second program calls a tile that was compiled for the first; a process that has it alone finds both."""
    told, alone = outcome(session(tmp_path, shared(["product", "softplus"]))).split(), tmp_path / "alone"
    assert told[:2] == ["fresh", "fresh"]
    assert outcome(session(alone, shared(["product"]))).split()[-1] == told[-1], "one tile for both"
    assert outcome(session(tmp_path, shared(["softplus"]))) == "kept 0"
    assert outcome(session(tmp_path, shared(["turned", "softplus", "product"]))).split()[:3] == [
        "fresh",
        "kept",
        "kept",
    ]


def test_an_object_that_is_gone_is_compiled_again(tmp_path: Path) -> None:
    """All programs that had a part in it, whichever comes first."""
    assert outcome(session(tmp_path, shared(["product", "softplus"]))).split()[:2] == ["fresh", "fresh"]
    gone = [path for path in tmp_path.glob("*.object") if path.name in _objects(tmp_path)]
    assert gone, "both programs need one"
    for path in gone:
        path.unlink()
    assert outcome(session(tmp_path, shared(["softplus", "product"]))).split()[:2] == ["fresh", "fresh"]
    assert outcome(session(tmp_path, shared(["product", "softplus"]))).split()[:2] == ["kept", "kept"]


def _objects(folder: Path) -> set[str]:
    """The files of objects that several kernels need."""
    named = Counter(
        name for path in folder.glob("*.kernel") for name in json.loads(path.read_bytes().splitlines()[1])["objects"]
    )
    return {f"{name}.object" for name, count in named.items() if count > 1}
