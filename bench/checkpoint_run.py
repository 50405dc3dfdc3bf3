"""Drives bench/checkpoint --run: trainings of GPT-2 124M that save every few updates, waited for and beside training."""

import argparse
import datetime
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic

from side import cpu_name

TERATRON = "build/release/teratron"
INTERVAL = 10  # updates between saves that the table reckons with
NEAR = 3       # updates after a save that it may slow down; others are taken for undisturbed
WAYS = {"a save that waits": [], "`--async-save`": ["--async-save"]}


def processor_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def train(folder, sequences, way, shape, interval, saves):
    """Clock and processor seconds at the end of each update, the first `interval` of which warm up."""
    words = ["train", *shape, "--data-path", folder / "corpus", "--tokenizer", folder / "bpe", "--micro-batch-size", 1,
             "--global-batch-size", sequences, "--train-iters", 1000000, "--log-interval", 1, "--save", folder / f"run{len(way)}",
             "--save-interval", interval, "--save-interval-in-mins", 0, "--keep-last", 1, "--threads", 2, *way]
    process = subprocess.Popen([TERATRON, *map(str, words)], stderr=subprocess.PIPE, text=True)
    ends, said = [], []
    for line in process.stderr:
        said.append(line)
        if re.match(r"iteration +\d+/", line):
            ends.append((monotonic(), processor_seconds(process.pid)))
            if len(ends) == interval * (saves + 1):
                process.kill()
                process.wait()
                return ends[interval - 1:]
    sys.exit(f"{process.args} ended with {process.wait()}: {''.join(said[-5:])}")


def added(ends, interval):
    """The undisturbed update (median), and what each save and the NEAR updates after it take beyond: pairs of seconds."""
    updates = [tuple(b - a for a, b in zip(before, after)) for before, after in zip(ends, ends[1:])]
    calm = [statistics.median(of) for of in zip(*(update for i, update in enumerate(updates) if i % interval >= NEAR))]
    near = [updates[i:i + NEAR] for i in range(0, len(updates), interval)]
    return calm, [tuple(sum(of) - NEAR * one for of, one in zip(zip(*window), calm)) for window in near]


def cell(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def rows(folder, sequences, options):
    folder.mkdir()
    pages = sorted(map(str, Path("docs").glob("**/*.md")))
    for words in (["tokenizer", "train", "--vocab-size", "400", "--out", folder / "bpe"],
                  ["data", "tokenize", "--tokenizer", folder / "bpe", "--out", folder / "corpus"]):
        subprocess.run([TERATRON, *words, *pages], check=True, capture_output=True)
    for name, way in WAYS.items():
        ends = train(folder, sequences, way, options.shape.split(), options.interval, options.saves)
        (clock, processor), saves = added(ends, options.interval)
        wait, work = zip(*saves)
        percent = [100 * seconds / (INTERVAL * clock) for seconds in wait]
        yield (f"| {sequences} | {name} | {clock:.2f} | {cell(wait, 2)} | {processor:.2f} | {cell(work, 2)} "
               f"| {cell(percent, 2)} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--saves", type=int, default=6, help="that are measured, of each way")
    parser.add_argument("--interval", type=int, default=6, help="updates between them")
    parser.add_argument("--sequences", type=int, nargs="+", default=[1, 4], help="of an update")
    parser.add_argument("--shape", default="--model 124M --vocab-size 50257 --seq-length 1024")
    parser.add_argument("--folder", default="/var/tmp", help="on the disk that is to be written to")
    options = parser.parse_args()
    if options.interval <= NEAR:
        parser.error(f"--interval is more than {NEAR}")
    table = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for sequences in options.sequences:
            table += rows(Path(folder) / str(sequences), sequences, options)
    text = f"""# Saving every ten updates

`teratron train {options.shape}`, one sequence at a time, two threads, {options.saves} saves of each way, one every
{options.interval} updates. A save adds what it and the {NEAR} updates after it take beyond {NEAR} others; medians, smallest and largest.
{datetime.date.today()}, {cpu_name()}, {os.cpu_count()} processors, load {os.getloadavg()[1]:.1f} in the last five
minutes: `bench/checkpoint {' '.join(sys.argv[1:])}`.

| sequences of an update | save | an update, s | a save adds, s | an update, processor s | a save adds, processor s | of ten updates, % |
|---|---|---|---|---|---|---|
{chr(10).join(table)}
"""
    print(text)
    if options.save:
        Path("bench/results/checkpoint_run.md").write_text(text)


main()
