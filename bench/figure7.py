"""Figure 7 of the Megatron-LM paper at a size that fits a laptop: the training loss of BERTs of growing depth with norms
behind each residual add (post, 7a, the original) and before each sub-layer (pre, 7b), at several learning rates.

The paper trains 336M and 752M; ours are tiny, so what carries over is the shape of the result and nothing of its
figures. All runs of a seed share the corpus (RACE's articles), the samples and the schedule. One command: bench/figure7.
With --unscaled-post, norms behind begin as the original's do: no weights are smaller before a residual add.
"""

import argparse
import datetime
import json
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from learning import NO_DROPOUT, metrics_of, race_corpus, small_vocabulary, start, token_entropy
from side import cpu_name

HEAD, TOKENS, BATCH = 32, 64, 16
PLACEMENTS = ("post", "pre")
WIDTH = 100  # updates over which a loss is a mean


def losses_of(folder, corpus, vocabulary, key, options):
    """By update; shorter where training diverged. A run that has ended is read again."""
    rate, depth, placement, seed = key
    unscaled = options.unscaled_post and placement == "post"
    name = f"{placement}{'-unscaled' * unscaled}{'-cuda' * (options.backend == 'cuda')}-width{options.width}-depth{depth}-lr{rate:g}-init{options.init}-updates{options.updates}-seed{seed}"
    kept = folder / f"{name}.json"
    if not kept.exists():
        save = folder / name
        shutil.rmtree(save, ignore_errors=True)  # a run that did not end
        done = start("train", "--model-type", "bert", "--layernorm-placement", placement, "--num-layers", depth, "--hidden-size", options.width,
                     "--num-attention-heads", max(1, options.width // HEAD), "--seq-length", TOKENS, "--tokenizer", vocabulary, "--data-path", corpus,
                     "--split", "1", "--micro-batch-size", BATCH, "--global-batch-size", BATCH, "--train-iters", options.updates, "--lr", rate,
                     "--lr-decay-style", "linear", "--lr-warmup-iters", options.updates // 20, "--seed", seed, "--init-method-std", options.init,
                     *(["--no-scaled-init-method"] if unscaled else []), *NO_DROPOUT, "--bf16", "--backend", options.backend, "--threads", 1, "--save", save,
                     "--save-interval", options.updates)
        if done.returncode not in (0, 2) or not (save / "metrics.jsonl").exists():  # 2: it diverged
            sys.exit(done.stderr)
        kept.write_text(json.dumps([line["lm_loss"] for line in metrics_of(save, "iteration")]))
        shutil.rmtree(save)
    losses = json.loads(kept.read_text())
    print(rate, depth, placement, seed, f"{last_of(losses):.3f} after {len(losses)}", file=sys.stderr, flush=True)
    return losses


def last_of(losses):
    return statistics.mean(losses[-WIDTH:])


def smooth(losses):
    return [[i, statistics.mean(losses[i - WIDTH:i])] for i in range(WIDTH, len(losses) + 1, WIDTH)]


def curve_of(name, runs):
    """The mean over the seeds of every point that all of them have, and the least and the largest of them."""
    points = list(zip(*map(smooth, runs)))
    return dict(name=name, points=[[at[0][0], statistics.mean(y for _, y in at)] for at in points],
                spread=[[min(y for _, y in at), max(y for _, y in at)] for at in points] if len(runs) > 1 else [])


def cell(runs, updates):
    diverged = [len(losses) for losses in runs if len(losses) < updates]
    last = [last_of(losses) for losses in runs if len(losses) == updates]
    parts = []
    if last:
        parts.append(f"{statistics.mean(last):.3f}" + (f" ({min(last):.3f} to {max(last):.3f})" if len(last) > 1 else ""))
    if diverged:
        parts.append(f"{len(diverged)} of {len(runs)} diverged after {', '.join(map(str, diverged))}")
    return "; ".join(parts)


def draw(folder, name, title, lines):
    lines = [line for line in lines if line["points"]]
    if not lines:
        return
    least = math.floor(10 * min([y for line in lines for _, y in line["points"]] + [low for line in lines for low, _ in line["spread"]])) / 10
    chart = dict(title=title, x_axis="updates", y_axis="loss of masked tokens, nats", y_least=least, lines=lines)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(chart))
    with path.open() as source, path.with_suffix(".svg").open("w") as picture:
        subprocess.run(["build/release/bench_chart"], check=True, stdin=source, stdout=picture)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=1600)
    parser.add_argument("--width", type=int, default=64, help="hidden size; heads are 32 wide")
    parser.add_argument("--depths", type=int, nargs="+", default=[4, 12, 24])
    parser.add_argument("--rates", type=float, nargs="+", default=[1e-3, 3e-3])
    parser.add_argument("--seeds", type=int, default=1, help="runs of each, with 1234 and the numbers after it")
    parser.add_argument("--init", default="0.02", help="--init-method-std: a number, or auto (by width)")
    parser.add_argument("--unscaled-post", action="store_true", help="norms behind with --no-scaled-init-method, as in the original BERT")
    parser.add_argument("--work", type=Path, help="where corpus and finished runs are kept; without it, nothing is")
    parser.add_argument("--results", type=Path, default=Path("bench/results"))
    parser.add_argument("--backend", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time, of one thread each")
    return parser.parse_args()


def run_all(folder, seeds, options):
    """Losses by (rate, depth, placement, seed), and the entropy of single tokens."""
    vocabulary = folder / "vocabulary-8192"
    if not (vocabulary / "vocab.txt").exists():
        vocabulary = small_vocabulary(folder)
    corpus = folder / f"corpus-{vocabulary.name}"
    if not corpus.with_suffix(".idx").exists():
        corpus = race_corpus(folder, vocabulary)
    with ThreadPoolExecutor(options.jobs) as jobs:
        # The deepest first, so that the last to end is a short one.
        runs = {key: jobs.submit(losses_of, folder, corpus, vocabulary, key, options)
                for depth in sorted(options.depths, reverse=True) for seed in seeds for rate in options.rates for placement in PLACEMENTS
                for key in [(rate, depth, placement, seed)]}
        return {key: run.result() for key, run in runs.items()}, token_entropy(corpus)


def main():
    options = parse()
    seeds = range(1234, 1234 + options.seeds)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.work or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        losses, entropy = run_all(folder, seeds, options)
    runs_of = lambda rate, depth, placement: [losses[rate, depth, placement, seed] for seed in seeds]
    behind = "norms behind (post, 7a" + (", original initialisation)" if options.unscaled_post else ")")
    rows = [f"| learning rate | layers | {behind} | norms before (pre, 7b) |", "|---|---|---|---|"]
    for rate in options.rates:
        lines = []
        for depth in options.depths:
            rows.append(f"| {rate:g} | {depth} | " + " | ".join(cell(runs_of(rate, depth, p), options.updates) for p in PLACEMENTS) + " |")
            lines += [curve_of(f"{p}, {depth} layers", runs_of(rate, depth, p)) for p in PLACEMENTS]
        draw(options.results, f"figure7_lr{rate:g}", f"BERTs of growing depth, width {options.width}, learning rate {rate:g}", lines)
    of_seeds = "seed 1234" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}: the mean, and the least to the largest"
    heading = (f"{datetime.date.today()}, {cpu_name()}; hidden {options.width}, {max(1, options.width // HEAD)} heads, {TOKENS} tokens, batch {BATCH}, bf16, "
               f"initial weights {options.init}, {options.updates} updates, linear decay after a twentieth of warm-up, no dropout, {of_seeds}; the mean "
               f"loss of masked tokens in the last {WIDTH} updates (entropy of single tokens: {entropy:.3f}); `bench/figure7 {' '.join(sys.argv[1:])}`")
    text = heading + "\n\n" + "\n".join(rows) + "\n"
    print(text)
    (options.results / "figure7.md").write_text(
        "# Norms before or behind, over depth\n\nFigure 7 of the Megatron-LM paper at a size that fits a laptop: models of "
        "millions of parameters where the\npaper has 336 and 752 million, so only the shape of the result compares.\n\n" + text)


main()
