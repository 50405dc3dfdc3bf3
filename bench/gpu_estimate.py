"""Where a training step's time goes on a GPU that nobody has here, part by part: sizes are the program's (`teratron plan
--json`), rates those that one H100 showed (bench/results/gpu.md), an H200's memory is faster as its data sheet says.

    python3 bench/gpu_estimate.py                             the tables of docs/performance.md
    python3 bench/gpu_estimate.py --check docs/performance.md compares them with the page: every row and every sum

One micro-batch of 8 x 1024 tokens in bf16, norms and activations kept (--keep-activations). Bytes are those of tensors that
a pass reads and writes; products and attention are counted as bench_gpu_ops counts them, the model's operations as
bench/gpu.py does, with attention in full.
"""

import argparse
import json
import os
import re
import subprocess
import sys

TERATRON = os.environ.get("TERATRON") or os.path.abspath("build/release/teratron")
BATCH, TOKENS = 8, 1024
PEAK = 989e12  # operations a second, of either card

# Title, flags.
MODELS = [
    ("GPT-2 1.2B", "--model 1.2B --vocab-size 51200"),
    ("GPT-3 1.3B", "--model gpt3-1B --vocab-size 50304"),
    ("Qwen 2.5 1.5B", "--model qwen2.5-0.5b --num-layers 28 --hidden-size 1536 --num-attention-heads 12 "
     "--num-query-groups 2 --kv-channels 128 --ffn-hidden-size 8960 --vocab-size 151936"),
]

# Operations and bytes a second on the H100, from the operations' table of bench/results/gpu.md.
PRODUCTS, WEIGHT_GRADIENTS, WEIGHT_GRADIENTS_WITH_BIAS, LOGITS = 715e12, 640e12, 584e12, 667e12
NORMS, NORM_BACKWARD, COPIES, CROSS_ENTROPY, ADAMW, SQUARES = 2.51e12, 2.2e12, 2.6e12, 2.87e12, 2.88e12, 2.4e12
# Attention, forward and backward, by our kernels for Hopper and by cuDNN.
ATTENTION = {(0.1, "ours"): (149e12, 125e12), (0.0, "ours"): (269e12, 176e12), (0.0, "cuDNN"): (312e12, 208e12)}
MEMORY = {"H100": 1.0, "H200": 4.8 / 3.35}
UNEXPLAINED = 0.01  # of the rest: clocks under load and gaps, as measured steps of 1.2B have


