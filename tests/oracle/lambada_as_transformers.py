"""`teratron eval lambada` finds the words that transformers' GPT-2 finds, by the same rule on the same weights.

    $(scripts/oracle-env | tail -n 1) tests/oracle/lambada_as_transformers.py TERATRON FOLDER [LAMBADA_FILE]

A small GPT-2 is trained here on passages until it knows some of their last words, and given to transformers. Both score
the passages it was trained on and as many others: the number found and the mean log-probability must agree. With
LAMBADA's own file (of which the first 400 passages are taken) both are scored on that too, with a model of its tokens.
tests/cli/oracles_test.cc runs this.
"""

import json
import random
import subprocess
import sys
from pathlib import Path

import tokenizers
import torch
import transformers


def passages_of(count, seed):
    draw = random.Random(seed)
    words = [a + b for a in ("ka", "lo", "mi", "re", "su", "ti") for b in ("n", "rd", "st", "ve", "lling", "")]
    return ["".join(draw.choice(words) + draw.choice([" ", " ", " ", ", ", ".\n\n"]) for _ in range(draw.randint(6, 14)))
            + draw.choice(words) + draw.choice(["", "\n", "."]) for _ in range(count)]


def write_jsonl(path, passages):
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in passages))


def scores_of(model, tokenizer, passages):
    found, total = 0, 0.0
    for text in passages:
        text = text.strip()
        word = text.split()[-1]
        context = tokenizer.encode(text[: text.rfind(word)].strip()).ids
        label = tokenizer.encode(" " + word).ids
        ids = (context + label)[-model.config.n_positions - 1:]
        with torch.no_grad():
            logits = model(torch.tensor([ids[:-1]])).logits[0, -len(label):]
        targets = torch.tensor(label)
        found += bool((logits.argmax(-1) == targets).all())
        total += float(torch.log_softmax(logits.double(), -1).gather(-1, targets[:, None]).sum())
    return found, total / len(passages)


def main():
    teratron, folder = sys.argv[1], Path(sys.argv[2])

    def run(*words):
        return subprocess.run([teratron, *map(str, words)], check=True, capture_output=True, text=True).stdout

    known, others = passages_of(24, 1), passages_of(24, 2)
    lambada = [json.loads(line)["text"] for line in open(sys.argv[3])][:400] if len(sys.argv) > 3 else []
    write_jsonl(folder / "known.jsonl", known)
    write_jsonl(folder / "train.jsonl", known + lambada)
    write_jsonl(folder / "scored.jsonl", known + others + lambada)
    run("tokenizer", "train", "--vocab-size", 600, "--out", folder / "tokenizer", folder / "train.jsonl")
    run("data", "tokenize", "--tokenizer", folder / "tokenizer", "--out", folder / "data", folder / "known.jsonl")
    run("train", "--data-path", folder / "data", "--tokenizer", folder / "tokenizer", "--num-layers", 2, "--hidden-size", 64,
        "--num-attention-heads", 4, "--seq-length", 64, "--max-position-embeddings", 96, "--micro-batch-size", 8,
        "--train-iters", 400, "--lr", 3e-3, "--lr-warmup-iters", 20, "--hidden-dropout", 0, "--attention-dropout", 0, "--split", 1,
        "--peak-tflops", 1, "--save", folder / "run")
    run("convert", "--from", "teratron", "--to", "hf", folder / "run", folder / "hf")
    model = transformers.GPT2LMHeadModel.from_pretrained(folder / "hf").eval()
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "hf" / "tokenizer.json"))
    found, mean = scores_of(model, tokenizer, known + others + lambada)
    assert 0 < found < len(known + others + lambada), found  # or the comparison says little
    for layout in ([], ["--tp", 2, "--micro-batch-size", 3], ["--pp", 2, "--dp", 2]):
        ours = json.loads(run("eval", "lambada", "--load", folder / "run", "--data", folder / "scored.jsonl", "--json", "-", *layout))
        print(layout, ours, found, mean)
        assert ours["examples"] == len(known + others + lambada)
        assert ours["correct"] == found
        assert abs(ours["mean_log_probability"] - mean) < 1e-4 * abs(mean)


main()
