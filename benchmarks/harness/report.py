"""results.json and table.md."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from .peers import OURS, PEERS, REFERENCE
from .result import SUCCEEDED, Measurement, RowResult, Run, geometric_mean

NOTHING = "–"

NOTES = """\
Times are the median of all rounds, in milliseconds, for forward and backward pass together; inputs are ready before.
`WRONG` is a result that differs from the reference, `FAILED` an error or a call that took too long; the reasons stand
below. A bold time is the fastest of its row.

- **best / ours**: the time of the fastest other peer over that of tensorswap. Above 1 tensorswap is faster.
- **numpy / ours**: the same against the hand-written numpy.
- **of the limit**: the time that arithmetic or memory bandwidth of this machine allow over the time of tensorswap;
  1 is the limit. Arithmetic is instructions on vectors, of which an exponential takes twelve. Each input and output
  counts once, at the speed of main memory. So a small problem that stays in the caches can be above 1.
- **first call**: seconds from the text to the first result of tensorswap; behind it, in a new process that finds
  plans and kernels on disk: what `import tensorswap` imports is not counted, what the call imports is.
- **memory**: peak during a call of tensorswap, with what stays allocated between calls, but without the inputs;
  behind it, the least among the other peers.
"""


def write(run: Run, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(as_json(run), indent=1) + "\n")
    (folder / "table.md").write_text(table(run))


def as_json(run: Run) -> dict[str, object]:
    plain = asdict(run)
    for row, found in zip(plain["rows"], run.rows, strict=True):
        for name, measurement in found.peers.items():
            row["peers"][name] |= {"seconds": measurement.seconds, "peak_bytes": measurement.peak_bytes}
        row["best_peer"] = found.best_peer
        row["speed_against_best_peer"] = found.speed_against(found.best_peer)
    return plain


def table(run: Run) -> str:
    """The whole page."""
    rows = [row for row in run.rows if row.peers]
    shown = [name for name in PEERS if name in run.peers]
    parts = [heading(run), NOTES]
    for kind in dict.fromkeys(row.kind for row in rows):
        those = [row for row in rows if row.kind == kind]
        peers = [name for name in shown if any(takes_part(row, name) for row in those)]
        parts += [f"## {kind.capitalize()}s\n", times(those, peers), means(those, peers)]
    parts += [first_calls(run, rows, shown), peaks(rows, shown), reasons(run, rows)]
    return "\n".join(part for part in parts if part)


def takes_part(row: RowResult, peer: str) -> bool:
    return peer in row.peers and row.peers[peer].status != "not applicable"


def heading(run: Run) -> str:
    machine = run.machine
    versions = {library: version for peer in run.peers.values() for library, version in peer["versions"].items()}
    lines = ["# Benchmarks", ""]
    if not run.finished:
        lines += ["**The run was ended early: this is what it had measured.**", ""]
    if run.settings["quick"]:
        lines += ["**Small sizes, one round: a test of the benchmarks, not a measurement.**", ""]
    lines += [
        f"{machine['cpu']} ({machine['architecture']}), {machine['cores']} cores, threads of every peer:"
        f" {machine['threads']}; {machine['system']}; Python {machine['python']};"
        f" {', '.join(f'{library} {version}' for library, version in sorted(versions.items()))}.",
        "",
    ]
    if run.roofline:
        lines += [
            f"Limits measured in this run: {run.roofline['float32'] / 1e9:.1f} GFLOP/s in float32,"
            f" {run.roofline['float64'] / 1e9:.1f} in float64, {run.roofline['bandwidth'] / 1e9:.1f} GB/s.",
            "",
        ]
    return "\n".join(lines)


def times(rows: list[RowResult], shown: list[str]) -> str:
    body = []
    for row in rows:
        fastest = min((s for name in shown if (s := row.seconds(name))), default=None)
        cells = [row.title, *(time_cell(row.peers.get(name), fastest) for name in shown)]
        cells += [
            ratio(row.speed_against(row.best_peer)),
            ratio(row.speed_against(REFERENCE)),
            ratio(row.share_of_limit),
        ]
        cells += [first_call(row), memory(row)]
        body.append(cells)
    names = [*header(shown), "best / ours", "numpy / ours", "of the limit", "first call", "memory"]
    told = [column for column in range(len(names)) if any(cells[column] != NOTHING for cells in body)]
    return markdown([names[column] for column in told], [[cells[column] for column in told] for cells in body])


def means(rows: list[RowResult], shown: list[str]) -> str:
    """Of the ratios of each row, over the rows that have both times."""
    ratios = {"the best other peer of each row": [row.speed_against(row.best_peer) for row in rows]}
    ratios |= {PEERS[name].label: [row.speed_against(name) for row in rows] for name in shown if name != OURS}
    ratios["the limit of the machine"] = [row.share_of_limit for row in rows]
    body = []
    for label, values in ratios.items():
        mean, count = geometric_mean(values)
        body.append([label, ratio(mean), f"{sum(value > 1 for value in values if value)} of {count}"])
    return "Geometric means:\n\n" + markdown(["time of", "over that of tensorswap", "tensorswap is faster in"], body)


def first_calls(run: Run, rows: list[RowResult], shown: list[str]) -> str:
    caches = "with empty caches" if run.settings["cold"] else "with what earlier runs have left in the caches"
    body = [["import, and a first small product", *(seconds(run.peers[name]["start_seconds"]) for name in shown)]]
    for row in rows:
        found = [row.peers.get(name, Measurement()) for name in shown]
        body.append([row.title, *(seconds(measurement.first_call_seconds) for measurement in found)])
    return f"## First call, seconds, {caches}\n\n" + markdown(header(shown), body)


def peaks(rows: list[RowResult], shown: list[str]) -> str:
    if all(row.peak_bytes(name) is None for row in rows for name in shown):
        return ""
    body = [[row.title, *(megabytes(row.peak_bytes(name)) for name in shown)] for row in rows]
    return "## Peak memory of a call, with what stays allocated between calls, but without the inputs\n\n" + markdown(
        header(shown), body
    )


def header(shown: list[str]) -> list[str]:
    return ["workload", *(PEERS[name].label for name in shown)]


def reasons(run: Run, rows: list[RowResult]) -> str:
    """Why something has no time."""
    lines = [f"- {peer['label']}: {one_line(peer['absent'])}" for peer in run.peers.values() if peer["absent"]]
    for row in rows:
        for name, found in row.peers.items():
            if found.status in ("wrong", "failed"):
                lines.append(f"- {row.title}, {PEERS[name].label}, {found.status}: {one_line(found.reason)}")
    return "## What has no time\n\n" + "\n".join(lines) + "\n" if lines else ""


def time_cell(found: Measurement | None, fastest: float | None) -> str:
    if found is None or found.status in ("absent", "not applicable"):
        return NOTHING
    if found.status != SUCCEEDED:
        return found.status.upper()
    if found.seconds is None:
        return NOTHING
    text = f"{found.seconds * 1e3:.3g}" if found.seconds < 1 else f"{found.seconds * 1e3:.0f}"
    return f"**{text}**" if found.seconds == fastest else text


def first_call(row: RowResult) -> str:
    ours = row.peers.get(OURS)
    if ours is None or ours.first_call_seconds is None:
        return NOTHING
    cached = ours.cached_first_call_seconds
    return seconds(ours.first_call_seconds) + (f" ({seconds(cached)})" if cached is not None else "")


def memory(row: RowResult) -> str:
    if row.peak_bytes(OURS) is None:
        return NOTHING
    peer = row.leanest_peer
    return megabytes(row.peak_bytes(OURS)) + (f" / {megabytes(row.peak_bytes(peer))} ({peer})" if peer else "")


def ratio(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


def seconds(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


def megabytes(value: int | None) -> str:
    if value is None:
        return NOTHING
    return f"{value / 1e6:.1f} MB" if value >= 1e5 else "< 0.1 MB"


def one_line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 300 else f"{flat[:300]}…"


def markdown(header: list[str], body: list[list[str]]) -> str:
    """A table whose columns line up in the text, too: the first to the left, the others to the right."""
    lines = [header, *body]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]

    def padded(line: list[str]) -> str:
        cells = [cell.rjust(width) for cell, width in zip(line, widths, strict=True)]
        return f"| {' | '.join([line[0].ljust(widths[0]), *cells[1:]])} |\n"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "".join(map(padded, [header, rule, *body]))
