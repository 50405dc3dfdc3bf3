"""Drives bench/checkpoint: each side saves once a round, in turns; medians, fastest and slowest."""

import argparse
import datetime
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from side import Program, cpu_name, require

LAYERS, HIDDEN, HEADS = 12, 768, 12


def disk(folder, size):
    """Seconds that the same bytes take past the page cache, as dd oflag=direct conv=fsync writes them."""
    path, block = f"{folder}/disk", memoryview(__import__("mmap").mmap(-1, 4 << 20))
    begin = time.monotonic()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_DIRECT)
    for _ in range(size // len(block)):
        os.write(file, block)
    os.fsync(file)
    os.close(file)
    seconds = time.monotonic() - begin
    os.remove(path)
    return seconds


def cell(seconds):
    return f"{statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", default="/var/tmp", help="on the disk that is to be written to")
    options = parser.parse_args()
    require("torch")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        ours = Program(["build/release/bench_checkpoint", f"{folder}/ours", *map(str, (LAYERS, HIDDEN, HEADS))])
        os.mkdir(f"{folder}/torch")
        torch = Program([sys.executable, "bench/peers/pytorch_save.py", f"{folder}/torch", str(LAYERS), str(HIDDEN)])
        size = torch.ready["bytes"]
        times = {name: [] for name in ("save", "copy", "memory", "torch.save", "distributed", "disk")}
        writes, cpu = [], []
        for _ in range(options.rounds):
            times["save"].append(ours.ask("save")["seconds"])
            copy = ours.ask("copy")
            times["copy"].append(copy["seconds"])
            writes.append(copy["write"])
            cpu.append(copy["cpu"])
            times["memory"].append(ours.ask("memory")["seconds"])
            for peer in ("torch.save", "distributed"):
                times[peer].append(torch.ask(peer)["seconds"])
            times["disk"].append(disk(folder, size))
        ours.close()
        torch.close()
    load = os.getloadavg()[1]
    text = f"""# Checkpoints

A GPT-2 of 124 million weights with AdamW's moments, {size / 1e9:.2f} GB, {options.rounds} rounds in turns; median (fastest
to slowest) in seconds, all with fsync. {datetime.date.today()}, {cpu_name()}, {os.cpu_count()} processors, load {load:.1f}
in the last five minutes: `bench/checkpoint --save`.

| what | seconds | checksums, finite values |
|---|---|---|
| `save_checkpoint` | {cell(times["save"])} | yes |
| torch.save, then fsync | {cell(times["torch.save"])} | no |
| torch.distributed.checkpoint, sync_files | {cell(times["distributed"])} | no |
| the same bytes, direct writes of 4 MiB one after another | {cell(times["disk"])} | no |
| `--async-save`: the step waits for the copy | {cell(times["copy"])} | yes |
| two threads that copy as many bytes from memory to memory | {cell(times["memory"])} | no |
| `--async-save`: writing beside training | {cell(writes)} | |
| `--async-save`: the processor's seconds of both | {cell(cpu)} | |
"""
    print(text)
    if options.save:
        Path("bench/results/checkpoint.md").write_text(text)


main()
