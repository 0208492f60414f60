"""Bundle adjustment: the errors of points that cameras project, and the derivative of each by what it depends on.

A camera is three numbers of its rotation (axis times angle), its centre, its focal length, the principal point and two
of the radial distortion. Each observation depends on one camera, one point and one weight, so that the Jacobian is
sparse: its rows are asked for as blocks of 2 x 15, by each error's own reverse pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes

from .problem import Function, rows

# observations are the last index, so that each line runs along them
PROJECTION = """
def project(c[e,o], x[a,o], w[o], feature[o,r]) -> error[r,o], weight_error[o]:
    P[a,o] = x[a,o] - c[3+a,o]
    angle[o] = sqrt(c[0,o] ** 2 + c[1,o] ** 2 + c[2,o] ** 2)
    cosine[o] = cos(angle[o])
    sine[o] = sin(angle[o])
    u[a,o] = c[a+0,o] / angle[o]
    along[o] = (u[0,o] * P[0,o] + u[1,o] * P[1,o] + u[2,o] * P[2,o]) * (1 - cosine[o])
    R[0,o] = P[0,o] * cosine[o] + (u[1,o] * P[2,o] - u[2,o] * P[1,o]) * sine[o] + u[0,o] * along[o]
    R[1,o] = P[1,o] * cosine[o] + (u[2,o] * P[0,o] - u[0,o] * P[2,o]) * sine[o] + u[1,o] * along[o]
    R[2,o] = P[2,o] * cosine[o] + (u[0,o] * P[1,o] - u[1,o] * P[0,o]) * sine[o] + u[2,o] * along[o]
    flat[r,o] = R[r+0,o] / R[2,o]
    radius[o] = flat[0,o] ** 2 + flat[1,o] ** 2
    bent[o] = 1 + c[9,o] * radius[o] + c[10,o] * radius[o] ** 2
    error[r,o] = w[o] * (flat[r,o] * bent[o] * c[6,o] + c[7+r,o] - feature[o,r])
    weight_error[o] = 1 - w[o] ** 2
"""
GIVEN = """
c[e,o] = cameras[camera[o],e]
x[a,o] = points[point[o],a]
"""
OBJECTIVE = f"""{PROJECTION}
{GIVEN}
rows, weight_error = project(c, x, w, feature)
error[o,r] = rows[r,o]
"""
JACOBIAN = f"""
{GIVEN}
size(row) = 2
seed[row,r,o] = 1 if row == r else 0
camera_rows, point_rows, by_weight = project.adjoint(c, x, w, feature, seed)
by_camera[row,o,e] = camera_rows[row,e,o]
by_point[row,o,a] = point_rows[row,a,o]
weight_slope[o] = -2 * w[o]
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    """One camera, one point and one feature, again and again, as in the files of ADBench."""
    n, m, p = sizes["n"], sizes["m"], sizes["p"]
    centre = generator.standard_normal(3)
    camera = np.concatenate(
        [0.1 * generator.standard_normal(3), centre, generator.uniform(1, 2, 1), generator.standard_normal(4) / 10]
    )
    point = centre + [*generator.standard_normal(2), 5.0]
    return {
        "cameras": np.tile(camera, (n, 1)).astype(dtype),
        "points": np.tile(point, (m, 1)).astype(dtype),
        "w": np.full(p, generator.uniform()).astype(dtype),
        "feature": np.tile(generator.standard_normal(2), (p, 1)).astype(dtype),
        "camera": np.arange(p) % n,
        "point": np.arange(p) % m,
    }


def by_rows(program: Any) -> Any:
    """The reverse pass of each of the two errors of every observation."""
    import tensorswap as ts

    projection = ts.program(PROJECTION)
    adjoint = projection.adjoint(wrt=["c", "x", "w"], of=["error"]).batch("row", over=["error.grad"])
    names = ["by_camera", "by_point", "by_weight", "weight_slope"]
    return ts.program(f"{adjoint}\n{JACOBIAN}", outputs=names)


def projected(np: Any, camera: Any, point: Any, weight: Any, feature: Any) -> Any:
    """The errors of one observation; `np` is JAX's numpy, or PyTorch."""
    away = point - camera[3:6]
    angle = np.sqrt((camera[:3] ** 2).sum())
    u = camera[:3] / angle
    (x, y, z), (a, b, c) = u, away
    cross = np.stack([y * c - z * b, z * a - x * c, x * b - y * a])
    along = (u * away).sum() * (1 - np.cos(angle))
    turned = away * np.cos(angle) + cross * np.sin(angle) + u * along
    flat = turned[:2] / turned[2]
    radius = (flat**2).sum()
    bent = 1 + camera[9] * radius + camera[10] * radius**2
    return weight * (flat * bent * camera[6] + camera[7:9] - feature)


def jax_objective(jax: Any, cameras: Any, points: Any, w: Any, feature: Any, camera: Any, point: Any) -> Any:
    error = jax.vmap(lambda *given: projected(jax.numpy, *given))
    return {"error": error(cameras[camera], points[point], w, feature), "weight_error": 1 - w**2}


def jax_jacobian(jax: Any, cameras: Any, points: Any, w: Any, feature: Any, camera: Any, point: Any) -> Any:
    blocks = jax.vmap(jax.jacrev(lambda *given: projected(jax.numpy, *given), argnums=(0, 1, 2)), out_axes=1)
    found = blocks(cameras[camera], points[point], w, feature)
    return dict(zip(("by_camera", "by_point", "by_weight"), found, strict=True)) | {"weight_slope": -2 * w}


def torch_objective(torch: Any, cameras: Any, points: Any, w: Any, feature: Any, camera: Any, point: Any) -> Any:
    error = torch.func.vmap(lambda *given: projected(torch, *given))
    return {"error": error(cameras[camera], points[point], w, feature), "weight_error": 1 - w**2}


def torch_jacobian(torch: Any, cameras: Any, points: Any, w: Any, feature: Any, camera: Any, point: Any) -> Any:
    reverse = torch.func.jacrev(lambda *given: projected(torch, *given), argnums=(0, 1, 2))
    found = torch.func.vmap(reverse, out_dims=1)(cameras[camera], points[point], w, feature)
    return dict(zip(("by_camera", "by_point", "by_weight"), found, strict=True)) | {"weight_slope": -2 * w}


def shapes(arrays: Arrays) -> dict[str, tuple[int, ...]]:
    p = len(arrays["w"])
    return {"by_camera": (2, p, 11), "by_point": (2, p, 3), "by_weight": (2, p), "weight_slope": (p,)}


WORKLOADS = rows(
    "ba",
    [
        Function(
            "objective",
            OBJECTIVE,
            lambda arrays: {"error": (len(arrays["w"]), 2), "weight_error": (len(arrays["w"]),)},
            jax_objective,
            torch_objective,
            outputs=("error", "weight_error"),
        ),
        Function(
            "jacobian",
            OBJECTIVE,
            shapes,
            jax_jacobian,
            torch_jacobian,
            outputs=("by_camera", "by_point", "by_weight", "weight_slope"),
            derive=by_rows,
        ),
    ],
    sizes=[{"n": 49, "m": 7776, "p": 31_843}, {"n": 372, "m": 47_423, "p": 204_472}],
    quick={"n": 2, "m": 3, "p": 5},
    make_arrays=make_arrays,
    c_sizes=lambda arrays: arrays["w"].shape,
    terms=lambda sizes: 10_000,
)
