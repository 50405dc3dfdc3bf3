"""Compares the training steps of two builds of Teratron: python3 bench/versions.py OLD NEW [--rounds N] [--only TEXT]

OLD and NEW are programs bench_train_step. They take turns, step by step, and the first of a turn changes; printed are the
medians of each, the ratio of the medians, and the median of the ratios of neighbours, new over old. More than 1: the new
one is slower. Peak memory and planned memory are ratios too.
"""

import argparse
import statistics

from side import Side

A = dict(layers=6, hidden=384, heads=6, seq=256, vocab=4096, batch=8)
B = dict(layers=4, hidden=256, heads=4, seq=256, vocab=8192, batch=8)
GPT2 = dict(layers=12, hidden=768, heads=12, vocab=50257)
ONE, TWO = dict(GPT2, seq=1024, batch=1), dict(GPT2, seq=512, batch=2)
PIPELINE = dict(layers=8, hidden=384, heads=6, vocab=4096)
ROWS = [
    ("train a", A, {}),
    ("train b", B, {}),
    ("train c, 124M", ONE, {}),
    ("a, dropout 0.1", A, dict(dropout=0.1)),
    ("tp 2", ONE, dict(tp=2)),
    ("tp 2, sequence parallel", ONE, dict(tp=2, sp=1)),
    ("dp 2", TWO, dict(dp=2)),
    ("dp 2, sharded optimizer", TWO, dict(dp=2, zero=1)),
    ("selective recompute", ONE, dict(recompute=1)),
    ("full recompute", ONE, dict(recompute=2)),
    ("bf16", ONE, dict(bf16=1)),
    ("pp 2, terapipe, 8 x 256", dict(PIPELINE, seq=2048, batch=1), dict(pp=2, schedule=3, slices=",".join(["256"] * 8))),
    ("pp 2, seq1f1b, 4 x 1024", dict(PIPELINE, seq=1024, batch=4),
     dict(pp=2, schedule=4, micro=1, slices=",".join(["256"] * 4))),
    ("pp 2, 1f1b, 4 x 1024", dict(PIPELINE, seq=1024, batch=4), dict(pp=2, schedule=1, micro=1)),
]


def compare(programs, shape, options, rounds):
    old, new = (Side([program], shape, threads=2, **options) for program in programs)
    count = 1 if shape["layers"] == 12 else 2
    for turn in range(rounds):
        for side in (old, new) if turn % 2 == 0 else (new, old):
            side.steps(count)
    for side in (old, new):
        side.close()
    return old, new


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs=2, metavar="PROGRAM", help="bench_train_step, the old one first")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="the rows whose titles have this in them")
    options = parser.parse_args()
    print("| | old, ms | new, ms | medians | neighbours | peak memory | planned |\n" + "|---" * 7 + "|")
    for title, shape, more in ROWS:
        if options.only not in title:
            continue
        old, new = compare(options.programs, shape, more, options.rounds)
        medians = [statistics.median(side.seconds) for side in (old, new)]
        neighbours = statistics.median(b / a for a, b in zip(old.seconds, new.seconds))
        print(f"| {title} | {1e3 * medians[0]:.1f} | {1e3 * medians[1]:.1f} | {medians[1] / medians[0]:.3f} | {neighbours:.3f} "
              f"| {new.peak / old.peak:.3f} | {new.ready['planned_bytes'] / old.ready['planned_bytes']:.4f} |", flush=True)


if __name__ == "__main__":
    main()
