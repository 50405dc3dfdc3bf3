"""Drives bench/plan_accuracy: steps of random layouts on this machine, as `teratron simulate --cluster` predicts them from
a cluster that `teratron profile` measured, and as `teratron train` takes them. Each run is a process of its own; layouts
take turns; every layout is measured twice, and how far the two differ is the noise."""

import argparse
import datetime
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

from side import cpu_name

TERATRON = os.path.abspath("build/release/teratron")
TEXT = "../shared/data/tinyshakespeare/input.txt"
WARM_UP = 3  # updates of a run that do not count


class Machine:
    """Runs teratron in a folder of its own, with the user's cache there."""

    def __init__(self, folder, prefix):
        self.folder, self.prefix = pathlib.Path(folder), prefix

    def run(self, *words, timed=False):
        command = (self.prefix if timed else []) + [TERATRON] + [str(word) for word in words]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def corpus(self, vocabulary):
        name = f"v{vocabulary}"
        self.run("tokenizer", "train", "--vocab-size", vocabulary, "--overwrite", "--out", f"tokenizer-{name}", os.path.abspath(TEXT))
        self.run("data", "tokenize", "--tokenizer", f"tokenizer-{name}", "--overwrite", "--out", name, os.path.abspath(TEXT))

    def profile(self, ranks, threads, repeats):
        name = f"cluster-{ranks}-{threads}.toml"
        return json.loads(self.run("profile", "--cluster", name, "--dp", ranks, "--threads", threads, "--repeats",
                                   repeats, "--json", "-", timed=True))


def random_layout(rng):
    layout = {"tp": 1, "pp": 1, "dp": 1, "threads": rng.choice([1, 2, 2])}
    split = rng.choice(["none", "tp", "pp", "dp"])
    if split != "none":
        layout[split] = layout["threads"] = 2
    heads = rng.choice([2, 4, 8])
    layout.update(layers=rng.choice([2, 4, 6]), heads=heads, hidden=heads * rng.choice([32, 48, 64]),
                  tokens=rng.choice([64, 128, 256, 512]), batch=rng.choice([1, 2, 4]), micro_batches=rng.randint(1, 6),
                  slices=rng.choice([1, 1, 2, 4]), recompute=rng.choice(["none", "none", "selective", "full"]),
                  vocabulary=rng.choice([1000, 8000]),
                  flags=rng.choice([[], ["--sequence-parallel"]]) if split == "tp" else
                  rng.choice([[], ["--use-distributed-optimizer"]]) if split == "dp" else [])
    if "--sequence-parallel" in layout["flags"] and layout["slices"] > 1:
        layout["batch"] = 1  # the program takes no more
    return layout


def operations(layout):  # of an update, roughly
    tokens = layout["tokens"] * layout["batch"] * layout["micro_batches"] * layout["dp"]
    return 6 * tokens * (12 * layout["layers"] * layout["hidden"] ** 2 + layout["hidden"] * layout["vocabulary"])


def random_layouts(seed, count):
    """Of steps that take neither so short that starting them is all, nor so long that a study takes hours."""
    rng, layouts = random.Random(seed), []
    while len(layouts) < count:
        layout = random_layout(rng)
        if 1e9 < operations(layout) < 3e10 and layout not in layouts:
            layouts.append(layout)
    return layouts


def shape_flags(layout):
    return ["--num-layers", layout["layers"], "--hidden-size", layout["hidden"], "--num-attention-heads",
            layout["heads"], "--seq-length", layout["tokens"], "--micro-batch-size", layout["batch"], "--tp",
            layout["tp"], "--pp", layout["pp"], "--dp", layout["dp"], "--recompute-granularity", layout["recompute"],
            *layout["flags"]]


