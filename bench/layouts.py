"""Drives bench/layouts: each layout a process of its own, taking turns; medians, as ratios to one rank."""

import argparse
import datetime
import statistics
import sys

from side import Side, cpu_name

SMALL = dict(layers=12, hidden=768, heads=12, vocab=50257)
ONE_SEQUENCE, TWO_SEQUENCES = dict(SMALL, seq=1024, batch=1), dict(SMALL, seq=512, batch=2)
# Rows: what the layout is, its shape, and its options.
STUDIES = {
    "GPT-2 124M, s 1024, batch 1": (ONE_SEQUENCE, {
        "1 rank": {}, "tp 2": dict(tp=2), "tp 2, sequence parallel": dict(tp=2, sp=1)}),
    "GPT-2 124M, s 512, batch 2": (TWO_SEQUENCES, {
        "1 rank": {}, "dp 2": dict(dp=2), "dp 2, sharded optimizer": dict(dp=2, zero=1)}),
    "GPT-2 124M, s 1024, batch 1, one rank": (ONE_SEQUENCE, {
        "1 rank": {}, "selective recompute": dict(recompute=1), "full recompute": dict(recompute=2), "bf16": dict(bf16=1)}),
}


def measure(shape, layouts, rounds):
    sides = {name: Side(["build/release/bench_train_step"], shape, threads=2, **options)
             for name, options in layouts.items()}
    for _ in range(rounds):
        for side in sides.values():
            side.steps(1)
    rows = []
    base = statistics.median(sides["1 rank"].seconds)
    for name, side in sides.items():
        ranks = layouts[name].get("tp", 1) * layouts[name].get("dp", 1)
        seconds, planned = statistics.median(side.seconds), side.ready["planned_bytes"]
        rows.append(f"| {name} | {side.ready['model_flops_per_step'] / seconds * 1e-9:.1f} | {100 * base / seconds:.1f} % "
                    f"| {planned / 1e6:.0f} | {side.peak / ranks / 1e6:.0f} | {100 * (side.peak / ranks / planned - 1):+.1f} % |")
        side.close()
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    text = (f"{datetime.date.today()}, {cpu_name()}, thread ranks on 2 cores, fp32 unless said; medians of "
            f"{options.rounds} interleaved rounds; `bench/layouts {' '.join(sys.argv[1:])}`\n")
    for title, (shape, layouts) in STUDIES.items():
        text += (f"\n| {title} | model GFLOP/s | of one rank's speed | planned MB a rank | measured MB a rank | difference |\n"
                 + "|---" * 6 + "|\n" + "\n".join(measure(shape, layouts, options.rounds)) + "\n")
        print(text.rsplit("\n\n", 1)[-1], file=sys.stderr, flush=True)
    print(text)
    if options.save:
        with open("bench/results/layouts.md", "w") as file:
            file.write("# bench/layouts\n\n" + text)


main()
