"""Drives bench/two_hosts: training runs between two pretended hosts, in turns; bytes by the links' own counters."""

import argparse
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from side import cpu_name

PROGRAM = "build/release/teratron"
LAYERS, HIDDEN, SEQUENCE, BATCH = 4, 512, 512, 8  # a micro-batch is a sequence
UPDATES = 6
ROUNDS = 3


def run(program, rate, flags, folder):
    """Seconds of an update in the middle, and the bytes that the first host sends in one."""
    sent = {}
    for updates in (1, UPDATES):  # the difference leaves out what starting takes
        counted, saved = folder / "sent", folder / "saved"
        command = [
            "tests/comm/process/on-several-hosts", "mpirun", "2", os.path.abspath(program), "train",
            "--data-path", str(folder / "corpus"), "--tokenizer", str(folder / "tok"), "--num-layers", str(LAYERS),
            "--hidden-size", str(HIDDEN), "--num-attention-heads", "8", "--seq-length", str(SEQUENCE),
            "--micro-batch-size", "1", "--global-batch-size", str(BATCH), "--tp", "2", "--pp", "2", "--split", "1",
            "--train-iters", str(updates), "--log-interval", "1", "--save", str(saved), *flags]
        shutil.rmtree(saved, ignore_errors=True)
        environment = os.environ | {
            "RANKS_OF_HOST": "2", "LINK_RATE": rate, "SENT_BYTES": str(counted), "OMP_NUM_THREADS": "1"}
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        sent[updates] = int(counted.read_text().split()[0])
        lines = [json.loads(line) for line in (saved / "metrics.jsonl").read_text().splitlines()]
        times = [line["seconds"] for line in lines if "seconds" in line]
    return statistics.median(times[1:]), (sent[UPDATES] - sent[1]) / (UPDATES - 1)


def prepare(folder):
    text = folder / "text.txt"
    text.write_text("\n".join(f"line {number} of a text that is long enough to train on" for number in range(20000)))
    subprocess.run([PROGRAM, "tokenizer", "train", "--vocab-size", "512", "--out", str(folder / "tok"), str(text)],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run([PROGRAM, "data", "tokenize", "--tokenizer", str(folder / "tok"), "--out", str(folder / "corpus"),
                    str(text)], check=True, stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--rate", default="200mbit")
    parser.add_argument("--before")
    options = parser.parse_args()
    sides = {"each rank its part": (PROGRAM, []), "sequence parallel": (PROGRAM, ["--sequence-parallel"])}
    if options.before:
        sides = {"before: each rank all": (options.before, [])} | sides
    results = {name: [] for name in sides}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prepare(folder)
        for _ in range(ROUNDS):
            for side, (program, flags) in sides.items():
                results[side].append(run(program, options.rate, flags, folder))
    stream = BATCH * SEQUENCE * HIDDEN * 4
    rows = [f"| {side} | {statistics.median(seconds for seconds, _ in found):.2f} "
            f"| {statistics.median(sent for _, sent in found) / 1e6:.2f} "
            f"| {statistics.median(sent for _, sent in found) / stream:.2f} |" for side, found in results.items()]
    text = "\n".join([
        "# Messages between pipeline stages on two hosts", "",
        f"{datetime.date.today()}, {cpu_name()}, `bench/two_hosts {' '.join(sys.argv[1:])}`. tp 2 x pp 2, a stage on each "
        f"of two network namespaces, a link of {options.rate} (tc, tbf) between them; {LAYERS} layers, hidden {HIDDEN}, "
        f"{BATCH} sequences of {SEQUENCE} tokens an update, fp32, so a stage's stream is {stream / 1e6:.2f} MB an update. Bytes "
        "by the link's counter, headers and the tied embedding's gradient included. Medians.", "",
        "| | seconds an update | MB sent by the first host | streams |", "|---|---|---|---|", *rows, ""])
    print(text)
    if options.save:
        pathlib.Path("bench/results/two_hosts.md").write_text(text)


if __name__ == "__main__":
    main()
