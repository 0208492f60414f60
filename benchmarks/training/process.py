"""The parent's side of a worker of this folder."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping

from harness.peers import Peer
from harness.process import FOLDER, START_LIMIT, Refused, Worker

PEERS = {
    peer.name: peer
    for peer in (
        Peer("tensorswap", "ts.fit", "run_tensorswap", "tensorswap"),
        Peer("numpy", "numpy", "run_numpy", "numpy"),
        Peer("jax", "JAX, each step", "run_jax", "jax"),
        Peer("jax_scan", "JAX, scan", "run_jax_scan", "jax"),
        Peer("torch", "PyTorch", "run_torch", "torch"),
    )
}
OURS, REFERENCE = "tensorswap", "numpy"


class TrainingWorker(Worker):
    """As in the other benchmarks, save for what runs in it."""

    def __init__(self, peer: Peer, threads: int, environment: Mapping[str, str]) -> None:
        self.peer = peer
        self.alive = True
        self._reason = ""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the worker)
        try:
            self._process = subprocess.Popen(
                [peer.interpreter, "-m", "training.worker", peer.runner, str(threads)],
                cwd=FOLDER,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                start_new_session=True,
            )
        except OSError as error:
            self._log.close()
            raise Refused("absent", f"{peer.interpreter}: {error.strerror}") from None
        try:
            hello = self._receive(START_LIMIT)
        except BaseException:
            self.close()
            raise
        self.versions: dict[str, str] = hello["versions"]
        self.import_seconds: float = hello["import_seconds"]
