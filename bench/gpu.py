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

# Title, model, micro-batch, options of ours. The most telling first: time may run out.
ROWS = [
    ("bf16", "1.2B", 8, {}),
    ("bf16, no dropout", "1.2B", 8, dict(dropout=0)),
    ("bf16, no dropout, attention by cuDNN", "1.2B", 8, dict(dropout=0, cudnn=1, hopper=0)),
    ("bf16, attention as on Ampere", "1.2B", 8, dict(hopper=0)),
    ("bf16", "1.3B", 8, {}),
    ("bf16", "1.2B", 32, {}),
    ("bf16", "124M", 32, {}),
    ("bf16, norms and activations computed again", "1.2B", 8, dict(keep=0)),
    ("bf16, without graphs", "1.2B", 8, dict(graphs=0)),
    ("fp16, full recompute (the paper's baseline)", "1.2B", 8, dict(bf16=0, fp16=1, recompute=2)),
    ("bf16, 256 rows of logits at a time", "1.2B", 8, dict(logits_chunk=256)),
    ("bf16", "355M", 32, {}),
]
# Model, micro-batch, dropout: beside PyTorch, which compiles for a minute or two, and so comes last.
BESIDE_PYTORCH = [("1.2B", 8, 0.1), ("124M", 32, 0.1), ("1.2B", 8, 0.0), ("1.3B", 8, 0.1), ("355M", 32, 0.1)]
SLICES = (1, 2, 4, 8, 16, 32)


class Failed(Exception):
    pass


def flops(model, tokens):
    layers, hidden, vocab, seq = (model[name] for name in ("layers", "hidden", "vocab", "seq"))
    return tokens * (6 * (12 * layers * hidden * hidden + vocab * hidden) + 12 * layers * hidden * seq)


def run(command, steps, limit, environment={}):
    """What the program says when it is ready, and the median of its seconds a step."""
    try:
        process = subprocess.run(command, input=f"step {steps}\n", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True, timeout=max(1, limit), env={**os.environ, **environment})
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
        self.hopper = int(any(name in self.card for name in ("H100", "H200", "H800", "H20")))
        self.peak = next((peak for card, peak in PEAKS.items() if card in self.card), None)

    def say(self, text):
        print(text, flush=True)
        print(text, file=self.file, flush=True)

    def left(self):
        return self.options.seconds - (time.monotonic() - self.start)

    def ours(self, model, batch, **more):
        options = {**model, "batch": batch, "bf16": 1, "cuda": 1, "dropout": 0.1, "threads": os.cpu_count(),
                   "hopper": self.hopper, **more}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        return run([os.path.join(self.options.programs, "bench_train_step"), *words], self.options.steps, self.left())

    def pytorch(self, model, batch, dropout):
        words = [word for name, value in {**model, "batch": batch, "dropout": dropout}.items()
                 for word in (f"--{name}", str(value))]
        # The pack's libraries are ours; PyTorch has its own.
        libraries = dict(LD_LIBRARY_PATH=os.environ.get("PEER_LIBRARY_PATH", ""))
        return run([self.options.pytorch, os.path.join(os.path.dirname(__file__), "peers/pytorch_gpt2.py"), "--device",
                    "cuda", "--bf16", "--mode", "compile", *words], self.options.steps, self.left(), libraries)

    def row(self, title, name, batch, more):
        model = MODELS[name]
        cells = [name, str(batch), title]
        try:
            ready, seconds = self.ours(model, batch, **more)
            tokens = batch * model["seq"]
            rate = flops(model, tokens) / seconds
            cells += [f"{1e3 * seconds:.1f}", f"{tokens / seconds:.0f}", f"{1e-12 * rate:.1f}",
                      f"{100 * rate / self.peak:.1f} %" if self.peak else "?", f"{ready['planned_bytes'] / 1e9:.1f}"]
        except Failed as failure:
            cells += [str(failure)] + [""] * 4
        self.say("| " + " | ".join(cells) + " |")

    def peer_row(self, name, batch, dropout):
        """Ours, PyTorch's, ours again: each has the card to itself."""
        model = MODELS[name]
        cells = [name, str(batch), str(dropout)]
        try:
            before = self.ours(model, batch, dropout=dropout)[1]
            theirs = self.pytorch(model, batch, dropout)[1]
            ours = statistics.mean([before, self.ours(model, batch, dropout=dropout)[1]])
            cells += [f"{1e3 * ours:.1f}", f"{1e3 * theirs:.1f}", f"{theirs / ours:.2f}"]
        except Failed as failure:
            cells += [str(failure), "", ""]
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
                 "alone on the card\n\n| model | sequences | | ms a step | tokens/s | TFLOP/s | of the peak | planned GB |\n"
                 + "|---" * 8 + "|")
        rows = [("bf16", "tiny", 2, {}), ("fp16", "tiny", 2, dict(bf16=0, fp16=1, recompute=2))] \
            if self.options.tiny else ROWS
        for row in rows:
            if self.left() < 20:
                self.say(f"| {row[1]} | {row[2]} | {row[0]} | no time was left |" + " |" * 4)
            else:
                self.row(*row)
        if self.left() > 30:
            self.slices("tiny" if self.options.tiny else "1.3B")
        if self.left() > 20:
            sizes = ["tiny"] if self.options.tiny else []
            self.say("\n" + subprocess.run([os.path.join(self.options.programs, "bench_generate"), "cuda", *sizes],
                                           stdout=subprocess.PIPE, text=True).stdout)
        if self.options.pytorch and self.left() > 60:
            self.say("| model | sequences | dropout | ours, ms a step | PyTorch compiled, ms a step | times ours |\n"
                     + "|---" * 6 + "|")
            for peer in BESIDE_PYTORCH:
                if self.left() > 60:
                    self.peer_row(*peer)


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
