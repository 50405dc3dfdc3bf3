"""Drives bench/greedy: a folder of transformers, `teratron generate` and a process of CTranslate2 in turns; medians.

Tokens a second: by how much longer many new tokens take than one, so that loading and prompts are left out. Ours also computes the
log-probabilities that `--json` has, theirs does not. 8 bits are `--weights q8_0` here, steps for blocks of 32 weights, and "int8"
there, a step for each row: other roundings, so that tokens differ.
"""

import argparse
import datetime
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import transformers

from side import Program, cpu_name, publish
from ways import ARTICLES

TERATRON = "build/release/teratron"
TYPES = {"fp32": ([], "float32"), "8-bits": (["--weights", "q8_0"], "int8")}
PROMPT = 64
NEW = {1: 256, 16: 64}  # by texts, after the first
LEAST_SAME = 0.9  # of fp32's new tokens: a near tie may fall either way, and the text goes on otherwise
BPE = Path("../shared/data/gpt2-bpe")


def write_model(folder, layers):
    torch.manual_seed(1)
    transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=layers)).float().save_pretrained(folder)
    shutil.copy(BPE / "encoder.json", folder / "vocab.json")
    shutil.copy(BPE / "vocab.bpe", folder / "merges.txt")


def write_prompts(folder, count):
    """Texts of PROMPT tokens each."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    lines = [line.strip() for line in (ARTICLES / "wiki.test.tokens").read_text().splitlines() if len(line) > 12 * PROMPT]
    prompts = []
    for line in lines:
        ends = (line[:end] for end in range(8 * PROMPT, PROMPT, -1))
        text = next((text for text in ends if len(tokenizer(text)["input_ids"]) == PROMPT), None)
        if text is not None:
            prompts.append(text)
        if len(prompts) == count:
            break
    return prompts


class Ours:
    def __init__(self, folder, kind, prompts, options):
        self.words = [TERATRON, "generate", "--load", folder, "--temperature", "0", "--ignore-end-of-text", "--threads",
                      options.threads, "--json", "-", *TYPES[kind][0]]
        self.folder, self.prompts = folder, prompts

    def run(self, texts):
        """Seconds of the new tokens, ids of the prompts, new ids."""
        file = self.folder / "prompts.jsonl"
        file.write_text("".join(json.dumps({"prompt": prompt}) + "\n" for prompt in self.prompts[:texts]))

        def seconds(new):
            words = [*self.words, "--prompts", file, "--max-new-tokens", new, "--batch-size", texts]
            start = time.monotonic()
            done = subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True)
            return time.monotonic() - start, [json.loads(line) for line in done.stdout.splitlines()]

        first, _ = seconds(1)
        all_of_it, answers = seconds(NEW[texts] + 1)
        return all_of_it - first, [one["prompt_tokens"] for one in answers], [one["tokens"] for one in answers]


def share_of_same(ours, theirs):
    """Of the new tokens: those up to the first one that differs."""
    same = 0
    for one, other in zip(ours, theirs):
        same += next((at for at, (a, b) in enumerate(zip(one, other)) if a != b), len(one))
    return same / sum(map(len, ours))


class Pair:
    """Both sides in one precision."""

    def __init__(self, folder, kind, prompts, options):
        self.kind, self.ours = kind, Ours(folder, kind, prompts, options)
        self.theirs = Program([sys.executable, "bench/peers/ctranslate2_generate.py", str(folder), TYPES[kind][1],
                               str(options.threads)], env={**os.environ, "OMP_NUM_THREADS": str(options.threads)})
        self.rates, self.same = {texts: [] for texts in NEW}, {}

    def turn(self, texts):
        seconds, prompts, ids = self.ours.run(texts)
        first, answer = (self.theirs.ask(json.dumps({"prompts": prompts, "new": new})) for new in (1, NEW[texts] + 1))
        self.rates[texts].append([texts * NEW[texts] / one for one in (seconds, answer["seconds"] - first["seconds"])])
        self.same[texts] = share_of_same(ids, answer["tokens"])
        if self.kind == "fp32" and self.same[texts] < LEAST_SAME:
            sys.exit(f"error: only {100 * self.same[texts]:.1f} % of the new tokens are the same: {ids}, {answer['tokens']}")

    def row(self, texts):
        pairs = self.rates[texts]
        mine, other = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
        ratio = statistics.median(pair[0] / pair[1] for pair in pairs)
        return f"| {texts} | {self.kind} | {mine:.1f} | {other:.1f} | {ratio:.2f} | {100 * self.same[texts]:.1f} % |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--types", nargs="+", choices=list(TYPES), default=list(TYPES))
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_model(folder, options.layers)
        prompts = write_prompts(folder, max(NEW))
        pairs = [Pair(folder, kind, prompts, options) for kind in options.types]
        for _ in range(options.rounds):
            for pair in pairs:
                for texts in NEW:
                    pair.turn(texts)
        for pair in pairs:
            pair.theirs.close()
    lines = ["| texts | weights | Teratron, tokens/s | CTranslate2, tokens/s | ratio | new tokens that are the same |",
             "|---" * 6 + "|", *(pair.row(texts) for texts in NEW for pair in pairs)]
    text = (f"{datetime.date.today()}, {cpu_name()}, {options.threads} threads; GPT-2 124M's shape, {options.layers} layers; "
            f"CTranslate2 {pairs[0].theirs.ready['version']}; {NEW[1]} new tokens of one text, {NEW[16]} of each of 16, after prompts "
            f"of {PROMPT}, whose time is left out; medians of {options.rounds} rounds in turns; "
            f"`bench/greedy {' '.join(sys.argv[1:])}`\n\n" + "\n".join(lines) + "\n")
    publish("greedy", text, options.save)


if __name__ == "__main__":
    main()
