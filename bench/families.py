"""A Llama beside a GPT-2 (one command: bench/families)."""

import argparse
import datetime
import json
import sys
from pathlib import Path

from learning import NO_DROPOUT, draw, loss_curve, metrics_of, python_docs, run
from side import cpu_name

# Layers of both have 12 h^2 weights: 4 h^2 in attention, and 2 h 4h or 3 h 8h/3 in the feed-forward block.
MODELS = {
    "gpt2": ["--num-layers", 6, "--hidden-size", 288, "--num-attention-heads", 6, *NO_DROPOUT],
    "llama": ["--model", "llama-15m"],
}
VOCABULARY, TOKENS, BATCH = 8192, 256, 8
RECIPE = ["--seq-length", TOKENS, "--global-batch-size", BATCH, "--micro-batch-size", BATCH, "--bf16", "--lr-decay-style", "cosine", "--lr-warmup-iters", 20,
          "--split-order", "file", "--eval-iters", 20, "--log-interval", 1]


def train(family, rate, updates, folder, threads):
    save = folder / f"{family}-{rate:g}-{updates}"
    result = save / "result.json"
    if not result.exists():
        done = json.loads(run("train", *MODELS[family], *RECIPE, "--lr", rate, "--min-lr", rate / 10, "--train-iters", updates, "--tokenizer",
                              folder / "tokenizer", "--data-path", folder / "corpus", "--threads", threads, "--save", save, "--json", "-", tell=False))
        done["losses"] = [line["loss"] for line in metrics_of(save, "iteration")]
        result.write_text(json.dumps(done))
    one = json.loads(result.read_text())
    print(f"{family}, {rate:g}, {updates} updates: validation loss {one['validation_loss']:.4f}", file=sys.stderr)
    return dict(one, family=family, rate=rate)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=250)
    parser.add_argument("--rates", type=float, nargs="+", default=[1e-3], help="both families train by each")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("build/bench-families"), help="where corpus and runs are kept")
    options = parser.parse_args()
    python_docs(options.folder, VOCABULARY)
    runs = [train(family, rate, options.updates, options.folder, options.threads) for rate in options.rates for family in MODELS]
    best = {family: min((one for one in runs if one["family"] == family), key=lambda one: one["validation_loss"]) for family in MODELS}
    draw("families", "a Llama and a GPT-2 of equal layers (L 6, h 288) on the documentation of Python", "updates", "training loss, nats",
         [dict(name=f"{family}, {one['rate']:g}", points=loss_curve(one["losses"])) for family, one in best.items()])
    rows = ["| model | learning rate | validation loss | tokens/s |", "|---|---|---|---|"]
    rows += [f"| {one['family']} | {one['rate']:g} | {one['validation_loss']:.4f} | {one['tokens_per_second']:.0f} |" for one in runs]
    gpt2, llama = best["gpt2"]["validation_loss"], best["llama"]["validation_loss"]
    text = (f"{datetime.date.today()}, {cpu_name()}; `bench/families {' '.join(sys.argv[1:])}`\n\n"
            f"Six layers of 12 h² weights, h 288, tied embeddings; a BPE of {VOCABULARY} tokens; batches of {BATCH} x {TOKENS} tokens, {options.updates} "
            f"updates, {options.updates * BATCH * TOKENS / 1e6:.2f} million tokens for each; bf16, AdamW, no dropout, seed 1234; validation on "
            "documents that neither saw.\n\n" + "\n".join(rows) + "\n\n"
            f"Llama's loss less GPT-2's, each at its best rate: {llama - gpt2:+.4f}.\n")
    print(text)
    Path("bench/results/families.md").write_text("# A Llama beside a GPT-2\n\n" + text + "\n![losses](families.svg)\n")


main()
