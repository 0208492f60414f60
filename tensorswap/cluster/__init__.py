"""Cluster: a program cut along an index, its shards run one after the other, on a Dask cluster, or under MPI."""
