"""Drives bench/finetune: a GPT-2 that transformers saved, fine-tuned on one text by Teratron and by PyTorch.

The recipe: AdamW (0.9, 0.95), weight decay 0.1 of matrices, clipping at 1, a linear warm-up and one cosine, no dropout,
chunks of the training part in random order, every one once an epoch. The first 29/30 of the tokens are trained on and
all chunks of the rest are validated on, once, after the last update. Both sides read the same chunks; their orders are
drawn by different generators, so single runs differ by what the order makes of them: losses are means over seeds, and
their standard errors are shown.

With --same-samples N there is one seed, and every update of both sides reads the same N chunks, so that no order matters:
losses are compared update by update with PyTorch's in double and in fp32, and rounding is all that may differ.

The model: first PyTorch trains it for a while on the text's own first tenth, so that there is a model to start from;
transformers saves it with its tokenizer, which `teratron tokenizer train` made.
"""

import argparse
import datetime
import json
import math
import os
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import torch
import transformers

from side import cpu_name

LAYERS, HIDDEN, HEADS, TOKENS, VOCABULARY, BATCH = 2, 128, 4, 128, 512, 8
PEAK, MINIMUM, DECAY, CLIP, BETAS, EPS = 1e-3, 1e-4, 0.1, 1.0, (0.9, 0.95), 1e-8
TERATRON = "build/release/teratron"


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{words[0]} {words[1]}: {done.stderr}")
    return done.stdout


def chunks_of(ids):
    count = (len(ids) - 1) // TOKENS
    return torch.stack([torch.from_numpy(ids[i * TOKENS:(i + 1) * TOKENS + 1].astype(numpy.int64))
                        for i in range(count)])


def loss_of(model, chunks):
    logits = model(chunks[:, :-1]).logits
    return torch.nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), chunks[:, 1:].reshape(-1))


