"""Drives bench/gpu: one process a shape and slicing, taking turns; medians."""

import argparse
import datetime
import statistics
import subprocess
import sys

from side import Side

# Without dropout and recomputation; the Megatron-LM paper's 39 TFLOP/s on a V100 (section 5.1) were with both.
SHAPES = {
    "124M": dict(layers=12, hidden=768, heads=12, vocab=50257, seq=1024),
    "355M": dict(layers=24, hidden=1024, heads=16, vocab=50257, seq=1024),
    "1.2B": dict(layers=40, hidden=1536, heads=16, vocab=51200, seq=1024),
}
BATCHES = {"124M": (8, 32), "355M": (8, 32), "1.2B": (8, 16, 32)}
PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12}  # bf16, without sparsity


def device():
    answer = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"],
                            check=True, stdout=subprocess.PIPE, text=True)
    return answer.stdout.splitlines()[0]


def model_flops(shape, tokens):
    """As teratron counts them (ModelConfig::training_flops_per_token): causal attention as the half it is."""
    layers, hidden, vocab, seq = (shape[name] for name in ("layers", "hidden", "vocab", "seq"))
    return tokens * (6 * (12 * layers * hidden * hidden + vocab * hidden) + 6 * layers * hidden * seq)


def ours(shape, batch, **more):  # cudnn=1: attention by cuDNN
    return Side(["build/release/bench_train_step"], shape, batch=batch, bf16=1, cuda=1, dropout=0, **more)


def pytorch(python, shape, batch):
    """Compiled, with fused attention and fused AdamW."""
    command = [python, "bench/peers/pytorch_gpt2.py", "--device", "cuda", "--bf16", "--mode", "compile"]
    return Side(command, shape, batch=batch)


def medians(rounds, *sides):
    """Seconds a step of each, taking turns."""
    for _ in range(rounds):
        for side in sides:
            side.steps(1)
    for side in sides:
        side.close()
    return [statistics.median(side.seconds) for side in sides]


def speeds(rounds, peak, python, cudnn):
    lines = ["| model | sequences | ms a step | tokens/s | of the peak | planned GB | times cuDNN's attention | times PyTorch |",
             "|---" * 8 + "|"]
    for name, shape in SHAPES.items():
        for batch in BATCHES[name]:
            side = ours(shape, batch)
            seconds, *peer = medians(rounds, side, *([pytorch(python, shape, batch)] if python else []))
            # Afterwards: the largest of these models has no room beside itself on most cards.
            other = medians(rounds, ours(shape, batch, cudnn=1)) if cudnn else []
            tokens = batch * shape["seq"]
            part = f"{100 * model_flops(shape, tokens) / seconds / peak:.1f} %" if peak else "?"
            with_cudnn, with_pytorch = (f"{times[0] / seconds:.2f}" if times else "not run" for times in (other, peer))
            lines.append(f"| {name} | {batch} | {1e3 * seconds:.1f} | {tokens / seconds:.0f} | {part} "
                         f"| {side.ready['planned_bytes'] / 1e9:.1f} | {with_cudnn} | {with_pytorch} |")
            print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def slices(rounds):
    """A training step on a sequence of 2048 tokens, whole and in slices, on one stage of four layers. TeraPipe's Figure 3
    asks the same question of something else: the forward pass of one layer of GPT3-1B by the number of its tokens."""
    shape = dict(SHAPES["1.2B"], layers=4, seq=2048)
    lines = ["| slices of 2048 tokens | ms a step | times the whole |", "|---" * 3 + "|"]
    whole = None
    for count in (1, 2, 4, 8, 16, 32):
        cut = {} if count == 1 else dict(schedule=3, slices=",".join([str(2048 // count)] * count))
        [seconds] = medians(rounds, ours(shape, 1, micro=1, **cut))
        whole = whole or seconds
        lines.append(f"| {count} | {1e3 * seconds:.2f} | {seconds / whole:.2f} |")
    return "\n".join(lines)


def generation():
    """Tokens one by one, with CUDA graphs and without."""
    return subprocess.run(["build/release/bench_generate", "cuda"], check=True, stdout=subprocess.PIPE, text=True).stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--cudnn", action="store_true", help="compare with attention by cuDNN")
    parser.add_argument("--pytorch", metavar="PYTHON", help="a Python with PyTorch for CUDA, to be compared with")
    options = parser.parse_args()
    name = device()
    peak = next((peak for card, peak in PEAKS.items() if card in name), None)
    text = (f"{datetime.date.today()}, {name}, bf16, medians of {options.rounds} steps; `bench/gpu {' '.join(sys.argv[1:])}`\n\n"
            f"{speeds(options.rounds, peak, options.pytorch, options.cudnn)}\n\n{slices(options.rounds)}\n\n"
            f"{generation()}")
    print(text)
    if options.save:
        with open("bench/results/gpu.md", "w") as file:
            file.write("# bench/gpu\n\n" + text)


main()
