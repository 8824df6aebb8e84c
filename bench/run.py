"""Runs benchmarks by name and prints one figure each: `python bench/run.py [NAME …] [--json]`.

A figure stands beside its goal and, where there is one, beside a reference that was
measured in the same run on the same machine. Timing decides no test; these are to be read.
"""

import argparse
import importlib
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Name → module and function, in the order in which they run.
BENCHMARKS = {
    "append_scalar": ("appending", "append_scalar"),
    "append_trajectories": ("appending", "append_trajectories"),
    "pass_10k": ("passes", "pass_10k"),
    "pass_100k": ("passes", "pass_100k"),
    "pass_1m": ("passes", "pass_1m"),
    "why": ("why", "why"),
    "read_batch": ("reading", "read_batch"),
    "fairness": ("fairness", "fairness"),
}
_VERSIONS = ("rollbook", "deltalake", "duckdb", "pyarrow", "polars")


@dataclass(frozen=True)
class Figure:
    """One measured value.

    Attributes:
        name: what was measured.
        value: the median.
        unit: its unit.
        goal: what it should be, as text.
        is_met: whether it is.
        rows: how many rows it was measured on.
        reference: value of the reference in the same unit, measured in the same run.
        ratio: value divided by reference.
        reference_name: what the reference is.
        spread: smallest and largest of the runs.
        more: further figures of the same run.
    """

    name: str
    value: float
    unit: str
    goal: str
    is_met: bool
    rows: int
    reference: float | None = None
    ratio: float | None = None
    reference_name: str | None = None
    spread: tuple[float, float] | None = None
    more: dict[str, float] = field(default_factory=dict)


@contextmanager
def workspace() -> Iterator[Path]:
    """Yield an empty folder that is gone afterwards."""
    path = Path(tempfile.mkdtemp(prefix="rollbook-bench-"))
    try:
        yield path
    finally:
        shutil.rmtree(path)


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": _cpu() or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in _VERSIONS},
    }


def _cpu() -> str:
    path = Path("/proc/cpuinfo")
    if not path.is_file():
        return ""
    lines = path.read_text().splitlines()
    return next((x.partition(":")[2].strip() for x in lines if x.startswith("model name")), "")


def _describe(figure: Figure) -> str:
    text = f"{figure.name}: {figure.value:,.3f} {figure.unit}, goal {figure.goal}"
    text += f" ({'met' if figure.is_met else 'MISSED'}), {figure.rows:,} rows"
    if figure.spread:
        text += f", {figure.spread[0]:,.3f} to {figure.spread[1]:,.3f}"
    if figure.reference is not None and figure.ratio is not None:
        text += (
            f"\n    {figure.ratio:.2f} × {figure.reference_name}"
            f" ({figure.reference:,.3f} {figure.unit})"
        )
    for name, value in figure.more.items():
        text += f"\n    {name}: {value:,.3f}"
    return text


def main() -> None:
    """Run the named benchmarks, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--json", action="store_true", help="print one JSON object a figure")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the fairness figures (SVG)")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.names) - set(BENCHMARKS)):
        parser.error(f"no benchmark {unknown[0]!r}; there are: {', '.join(BENCHMARKS)}")
    if arguments.plot and arguments.names and "fairness" not in arguments.names:
        parser.error("--plot draws the figures of fairness: name it too")
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    where = machine()
    fair = []
    if not arguments.json:
        print(json.dumps(where))
    for name in arguments.names or BENCHMARKS:
        module, function = BENCHMARKS[name]
        measured = getattr(importlib.import_module(f"bench.{module}"), function)()
        for figure in [measured] if isinstance(measured, Figure) else measured:
            if function == "fairness":
                fair.append(figure)
            if arguments.json:
                print(json.dumps({**asdict(figure), "machine": where}), flush=True)
            else:
                print(_describe(figure), flush=True)
    if arguments.plot:
        drawn = importlib.import_module("bench.bars").bars(fair)
        arguments.plot.write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    sys.modules["bench.run"] = sys.modules["__main__"]
    main()
