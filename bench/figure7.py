"""Figure 7 of the Megatron-LM paper at a size that fits a laptop: the training loss of BERTs of growing depth with norms
behind each residual add (post, 7a, the original) and before each sub-layer (pre, 7b), at several learning rates.

The paper trains 336M and 752M; ours are tiny, so what carries over is the shape of the result and nothing of its
figures. All runs share the corpus (RACE's articles), the samples, the seed and the schedule. One command: bench/figure7.
"""

import argparse
import datetime
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from learning import NO_DROPOUT, draw, metrics_of, race_corpus, small_vocabulary, start, token_entropy
from side import cpu_name

HIDDEN, HEADS, TOKENS, BATCH = 64, 2, 64, 16
PLACEMENTS = ("post", "pre")
WIDTH = 100  # updates over which a loss is a mean


def losses_of(folder, corpus, vocabulary, depth, placement, rate, updates):
    """By update; shorter where training diverged."""
    save = folder / f"{placement}-{depth}-{rate}"
    done = start("train", "--model-type", "bert", "--layernorm-placement", placement, "--num-layers", depth, "--hidden-size", HIDDEN,
                 "--num-attention-heads", HEADS, "--seq-length", TOKENS, "--tokenizer", vocabulary, "--data-path", corpus, "--split", "1",
                 "--micro-batch-size", BATCH, "--global-batch-size", BATCH, "--train-iters", updates, "--lr", rate, "--lr-decay-style", "linear",
                 "--lr-warmup-iters", updates // 20, *NO_DROPOUT, "--bf16", "--threads", 1, "--save", save, "--save-interval", updates)
    if done.returncode not in (0, 2):  # 2: it diverged
        sys.exit(done.stderr)
    losses = [line["lm_loss"] for line in metrics_of(save, "iteration")]
    print(rate, depth, placement, f"{sum(losses[-WIDTH:]) / WIDTH:.3f} after {len(losses)}", file=sys.stderr, flush=True)
    return losses


def smooth(losses):
    return [[i, sum(losses[i - WIDTH:i]) / WIDTH] for i in range(WIDTH, len(losses) + 1, WIDTH)]


def cell(losses, updates):
    if len(losses) < updates:
        return f"diverged after {len(losses)}"
    return f"{sum(losses[-WIDTH:]) / WIDTH:.3f}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=1600)
    parser.add_argument("--depths", type=int, nargs="+", default=[4, 12, 24])
    parser.add_argument("--rates", type=float, nargs="+", default=[1e-3, 3e-3])
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time, of one thread each")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(options.jobs) as jobs:
        folder = Path(temporary)
        vocabulary = small_vocabulary(folder)
        corpus = race_corpus(folder, vocabulary)
        entropy = token_entropy(corpus)
        # The deepest first, so that the last to end is a short one.
        runs = {(rate, depth, placement): jobs.submit(losses_of, folder, corpus, vocabulary, depth, placement, rate, options.updates)
                for depth in sorted(options.depths, reverse=True) for rate in options.rates for placement in PLACEMENTS}
        losses = {key: run.result() for key, run in runs.items()}
    rows = ["| learning rate | layers | norms behind (post, 7a) | norms before (pre, 7b) |", "|---|---|---|---|"]
    for rate in options.rates:
        lines = []
        for depth in options.depths:
            rows.append(f"| {rate:g} | {depth} | " + " | ".join(cell(losses[rate, depth, p], options.updates) for p in PLACEMENTS) + " |")
            lines += [dict(name=f"{p}, {depth} layers", points=smooth(losses[rate, depth, p])) for p in PLACEMENTS]
        draw(f"figure7_lr{rate:g}", f"BERTs of growing depth, learning rate {rate:g}", "updates", "loss of masked tokens, nats",
             [line for line in lines if line["points"]])
    heading = (f"{datetime.date.today()}, {cpu_name()}; hidden {HIDDEN}, {HEADS} heads, {TOKENS} tokens, batch {BATCH}, bf16, {options.updates} updates, "
               f"linear decay after a twentieth of warm-up, no dropout, seed 1234; the mean loss of masked tokens in the last {WIDTH} updates (entropy of "
               f"single tokens: {entropy:.3f}); `bench/figure7 {' '.join(sys.argv[1:])}`")
    text = heading + "\n\n" + "\n".join(rows) + "\n"
    print(text)
    Path("bench/results/figure7.md").write_text(
        "# Norms before or behind, over depth\n\nFigure 7 of the Megatron-LM paper at a size that fits a laptop: models of "
        "millions of parameters where the\npaper has 336 and 752 million, so only the shape of the result compares.\n\n" + text)


main()
