"""relative.png and relative.svg: how fast tensorswap is against the best other peer of each row."""

from __future__ import annotations

from pathlib import Path

from .peers import PEERS
from .result import Run

# blue and vermilion of Okabe and Ito's palette: they differ in lightness, and to every kind of colour vision
FASTER, SLOWER = "#0072B2", "#D55E00"


def write(run: Run, folder: Path) -> str:
    """Draws both files. Gives the reason if it cannot."""
    bars = [
        (row.title, speed, PEERS[row.best_peer].label)
        for row in run.rows
        if row.best_peer and (speed := row.speed_against(row.best_peer))
    ]
    if not bars:
        return "no row has both a time of tensorswap and one of another peer"
    try:
        import matplotlib
    except ImportError:
        return "matplotlib is not installed"
    matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.rc_context({"svg.fonttype": "none", "svg.hashsalt": "tensorswap", "font.size": 10}):
        figure, axes = pyplot.subplots(figsize=(9, 1.6 + 0.3 * len(bars)), layout="constrained")
        titles, speeds, peers = zip(*reversed(bars), strict=True)
        colours = [FASTER if speed >= 1 else SLOWER for speed in speeds]
        # bars grow from 1 to both sides, so that the length is the ratio, whichever way it goes
        axes.barh(titles, [speed - 1 for speed in speeds], left=1, color=colours, height=0.7)
        axes.set_xscale("log")
        axes.axvline(1, color="black", linewidth=1)
        low, high = min(1.0, *speeds), max(1.0, *speeds)
        axes.set_xlim(low / 1.3 / (high / low) ** 0.15, high * 1.3 * (high / low) ** 0.3)
        for position, (speed, peer) in enumerate(zip(speeds, peers, strict=True)):
            at = max(speed, 1.0)
            axes.annotate(
                f"{speed:.2f} × {peer}", (at, position), (4, 0), textcoords="offset points", va="center", fontsize=8
            )
        ticks = [t for t in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if low / 1.3 <= t <= high * 1.3]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.grid(axis="x", color="0.85", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.margins(y=0.01)
        axes.set_xlabel("speed over that of the best other peer (log scale)")
        cpu = f"{run.machine['cpu']}, threads: {run.machine['threads']}"
        sizes = "small sizes, not a measurement" if run.settings["quick"] else "forward and backward"
        figure.suptitle(f"tensorswap against the best other peer of each row\n{cpu}; {sizes}", fontsize=10)
        for suffix in ("png", "svg"):
            figure.savefig(folder / f"relative.{suffix}", dpi=150)
        pyplot.close(figure)
    return ""
