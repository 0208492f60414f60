"""Hand tracking: how far points are from a hand whose bones turn, and the derivative by its pose, as in ADBench.

A pose has a rotation (axis times angle) and a place of the hand, and four angles for each of five fingers. Each vertex
follows its bones by weights. A point belongs to a place in a triangle, which `us` gives and is asked for, too: so the
Jacobian has two columns of the point's own, then the 26 of the pose.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.runners.tensorswap_program import joined
from harness.workload import Arrays, Sizes

from .problem import Function, rows

BONES = 22

SKELETON = """
angles[b,e] = theta[which[b,e]] if which[b,e] >= 0
sx[b] = sin(angles[b,0])
cx[b] = cos(angles[b,0])
sz[b] = sin(angles[b,1])
cz[b] = cos(angles[b,1])
sy[b] = sin(angles[b,2])
cy[b] = cos(angles[b,2])
turn[b,0,0] = cz[b] * cy[b]
turn[b,0,1] = cz[b] * sy[b] * sx[b] - sz[b] * cx[b]
turn[b,0,2] = cz[b] * sy[b] * cx[b] + sz[b] * sx[b]
turn[b,1,0] = sz[b] * cy[b]
turn[b,1,1] = sz[b] * sy[b] * sx[b] + cz[b] * cx[b]
turn[b,1,2] = sz[b] * sy[b] * cx[b] - cz[b] * sx[b]
turn[b,2,0] = -sy[b]
turn[b,2,1] = cy[b] * sx[b]
turn[b,2,2] = cy[b] * cx[b]
turn[b,3,3] = 1
relative[b,i,j] += base[b,i,k] * turn[b,k,j]
for b:
    absolute[b,i,j] += relative[b,i,j] if parent[b] < 0
    absolute[b,i,j] += absolute[parent[b],i,k] * relative[b,k,j] if parent[b] >= 0
size(r) = 3
"""
BONE = """
bone[b,r,j] += absolute[b,r+0,k] * inverse[b,k,j]
"""
HAND = """
norm = sqrt(whole[0] ** 2 + whole[1] ** 2 + whole[2] ** 2)
u[r] = whole[r+0] / norm
s = sin(norm)
c = cos(norm)
globe[0,0] = u[0] * u[0] + (1 - u[0] * u[0]) * c
globe[0,1] = u[0] * u[1] * (1 - c) - u[2] * s
globe[0,2] = u[0] * u[2] * (1 - c) + u[1] * s
globe[1,0] = u[0] * u[1] * (1 - c) + u[2] * s
globe[1,1] = u[1] * u[1] + (1 - u[1] * u[1]) * c
globe[1,2] = u[1] * u[2] * (1 - c) - u[0] * s
globe[2,0] = u[0] * u[2] * (1 - c) - u[1] * s
globe[2,1] = u[1] * u[2] * (1 - c) + u[0] * s
globe[2,2] = u[2] * u[2] + (1 - u[2] * u[2]) * c
size(q) = 3
skin[v,r] += weight[v,b] * bone[b,r,j] * rest[v,j]
hand[v,r] += globe[r,q] * skin[v,q]
hand[v,r] += whole[3+r]
corner[n,q] = triangle[triangle_of[n],q]
place[n,r] = us[n,0] * hand[corner[n,0],r] + us[n,1] * hand[corner[n,1],r] \\
    + (1 - us[n,0] - us[n,1]) * hand[corner[n,2],r]
