"""Silent: what runs on the scheduler of a cluster, and gives up workers that have said nothing for too long."""

from __future__ import annotations

import asyncio
import time
from typing import Any

_restarts: set[asyncio.Task[None]] = set()


async def limits_of_workers(dask_scheduler: Any) -> dict[str, int]:
    """The workers, each with the bytes that it may use: 0 if it may use all there are."""
    return {address: int(worker.memory_limit or 0) for address, worker in dask_scheduler.workers.items()}


async def without_silent(dask_scheduler: Any, silent: float) -> tuple[int, int]:
    """Removes the workers whose last word is too long ago, so that their tasks go to others; tells how many are left,
    and how many went. A nanny ends its worker, a stopped one too, and starts another."""
    now, before = time.time(), len(dask_scheduler.workers)
    for worker in list(dask_scheduler.workers.values()):
        if now - worker.last_seen > silent:
            nanny = worker.nanny
            await dask_scheduler.remove_worker(worker.address, stimulus_id=f"silent-{now}", close=not nanny)
            if nanny:
                restart = asyncio.ensure_future(_restarted(dask_scheduler, nanny))
                _restarts.add(restart)
                restart.add_done_callback(_restarts.discard)
    return len(dask_scheduler.workers), before - len(dask_scheduler.workers)


async def _restarted(scheduler: Any, nanny: str) -> None:
    from distributed.core import rpc

    try:
        async with rpc(nanny, connection_args=scheduler.connection_args) as asked:
            await asyncio.wait_for(asked.kill(reason="silent", timeout=2), 30)
    except (OSError, TimeoutError):  # its machine is gone as well
        return
