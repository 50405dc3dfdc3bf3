"""Drives bench/llm_c: one GPT-2 with random weights, as a folder of transformers for us and in llm.c's format, and one batch.

Both sides make updates of that batch by AdamW as llm.c's main() does: 0.9, 0.999, 1e-8, no decay, no clipping, a rate of 1e-4, fp32,
no dropout. Our corpus is as long as a batch, so that every update of `teratron train` reads all of it; in which order of the rows
makes no difference. The first losses must agree.
"""

import argparse
import datetime
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

from side import Program, cpu_name, publish
from ways import ResidentWay

BATCH, POSITIONS = 4, 1024  # llm.c's own
TOLERANCE = 2e-4  # of a loss of about 11: fp32, llm.c's sums in any order (-Ofast)
LLM_C_MATRICES = ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")


def make_model(layers):
    torch.manual_seed(1)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=layers, n_positions=POSITIONS, embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0)).float()


def write_llm_c(model, path):
    """A header of 256 integers, then all layers' values of each parameter; matrices as [out, in], the tokens padded to 128."""
    config, state = model.config, model.state_dict()
    padded = -(-config.vocab_size // 128) * 128
    header = numpy.zeros(256, numpy.int32)
    header[:8] = (20240326, 3, config.n_positions, config.vocab_size, config.n_layer, config.n_head, config.n_embd, padded)
    with open(path, "wb") as file:
        header.tofile(file)
        tokens = state["transformer.wte.weight"].numpy()
        numpy.pad(tokens, ((0, padded - len(tokens)), (0, 0))).tofile(file)
        state["transformer.wpe.weight"].numpy().tofile(file)
        for name in ("ln_1", *LLM_C_MATRICES[:2], "ln_2", *LLM_C_MATRICES[2:]):
            for part in ("weight", "bias"):
                for layer in range(config.n_layer):
                    value = state[f"transformer.h.{layer}.{name}.{part}"].numpy()
                    numpy.ascontiguousarray(value.T).tofile(file)
        for part in ("weight", "bias"):
            state[f"transformer.ln_f.{part}"].numpy().tofile(file)


def write_corpus(prefix, ids):
    """One document in Megatron-LM's format, of 16-bit tokens."""
    ids.astype("<u2").tofile(prefix.with_suffix(".bin"))
    header = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 1, 2)
    prefix.with_suffix(".idx").write_bytes(header + struct.pack("<iqqq", len(ids), 0, 0, 1))


def require_same_losses(ours, theirs):
    worst = max(abs(one - other) for one, other in zip(ours, theirs))
    if worst > TOLERANCE:
        sys.exit(f"error: the losses differ by {worst:.1e}: Teratron {ours[:len(theirs)]}, llm.c {theirs}")
    return worst


def measure(folder, length, options):
    """Seconds of updates, in turns, and by how much the losses differ."""
    ids = numpy.random.default_rng(1).integers(0, 50257, BATCH * length + 1)
    write_corpus(folder / f"corpus{length}", ids)
    ids.astype(numpy.int32).tofile(folder / f"ids{length}")
    way = ResidentWay(f"tokens {length}", [], folder)
    flags = ["--finetune", folder / "hf", "--data-path", folder / f"corpus{length}", "--split", "1", "--seq-length", length,
             "--micro-batch-size", BATCH, "--train-iters", 1000, "--lr", "1e-4", "--lr-decay-style", "constant",
             "--adam-beta1", "0.9", "--adam-beta2", "0.999", "--adam-eps", "1e-8", "--weight-decay", "0", "--clip-grad", "0",
             "--threads", options.threads]
    llm_c = Program([options.program, str(folder / "model.bin"), str(folder / f"ids{length}"), str(BATCH), str(length)],
                    env={**os.environ, "OMP_NUM_THREADS": str(options.threads)}, stderr=subprocess.DEVNULL)
    theirs = llm_c.ask("step 1")  # takes memory: its time is not counted
    seconds, losses = [], theirs["losses"]
    with way.running(flags):
        for _ in range(options.rounds):
            way.turn()
            theirs = llm_c.ask("step 1")
            seconds += theirs["seconds"]
            losses += theirs["losses"]
        worst = require_same_losses([update["loss"] for update in way.updates()], losses)
    llm_c.close()
    return way.seconds, seconds, worst


def version_of(program):
    folder = Path(program).parent
    commit = subprocess.run(["git", "-C", folder / "source", "rev-parse", "--short", "HEAD"], check=True, capture_output=True,
                            text=True).stdout.strip()
    compiler = (folder / "compiler").read_text().strip()
    name = subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[0]
    return f"llm.c {commit}, {name}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--tokens", type=int, nargs="+", default=[64, 256], help="of each of the batch's 4 sequences")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    lines = ["| batch | Teratron, s an update | tokens/s | llm.c, s | tokens/s | ratio | losses differ by |", "|---" * 7 + "|"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = make_model(options.layers)
        model.save_pretrained(folder / "hf")
        write_llm_c(model, folder / "model.bin")
        del model
        for length in options.tokens:
            ours, theirs, worst = measure(folder, length, options)
            mine, other = statistics.median(ours), statistics.median(theirs)
            ratio = statistics.median(their / our for our, their in zip(ours, theirs))
            lines.append(f"| {BATCH} x {length} tokens | {mine:.3f} | {BATCH * length / mine:.0f} | {other:.3f} "
                         f"| {BATCH * length / other:.0f} | {ratio:.2f} | {worst:.1e} |")
            print(lines[-1], file=sys.stderr, flush=True)
    text = (f"{datetime.date.today()}, {cpu_name()}, {options.threads} threads, fp32; GPT-2 124M's shape, {options.layers} layers; "
            f"{version_of(options.program)}; medians of {options.rounds} rounds in turns; "
            f"`bench/llm_c {' '.join(sys.argv[2:])}`\n\n" + "\n".join(lines) + "\n")
    publish("llm_c", text, options.save)


if __name__ == "__main__":
    main()