def sizes(flags):
    """Of a model, as the program has it."""
    words = [TERATRON, "plan", *flags.split(), "--cluster", "dgx-h100", "--devices", "1", "--seq-length", str(TOKENS),
             "--micro-batch-size", str(BATCH), "--global-batch-size", str(BATCH), "--bf16", "--json", "-"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{done.stderr}")
    text = done.stderr + done.stdout
    report = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    said = re.search(r"([\d,]+) layers, hidden size ([\d,]+), ([\d,]+) heads.*?vocabulary ([\d,]+)", text)
    layers, hidden, heads, vocabulary = (int(number.replace(",", "")) for number in said.groups())
    given = dict(zip(flags.split()[::2], flags.split()[1::2]))
    gated = "--num-query-groups" in given
    head = int(given.get("--kv-channels", hidden // heads))
    keys = int(given.get("--num-query-groups", heads)) * head
    ffn = int(given.get("--ffn-hidden-size", 4 * hidden))
    return dict(layers=layers, hidden=hidden, width=heads * head, keys=keys, ffn=ffn, vocabulary=vocabulary, gated=gated,
                parameters=report["memory_wall"]["parameters"])


def parts(model, card, dropout, attention):
    """Milliseconds of each part of a step."""
    rows, hidden, ffn, layers = BATCH * TOKENS, model["hidden"], model["ffn"], model["layers"]
    memory = MEMORY[card]
    into_ffn = 2 if model["gated"] else 1
    weights = layers * (hidden * (2 * model["width"] + 2 * model["keys"]) + (into_ffn + 1) * hidden * ffn)
    product = 2 * rows * weights
    stream, wide = 2 * rows * hidden * layers, 2 * rows * ffn * layers  # bytes of all layers in bf16
    # GELU is a pass after the product; its derivative rides in one. Gates are two passes, backward reads sums in fp32.
    activation = (3 + 2 + 2 + 2) * wide if model["gated"] else 2 * wide
    logits = 2 * rows * model["vocabulary"]
    forward, backward = ATTENTION[dropout, attention]
    pairs = rows * TOKENS * model["width"] * layers
    seconds = {
        "products, forward and input gradients": 2 * product / PRODUCTS,
        "weight and bias gradients": product / (WEIGHT_GRADIENTS if model["gated"] else WEIGHT_GRADIENTS_WITH_BIAS),
        "attention": 2 * pairs / forward + 5 * pairs / backward,
        "activations": activation / (COPIES * memory),
        # A norm's backward pass also writes the gradient under the mask.
        "norms, residual adds, dropout": 2 * 4 * stream / (NORMS * memory) +
                                         2 * (5 if dropout else 4) * stream / (NORM_BACKWARD * memory),
        "logits and cross-entropy": 6 * rows * model["vocabulary"] * hidden / LOGITS + 3 * logits / (CROSS_ENTROPY * memory),
        "AdamW and the gradient's norm": model["parameters"] * (28 / ADAMW + 4 / SQUARES) / memory,
    }
    seconds["clocks and gaps"] = UNEXPLAINED * sum(seconds.values())
    return {name: round(1e3 * value, 1) for name, value in seconds.items()}


def operations(model):
    """The model's of a step."""
    weights = model["layers"] * (model["hidden"] * (2 * model["width"] + 2 * model["keys"]) +
                                 (3 if model["gated"] else 2) * model["hidden"] * model["ffn"])
    return BATCH * TOKENS * (6 * (weights + model["vocabulary"] * model["hidden"]) +
                             12 * model["layers"] * model["width"] * TOKENS)


COLUMNS = [("H100", 0.1, "ours"), ("H100", 0.0, "ours"), ("H100", 0.0, "cuDNN"), ("H200", 0.1, "ours"), ("H200", 0.0, "cuDNN")]


def table(title, model):
    columns = [parts(model, *column) for column in COLUMNS]
    lines = [f"| {title}, ms | " + " | ".join(f"{card}, dropout {dropout:g}{'' if by == 'ours' else ', cuDNN'}"
                                              for card, dropout, by in COLUMNS) + " |",
             "|---" * (len(COLUMNS) + 1) + "|"]
    for name in columns[0]:
        lines.append(f"| {name} | " + " | ".join(f"{column[name]:.1f}" for column in columns) + " |")
    sums = [sum(column.values()) for column in columns]
    lines.append("| **a step** | " + " | ".join(f"**{total:.1f}**" for total in sums) + " |")
    lines.append("| of 989 TFLOP/s | " + " | ".join(f"{100 * operations(model) / PEAK / (total / 1e3):.1f} %" for total in sums) + " |")
    return lines


def faults_of_sums(lines):
    """Columns of a table on the page that do not add up to the row in bold."""
    columns = zip(*([float(cell.strip(" *")) for cell in line.split("|")[2:-1]] for line in lines[2:-1]))
    return [f"column {at + 1} of '{lines[0]}' adds up to {sum(column[:-1]):.1f}, not {column[-1]}"
            for at, column in enumerate(columns) if abs(sum(column[:-1]) - column[-1]) > 0.051]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--check", metavar="PAGE")
    page = arguments.parse_args().check
    tables = [table(title, sizes(flags)) for title, flags in MODELS]
    faults = [fault for lines in tables for fault in faults_of_sums(lines)]
    if page:
        there = open(page).read().splitlines()
        for lines in tables:
            at = there.index(lines[0]) if lines[0] in there else None
            if at is None:
                faults.append(f"{page} has no table '{lines[0]}'")
            else:
                faults += faults_of_sums(there[at:at + len(lines)])
                faults += [f"{page} has '{old}', not '{new}'" for old, new in zip(there[at:], lines) if old != new]
    else:
        print("\n\n".join("\n".join(lines) for lines in tables))
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
