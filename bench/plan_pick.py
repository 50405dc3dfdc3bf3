"""Drives bench/plan_pick: of each model the layouts that two ranks of this machine can have, and the one that the planner
picks for the cluster that `teratron profile` measured; each run is a process of its own, layouts take turns. The least of
many noisy times is too low, so the fastest few and the pick are measured anew, and these times alone are compared."""

import argparse
import datetime
import itertools
import json
import pathlib
import shutil
import statistics
import sys
import tempfile

from plan_accuracy import WARM_UP, Machine
from side import cpu_name

MODELS = [dict(layers=4, hidden=256, heads=4, tokens=128, vocabulary=1000, batch=8),
          dict(layers=6, hidden=128, heads=2, tokens=512, vocabulary=1000, batch=2),
          dict(layers=4, hidden=128, heads=2, tokens=64, vocabulary=8000, batch=16)]


def model_flags(model):
    return ["--num-layers", model["layers"], "--hidden-size", model["hidden"], "--num-attention-heads", model["heads"],
            "--seq-length", model["tokens"], "--vocab-size", model["vocabulary"], "--global-batch-size", model["batch"]]


def layouts_of(model):
    """Flags of all layouts of two ranks without recompute; slices in up to eight even ones."""
    batch = model["batch"]
    sizes = [size for size in (1, 2, 4, 8, 16, 32) if size <= batch]
    for size, more in itertools.product(sizes, ([], ["--sequence-parallel"])):
        yield ["--tp", 2, "--micro-batch-size", size, *more]
    for size, more in itertools.product(sizes, ([], ["--use-distributed-optimizer"])):
        if size <= batch // 2:
            yield ["--dp", 2, "--micro-batch-size", size, *more]
    for size, slices in itertools.product(sizes, (1, 2, 4, 8)):
        schedules = ("1f1b", "gpipe") if slices == 1 else ("seq1f1b", "terapipe")
        for schedule in schedules:
            yield ["--pp", 2, "--micro-batch-size", size, "--schedule", schedule, "--token-slices", f"uniform:{slices}"]


def pick(machine, model):
    """The planner's words for `teratron train`, its layout alone; and the step that it predicts."""
    answer = json.loads(machine.run("plan", *model_flags(model), "--cluster", "cluster-2-1.toml", "--json", "-"))
    words, flags = answer["words"], []
    left_out = {str(word) for word in model_flags(model)[::2]} | {"--train-iters", "--data-path", "--tokenizer", "--backend"}
    at = 0
    while at < len(words):
        end = at + 1
        while end < len(words) and not words[end].startswith("--"):
            end += 1
        if words[at] not in left_out:
            flags += words[at:end]
        at = end
    return flags, answer["best"][0]["step_seconds"]


def measure(machine, model, flags, updates):
    shutil.rmtree(machine.folder / "run", ignore_errors=True)
    name = f"v{model['vocabulary']}"
    machine.run("train", "--data-path", name, "--tokenizer", f"tokenizer-{name}", "--split", "1", "--threads", 2,
                *model_flags(model), "--train-iters", updates, *flags, "--save", "run", "--json", "-", timed=True)
    lines = [json.loads(line) for line in (machine.folder / "run/metrics.jsonl").read_text().splitlines()]
    return [line["seconds"] for line in lines if line.get("kind") == "iteration"][WARM_UP:]


def medians(machine, model, ways, rounds, updates):
    """Seconds of each way; ways take turns."""
    seconds = [[] for _ in ways]
    for _ in range(rounds):
        for times, layout in zip(seconds, ways):
            times.extend(measure(machine, model, layout, updates))
    return [statistics.median(times) for times in seconds]


def study(machine, model, options):
    flags, predicted = pick(machine, model)
    layouts = list(layouts_of(model))
    swept = sorted(zip(medians(machine, model, layouts, options.rounds, options.updates), layouts), key=lambda row: row[0])
    fastest = [layout for _, layout in swept[:options.finalists]]
    picked, again, *finals = medians(machine, model, [flags, flags, *fastest], options.final_rounds, options.updates)
    best, best_layout = min(zip(finals, fastest), key=lambda row: row[0])
    words = lambda layout: " ".join(map(str, layout))
    return {"model": model, "pick": words(flags), "predicted": predicted, "picked": picked, "again": again, "best": best,
            "best_layout": words(best_layout), "worst": swept[-1][0], "layouts": len(layouts)}


def text_of(results, options):
    lines = [f"{datetime.date.today()}, {cpu_name()}, two ranks as threads of one core, fp32; {options.updates - WARM_UP} updates a run: "
             f"each layout {options.rounds} time{'s' if options.rounds > 1 else ''} in turns, then the fastest {options.finalists} and the pick, twice, "
             f"{options.final_rounds} times in turns, whose medians are these; `bench/plan_pick {' '.join(sys.argv[1:])}`\n",
             "| model | layouts | the pick | measured twice, ms | predicted | best measured | ms | the pick, beside the best | slowest, ms |",
             "|---" * 9 + "|"]
    for r in results:
        m = r["model"]
        picked = (r["picked"] + r["again"]) / 2
        lines.append(f"| {m['layers']} x {m['hidden']}, {m['heads']} heads, V {m['vocabulary']}, {m['batch']} x {m['tokens']} tokens "
                     f"| {r['layouts']} | `{r['pick']}` | {1e3 * r['picked']:.1f}, {1e3 * r['again']:.1f} | {1e3 * r['predicted']:.1f} "
                     f"| `{r['best_layout']}` | {1e3 * r['best']:.1f} | {100 * (picked / r['best'] - 1):+.1f} % | {1e3 * r['worst']:.1f} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--rounds", type=int, default=2, help="of all layouts")
    parser.add_argument("--final-rounds", type=int, default=8, help="of the fastest and the pick")
    parser.add_argument("--finalists", type=int, default=4)
    parser.add_argument("--updates", type=int, default=11)
    parser.add_argument("--prefix", default="", help="of timed commands, such as 'chrt -f 10'")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(folder, options.prefix.split())
        for vocabulary in (1000, 8000):
            machine.corpus(vocabulary)
        machine.run("profile", "--cluster", "cluster-2-1.toml", "--dp", 2, "--threads", 2, "--repeats", 9, timed=True)
        results = []
        for model in MODELS:
            results.append(study(machine, model, options))
            print(text_of(results[-1:], options), file=sys.stderr, flush=True)
    text = text_of(results, options)
    print(text)
    if options.save:
        pathlib.Path("bench/results/plan_pick.md").write_text("# bench/plan_pick\n\n" + text)


main()