error[n,r] = points[n,r] - place[n,r]
return error
"""
WHOLE = """
size(h) = 6
whole[h] = theta[h+0]
"""
TEXT = SKELETON + BONE + WHOLE + HAND

# An angle moves the bones of one finger only: angles of five fingers share a derivative if each finger's part is kept
# apart. What a point takes from each bone does not depend on the pose.
FINGERS = """
size(finger) = 5
size(joint) = 4
size(q) = 3
share[n,0] = us[n,0]
share[n,1] = us[n,1]
share[n,2] = 1 - us[n,0] - us[n,1]
corner[n,q] = triangle[triangle_of[n],q]
follows[n,b,j] += share[n,q] * weight[corner[n,q],b] * rest[corner[n,q],j]
part[n,finger,r] += follows[n,1+4*finger+joint,j] * bone[1+4*finger+joint,r,j]
"""
COLUMNS = """
size(way) = 6
size(angle) = 4
size(side) = 2
size(d) = 2
theta.dot[angle,f] = 1 if f >= 6 and (f - 6) % 4 == angle else 0
whole.dot[way,h] = 1 if way == h else 0
us.dot[side,n,d] = 1 if side == d else 0
"""
JACOBIAN = """
column[way+0,n,r] = error.dot[way,n,r]
column[6+4*finger+angle,n,r] = -globe[r,0] * part.dot[angle,n,finger,0] \\
    - globe[r,1] * part.dot[angle,n,finger,1] - globe[r,2] * part.dot[angle,n,finger,2]
theta[f]: array
points[n,r]: array
"""


def skeleton() -> tuple[Any, Any]:
    """The parent of each bone, and the number of the pose that each of its angles is: wrist, five fingers, forearm."""
    parent, which, angle = np.full(BONES, -1), np.full((BONES, 3), -1), 6
    for first in range(1, BONES - 1, 4):
        parent[first : first + 4] = [0, first, first + 1, first + 2]
        for bone, turns in ((first + 1, 2), (first + 2, 1), (first + 3, 1)):
            which[bone, :turns] = np.arange(angle, angle + turns)
            angle += turns
    parent[BONES - 1] = 0
    return parent, which


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    vertices, points = sizes["v"], sizes["n"]
    parent, which = skeleton()
    base = np.tile(np.eye(4), (BONES, 1, 1))
    base[:, :3, :3] = np.linalg.qr(generator.standard_normal((BONES, 3, 3)))[0]
    base[:, :3, 3] = generator.standard_normal((BONES, 3))
    absolute = np.empty_like(base)
    for bone in range(BONES):
        absolute[bone] = base[bone] if parent[bone] < 0 else absolute[parent[bone]] @ base[bone]
    weight = generator.uniform(size=(vertices, BONES))
    rest = np.concatenate([generator.standard_normal((vertices, 3)), np.ones((vertices, 1))], axis=1)
    return {
        "theta": generator.standard_normal(26).astype(dtype),
        "us": generator.uniform(0, 0.5, (points, 2)).astype(dtype),
        "points": generator.standard_normal((points, 3)).astype(dtype),
        "base": base.astype(dtype),
        "inverse": np.linalg.inv(absolute).astype(dtype),
        "rest": rest.astype(dtype),
        "weight": (weight / weight.sum(axis=1, keepdims=True)).astype(dtype),
        "parent": parent,
        "which": which,
        "triangle": generator.integers(0, vertices, (2 * vertices, 3)),
        "triangle_of": generator.integers(0, 2 * vertices, points),
    }


def columns(program: Any) -> Any:
    """The tangent along each number of the pose, and along the two of a point's place in its triangle."""
    import tensorswap as ts

    hand = ts.program(HAND)
    fingers = ts.program(SKELETON + BONE + FINGERS, outputs=["part"])
    angles = fingers.tangent(wrt=["theta"]).batch("angle", over=["theta.dot"])
    pose = hand.tangent(wrt=["whole"]).batch("way", over=["whole.dot"])
    place = str(hand.tangent(wrt=["us"]).batch("side", over=["us.dot"]))
    place = place.replace("place.dot", "place.dot2").replace("error.dot", "error.dot2")
    text = COLUMNS + WHOLE
    for part in (angles, BONE, pose, place, JACOBIAN):
        text = joined(text, str(part))
    return ts.program(text, outputs=["column", "error.dot2"])


