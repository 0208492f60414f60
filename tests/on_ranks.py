"""Run by mpirun: every example on the ranks of MPI, against this process alone. Prints one line on the first rank."""

from __future__ import annotations

import sys

import numpy as np
from mpi4py import MPI

import tensorswap as ts

from .cluster_programs import EXAMPLES
from .test_cluster import outputs, trained


def main() -> None:
    communicator = MPI.COMM_WORLD
    names = set(sys.argv[1:])
    count = 0
    for example in EXAMPLES:
        if names and example.name not in names:
            continue
        program = example.program()
        want = outputs(program, program.shard(example.indices, client="serial", shards=example.shards)(example.arrays))
        got = outputs(
            program, program.shard(example.indices, client=communicator, shards=example.shards)(example.arrays)
        )
        assert all(got[name].tobytes() == array.tobytes() for name, array in want.items()), example.name
        count += 1
    program = ts.program("Y[b] = E[t[b]]")
    try:
        program.shard("b", client=communicator, shards=2)(E=np.ones(3), t=np.array([0, 1, 2, 7]))
        raise AssertionError("an error of one rank is one of all")
    except ts.SwapError as error:
        if "in the shard of b from 2 to 4" not in str(error):
            raise
    alone, together = trained(shards=2), trained(shards=2, cluster=communicator)
    assert all(alone.params[name].tobytes() == together.params[name].tobytes() for name in alone.params)
    if communicator.Get_rank() == 0:
        print(f"{count} programs and a training on {communicator.Get_size()} ranks: the bits of one process")


if __name__ == "__main__":
    main()
