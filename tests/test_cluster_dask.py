"""Programs on the workers of a Dask cluster: the bits of one process, whoever is killed or stopped meanwhile."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.errors import ArgumentError, BoundsError, ClusterError, LimitError, SwapError

from . import digits_in_shards
from .cluster_programs import EXAMPLES, Example
from .daily import LONG
from .test_cluster import outputs, same, trained

distributed = pytest.importorskip("distributed", reason="dask is not installed: make cluster installs it")

from tensorswap.cluster import dask_attempt, meeting, on_dask, steps_in_shards  # noqa: E402
from tensorswap.cluster.dask_together import Together  # noqa: E402
from tensorswap.cluster.dask_watch import Lost  # noqa: E402
from tensorswap.cluster.local_cluster import start  # noqa: E402
from tensorswap.cluster.meeting import NotTogether  # noqa: E402
from tensorswap.cluster.on_dask import OnDask  # noqa: E402
from tensorswap.cluster.versions import refuse_others, versions  # noqa: E402  # it needs no dask, the rest does

BIN = str(Path(sys.executable).parent)
HITS = 20 if LONG else 1
QUICK = {"argmax", "convolution with border", "softmax", "gradient of a network"}
pytestmark = [
    pytest.mark.compiled,
    pytest.mark.filterwarnings("ignore"),  # of Dask's own: sockets of workers that were killed
]


def close(client: Any) -> None:
    cluster = client.cluster
    client.close(timeout=5)
    cluster.close(timeout=10)


@pytest.mark.skipif(
    not LONG or shutil.which("mpirun", path=BIN) is None, reason="MPI is not everywhere: make cluster installs it"
)
def test_two_ranks_of_mpi_give_the_bits_of_one_process() -> None:
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", sys.executable, "-m", "tests.on_ranks"]
    paths = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(Path(__file__).parent.parent)}
    done = subprocess.run(
        command, env={**os.environ, **paths}, capture_output=True, text=True, timeout=500, check=False
    )
    assert "on 2 ranks: the bits of one process" in done.stdout, done.stdout + done.stderr


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    made = start(2)
    yield made
    close(made)


def check_bits(example: Example, client: Any) -> None:
    program = example.program()
    want = outputs(program, program.shard(example.indices, client="serial", shards=example.shards)(example.arrays))
    got = outputs(program, program.shard(example.indices, client=client, shards=example.shards)(example.arrays))
    assert list(got) == list(want)
    for name, array in want.items():
        assert (got[name].dtype, got[name].shape) == (array.dtype, array.shape), (example.name, name)
        assert got[name].tobytes() == array.tobytes(), (example.name, name)


def test_two_workers_give_the_bits_of_one_process(client: Any) -> None:
    for example in EXAMPLES:
        if LONG or example.name in QUICK:
            check_bits(example, client)


@pytest.mark.skipif(not LONG, reason="clusters of four sizes take minutes: make cluster runs it")
@pytest.mark.parametrize("workers", [1, 3, 4])
def test_any_number_of_workers_gives_the_bits_of_one_process(workers: int) -> None:
    client = start(workers)
    try:
        for example in EXAMPLES:
            check_bits(example, client)
    finally:
        close(client)


def test_dask_arrays_and_files(client: Any, tmp_path: Path) -> None:
    dask_array = pytest.importorskip("dask.array", reason="dask is not installed whole")
    X, W = np.random.default_rng(0).standard_normal((20, 600)), np.ones(600)
    np.save(tmp_path / "x.npy", X)
    program = ts.program("Y[b] += X[b,i] * W[i]")
    want = program.shard("b", client="serial", shards=3)(X=X, W=W)
    q = program.shard("b", client=client, shards=3)
    assert (q(X=dask_array.from_array(X, chunks=(6, 50)), W=W) == want).all()
    assert (q(X=np.load(tmp_path / "x.npy", mmap_mode="r"), W=W) == want).all()
    stored = program.shard("b", client=client, shards=3, out=tmp_path / "out")(X=X, W=W)
    assert (np.load(tmp_path / "out" / "Y.npy") == want).all()
    assert (stored == want).all()


def test_outputs_may_stay_on_the_workers(client: Any) -> None:
    dask_array = pytest.importorskip("dask.array", reason="dask is not installed whole")
    X = np.random.default_rng(0).standard_normal((21, 600)).astype(np.float32)
    program = ts.program("Y[b,i] = X[b,i] * 2\ns += X[b,i]\nm[i] max= X[b,i]\nZ[b] += X[b,i]")
    for cut, shards in (("b", 3), (["b", "i"], (3, 2)), ("i", 1)):
        want = program.shard(cut, client="serial", shards=shards)(X=X)
        q = program.shard(cut, client=client, shards=shards, out="dask")
        got = q(X=X)
        assert all(isinstance(array, dask_array.Array) for array in got.values())
        for name, array in want.items():
            assert (got[name].dtype, got[name].shape) == (array.dtype, array.shape)
            assert got[name].compute().tobytes() == array.tobytes()
    assert got["Y"].chunks == ((21,), (600,))
    assert program.shard("b", client=client, shards=3, out="dask")(X=X)["Y"].chunks == ((7, 7, 7), (600,))
    again = ts.program("s += Y[b,i]").shard("b", client=client, shards=3)  # what came out goes in
    assert again(Y=got["Y"]).tobytes() == again(Y=want["Y"]).tobytes()
    assert float(got["Y"].sum().compute()) == pytest.approx(float(want["Y"].sum()), rel=1e-4)
    with pytest.raises(ArgumentError, match='out="dask" gives arrays on the workers'):
        program.shard("b", client="serial", out="dask")(X=X)


def test_a_worker_that_is_slow_is_not_waited_for(client: Any) -> None:
    """One worker holds its tasks until the call is over: another one must have run them too. Nothing counts twice."""
    client.wait_for_workers(2, timeout=120)
    X = np.random.default_rng(0).standard_normal((40, 30))
    program = ts.program("s += X[b,i]\nY[b] += X[b,i]\nm max= Y[b] * s\nk argmax= X[b,i]")
    want = program.shard("b", client="serial", shards=4)(X=X)
    q = program.shard("b", client=client, shards=4)
    q(X=X)
    slow = next(iter(client.scheduler_info(n_workers=-1)["workers"]))
    client.run(hold, workers=[slow])
    try:
        got = q(X=X)
    finally:
        held = client.run(let_go, workers=[slow])
    assert held[slow]  # it had a task
    assert all(got[name].tobytes() == want[name].tobytes() for name in want)


def hold() -> None:
    """From now on tasks of this worker wait."""
    from tensorswap.cluster import dask_attempt

    event, execute = threading.Event(), dask_attempt.execute

    def waiting(*arguments: Any) -> Any:
        event.held = True  # type: ignore[attr-defined]
        if not event.wait(120):
            raise TimeoutError("nobody else has run the task")
        return execute(*arguments)

    dask_attempt.execute, dask_attempt.held_back = waiting, (event, execute)  # type: ignore[attr-defined]


def let_go() -> bool:
    """Ends that; whether a task had to wait."""
    from tensorswap.cluster import dask_attempt

    event, dask_attempt.execute = dask_attempt.held_back  # type: ignore[attr-defined]
    event.set()
    return hasattr(event, "held")


def test_arrays_are_kept_on_the_workers_by_their_content(client: Any) -> None:
    program = ts.program("Y[i,j] += A[i,k] * B[k,j]")
    A, B = np.random.default_rng(0).standard_normal((2, 80, 80))
    executor = OnDask(client)
    q = program.shard("i", client=executor, shards=2)
    first = q(A=A, B=B)
    kept = set(executor.kept.arrays)
    assert (q(A=A, B=B.copy()) == first).all()
    assert set(executor.kept.arrays) == kept
    B[3, 3] = 99  # the same array with another content
    assert np.allclose(q(A=A, B=B), A @ B)


def test_an_error_comes_back_as_it_is(client: Any) -> None:
    program = ts.program("Y[b] = E[t[b]]")
    with pytest.raises(BoundsError, match="in the shard of b from 2 to 4"):
        program.shard("b", client=client, shards=2)(E=np.ones(3), t=np.array([0, 1, 2, 7]))


def test_a_training_on_workers_has_the_bits_of_one_process(client: Any, tmp_path: Path) -> None:
    want = trained(shards=2)
    got = trained(shards=2, cluster=client)
    assert all(got.params[name].tobytes() == want.params[name].tobytes() for name in want.params)
    assert got.history.loss == want.history.loss
    trained(shards=2, cluster=client, epochs=1, checkpoint=tmp_path / "c")
    resumed = trained(shards=2, cluster=client, checkpoint=tmp_path / "c", resume=True)
    assert all(resumed.params[name].tobytes() == want.params[name].tobytes() for name in want.params)


def test_shards_that_train_by_themselves_have_the_bits_of_one_process(client: Any, tmp_path: Path) -> None:
    options = {"shards": 3, "average_every": 2, "batch_size": 8}
    want = trained(**options)
    assert same(trained(**options, cluster=client), want)
    trained(**options, cluster=client, epochs=1, checkpoint=tmp_path / "c")
    assert same(trained(**options, cluster=client, checkpoint=tmp_path / "c", resume=True), want)


def test_data_that_never_arrives_is_sent_again(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    scatter, asked = client._scatter, []

    async def lost(*words: Any, **named: Any) -> Any:
        asked.append(words)
        return await (asyncio.sleep(1e6) if len(asked) == 1 else scatter(*words, **named))

    monkeypatch.setattr(client, "_scatter", lost)
    monkeypatch.setattr(on_dask, "SENT", 0.5)
    X = np.random.default_rng(3).normal(size=(60, 400))
    program = ts.program("s[i] += X[b,i] ** 2")
    np.testing.assert_allclose(program.shard("b", client=client, shards=3)(X=X), (X**2).sum(0))
    assert len(asked) > 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_training_whose_worker_is_hit_has_the_bits_of_one_process(client: Any, number: signal.Signals) -> None:
    """Its workers send each other gradients: one that is left alone must not wait for ever."""
    random = np.random.default_rng(1)
    options = {"shards": 3, "epochs": 12, "batch_size": 10}
    want = trained(**options)
    executor = OnDask(client, silent=8.0)
    for _ in range(HITS):
        client.wait_for_workers(2, timeout=120)
        done: list[int] = []
        thread = threading.Thread(target=hit, args=(client, number, float(random.uniform(0, 0.3)), done))
        thread.start()
        before = time.monotonic()
        assert same(trained(**options, cluster=executor), want)
        print(f"{number.name}: a training took {time.monotonic() - before:.1f} s")
        thread.join()
        assert done


def test_a_worker_that_is_busy_is_not_met(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client.wait_for_workers(2, timeout=120)
    want, missed, together = trained(shards=2), [], Together.side_by_side

    busy = []

    def side_by_side(*arguments: Any) -> Any:
        if not busy:  # from now on
            place = next(iter(client.scheduler_info(n_workers=-1)["workers"]))
            busy.append(client.submit(time.sleep, 3, workers=[place], pure=False, priority=99))
            while place not in client.processing() or not client.processing()[place]:
                time.sleep(0.01)
        try:
            return together(*arguments)
        except NotTogether:
            missed.append(1)
            raise

    monkeypatch.setattr(Together, "side_by_side", side_by_side)
    client.run(setattr, meeting, "COMES", 0.5)
    try:
        assert same(trained(shards=2, cluster=client), want)
        assert missed
    finally:
        client.run(setattr, meeting, "COMES", meeting.COMES)
    busy[0].result()


def test_weights_stay_on_the_workers_between_steps(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client.wait_for_workers(2, timeout=120)
    monkeypatch.setattr(dask_attempt, "INLINE", 0)
    monkeypatch.setattr(steps_in_shards, "CHAIN", 1)
    sent: list[int] = []
    attempts: list[tuple[bool, int]] = []  # whether they met, and the bytes that it took
    scattered, together = OnDask.sent, Together.side_by_side

    def counted(self: Any, arrays: Any, everywhere: bool) -> Any:
        sent.append(sum(array.nbytes for array, kept in arrays.values() if not kept))
        return scattered(self, arrays, everywhere)

    def side_by_side(*arguments: Any) -> Any:
        sent.clear()
        attempts.append((False, 0))
        results = together(*arguments)
        attempts[-1] = True, sum(sent)
        return results

    monkeypatch.setattr(OnDask, "sent", counted)
    monkeypatch.setattr(Together, "side_by_side", side_by_side)
    want, after = trained(shards=2), []
    deadline = time.monotonic() + 60
    while not after and time.monotonic() < deadline:  # workers of the test before may still be busy
        attempts.clear()
        assert same(trained(shards=2, cluster=client), want)
        after = [taken for (met, _), (again, taken) in pairwise(attempts) if met and again]
    assert after
    assert not any(after)
    assert any(taken for _, taken in attempts)


def test_two_trainings_share_the_workers(client: Any) -> None:
    client.wait_for_workers(2, timeout=120)
    want = {shards: trained(shards=shards, epochs=6) for shards in (2, 3)}
    with ThreadPoolExecutor(2) as threads:
        made = {n: threads.submit(trained, shards=n, epochs=6, cluster=client) for n in want}
    assert all(same(made[shards].result(), result) for shards, result in want.items())


def test_an_error_of_a_step_comes_back_as_it_is(client: Any) -> None:
    data = {"X": np.ones((8, 2), np.float32), "t": np.array([0, 1, 2, 0, 1, 2, 0, 3])}
    with pytest.raises(SwapError) as alone:
        trained(data, shards=2)
    with pytest.raises(type(alone.value)) as found:
        trained(data, shards=2, cluster=client)
    assert str(found.value) == str(alone.value)


def kill_worker(client: Any) -> None:
    nanny = next(iter(client.cluster.workers.values()))
    if nanny.pid:
        os.kill(nanny.pid, signal.SIGKILL)


def test_digits_on_two_workers_have_the_weights_of_one_process(client: Any, tmp_path: Path) -> None:
    """A worker is killed on the way, the training is stopped and goes on."""
    examples, epochs = (1437, 4) if LONG else (128, 2)
    want = digits_in_shards.train(examples, epochs)
    killer = threading.Timer(0.2, kill_worker, (client,))
    options = {"cluster": client, "checkpoint": tmp_path / "c"}
    killer.start()
    digits_in_shards.train(examples, epochs // 2, **options)
    killer.join()
    got = digits_in_shards.train(examples, epochs, **options, resume=True)
    assert got.step == want.step
    assert same(got, want)


@pytest.mark.skipif(not LONG, reason="a cluster of its own: make cluster runs it")
def test_digits_that_were_killed_go_on_with_the_same_weights(client: Any, tmp_path: Path) -> None:
    """All processes of a training are killed at once, twice."""
    want = digits_in_shards.train(1437, 4)
    checkpoint, root = tmp_path / "c", str(Path(__file__).parent.parent)
    for _ in range(2):
        command = [sys.executable, "-m", "tests.digits_in_shards", str(checkpoint), "1437", "4"]
        before = checkpoint.read_bytes() if checkpoint.exists() else b""
        with subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": root}, stdout=subprocess.PIPE, text=True, start_new_session=True
        ) as run:
            deadline = time.monotonic() + 120
            while run.poll() is None and time.monotonic() < deadline:
                if checkpoint.exists() and checkpoint.read_bytes() != before:
                    break
                time.sleep(0.05)
            os.killpg(run.pid, signal.SIGKILL)
            assert run.stdout is not None
            assert run.stdout.read() == ""  # it had not finished
    resumed = digits_in_shards.train(1437, 4, cluster=client, checkpoint=checkpoint, resume=True)
    assert resumed.step == want.step
    assert same(resumed, want)


@pytest.mark.skipif(not LONG, reason="it writes 1.6 GB of files: make cluster runs it")
def test_operands_of_four_times_the_memory_of_a_worker(tmp_path: Path) -> None:
    limit = 400 * 10**6
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, memory_limit=limit, dashboard_address=":0", silence_logs=50
    )
    client = distributed.Client(cluster)
    rows, columns = 1_000_000, 200
    made = {}
    for name in "AB":
        made[name] = np.lib.format.open_memmap(tmp_path / f"{name}.npy", "w+", np.float32, (rows, columns))
        for first in range(0, rows, 50_000):
            made[name][first : first + 50_000] = np.arange(columns, dtype=np.float32) % 3 - 1
        made[name].flush()
    assert sum(array.nbytes for array in made.values()) >= 4 * limit
    arrays = {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in made}
    try:
        got = ts.program("Y[i,j] += A[k,i] * B[k,j]").shard("k", client=client, shards=40)(arrays)
        row = np.arange(columns) % 3 - 1
        assert np.allclose(got, rows * np.outer(row, row))
        assert max(client.run(peak).values()) < limit
    finally:
        close(client)


def peak() -> int:
    """The most memory that a process has had; what `resource` tells begins with that of the process that started it."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


