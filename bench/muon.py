"""Muon beside AdamW (one command: bench/muon)."""

import argparse
import datetime
import json
import sys
from pathlib import Path

from learning import NO_DROPOUT, draw, loss_curve, metrics_of, python_docs, run
from side import cpu_name

# As quickstart has them.
MODEL = ["--num-layers", 2, "--hidden-size", 128, "--num-attention-heads", 2, "--seq-length", 64]
RECIPE = ["--micro-batch-size", 16, "--min-lr", 1e-5, "--lr-decay-style", "linear", "--lr-warmup-iters", 100, "--init-method-std", 0.06,
          "--weight-decay", 0.05, *NO_DROPOUT, "--split-order", "file"]
RATES = {"adamw": [1.75e-3, 3.5e-3, 7e-3], "muon": [5e-3, 1e-2, 2e-2]}


def train(optimizer, rate, updates, folder, threads):
    save = folder / f"{optimizer}-{rate:g}-{updates}"
    result = save / "result.json"
    if not result.exists():
        done = json.loads(run("train", *MODEL, *RECIPE, "--optimizer", optimizer, "--lr", rate, "--train-iters", updates, "--tokenizer",
                              folder / "tokenizer", "--data-path", folder / "corpus", "--eval-iters", 200, "--log-interval", 1, "--threads",
                              threads, "--save", save, "--json", "-", tell=False))
        done["losses"] = [line["loss"] for line in metrics_of(save, "iteration")]
        result.write_text(json.dumps(done))
    one = json.loads(result.read_text())
    print(f"{optimizer}, {rate:g}, {updates} updates: validation loss {one['validation_loss']:.4f}", file=sys.stderr)
    return dict(one, optimizer=optimizer, rate=rate, updates=updates)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=1000, help="of AdamW")
    parser.add_argument("--share", type=float, default=0.75, help="of them, Muon's")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("build/bench-muon"), help="where corpus and runs are kept")
    options = parser.parse_args()
    python_docs(options.folder, 4096)
    updates = {"adamw": options.updates, "muon": round(options.share * options.updates)}
    runs = [train(optimizer, rate, updates[optimizer], options.folder, options.threads) for optimizer, rates in RATES.items() for rate in rates]
    best = {optimizer: min((one for one in runs if one["optimizer"] == optimizer), key=lambda one: one["validation_loss"]) for optimizer in RATES}
    draw("muon", "quickstart's GPT-2 (L 2, h 128) on the documentation of Python", "updates", "training loss, nats",
         [dict(name=f"{name}, {one['rate']:g}", points=loss_curve(one["losses"])) for name, one in best.items()])
    rows = ["| optimizer | learning rate | updates | validation loss | tokens/s |", "|---|---|---|---|---|"]
    for one in runs:
        mark = "**" if one is best[one["optimizer"]] else ""
        rows.append(f"| {one['optimizer']} | {one['rate']:g} | {one['updates']} | {mark}{one['validation_loss']:.4f}{mark} | {one['tokens_per_second']:.0f} |")
    adamw, muon = best["adamw"], best["muon"]
    verdict = (f"Muon's best is {muon['validation_loss']:.4f} after {muon['updates']} updates, AdamW's {adamw['validation_loss']:.4f} after "
               f"{adamw['updates']}: " + ("Muon gets there" if muon["validation_loss"] <= adamw["validation_loss"] else "Muon does not get there") +
               f" in {100 * options.share:.0f} % of the updates.")
    heading = (f"{datetime.date.today()}, {cpu_name()}; {' '.join(map(str, MODEL))}, batch 16, seed 1234, each run with its whole schedule; "
               f"`bench/muon {' '.join(sys.argv[1:])}`")
    text = heading + "\n\n" + "\n".join(rows) + "\n\n" + verdict + "\n"
    print(text)
    Path("bench/results/muon.md").write_text("# Muon beside AdamW\n\n" + text + "\n![losses](muon.svg)\n")


main()
