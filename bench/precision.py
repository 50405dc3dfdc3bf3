"""The same training in four precisions (one command: bench/precision)."""

import argparse
import datetime
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from learning import DATA, NO_DROPOUT, draw, metrics_of, run
from side import cpu_name

MODEL = ["--num-layers", 4, "--hidden-size", 256, "--num-attention-heads", 4, "--seq-length", 128]
PRECISIONS = {"fp32": [], "fp32, bf16 moments": ["--optimizer-state", "bf16"], "bf16": ["--bf16"],
              "bf16, bf16 moments": ["--bf16", "--optimizer-state", "bf16"]}
SHOWN = 10  # updates whose mean is a point of the figure


def articles(folder):
    """RACE's articles for middle schools, a document each; the corpus and its tokenizer."""
    lines = subprocess.run(["zstd", "-dc", DATA / "race/train.middle.jsonl.zst"], check=True, capture_output=True, text=True).stdout.splitlines()
    text = folder / "articles.jsonl"
    text.write_text("".join(json.dumps({"text": json.loads(line)["article"]}) + "\n" for line in lines))
    run("tokenizer", "train", "--vocab-size", 4096, "--overwrite", "--out", folder / "tokenizer", text, tell=False)
    run("data", "tokenize", "--tokenizer", folder / "tokenizer", "--overwrite", "--out", folder / "corpus", text, tell=False)


def train(name, flags, folder, options):
    save = folder / name.replace(" ", "-")
    done = json.loads(run("train", *MODEL, *flags, "--tokenizer", folder / "tokenizer", "--data-path", folder / "corpus", "--micro-batch-size", 8,
                          "--train-iters", options.updates, "--lr", 1e-3, "--lr-warmup-iters", 50, *NO_DROPOUT, "--eval-interval", options.updates,
                          "--eval-iters", 50, "--log-interval", 1, "--threads", options.threads, "--save", save, "--json", "-", tell=False))
    losses = [line["loss"] for line in metrics_of(save, "iteration")]
    return dict(done, losses=losses)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=500)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        articles(folder)
        runs = {name: train(name, flags, folder, options) for name, flags in PRECISIONS.items()}
    last = {name: statistics.mean(one["losses"][-50:]) for name, one in runs.items()}
    points = {name: [[i + SHOWN, statistics.mean(one["losses"][i:i + SHOWN])] for i in range(0, options.updates, SHOWN)] for name, one in runs.items()}
    draw("precision", "GPT-2 (L 4, h 256) on RACE's articles", "updates", "training loss, nats",
         [dict(name=name, points=line) for name, line in points.items()])
    rows = ["| precision | loss of the last 50 updates | beside fp32 | validation | peak memory |", "|---|---|---|---|---|"]
    for name, one in runs.items():
        rows.append(f"| {name} | {last[name]:.4f} | {last[name] - last['fp32']:+.4f} | {one['validation_loss']:.4f} "
                    f"| {sum(one['peak_memory_bytes']) / 1e6:.1f} MB |")
    heading = (f"{datetime.date.today()}, {cpu_name()}; {' '.join(map(str, MODEL))}, batch 8, {options.updates} updates, seed 1234; "
               f"`bench/precision {' '.join(sys.argv[1:])}`")
    text = heading + "\n\n" + "\n".join(rows) + "\n"
    print(text)
    Path("bench/results/precision.md").write_text("# What 16 bits cost in loss\n\n" + text + "\n![losses](precision.svg)\n")


main()
