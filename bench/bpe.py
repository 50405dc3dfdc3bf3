"""Drives bench/bpe: starts each side as a process of its own on the same core, lets them take turns, prints medians."""

import argparse
import datetime
import os
import statistics
import sys
from pathlib import Path

from side import Program, cpu_name, publish

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
FILES = [DATA / name for name in ("wikitext103/wiki.test.tokens", "tinyshakespeare/input.txt", "race/dev.high.jsonl")]
VOCABULARY = DATA / "gpt2-bpe"
TRAINED_SIZE = 4096


class OneCore(Program):
    """Held to one core and one thread."""

    def __init__(self, command, core):
        super().__init__(
            command,
            env={**os.environ, "RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"},
            preexec_fn=lambda: os.sched_setaffinity(0, {core}))


def measure(sides, request, rounds):
    """The median seconds of each side."""
    answers = [[side.ask(request) for side in sides] for _ in range(rounds)]
    if len({answer["tokens"] for answer in answers[0]}) > 1 and request.startswith("encode"):
        sys.exit(f"{request}: the sides differ: {answers[0]}")
    return [statistics.median(turn[i]["seconds"] for turn in answers) for i in range(len(sides))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--binary", default="build/release/bench_bpe")
    parser.add_argument("files", nargs="*", type=Path, default=FILES)
    options = parser.parse_args()
    core = max(os.sched_getaffinity(0))
    sides = [OneCore([options.binary, str(VOCABULARY)], core),
             OneCore([sys.executable, str(Path(__file__).parent / "peers" / "tiktoken_bpe.py")], core)]
    lines = [f"| text | MB | encode MB/s: Teratron | tiktoken | ratio | train {TRAINED_SIZE}, s: Teratron "
             "| HF tokenizers | ratio |", "|---" * 8 + "|"]
    for file in options.files:
        size = file.stat().st_size / 1e6
        ours, peer = measure(sides, f"encode {file.resolve()}", options.rounds)
        our_training, peer_training = measure(sides, f"train {TRAINED_SIZE} {file.resolve()}", max(1, options.rounds // 3))
        lines.append(f"| {file.name} | {size:.2f} | {size / ours:.1f} | {size / peer:.1f} | {peer / ours:.1f}x "
                     f"| {our_training:.2f} | {peer_training:.2f} | {peer_training / our_training:.1f}x |")
        print(lines[-1], file=sys.stderr, flush=True)
    for side in sides:
        side.close()
    versions = sides[1].ready
    text = (f"{datetime.date.today()}, {cpu_name()}, one core; tiktoken {versions['tiktoken']}, tokenizers "
            f"{versions['tokenizers']}; medians of {options.rounds} interleaved rounds, no word known beforehand; "
            f"`bench/bpe {' '.join(sys.argv[1:])}`\n\n" + "\n".join(lines) + "\n")
    publish("bpe", text, options.save)


main()