def predict(machine, layout):
    ranks = layout["tp"] * layout["pp"] * layout["dp"]
    schedule = "seq1f1b" if layout["slices"] > 1 else "1f1b"
    return json.loads(machine.run(
        "simulate", "--cluster", f"cluster-{ranks}-{layout['threads']}.toml", "--vocab-size", layout["vocabulary"],
        "--micro-batches", layout["micro_batches"], "--slices", layout["slices"], "--schedule", schedule,
        *shape_flags(layout), "--json", "-"))


def train(machine, layout, updates, *more, timed=False):
    name = f"v{layout['vocabulary']}"
    slices = ["--token-slices", f"uniform:{layout['slices']}"] if layout["slices"] > 1 else []
    return json.loads(machine.run(
        "train", "--data-path", name, "--tokenizer", f"tokenizer-{name}", "--split", "1", "--threads",
        layout["threads"], "--global-batch-size", layout["batch"] * layout["micro_batches"] * layout["dp"],
        "--train-iters", updates, *slices, *shape_flags(layout), *more, "--json", "-", timed=timed))


def measure(machine, layout, updates):
    """Seconds of updates."""
    shutil.rmtree(machine.folder / "run", ignore_errors=True)
    train(machine, layout, updates, "--save", "run", timed=True)
    lines = [json.loads(line) for line in (machine.folder / "run/metrics.jsonl").read_text().splitlines()]
    return [line["seconds"] for line in lines if line.get("kind") == "iteration"][WARM_UP:]


def at_full_size(layout):
    """Wide and deep enough that what the plan counts is not lost in what the program takes besides."""
    return {**layout, "layers": max(4, layout["layers"]), "heads": 8, "hidden": 768, "vocabulary": 8000, "micro_batches": 2}


def held_bytes(machine, layout):
    """The peak of resident memory of all ranks; nothing is saved, which takes memory of its own."""
    return sum(train(machine, layout, 2, timed=True)["peak_memory_bytes"])


def title_of(layout):
    parts = [f"{layout['layers']} x {layout['hidden']}, {layout['heads']} heads, V {layout['vocabulary']}",
             f"{layout['micro_batches']} x {layout['batch']} x {layout['tokens']} tokens",
             f"{layout['threads']} thread" + ("s" if layout["threads"] > 1 else "")]
    parts += [f"{name} 2" for name in ("tp", "pp", "dp") if layout[name] == 2]
    parts += [f"{layout['slices']} slices"] if layout["slices"] > 1 else []
    parts += [f"{layout['recompute']} recompute"] if layout["recompute"] != "none" else []
    return "; ".join(parts + [flag[2:] for flag in layout["flags"]])


def program_bytes(machine):
    """Resident memory of the program itself, its corpus and its tokenizer: a model of next to nothing."""
    tiny = dict(tp=1, pp=1, dp=1, threads=1, layers=1, heads=1, hidden=16, tokens=16, batch=1, micro_batches=1, slices=1,
                recompute="none", vocabulary=8000, flags=[])
    machine.run("profile", "--cluster", "cluster-tiny.toml", "--threads", 1, "--repeats", 1)
    planned = max(stage["memory_bytes"] for stage in predict(machine, tiny)["stage_use"])
    return held_bytes(machine, tiny) - planned


