"""Drives bench/adapters: LoRA of rank 16 beside every linear layer, ours and PEFT's, each a process of its own, taking turns."""

import argparse
import datetime
import platform
import statistics
import sys

from side import Side, cpu_name, publish, require

SHAPES = {
    "135m": ("SmolLM2 135M, s 1024", dict(layers=30, hidden=576, heads=9, key_heads=3, ffn=1536, seq=1024, vocab=49152, llama=1)),
    "0.5b": ("Qwen2.5 0.5B, s 512", dict(layers=24, hidden=896, heads=14, key_heads=2, ffn=4864, seq=512, vocab=151936, qwen=1)),
}
# "keep" lets glibc keep freed memory in the process: often PyTorch's fastest, at the price of a higher peak.
WAYS = {
    "fp32": {"eager": dict(), "eager keep": dict(malloc="keep"), "compile": dict(mode="compile")},
    "bf16": {"eager": dict(precision="bf16"), "eager keep": dict(precision="bf16", malloc="keep"),
             "compile": dict(precision="bf16", mode="compile"), "autocast keep": dict(precision="autocast", malloc="keep")},
}


def measure(shape, precision, options):
    common = dict(shape, batch=1, rank=16, threads=options.threads)
    frozen = {"q8": dict(frozen=8)} if options.frozen else {}
    ours = {name: Side(["build/release/bench_train_step"], common, bf16=int(precision == "bf16"), **more)
            for name, more in {"ours": {}, **frozen}.items()}
    ways = {name: way for name, way in WAYS[precision].items() if not options.ways or name in options.ways.split(",")}
    peft = {name: Side([sys.executable, "bench/peers/peft_lora.py"], common, **way) for name, way in ways.items()}
    for _ in range(options.rounds):
        for side in (*ours.values(), *peft.values()):
            side.steps(1)
    rate = {name: shape["seq"] / statistics.median(side.seconds) for name, side in {**ours, **peft}.items()}
    peak = {name: side.peak for name, side in {**ours, **peft}.items()}
    row = dict(rate=rate, peak=peak, best=max(peft, key=lambda way: rate[way]), ways=list(ways),
               planned=ours["ours"].ready["planned_bytes"], torch=next(iter(peft.values())).ready["torch"])
    for side in (*ours.values(), *peft.values()):
        side.close()
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", choices=SHAPES)
    parser.add_argument("--precision", choices=WAYS)
    parser.add_argument("--ways", default="", help="PEFT's, by commas; none: all")
    parser.add_argument("--frozen", action="store_true", help="ours with frozen weights in 8 bits, too")
    options = parser.parse_args()
    require("torch", "transformers", "peft")
    lines = ["| model | Teratron, tokens/s | PEFT, tokens/s | against the fastest | peak MB: Teratron (planned) | PEFT | "
             "of the fastest's |", "|---" * 7 + "|"]
    for key, (title, shape) in SHAPES.items():
        for precision in WAYS:
            if options.only not in (None, key) or options.precision not in (None, precision):
                continue
            r = measure(shape, precision, options)
            theirs = lambda of, text: ", ".join(f"{way} {text(of[way])}" for way in r["ways"])
            for name in [name for name in ("ours", "q8") if name in r["rate"]]:
                label = f"{title}, {precision}" + (", frozen weights in 8 bits" if name == "q8" else "")
                lines.append(f"| {label} | {r['rate'][name]:.0f} | {theirs(r['rate'], '{:.0f}'.format)} "
                             f"| {r['rate'][name] / r['rate'][r['best']]:.2f}x | {r['peak'][name] / 1e6:.0f}"
                             + (f" ({r['planned'] / 1e6:.0f})" if name == "ours" else "")
                             + f" | {theirs(r['peak'], lambda peak: f'{peak / 1e6:.0f}')} "
                             f"| {100 * r['peak'][name] / r['peak'][r['best']]:.0f} % |")
                print(lines[-1], file=sys.stderr, flush=True)
    heading = (f"{datetime.date.today()}, {cpu_name()}, {platform.machine()}, {options.threads} threads; torch {r['torch']}; medians of "
               f"{options.rounds} interleaved rounds; `bench/adapters {' '.join(sys.argv[1:])}`")
    text = heading + "\n\n" + "\n".join(lines) + "\n"
    publish("adapters", text, options.save)


main()
