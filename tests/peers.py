"""The same hostile cases for tensorswap, numpy, opt_einsum, JAX and PyTorch: what each of them does.

python -m tests.peers       # prints the table of docs/trust.md; libraries that are not installed are left out

Each case runs in a process of its own, so that a crash is an outcome like any other.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import dataclass

LIBRARIES = ("tensorswap", "numpy", "opt_einsum", "jax", "torch")
PRELUDE = {
    "tensorswap": "import tensorswap as ts",
    "numpy": "",
    "opt_einsum": "import opt_einsum as oe",
    "jax": "import jax, jax.numpy as jnp; jax.config.update('jax_enable_x64', True)",
    "torch": "import torch",
}


@dataclass(frozen=True)
class Case:
    """An expression for each library that can say the case, and a check of its value `r` that makes it right."""

    what: str
    right: str  # an expression of r, or "" where only an error is right
    code: dict[str, str]


CASES = (
    Case(
        "gather at position n", "",
        {
            "tensorswap": "ts.program('Y[i] = X[g[i]]')(X=np.arange(4.0), g=np.array([0, 4]))",
            "numpy": "np.arange(4.0)[np.array([0, 4])]",
            "jax": "jnp.arange(4.0)[jnp.array([0, 4])]",
            "torch": "torch.arange(4.0)[torch.tensor([0, 4])]",
        },
    ),
    Case(
        "scatter-add at position n", "",
        {
            "tensorswap": "ts.program('size(Y, 0) = 4\\nY[g[i]] += X[i]')(X=np.ones(2), g=np.array([0, 4]))",
            "numpy": "np.add.at(np.zeros(4), np.array([0, 4]), np.ones(2))",
            "jax": "jnp.zeros(4).at[jnp.array([0, 4])].add(jnp.ones(2))",
            "torch": "torch.zeros(4).index_add(0, torch.tensor([0, 4]), torch.ones(2))",
        },
    ),
    Case(
        "repeated targets are added", "r[0] == 3",
        {
            "tensorswap": "ts.program('size(Y, 0) = 2\\nY[g[i]] += X[i]')(X=np.ones(3), g=np.array([0, 0, 0]))",
            "numpy": "(lambda y: (y.__setitem__(np.array([0, 0, 0]), y[np.array([0, 0, 0])] + 1), y)[1])(np.zeros(2))",
            "jax": "jnp.zeros(2).at[jnp.array([0, 0, 0])].add(1.0)",
            "torch": "(lambda y: (y.__setitem__(torch.tensor([0, 0, 0]), y[torch.tensor([0, 0, 0])] + 1), y)[1])"
                     "(torch.zeros(2))",
        },
    ),
    Case(
        "`=` that writes an element twice", "",
        {
            "tensorswap": "ts.program('size(Y, 0) = 2\\nY[g[i]] = X[i]')(X=np.arange(2.0), g=np.array([0, 0]))",
            "numpy": "(lambda y: (y.__setitem__(np.array([0, 0]), np.arange(2.0)), y)[1])(np.zeros(2))",
            "jax": "jnp.zeros(2).at[jnp.array([0, 0])].set(jnp.arange(2.0))",
            "torch": "torch.zeros(2).scatter(0, torch.tensor([0, 0]), torch.arange(2.0))",
        },
    ),
    Case(
        "one index, sizes 1 and 3", "",
        {
            "tensorswap": "ts.program('Y[i] += A[i,k] * B[k]')(A=np.ones((2, 1)), B=np.ones(3))",
            "numpy": "np.einsum('ik,k->i', np.ones((2, 1)), np.ones(3))",
            "opt_einsum": "oe.contract('ik,k->i', np.ones((2, 1)), np.ones(3))",
            "jax": "jnp.einsum('ik,k->i', jnp.ones((2, 1)), jnp.ones(3))",
            "torch": "torch.einsum('ik,k->i', torch.ones(2, 1), torch.ones(3))",
        },
    ),
    Case(
        "gradient beside a branch that is NaN", "np.isfinite(r).all()",
        {
            "tensorswap": "ts.program('loss += (log(x[i]) if x[i] > 0 else 0)').grad(wrt=['x'])"
                          "(x=np.array([0.0, 2.0]))['x.grad']",
            "jax": "jax.grad(lambda x: jnp.where(x > 0, jnp.log(x), 0).sum())(jnp.array([0.0, 2.0]))",
            "torch": "(lambda x: (torch.where(x > 0, torch.log(x), 0).sum().backward(), x.grad)[1])"
                     "(torch.tensor([0.0, 2.0], requires_grad=True)).numpy()",
        },
    ),
    Case(
        "gradient of a product with a zero", "np.allclose(r, [6, 0, 0])",
        {
            "tensorswap": "ts.program('p *= x[i]').adjoint(wrt=['x'])"
                          "({'x': np.array([0.0, 2.0, 3.0]), 'p.grad': 1.0})",
            "jax": "jax.grad(jnp.prod)(jnp.array([0.0, 2.0, 3.0]))",
            "torch": "(lambda x: (x.prod().backward(), x.grad)[1])(torch.tensor([0.0, 2.0, 3.0], requires_grad=True))"
                     ".numpy()",
        },
    ),
    Case(
        "index 4 * g with g = 2**62", "",
        {
            "tensorswap": "ts.program('Y[i] = X[4*g[i]]')(X=np.arange(4.0), g=np.array([2**62]))",
            "numpy": "np.arange(4.0)[4 * np.array([2**62])]",
            "jax": "jnp.arange(4.0)[4 * jnp.array([2**62])]",
            "torch": "torch.arange(4.0)[4 * torch.tensor([2**62])]",
        },
    ),
    Case(
        "a result of 8 TiB", "",
        {
            "tensorswap": "ts.program('Y[i,j] = a[i] * b[j]')(a=np.ones(2**20), b=np.ones(2**20))",
            "numpy": "np.einsum('i,j->ij', np.ones(2**20), np.ones(2**20))",
            "opt_einsum": "oe.contract('i,j->ij', np.ones(2**20), np.ones(2**20))",
            "jax": "jnp.einsum('i,j->ij', jnp.ones(2**20), jnp.ones(2**20))",
            "torch": "torch.einsum('i,j->ij', torch.ones(2**20, dtype=torch.float64), "
                     "torch.ones(2**20, dtype=torch.float64))",
        },
    ),
    Case(
        "a text that is code", "",
        {
            "tensorswap": "ts.program('Y[i] = __import__(\"os\").getpid()')",
            "numpy": "np.einsum('__import__(\"os\")', np.ones(2))",
            "opt_einsum": "oe.contract('__import__(\"os\")', np.ones(2))",
            "jax": "jnp.einsum('__import__(\"os\")', jnp.ones(2))",
            "torch": "torch.einsum('__import__(\"os\")', torch.ones(2))",
        },
    ),
)  # fmt: skip


def outcome(case: Case, library: str) -> str:
    """right, refused, another result in silence, or the signal that ended the process."""
    code = case.code.get(library)
    if code is None:
        return "cannot say it"
    check = case.right or "False"
    lines = [
        "import numpy as np, warnings",
        "warnings.simplefilter('ignore')",
        PRELUDE[library],
        "try:",
        f"    r = {code}",
        "except Exception as error:",
        "    print('error:', type(error).__name__)",
        "else:",
        "    r = np.asarray(r)",
        f"    print('right' if ({check}) else 'other, in silence')",
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=300)
    if done.returncode < 0:
        return f"crash, signal {-done.returncode}"
    text = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else f"exit {done.returncode}"
    return "refused" if text.startswith("error:") else text


def table() -> list[list[str]]:
    there = [name for name in LIBRARIES if importlib.util.find_spec(name)]
    rows = [["case", *there]]
    rows += [[case.what, *(outcome(case, name) for name in there)] for case in CASES]
    return rows


def main() -> None:
    rows = table()
    for number, row in enumerate(rows):
        print(f"| {' | '.join(row)} |", flush=True)
        if number == 0:
            print(f"|{' --- |' * len(row)}")


if __name__ == "__main__":
    main()