def study(machine, layouts, rounds, updates):
    for vocabulary in (1000, 8000):
        machine.corpus(vocabulary)
    clusters = sorted({(l["tp"] * l["pp"] * l["dp"], l["threads"]) for l in layouts} | {(1, 1)})
    fits, predictions, seconds = [], [[] for _ in layouts], [([], []) for _ in layouts]
    for round_ in range(rounds):
        # The machine's speed changes over minutes, so that profiles take turns with what they predict.
        fits.append({cluster: machine.profile(*cluster, 9) for cluster in clusters})
        for times, layout in zip(predictions, layouts):
            times.append(predict(machine, layout)["seconds"])
        for which in (0, 1):
            for i, layout in enumerate(layouts):
                seconds[i][which].extend(measure(machine, layout, updates))
        print(f"round {round_ + 1} of {rounds}", file=sys.stderr, flush=True)
    rows, own = [], program_bytes(machine)
    for i, layout in enumerate(layouts):
        predicted = statistics.median(predictions[i])
        first, second = (statistics.median(times) for times in seconds[i])
        measured = statistics.median(seconds[i][0] + seconds[i][1])
        ranks = layout["tp"] * layout["pp"] * layout["dp"]
        large = at_full_size(layout)
        planned = sum(stage["memory_bytes"] for stage in predict(machine, large)["stage_use"]) * ranks / layout["pp"]
        held = held_bytes(machine, large) - own
        rows.append({"layout": title_of(layout), "measured_ms": 1e3 * measured,
                     "predicted_ms": 1e3 * predicted, "error": predicted / measured - 1, "noise": second / first - 1,
                     "profiles": max(predictions[i]) / min(predictions[i]) - 1, "planned_bytes": planned, "held_bytes": held,
                     "memory_error": planned / held - 1})
    return rows, fits, own


def mean(values):
    values = [abs(value) for value in values]
    return sum(values) / len(values)


def text_of(rows, fits, own, options):
    worst = max(abs(row["error"]) for row in rows)
    text = (f"{datetime.date.today()}, {cpu_name()}, {len(os.sched_getaffinity(0))} cores, fp32, ranks as threads; medians "
            f"of {options.rounds} interleaved rounds of a profile and {options.updates - WARM_UP} updates, twice (noise: how far "
            f"the two differ; profiles: how far their predictions are apart); `bench/plan_accuracy {' '.join(sys.argv[1:])}`\n\n"
            f"Step time: {100 * mean(row['error'] for row in rows):.1f} % off in the mean, {100 * worst:.1f} % at worst; "
            f"noise {100 * mean(row['noise'] for row in rows):.1f} %, "
            f"{100 * max(abs(row['noise']) for row in rows):.1f} % at worst. "
            f"Memory of the same layouts in models 768 wide, beside the program's own {own / 1e6:.0f} MB: "
            f"{100 * mean(row['memory_error'] for row in rows):.1f} %, "
            f"{100 * max(abs(row['memory_error']) for row in rows):.1f} % at worst.\n\n"
            "| layout | measured, ms | predicted, ms | off, % | noise, % | profiles, % | planned, MB | held, MB | off, % |\n"
            + "|---" * 9 + "|\n")
    for row in rows:
        text += (f"| {row['layout']} | {row['measured_ms']:.1f} | {row['predicted_ms']:.1f} | {100 * row['error']:+.1f} "
                 f"| {100 * row['noise']:+.1f} | {100 * row['profiles']:.1f} | {row['planned_bytes'] / 1e6:.1f} | {row['held_bytes'] / 1e6:.1f} "
                 f"| {100 * row['memory_error']:+.1f} |\n")
    text += "\nThe clusters' constants, fitted to 20 small models each (`teratron profile --cluster`), round by round:\n\n"
    for ranks, threads in fits[0]:
        for fit in (round_[(ranks, threads)] for round_ in fits):
            constants = ", ".join(f"{name} {value:.3g}" for name, value in fit["constants"].items())
            text += (f"- {ranks} rank{'s' if ranks > 1 else ''}, {threads} thread{'s' if threads > 1 else ''}: {constants}; "
                     f"{100 * fit['mean_error']:.1f} % off its own passes\n")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--layouts", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=12)
    parser.add_argument("--prefix", default="", help="of timed commands, such as 'chrt -f 10'")
    parser.add_argument("--json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(folder, options.prefix.split())
        rows, fits, own = study(machine, random_layouts(options.seed, options.layouts), options.rounds, options.updates)
    text = text_of(rows, fits, own, options)
    print(text)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")
    if options.save:
        pathlib.Path("bench/results/plan.md").write_text("# bench/plan_accuracy\n\n" + text)


if __name__ == "__main__":
    main()
