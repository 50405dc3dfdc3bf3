"""Drives bench/contention: a training step quiet and beside a busy loop; medians, as ratios to the quiet one."""

import argparse
import contextlib
import datetime
import os
import shutil
import statistics
import subprocess
import sys

from side import Side, cpu_name

SHAPE = dict(layers=6, hidden=512, heads=8, seq=512, vocab=8000, batch=1)
OURS = "build/release/bench_train_step"


# Ends with its parent, however that ends.
LOOP = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1000000): pass
"""


@contextlib.contextmanager
def busy_loop():
    process = subprocess.Popen([sys.executable, "-c", LOOP])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def layouts(cores):
    yield f"one rank, {cores} threads", [], dict(threads=cores)
    yield f"tp {cores}, ranks that are threads", [], dict(threads=cores, tp=cores)
    if shutil.which("mpirun"):
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(cores)]
        processes = dict(threads=1, tp=cores)
        yield f"tp {cores}, MPI processes (--bind-to none)", mpirun + ["--bind-to", "none"], processes
        yield f"tp {cores}, MPI processes that mpirun binds to cores", mpirun, processes


def measure(program, launcher, options, rounds):
    """Medians of the steps: quiet, beside a busy loop, and beside it at nice 10."""
    usual = Side(launcher + [program], SHAPE, **options)
    nice = Side(["nice", "-n", "10"] + launcher + [program], SHAPE, **options)
    times = {"quiet": [], "busy": [], "nice": []}

    def run(side, condition):
        side.seconds.clear()
        side.steps(3)
        times[condition] += side.seconds

    for _ in range(rounds):
        run(usual, "quiet")
        with busy_loop():
            run(usual, "busy")
            run(nice, "nice")
    usual.close()
    nice.close()
    return [statistics.median(times[condition]) for condition in ("quiet", "busy", "nice")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--before")
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    text = (f"{datetime.date.today()}, {cpu_name()}, {cores} cores, fp32, {SHAPE}; medians of {3 * options.rounds} steps, "
            f"conditions interleaved; `bench/contention {' '.join(sys.argv[1:])}`\n\n"
            "| layout | program | ms a step, quiet | beside a busy loop | at nice 10 |\n|---|---|---|---|---|\n")
    for title, launcher, sizes in layouts(cores):
        for name, program in (("ours", OURS), ("before", options.before)):
            if program is None or (launcher and name == "before"):  # which may not know launchers
                continue
            quiet, busy, nice = measure(program, launcher, sizes, options.rounds)
            text += f"| {title} | {name} | {1e3 * quiet:.1f} | {busy / quiet:.2f} times | {nice / quiet:.2f} times |\n"
            print(text.splitlines()[-1], file=sys.stderr, flush=True)
    print(text)
    if options.save:
        with open("bench/results/contention.md", "w") as file:
            file.write("# bench/contention\n\n" + text)


main()
