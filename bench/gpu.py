"""Training steps of GPT-2 models on one NVIDIA GPU, beside PyTorch's. `.gpu/run bench` runs it (scripts/gpu_run).

Each program has the card to itself: ours, then PyTorch's, then ours again. A row is written as soon as it is measured,
and one that fails (most often for lack of memory) says so and is no reason to stop.

Model FLOPs a token: 6 (12 L h^2 + V h) + 12 L h s, with attention counted in full, as Narayanan et al. (arXiv 2104.04473) do.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import time

MODELS = {
    "124M": dict(layers=12, hidden=768, heads=12, vocab=50304, seq=1024),
    "355M": dict(layers=24, hidden=1024, heads=16, vocab=50304, seq=1024),
    "1.2B": dict(layers=40, hidden=1536, heads=16, vocab=51200, seq=1024),  # Megatron-LM, Table 1
    "1.3B": dict(layers=24, hidden=2048, heads=16, vocab=50304, seq=1024),  # TeraPipe's GPT3-1B
    "tiny": dict(layers=2, hidden=64, heads=2, vocab=320, seq=32),
}
PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12}  # bf16, without sparsity

# Title, model, micro-batch, options of ours, whether PyTorch runs beside it. The most telling first: time may run out.
ROWS = [
    ("bf16", "1.3B", 8, {}, True),
    ("bf16", "1.2B", 8, {}, True),
    ("bf16, attention by cuDNN", "1.2B", 8, dict(cudnn=1), False),
    ("bf16, without graphs", "1.2B", 8, dict(graphs=0), False),
    ("bf16, 256 rows of logits at a time", "1.2B", 8, dict(logits_chunk=256), False),
    ("bf16", "1.2B", 32, {}, False),
    ("bf16", "1.2B", 16, {}, True),
    ("fp16, full recompute (the paper's baseline)", "1.2B", 8, dict(bf16=0, fp16=1, recompute=2), False),
    ("bf16", "124M", 32, {}, True),
    ("bf16", "355M", 32, {}, True),
]
SLICES = (1, 2, 4, 8, 16, 32)


class Failed(Exception):
    pass


def flops(model, tokens):
    layers, hidden, vocab, seq = (model[name] for name in ("layers", "hidden", "vocab", "seq"))
    return tokens * (6 * (12 * layers * hidden * hidden + vocab * hidden) + 12 * layers * hidden * seq)


def run(command, steps, limit):
    """What the program says when it is ready, and the median of its seconds a step."""
    try:
        process = subprocess.run(command, input=f"step {steps}\n", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        raise Failed(f"not done in {limit:.0f} s") from None
    lines = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]
    if process.returncode != 0 or len(lines) < 2:
        reason = (process.stderr.strip().splitlines() or ["no output"])[-1]
        raise Failed("out of memory" if "memory" in reason.lower() else reason[:100])
    return lines[0], statistics.median(lines[1]["seconds"])


class Bench:
    def __init__(self, options):
        self.options, self.start = options, time.monotonic()
        self.file = open(options.out, "a")
        self.card = "emulated" if options.tiny else subprocess.run(
            ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], stdout=subprocess.PIPE, text=True,
            check=True).stdout.splitlines()[0]
        self.peak = next((peak for card, peak in PEAKS.items() if card in self.card), None)

    def say(self, text):
        print(text, flush=True)
        print(text, file=self.file, flush=True)

    def left(self):
        return self.options.seconds - (time.monotonic() - self.start)

    def ours(self, model, batch, **more):
        options = {**model, "batch": batch, "bf16": 1, "cuda": 1, "dropout": 0.1, "threads": os.cpu_count(), **more}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        return run([os.path.join(self.options.programs, "bench_train_step"), *words], self.options.steps, self.left())

    def pytorch(self, model, batch):
        words = [word for name, value in {**model, "batch": batch}.items() for word in (f"--{name}", str(value))]
        return run([self.options.pytorch, os.path.join(os.path.dirname(__file__), "peers/pytorch_gpt2.py"), "--device",
                    "cuda", "--bf16", "--mode", "compile", "--dropout", "0.1", *words], self.options.steps, self.left())

    def row(self, title, name, batch, more, with_peer):
        model = MODELS[name]
        cells = [name, str(batch), title]
        try:
            ready, seconds = self.ours(model, batch, **more)
            peer = "not run"
            if with_peer and self.options.pytorch:
                try:
                    _, theirs = self.pytorch(model, batch)
                    seconds = min(seconds, self.ours(model, batch, **more)[1])
                    peer = f"{1e3 * theirs:.1f} ms, {theirs / seconds:.2f} times ours"
                except Failed as failure:
                    peer = str(failure)
            tokens = batch * model["seq"]
            rate = flops(model, tokens) / seconds
            cells += [f"{1e3 * seconds:.1f}", f"{tokens / seconds:.0f}", f"{1e-12 * rate:.1f}",
                      f"{100 * rate / self.peak:.1f} %" if self.peak else "?", f"{ready['planned_bytes'] / 1e9:.1f}", peer]
        except Failed as failure:
            cells += [str(failure)] + [""] * 5
        self.say("| " + " | ".join(cells) + " |")

    def slices(self, name):
        """A step on a sequence of 2048 tokens, whole and in slices, on one stage of four layers."""
        model = dict(MODELS[name], layers=4, seq=2048) if not self.options.tiny else MODELS[name]
        self.say(f"\n| slices of {model['seq']} tokens | ms a step | times the whole | without graphs |\n|---|---|---|---|")
        whole = None
        for count in SLICES:
            cut = {} if count == 1 else dict(schedule=3, slices=",".join([str(model["seq"] // count)] * count))
            try:
                (_, seconds), (_, plain) = (self.ours(model, 1, micro=1, graphs=graphs, **cut) for graphs in (1, 0))
                whole = whole or seconds
                self.say(f"| {count} | {1e3 * seconds:.2f} | {seconds / whole:.2f} | {1e3 * plain:.2f} |")
            except Failed as failure:
                self.say(f"| {count} | {failure} | | |")

    def all(self):
        version = "the emulated GPU" if self.options.tiny else self.card
        self.say(f"\n## {datetime.date.today()}, {version}\n\ndropout 0.1, medians of {self.options.steps} steps, each program "
                 "alone on the card\n\n| model | sequences | | ms a step | tokens/s | TFLOP/s | of the peak | planned GB | "
                 "PyTorch compiled |\n" + "|---" * 9 + "|")
        rows = [("bf16", "tiny", 2, {}, False), ("fp16", "tiny", 2, dict(bf16=0, fp16=1, recompute=2), False)] \
            if self.options.tiny else ROWS
        for row in rows:
            if self.left() < 45:
                self.say(f"| {row[1]} | {row[2]} | {row[0]} | no time was left |" + " |" * 5)
            else:
                self.row(*row)
        if self.left() > 60:
            self.slices("tiny" if self.options.tiny else "1.3B")
        if self.left() > 30:
            sizes = ["tiny"] if self.options.tiny else []
            self.say("\n" + subprocess.run([os.path.join(self.options.programs, "bench_generate"), "cuda", *sizes],
                                           stdout=subprocess.PIPE, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", required=True, help="the folder of bench_train_step and bench_generate")
    parser.add_argument("--out", required=True, help="the table is appended to this file")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=560, help="in all; what does not fit is left out, and says so")
    parser.add_argument("--pytorch", metavar="PYTHON", help="a Python with PyTorch for CUDA, to compare with")
    parser.add_argument("--tiny", action="store_true", help="small shapes, for the emulated GPU")
    Bench(parser.parse_args()).all()


if __name__ == "__main__":
    sys.exit(main())