def posed(np: Any, given: dict[str, Any]) -> Any:
    """The hand's vertices; `np` is JAX's numpy, or PyTorch."""
    theta, which = given["theta"], given["which"]
    angles = np.where(which >= 0, theta[which], 0.0)
    (sx, sz, sy), (cx, cz, cy) = np.sin(angles).T, np.cos(angles).T
    zero = np.zeros_like(sx)
    entries = [
        [cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx, zero],
        [sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx, zero],
        [-sy, cy * sx, cy * cx, zero],
        [zero, zero, zero, zero + 1],
    ]
    turn = np.stack([np.stack(row, -1) for row in entries], -2)
    relative = given["base"] @ turn
    absolute: list[Any] = []
    for bone, parent in enumerate(skeleton()[0]):
        absolute.append(relative[bone] if parent < 0 else absolute[parent] @ relative[bone])
    bones = (np.stack(absolute) @ given["inverse"])[:, :3]
    v, b = given["weight"].shape
    spread = (given["weight"][:, :, None] * given["rest"][:, None]).reshape(v, 4 * b)
    skin = spread @ bones.swapaxes(1, 2).reshape(4 * b, 3)
    norm = np.sqrt((theta[:3] ** 2).sum())
    x, y, z = theta[0] / norm, theta[1] / norm, theta[2] / norm
    s, c = np.sin(norm), np.cos(norm)
    globe = [
        np.stack([x * x + (1 - x * x) * c, x * y * (1 - c) - z * s, x * z * (1 - c) + y * s]),
        np.stack([x * y * (1 - c) + z * s, y * y + (1 - y * y) * c, y * z * (1 - c) - x * s]),
        np.stack([x * z * (1 - c) - y * s, y * z * (1 - c) + x * s, z * z + (1 - z * z) * c]),
    ]
    return skin @ np.stack(globe).T + theta[3:6]


def errors(np: Any, given: dict[str, Any]) -> Any:
    corners = posed(np, given)[given["triangle"][given["triangle_of"]]]
    us = given["us"]
    shares = np.stack([us[:, 0], us[:, 1], 1 - us[:, 0] - us[:, 1]], -1)
    return given["points"] - (shares[:, :, None] * corners).sum(1)


def own(np: Any, given: dict[str, Any]) -> Any:
    """The derivative by the place of each point in its triangle, which no other point depends on."""
    corners = posed(np, given)[given["triangle"][given["triangle_of"]]]
    return np.stack([corners[:, 2] - corners[:, 0], corners[:, 2] - corners[:, 1]])


def jax_objective(jax: Any, **given: Any) -> Any:
    return errors(jax.numpy, given)


def jax_jacobian(jax: Any, **given: Any) -> Any:
    pose = jax.jacfwd(lambda theta: errors(jax.numpy, {**given, "theta": theta}))(given["theta"])
    return {"column": jax.numpy.moveaxis(pose, -1, 0), "error.dot2": own(jax.numpy, given)}


def torch_objective(torch: Any, **given: Any) -> Any:
    return errors(torch, given)


def torch_jacobian(torch: Any, **given: Any) -> Any:
    pose = torch.func.jacfwd(lambda theta: errors(torch, {**given, "theta": theta}))(given["theta"])
    return {"column": pose.movedim(-1, 0), "error.dot2": own(torch, given)}


WORKLOADS = rows(
    "ht",
    [
        Function(
            "objective",
            TEXT,
            lambda arrays: {"error": arrays["points"].shape},
            jax_objective,
            torch_objective,
            output="error",
        ),
        Function(
            "jacobian",
            TEXT,
            lambda arrays: {"column": (26, *arrays["points"].shape), "error.dot2": (2, *arrays["points"].shape)},
            jax_jacobian,
            torch_jacobian,
            outputs=("column", "error.dot2"),
            derive=columns,
        ),
    ],
    sizes=[{"v": 544, "n": 100}, {"v": 10_000, "n": 10_000}],
    quick={"v": 6, "n": 4},
    make_arrays=make_arrays,
    c_sizes=lambda arrays: (len(arrays["rest"]), len(arrays["points"])),
    terms=lambda sizes: 100_000,
)