def train(model, chunks, updates, warmup, seed, batch_size=BATCH):
    """Losses of the updates."""
    generator = torch.Generator().manual_seed(seed)
    groups = [dict(params=[p for p in model.parameters() if p.dim() > 1], weight_decay=DECAY),
              dict(params=[p for p in model.parameters() if p.dim() == 1], weight_decay=0.0)]
    optimizer = torch.optim.AdamW(groups, lr=PEAK, betas=BETAS, eps=EPS)
    order, losses = [], []
    for update in range(1, updates + 1):
        while len(order) < batch_size:
            order += torch.randperm(len(chunks), generator=generator).tolist()
        batch, order = order[:batch_size], order[batch_size:]
        progress = (update - warmup) / max(1, updates - warmup)
        rate = PEAK * update / warmup if update < warmup else (
            MINIMUM + (PEAK - MINIMUM) * 0.5 * (1 + math.cos(math.pi * progress)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        loss = loss_of(model, chunks[batch])
        loss.backward()
        losses.append(float(loss.detach()))
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
    return losses


def validate(model, chunks):
    with torch.no_grad():
        losses = [float(loss_of(model, part)) * len(part) for part in chunks.split(16)]
    return sum(losses) / len(chunks)


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder)


def make_model(folder, tokenizer, chunks):
    torch.manual_seed(1)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=LAYERS, n_head=HEADS, n_embd=HIDDEN, vocab_size=VOCABULARY, n_positions=TOKENS, embd_pdrop=0.0,
        attn_pdrop=0.0, resid_pdrop=0.0, bos_token_id=0, eos_token_id=0))
    train(model, chunks[:len(chunks) // 10], 100, 10, seed=1)
    model.save_pretrained(folder)
    for name in ("vocab.json", "merges.txt"):
        (folder / name).write_bytes((tokenizer / name).read_bytes())


def recipe(options, seed):
    """Flags of the recipe in the head of this file."""
    return ["--seed", seed, "--micro-batch-size", BATCH, "--train-iters", options.updates, "--lr", PEAK, "--min-lr", MINIMUM,
            "--lr-warmup-iters", options.updates // 10, "--weight-decay", DECAY, "--clip-grad", CLIP, "--adam-beta1", BETAS[0],
            "--adam-beta2", BETAS[1], "--adam-eps", EPS, "--threads", options.threads]


def write_corpus(prefix, ids):
    """One document in Megatron-LM's format."""
    ids.astype("<u2").tofile(f"{prefix}.bin")
    header = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 1, 2)
    Path(f"{prefix}.idx").write_bytes(header + struct.pack("<iqqq", len(ids), 0, 0, 1))


def about(options):
    return (f"{datetime.date.today()}, {cpu_name()}, {options.threads} threads, fp32; torch {torch.__version__}, transformers "
            f"{transformers.__version__}; {run(TERATRON, '--version').strip()}; `bench/finetune {' '.join(sys.argv[1:])}`\n\n"
            f"GPT-2 of {LAYERS} layers, hidden {HIDDEN}, {HEADS} heads, vocabulary {VOCABULARY}, {TOKENS} tokens a sample; "
            f"{options.updates} updates of {options.same_samples or BATCH} samples")


def compare_updates(work, ids, training, options):
    """The same samples in every update of both sides: a table of losses."""
    count = options.same_samples
    write_corpus(work / "few", ids[:count * TOKENS + 1])
    run(TERATRON, "train", "--finetune", work / "hf", "--data-path", work / "few", "--split", "1", *recipe(options, 1),
        "--global-batch-size", count, "--save", work / "run", "--json", "-")
    lines = [json.loads(line) for line in (work / "run/metrics.jsonl").read_text().splitlines()]
    ours = [line["loss"] for line in lines if line["kind"] == "iteration"]
    single, double = (train(model.train(), training[:count], options.updates, options.updates // 10, 1, count)
                      for model in (load(work / "hf"), load(work / "hf").double()))
    rows = [f"| {at + 1} | {double[at]:.6f} | {ours[at] / double[at] - 1:+.1e} | {single[at] / double[at] - 1:+.1e} |"
            for at in (0, *range(9, options.updates, max(10, options.updates // 10)))]
    return (f"{about(options)}, the same ones in each. Losses in double, and how far those in fp32 are off.\n\n"
            "| update | transformers, double | Teratron, fp32 | transformers, fp32 |\n|---|---|---|---|\n" + "\n".join(rows) + "\n")


def compare_seeds(work, training, validation, options):
    """Orders of each side's own: a table of validation losses."""
    before = validate(load(work / "hf"), validation)
    ours, theirs, crossed = [], [], []
    for seed in range(1, options.seeds + 1):
        words = ["--finetune", work / "hf", "--data-path", work / "corpus", "--split", "29,1", "--split-order", "file",
                 *recipe(options, seed), "--eval-iters", 1 + len(validation) // BATCH, "--save", work / f"run{seed}", "--json", "-"]
        ours.append(json.loads(run(TERATRON, "train", *words))["validation_loss"])
        run(TERATRON, "convert", "--from", "teratron", "--to", "hf", work / f"run{seed}", work / f"hf{seed}")
        crossed.append(validate(load(work / f"hf{seed}"), validation))
        model = load(work / "hf").train()
        train(model, training, options.updates, options.updates // 10, seed)
        theirs.append(validate(model, validation))
        print(f"seed {seed}: Teratron {ours[-1]:.4f} (in transformers {crossed[-1]:.4f}), PyTorch {theirs[-1]:.4f}",
              file=sys.stderr, flush=True)
    error = lambda losses: statistics.stdev(losses) / math.sqrt(len(losses)) if len(losses) > 1 else math.nan
    mean = statistics.mean
    return (f"{about(options)}; {len(training)} training and {len(validation)} validation chunks. "
            f"Validation loss in nats a token, mean over {options.seeds} seeds and its standard error.\n\n"
            "| before | Teratron | the same weights in transformers | PyTorch | Teratron against PyTorch |\n|---|---|---|---|---|\n"
            f"| {before:.4f} | {mean(ours):.4f} +- {error(ours):.4f} | {mean(crossed):.4f} | "
            f"{mean(theirs):.4f} +- {error(theirs):.4f} | {100 * (mean(ours) / mean(theirs) - 1):+.2f} % |\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--updates", type=int, default=400)
    parser.add_argument("--same-samples", type=int, default=0, metavar="N")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--text", default="../shared/data/tinyshakespeare/input.txt")
    options = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        run(TERATRON, "tokenizer", "train", "--vocab-size", VOCABULARY, "--overwrite", "--out", work / "tok", options.text)
        run(TERATRON, "data", "tokenize", "--tokenizer", work / "tok", "--overwrite", "--out", work / "corpus", options.text)
        ids = numpy.fromfile(work / "corpus.bin", dtype="<u2")
        # One document is cut by token position, as `train --split 29,1 --split-order file` cuts it.
        cut = round(len(ids) * 29 / 30)
        training, validation = chunks_of(ids[:cut]), chunks_of(ids[cut:])
        make_model(work / "hf", work / "tok", training)
        if options.same_samples:
            text = compare_updates(work, ids, training, options)
        else:
            text = compare_seeds(work, training, validation, options)
    print(text)
    if options.save:
        path = Path("bench/results/finetune.md")
        if not path.exists():
            path.write_text("# bench/finetune\n\nA Hugging Face GPT-2 fine-tuned on tinyshakespeare here and in PyTorch; "
                            "bench/finetune.py has the recipe. The bar: within 0.5 %.\n")
        with path.open("a") as file:
            file.write("\n" + text)


os.environ["HF_HUB_OFFLINE"] = "1"
main()
