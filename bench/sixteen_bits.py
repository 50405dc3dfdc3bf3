"""Training steps in bf16 and fp16 beside fp32, ours alone, with each set of instructions: python3 bench/sixteen_bits.py

Steps take turns, one thread each, and are counted in processor seconds, which other programs on the machine hardly change.
Printed are the median of each, and fp32's over it: below 1, the 16-bit type is the slower one.
"""

import argparse
import datetime
import os
import statistics
import sys

from side import Side, cpu_name

SHAPES = {
    "a": ("L 6, h 384, s 256, batch 8", dict(layers=6, hidden=384, heads=6, seq=256, vocab=4096, batch=8)),
    "b": ("L 4, h 256, s 256, batch 8", dict(layers=4, hidden=256, heads=4, seq=256, vocab=8192, batch=8)),
    "c": ("GPT-2 124M, s 1024", dict(layers=12, hidden=768, heads=12, seq=1024, vocab=50257, batch=1)),
}
TYPES = {"fp32": {}, "bf16": dict(bf16=1), "fp16": dict(fp16=1)}


def measure(program, shape, instructions, rounds):
    os.environ["TERATRON_INSTRUCTIONS"] = instructions
    sides = {name: Side([program], shape, threads=1, **options) for name, options in TYPES.items()}
    for turn in range(rounds):
        for side in list(sides.values())[:: 1 if turn % 2 == 0 else -1]:
            side.steps(1)
    for side in sides.values():
        side.close()
    return {name: statistics.median(side.processor_seconds) for name, side in sides.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/release/bench_train_step")
    parser.add_argument("--instructions", default="avx2,avx512", help="sets that TERATRON_INSTRUCTIONS takes")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=SHAPES)
    options = parser.parse_args()
    print(f"{datetime.date.today()}, {cpu_name()}, one thread, processor seconds, medians of {options.rounds} steps in turns; "
          f"`python3 bench/sixteen_bits.py {' '.join(sys.argv[1:])}`\n")
    print("| instructions | model | fp32, ms | bf16, ms | fp16, ms | bf16 | fp16 |\n" + "|---" * 7 + "|")
    for instructions in options.instructions.split(","):
        for key, (title, shape) in SHAPES.items():
            if options.only not in (None, key):
                continue
            of = measure(options.program, shape, instructions, options.rounds)
            print(f"| {instructions} | {title} | {' | '.join(f'{1e3 * of[name]:.0f}' for name in TYPES)} "
                  f"| {of['fp32'] / of['bf16']:.2f} | {of['fp32'] / of['fp16']:.2f} |", flush=True)


main()