# -- what goes wrong


@pytest.mark.skipif(not LONG, reason="it starts a cluster of its own: make cluster runs it")
def test_a_script_without_a_guard_is_told(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np, tensorswap as ts\nprint(ts.program('Y[i] = X[i]').shard('i')(X=np.ones(4)))\n"
    )
    path = {"PYTHONPATH": str(Path(__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, **path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "ClusterError: the workers of this machine cannot be started" in done.stderr
    assert 'under `if __name__ == "__main__":`' in done.stderr


SLOW = "Y[i] += sin(X[i,k] * W[j] + k)\nt += X[i,k] * sin(W[k])\nm max= X[i,k]"


def hit(client: Any, number: signal.Signals, after: float, done: list[int]) -> None:
    time.sleep(after)
    nanny = next(iter(client.cluster.workers.values()))
    if nanny.pid:
        os.kill(nanny.pid, number)
        done.append(nanny.pid)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_that_is_hit_changes_nothing(client: Any, number: signal.Signals) -> None:
    random = np.random.default_rng(0)
    X, W = random.standard_normal((120, 80)), random.standard_normal(80)
    program = ts.program(SLOW)
    want = program.shard("i", client="serial", shards=4)(X=X, W=W)
    q = program.shard("i", client=OnDask(client, silent=8.0), shards=4)
    q(X=X, W=W)
    for _ in range(HITS):
        client.wait_for_workers(2, timeout=120)
        done: list[int] = []
        thread = threading.Thread(target=hit, args=(client, number, float(random.uniform(0, 0.3)), done))
        thread.start()
        rounds = 0
        while thread.is_alive() or rounds < 2:  # one of the calls is under way when it happens, or begins then
            before = time.monotonic()
            got = q(X=X, W=W)
            print(f"{number.name}: a call took {time.monotonic() - before:.1f} s")
            assert all(got[name].tobytes() == want[name].tobytes() for name in want)
            rounds += 1
        thread.join()
        assert done


def test_a_result_that_went_with_its_only_worker_is_given_up(client: Any) -> None:
    """Dask would wait for ever: the task may run nowhere else."""
    # of a worker that answers: one that an earlier test has killed may still be listed
    asked = client.submit(os.getpid, pure=False, retries=5)
    pid = asked.result(timeout=120)
    ((address, *_),) = client.who_has([asked]).values()
    future = client.submit(len, "ab", workers=[address], allow_other_workers=False, pure=False)
    distributed.wait(future, timeout=60)
    os.kill(pid, signal.SIGKILL)
    while future.status == "finished":
        time.sleep(0.05)
    with pytest.raises(Lost):
        OnDask(client).gathered([future], "a number")


def test_a_shard_that_is_too_large_for_a_worker(client: Any) -> None:
    program = ts.program("Y[i,j] += A[i,k] * B[k,j]")
    client.wait_for_workers(2, timeout=120)  # an earlier test may have killed one
    limit = min(worker["memory_limit"] for worker in client.scheduler_info()["workers"].values())
    size = int(limit // 8 // 1000) + 1000
    huge = np.broadcast_to(np.float64(1), (size, 1000))
    with pytest.raises(LimitError, match=r"a shard needs .* and a worker has"):
        program.shard("j", client=client, shards=2)(A=huge, B=np.ones((1000, 4)))


def test_other_versions_are_refused() -> None:
    refuse_others({"tcp://1": versions()})
    with pytest.raises(ClusterError, match=r"the worker tcp://2 has numpy 1\.0"):
        refuse_others({"tcp://1": versions(), "tcp://2": versions() | {"numpy": "1.0"}})
    with pytest.raises(ClusterError, match=r"cannot run tensorswap: No module"):
        refuse_others({"tcp://1": ModuleNotFoundError("No module named 'tensorswap'")})


@pytest.mark.skipif(not LONG, reason="each starts a cluster of its own: make cluster runs it")
@pytest.mark.parametrize("what", ["cluster", "client"])
def test_what_is_closed_during_a_call_is_told(what: str) -> None:
    client = start(1)
    random = np.random.default_rng(0)
    X, W = random.standard_normal((800, 400)), random.standard_normal(400)
    q = ts.program("Y[i] += sin(X[i,k] * W[j] + k)").shard("i", client=OnDask(client, silent=5, patience=3), shards=4)
    closer = threading.Timer(0.5, client.close if what == "client" else client.cluster.close)
    closer.start()
    with pytest.raises(ClusterError, match=r"is closed|was closed|has no workers|not had a worker|does not answer"):
        q(X=X, W=W)
    closer.join()
    close(client)


def test_what_is_no_client_is_told(client: Any) -> None:
    dask = pytest.importorskip("dask", reason="dask is not installed")
    program = ts.program("s += X[b]")
    with pytest.raises(ArgumentError, match=r"not the LocalCluster itself"):
        program.shard("b", client=client.cluster)
    with pytest.raises(ArgumentError, match=r"no array of Dask's, but a Delayed"):
        program.shard("b", client=client)(X=dask.delayed(np.ones)(4))

    async def waiting() -> None:
        async with distributed.Client(client.cluster.scheduler_address, asynchronous=True) as other:
            program.shard("b", client=other)

    with pytest.raises(ArgumentError, match="the client is asynchronous"):
        asyncio.run(waiting())


def test_a_client_that_is_gone_is_told() -> None:
    cluster = distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50)
    client = distributed.Client(cluster)
    q = ts.program("s += X[b]").shard("b", client=OnDask(client, patience=0.5))
    with pytest.raises(ClusterError, match="the cluster has no workers"):
        q(X=np.ones(4))
    close(client)
    with pytest.raises(ClusterError, match="the client of the cluster is closed"):
        q(X=np.ones(4))
