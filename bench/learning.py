"""What the benchmarks share that train models for as long as it takes to learn something."""

import json
import subprocess
import sys
from pathlib import Path

TERATRON = "build/release/teratron"
DATA = Path("../shared/data")


def run(*words, tell=True):
    done = subprocess.run([TERATRON, *map(str, words)], stdout=subprocess.PIPE, stderr=None if tell else subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return done.stdout


def metrics_of(folder, kind):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == kind]


def draw(name, title, x_axis, y_axis, lines):
    """bench/results/NAME.json and its picture, NAME.svg."""
    chart = dict(title=title, x_axis=x_axis, y_axis=y_axis, lines=lines)
    path = Path("bench/results") / f"{name}.json"
    path.write_text(json.dumps(chart))
    with path.open() as source, path.with_suffix(".svg").open("w") as picture:
        subprocess.run(["build/release/bench_line_chart"], check=True, stdin=source, stdout=picture)
