"""Drives bench/train_bert: starts each side as a process of its own, lets them take turns, prints medians as ratios.

Mixed lengths are those of a fixed draw, uniform from an eighth of the longest on. PyTorch has its choice of modes, and of
padding the batch with a mask or computing each sequence alone; ours, as `train` does, puts sequences of similar length
together, here in two micro-batches, cuts off what padding neither needs, and multiplies no padding that is left.
"""

import argparse
import datetime
import platform
import random
import statistics
import sys

from side import Side, cpu_name, publish, require

SHAPES = {
    "small": ("L 4, h 256, 4 heads, V 30522, s 128, batch 16", dict(layers=4, hidden=256, heads=4, seq=128, vocab=30522), 16),
    "medium": ("L 6, h 384, 6 heads, V 8192, s 256, batch 8", dict(layers=6, hidden=384, heads=6, seq=256, vocab=8192), 8),
    "base": ("BERT base (L 12, h 768), s 512, batch 4", dict(layers=12, hidden=768, heads=12, seq=512, vocab=30522), 4),
}


def lengths_of(kind, shape, batch):
    draw = random.Random(1)
    return [shape["seq"] if kind == "full" else draw.randint(shape["seq"] // 8, shape["seq"]) for _ in range(batch)]


def measure(shape, batch, kind, options):
    lengths = ",".join(map(str, lengths_of(kind, shape, batch)))
    more = dict(threads=2, dropout=options.dropout, lengths=lengths, spans=int(options.spans))
    micro = batch if kind == "full" else batch // 2
    ours = Side(["build/release/bench_train_bert"], shape, micro=micro, **more)
    torch = {}
    for padding in ("padded",) if kind == "full" else ("padded", "alone"):
        for mode in ("eager", "eager keep", "compile"):
            if mode == "compile" and padding == "alone":
                continue  # compiled anew for each length
            torch[f"{mode}, {padding}" if kind == "mixed" else mode] = Side(
                [sys.executable, "bench/peers/pytorch_bert.py"], shape, mode=mode.split()[0], padding=padding,
                malloc="keep" if mode.endswith("keep") else "default", **more)
    for _ in range(options.rounds):
        for side in (ours, *torch.values()):
            side.steps(2 if shape["layers"] < 12 else 1)
    seconds = {name: statistics.median(side.seconds) for name, side in dict(ours=ours, **torch).items()}
    best = min(torch, key=lambda name: seconds[name])
    row = dict(seconds=seconds, best=best, ratio=seconds[best] / seconds["ours"], torch=torch["eager, padded" if kind == "mixed" else "eager"].ready["torch"],
               peak=ours.peak, peak_torch=torch[best].peak, planned=ours.ready["planned_bytes"],
               rate=ours.ready["model_flops_per_step"] / seconds["ours"] * 1e-9)
    for side in (ours, *torch.values()):
        side.close()
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--only", choices=SHAPES)
    parser.add_argument("--spans", action="store_true", help="fine-tuning on SQuAD instead of pre-training")
    options = parser.parse_args()
    require("torch")
    lines = ["| model | lengths | Teratron ms (GFLOP/s) | PyTorch's modes, ms | against the fastest | peak MB (planned), PyTorch's |",
             "|---" * 6 + "|"]
    for key, (title, shape, batch) in SHAPES.items():
        if options.only not in (None, key):
            continue
        for kind in ("mixed",) if options.spans else ("full", "mixed"):
            r = measure(shape, batch, kind, options)
            modes = "; ".join(f"{name} {1e3 * seconds:.0f}" for name, seconds in r["seconds"].items() if name != "ours")
            lines.append(f"| {title} | {kind} | {1e3 * r['seconds']['ours']:.0f} ({r['rate']:.0f}) | {modes} | {r['ratio']:.2f}x, {r['best']} "
                         f"| {r['peak'] / 1e6:.0f} ({r['planned'] / 1e6:.0f}), {r['peak_torch'] / 1e6:.0f} |")
            print(lines[-1], file=sys.stderr, flush=True)
    heading = (f"{datetime.date.today()}, {cpu_name()}, {platform.machine()}, 2 threads, fp32, dropout {options.dropout}{', fine-tuning on spans' if options.spans else ''}; torch "
               f"{r['torch']}; medians of {options.rounds} interleaved rounds; `bench/train_bert {' '.join(sys.argv[1:])}`")
    text = heading + "\n\n" + "\n".join(lines) + "\n"
    publish("train_bert", text, options.save)


main()
