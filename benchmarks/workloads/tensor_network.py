"""The inner product of two matrix-product states: one statement with twelve tensors, gradients by all of them.

The sites are a piece of a longer chain in canonical form, so that both states share the outer bonds. Every bond then
has the full size, and the sweep from one end to the other is the cheapest order for the value and for all gradients.
"""

from __future__ import annotations

import string
from typing import Any

import numpy as np
from harness.cost import Cost
from harness.workload import Array, Arrays, Results, Sizes, Workload, normal

SITES = 6


def indices(bond: str, site: int) -> list[str]:
    """Of the tensor at a site: the bond to the left, the physical index, the bond to the right."""
    left = f"{bond}{site - 1}" if site > 1 else "l"
    right = f"{bond}{site}" if site < SITES else "r"
    return [left, f"s{site}", right]


# neighbours stand next to each other, as a sweep meets them
ACCESSES = {
    name: indices(bond, site) for site in range(1, SITES + 1) for name, bond in ((f"A{site}", "a"), (f"B{site}", "b"))
}
TEXT = "loss += " + " * ".join(f"{name}[{','.join(at)}]" for name, at in ACCESSES.items())


def subscripts() -> str:
    """The same for einsum, which has one letter for each index."""
    letters = dict(zip(dict.fromkeys(i for at in ACCESSES.values() for i in at), string.ascii_letters, strict=False))
    return ",".join("".join(letters[i] for i in at) for at in ACCESSES.values()) + "->"


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    shape = sizes["bond"], sizes["physical"], sizes["bond"]
    scale = (sizes["bond"] * sizes["physical"] ** 0.5) ** -0.5  # keeps the product about as large as its factors
    return {name: normal(generator, dtype, *shape, scale=scale) for name in ACCESSES}


def wide(tensor: Any) -> Any:
    """Bond by physical index and bond."""
    return tensor.reshape(tensor.shape[0], -1)


def tall(tensor: Any) -> Any:
    """Bond and physical index by bond."""
    return tensor.reshape(-1, tensor.shape[2])


def numpy_twin(**tensors: Array) -> Results:
    """A sweep to the right keeps what lies left of each site, a sweep back what lies right of it."""
    kets = [tensors[f"A{site}"] for site in range(1, SITES + 1)]
    bras = [tensors[f"B{site}"] for site in range(1, SITES + 1)]
    lefts, halves = [], [bras[0]]
    for site in range(1, SITES):
        lefts.append(tall(kets[site - 1]).T @ tall(halves[-1]))
        halves.append((lefts[-1] @ wide(bras[site])).reshape(bras[site].shape))
    found = {"loss": np.asarray(np.vdot(kets[-1], halves[-1]))}
    ket_grad, half_grad = halves[-1], kets[-1]
    for site in reversed(range(1, SITES)):
        found[f"A{site + 1}.grad"] = ket_grad
        found[f"B{site + 1}.grad"] = (lefts[site - 1].T @ wide(half_grad)).reshape(bras[site].shape)
        right = wide(half_grad) @ wide(bras[site]).T
        ket_grad = (tall(halves[site - 1]) @ right.T).reshape(kets[site - 1].shape)
        half_grad = (tall(kets[site - 1]) @ right).reshape(kets[site - 1].shape)
    return {**found, "A1.grad": ket_grad, "B1.grad": half_grad}


def sweep(tensors: dict[str, Any]) -> Any:
    """For jax and torch alike."""
    half = tensors["B1"]
    for site in range(2, SITES + 1):
        left = tall(tensors[f"A{site - 1}"]).T @ tall(half)
        half = (left @ wide(tensors[f"B{site}"])).reshape(tensors[f"B{site}"].shape)
    return (tensors[f"A{SITES}"] * half).sum()


def jax_value(jax: Any, **tensors: Any) -> Any:
    return sweep(tensors)


def torch_value(torch: Any, **tensors: Any) -> Any:
    return sweep(tensors)


def cost(sizes: Sizes) -> Cost:
    """Between two sites two products forward, and four backward."""
    return Cost(pairs=(SITES - 1) * 6 * sizes["physical"] * sizes["bond"] ** 3)


WORKLOAD = Workload(
    name="tensor_network",
    title="tensor network, 12 tensors, bonds of 64",
    text=TEXT,
    einsum=subscripts(),
    operands=tuple(ACCESSES),
    wrt=tuple(ACCESSES),
    sizes={"bond": 64, "physical": 4},
    quick={"bond": 2, "physical": 2},
    make_arrays=make_arrays,
    numpy_twin=numpy_twin,
    jax_value=jax_value,
    torch_value=torch_value,
    cost=cost,
    terms=lambda sizes: 2 * SITES * sizes["bond"] * sizes["physical"],
)
