"""sizes.png: time against size for each family of workloads and each peer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from .peers import OURS, PEERS
from .result import Run
from .workload import Workload

COLOURS = {
    "tensorswap": "#0072B2",
    "numpy": "#999999",
    "jax": "#E69F00",
    "torch": "#D55E00",
    "torch_compile": "#CC79A7",
}


def write(run: Run, folder: Path, families: Mapping[str, Sequence[Workload]]) -> str:
    """Draws one panel for each family. Gives the reason if it cannot."""
    try:
        import matplotlib
    except ImportError:
        return "matplotlib is not installed"
    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = {row.name: row for row in run.rows}
    with pyplot.rc_context({"font.size": 9}):
        figure, panels = pyplot.subplots(
            -(-len(families) // 2), 2, figsize=(10, 2 * len(families)), layout="constrained"
        )
        for axes, (title, workloads) in zip(panels.flat, families.items(), strict=False):
            found = [rows[w.name] for w in workloads if w.name in rows]
            for peer, colour in COLOURS.items():
                points = [(size_of(row.name), row.seconds(peer)) for row in found]
                known = [(size, 1e6 * seconds) for size, seconds in points if seconds]
                if known:
                    width = 2.2 if peer == OURS else 1.2
                    label = PEERS[peer].label
                    axes.plot(
                        *zip(*known, strict=True), color=colour, linewidth=width, marker="o", markersize=3, label=label
                    )
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_title(title)
            axes.set_xlabel("size")
            axes.set_ylabel("microseconds of a call")
            axes.grid(color="0.88", linewidth=0.6)
            axes.spines[["top", "right"]].set_visible(False)
        panels.flat[0].legend(frameon=False)
        figure.suptitle(f"time against size; {run.machine['cpu']}, threads: {run.machine['threads']}", fontsize=10)
        figure.savefig(folder / "sizes.png", dpi=150)
        pyplot.close(figure)
    return ""


def size_of(name: str) -> int:
    return int(name.rpartition("_")[2])
