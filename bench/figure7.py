"""Figure 7 of the Megatron-LM paper at a size that fits a laptop: the training loss of BERTs of growing depth with norms
behind each residual add (post, 7a, the original) and before each sub-layer (pre, 7b), at several learning rates.

The paper trains 336M and 752M; ours are tiny, so what carries over is the shape of the result and nothing of its
figures. All runs share the corpus, the samples, the seed and the schedule. One command: bench/figure7. Figures are drawn
by bench/line_chart.cc.
"""

import argparse
import datetime
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

from learning import draw
from side import cpu_name

TERATRON = "build/release/teratron"
HIDDEN, HEADS, TOKENS, BATCH = 64, 2, 64, 16
DEPTHS, RATES = (4, 12, 24), (3e-4, 1e-3, 3e-3)
LAST = 20  # updates at the end over which a loss is a mean


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    return done


def losses_of(folder, corpus, tokenizer, depth, placement, rate, updates):
    """By update; shorter where training diverged."""
    save = folder / f"{placement}-{depth}-{rate}"
    done = run(TERATRON, "train", "--model-type", "bert", "--layernorm-placement", placement, "--num-layers", depth,
               "--hidden-size", HIDDEN, "--num-attention-heads", HEADS, "--seq-length", TOKENS, "--tokenizer", tokenizer,
               "--data-path", corpus, "--split", "1", "--micro-batch-size", BATCH, "--global-batch-size", BATCH,
               "--train-iters", updates, "--lr", rate, "--lr-decay-style", "linear", "--lr-warmup-iters", updates // 10,
               "--hidden-dropout", 0, "--attention-dropout", 0, "--save", save, "--save-interval", updates, "--json", "-")
    if done.returncode not in (0, 2):
        sys.exit(done.stderr)
    lines = [json.loads(line) for line in (save / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if line["kind"] == "iteration"]


def smooth(losses, width=20):
    return [[i + 1, sum(losses[max(0, i - width):i + 1]) / len(losses[max(0, i - width):i + 1])]
            for i in range(0, len(losses), 5)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=2000)
    parser.add_argument("--data", default="../shared/data/race/train.high.jsonl.zst", help="a file of documents")
    parser.add_argument("--json-key", default="article", help="where its documents are JSON: the key of their text")
    parser.add_argument("--vocab", default="../shared/data/bert-vocab", help="a folder with vocab.txt")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        made = run(TERATRON, "data", "tokenize", "--tokenizer", options.vocab, "--split-sentences", "--json-key",
                   options.json_key, "--out", folder / "corpus", options.data)
        if made.returncode != 0:
            sys.exit(made.stderr)
        rows = ["| learning rate | layers | post-norm (7a) | pre-norm (7b) |", "|---|---|---|---|"]
        for rate in RATES:
            lines = []
            for depth in DEPTHS:
                cells = []
                for placement in ("post", "pre"):
                    losses = losses_of(folder, folder / "corpus", options.vocab, depth, placement, rate, options.updates)
                    last = sum(losses[-LAST:]) / len(losses[-LAST:]) if losses else math.nan
                    cells.append(f"{last:.3f}" if len(losses) == options.updates else f"diverged after {len(losses)}")
                    if depth in (DEPTHS[0], DEPTHS[-1]):
                        lines.append(dict(name=f"{placement}, {depth} layers", points=smooth(losses)))
                    print(rate, depth, placement, cells[-1], file=sys.stderr, flush=True)
                rows.append(f"| {rate:g} | {depth} | {cells[0]} | {cells[1]} |")
            draw(f"figure7_lr{rate:g}", f"BERTs of growing depth, learning rate {rate:g}", "updates", "training loss, nats", lines)
    heading = (f"{datetime.date.today()}, {cpu_name()}; hidden {HIDDEN}, {HEADS} heads, {TOKENS} tokens, batch {BATCH}, "
               f"{options.updates} updates, linear decay after a tenth of warm-up, no dropout; the mean loss (masked tokens "
               f"and sentence order) of the last {LAST} updates; `bench/figure7 {' '.join(sys.argv[1:])}`")
    text = heading + "\n\n" + "\n".join(rows) + "\n"
    print(text)
    Path("bench/results/figure7.md").write_text(
        "# Norms before or behind, over depth\n\nFigure 7 of the Megatron-LM paper at a size that fits a laptop: models of "
        "millions of parameters where the\npaper has 336 and 752 million, so only the shape of the result compares.\n\n" + text)


main()
