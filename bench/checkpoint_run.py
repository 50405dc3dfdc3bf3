"""Drives bench/checkpoint --run: three trainings of GPT-2 124M that take turns of ten updates, each turn with one save."""

import argparse
import datetime
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic

from side import cpu_name

TERATRON = "build/release/teratron"
INTERVAL = 10  # updates between saves
WAYS = {
    "without saving": [],
    "saves that wait": ["--save-interval", INTERVAL],
    "--async-save": ["--save-interval", INTERVAL, "--async-save"],
}


class Training:
    """`teratron train` that stands still between its turns. They end in the middle between two saves."""

    def __init__(self, folder, sequences, way, shape):
        self.folder, self.at = folder, INTERVAL // 2
        words = ["train", *shape, "--data-path", folder.parent / "corpus", "--tokenizer", folder.parent / "bpe",
                 "--micro-batch-size", 1, "--global-batch-size", sequences, "--train-iters", 1000000, "--log-interval", 1,
                 "--save", folder, "--save-interval-in-mins", 0, "--keep-last", 1, "--threads", 2, *WAYS[way]]
        self.process = subprocess.Popen([TERATRON, *map(str, words)], stderr=subprocess.PIPE, text=True)
        self.read_until(self.at)
        self.process.send_signal(signal.SIGSTOP)
        self.seconds = []

    def read_until(self, update):
        said = []
        for line in self.process.stderr:
            said.append(line)
            if (found := re.match(r"iteration +(\d+)/", line)) and int(found[1]) >= update:
                return
        sys.exit(f"{self.process.args} ended with {self.process.wait()}: {''.join(said[-5:])}")

    def turn(self):
        self.at += INTERVAL
        begin = monotonic()
        self.process.send_signal(signal.SIGCONT)
        self.read_until(self.at)
        self.seconds.append(monotonic() - begin)
        self.process.send_signal(signal.SIGSTOP)

    def close(self):
        self.process.kill()
        self.process.wait()


def measure(folder, sequences, rounds, shape):
    folder.mkdir()
    pages = sorted(map(str, Path("docs").glob("**/*.md")))
    for words in (["tokenizer", "train", "--vocab-size", "400", "--out", folder / "bpe"],
                  ["data", "tokenize", "--tokenizer", folder / "bpe", "--out", folder / "corpus"]):
        subprocess.run([TERATRON, *words, *pages], check=True, capture_output=True)
    runs = [Training(folder / str(number), sequences, way, shape) for number, way in enumerate(WAYS)]
    for number in range(rounds):
        for run in runs[number % len(runs):] + runs[:number % len(runs)]:
            run.turn()
        print(f"{sequences} sequences: {', '.join(f'{run.seconds[-1]:.2f}' for run in runs)} s", file=sys.stderr, flush=True)
    for run in runs:
        run.close()
    return [run.seconds for run in runs]


def row(sequences, seconds):
    without = seconds[0]
    cells = [f"{sequences}", f"{statistics.median(without):.2f}"]
    for way in seconds[1:]:
        added = sorted(100 * (a / b - 1) for a, b in zip(way, without))
        cells.append(f"{statistics.median(added):+.2f} ({added[0]:+.2f} to {added[-1]:+.2f})")
    return f"| {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sequences", type=int, nargs="+", default=[1, 4], help="of an update")
    parser.add_argument("--shape", default="--model 124M --vocab-size 50257 --seq-length 1024")
    parser.add_argument("--folder", default="/var/tmp", help="on the disk that is to be written to")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        rows = [row(sequences, measure(Path(folder) / str(sequences), sequences, options.rounds, options.shape.split()))
                for sequences in options.sequences]
    text = f"""# Saving every ten updates

`teratron train {options.shape}`, one sequence at a time, two threads: three processes of which one runs at a time, in turns
of ten updates with one save each. Median of {options.rounds} rounds, smallest and largest. {datetime.date.today()},
{cpu_name()}, {os.cpu_count()} processors, load {os.getloadavg()[1]:.1f} in the last five minutes:
`bench/checkpoint {' '.join(sys.argv[1:])}`.

| sequences of an update | ten updates without saving, s | added by a save that waits, % | added by `--async-save`, % |
|---|---|---|---|
{chr(10).join(rows)}
"""
    print(text)
    if options.save:
        Path("bench/results/checkpoint_run.md").write_text(text)


main()
