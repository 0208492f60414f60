"""The cluster of this machine, started when it is first asked for: a worker for each core, with one thread each."""

from __future__ import annotations

import atexit
import multiprocessing
import os
from typing import Any

from ..errors import ClusterError, PackageError

PATIENCE = {"distributed.deploy.lost-worker-timeout": "10 minutes"}  # Dask reads it when a worker is lost
# A worker that computes on every core is not also asked a hundred times a second what it does: each of its steps would
# take a tenth longer. It is read when a worker starts; one that is started again in the place of a lost one is asked.
UNASKED = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "500ms"}

_started: list[tuple[int, Any]] = []


def distributed() -> Any:
    """Dask's package, or what to install."""
    try:
        import distributed as found
    except ImportError as error:
        raise PackageError("a cluster needs dask and distributed", hint="pip install 'tensorswap[cluster]'") from error
    return found


def local_client() -> Any:
    """A client of the workers on this machine, which live as long as this process."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise ClusterError(
            "a worker of the cluster imports the script that starts it, and would start another one",
            hint='put what the script does under `if __name__ == "__main__":`',
        )
    for process, client in _started:
        if process == os.getpid() and client.status == "running":
            return client
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    client = start(count)
    _started[:] = [(os.getpid(), client)]
    atexit.register(_close, os.getpid(), client)
    return client


def start(workers: int) -> Any:
    """A client of some workers on this machine. One that was lost may take its time to come back: Dask's own patience
    ends its supervisor for good while a loaded machine still starts the process."""
    package = distributed()
    import dask

    dask.config.set(PATIENCE)
    try:
        with dask.config.set(UNASKED):
            cluster = package.LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
            )
        return package.Client(cluster)
    except (RuntimeError, OSError) as error:
        raise ClusterError(
            f"the workers of this machine cannot be started: {str(error)[:200]}",
            hint='if a script starts them, put what it does under `if __name__ == "__main__":`: workers import it',
        ) from error


def _close(process: int, client: Any) -> None:
    if process == os.getpid():
        cluster = client.cluster
        client.close(timeout=2)
        cluster.close(timeout=5)
