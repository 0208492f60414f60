"""The same computation at sizes from 8 to 2,048: product, attention, convolution, and a layer without products.
Products also at sizes that no vector divides, and with few rows."""

from __future__ import annotations

from dataclasses import replace

from harness.workload import Workload

from . import attention, conv2d, layer_norm_gelu, matmul

SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
OTHERS = (9, 30, 48, 100, 200, 288, 352, 500, 1000)
ROWS = (1, 2, 4, 8, 12, 16, 32, 64, 128)
CHANNELS = {"batch": 1, "input": 4, "output": 8, "kernel": 3}


def _convolution(size: int) -> Workload:
    of = conv2d.workload(1, ("float32",))
    sizes = {**CHANNELS, "edge": size}
    return replace(of, name=f"conv2d_size_{size}", title=f"conv2d 4->8, 3 x 3, {size} x {size}", sizes=sizes)


def _layer(size: int) -> Workload:
    of = replace(layer_norm_gelu.WORKLOAD, dtypes=("float32",), sizes={"rows": size, "width": size})
    return replace(of, name=f"layer_norm_gelu_size_{size}", title=f"layer norm + gelu, {size} x {size}")


FAMILIES: dict[str, tuple[Workload, ...]] = {
    "matrix product": tuple(
        replace(matmul.forward(n, ("float32",)), name=f"matmul_size_{n}", title=f"matmul {n}") for n in SIZES
    ),
    "matrix product, other sizes": tuple(
        replace(matmul.forward(n, ("float32",)), name=f"matmul_size_{n}", title=f"matmul {n}") for n in OTHERS
    ),
    "rows times a matrix of 1000": tuple(matmul.few_rows(n, 1000, ("float32",)) for n in ROWS),
    "attention, 8 heads of 64": tuple(attention.workload(f"attention_size_{n}", n, ("float32",)) for n in SIZES),
    "convolution, 4 to 8 channels": tuple(map(_convolution, SIZES)),
    "layer norm and gelu": tuple(map(_layer, SIZES)),
}
ALL = tuple(workload for family in FAMILIES.values() for workload in family)
