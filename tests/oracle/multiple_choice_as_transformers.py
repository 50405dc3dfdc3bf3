"""`teratron eval multiple-choice` has the log-likelihoods and accuracies of transformers' GPT-2 on the same weights, by the
rules of EleutherAI's lm-evaluation-harness, written here again.

    $(scripts/oracle-env | tail -n 1) tests/oracle/multiple_choice_as_transformers.py TERATRON FOLDER

A small GPT-2 is trained here on sentences. Questions of every form are drawn from their words; contexts end with spaces, are
empty, or longer than the model's context. tests/cli/oracles_test.cc runs this.
"""

import json
import math
import random
import subprocess
import sys
from pathlib import Path

import tokenizers
import torch
import transformers

WORDS = [a + b for a in ("ka", "lo", "mi", "ré", "su") for b in ("n", "rd", "st", "ve", "lling")]
DRAW = random.Random(5)


def words(least, most):
    return " ".join(DRAW.choice(WORDS) + DRAW.choice(["", "", "", ",", "."]) for _ in range(DRAW.randint(least, most)))


def question_of(form):
    """A line of the file, and what the harness makes of it: context, choices and the right one."""
    choices = [words(1, 5) for _ in range(2 if form == "piqa" else DRAW.randint(2, 5))]
    right, text = DRAW.randrange(len(choices)), words(1, 20)
    labels = [DRAW.choice(["ABCDE", "12345"])[i] for i in range(len(choices))] if form != "arc" else list("12345"[:len(choices)])
    if form == "plain":
        text = DRAW.choice([text, text + " ", text + "\n\n", "", words(90, 120)])
        return dict(context=text, choices=choices, answer=right), text, choices, right
    if form == "hellaswag":
        line = dict(activity_label="Kan", ctx_a=text, ctx_b="Lord Mist", endings=choices, label=str(right))
        return line, f"Kan: {text} Lord mist", choices, right
    if form == "piqa":
        return dict(goal=text, sol1=choices[0], sol2=choices[1], label=right), f"Question: {text}\nAnswer:", choices, right
    if form == "arc":
        line = dict(question=text, choices=dict(text=choices, label=labels), answerKey=labels[right])
        return line, f"Question: {text}\nAnswer:", choices, right
    if form == "openbookqa":
        labels = list("ABCDE"[:len(choices)])
        return dict(question_stem=text, choices=dict(text=choices, label=labels), answerKey=labels[right]), text, choices, right
    listed = "".join(f"\n{'ABCDE'[i]}. {choice}" for i, choice in enumerate(choices))
    line = dict(question=text, choices=choices, answer=right, subject="su_rd")
    context = f"The following are multiple choice questions (with answers) about su rd.\n\n{text}{listed}\nAnswer:"
    return line, context, list("ABCDE"[:len(choices)]), right


def pair_of(tokenizer, context, continuation):
    spaces = len(context) - len(context.rstrip())
    if spaces:
        continuation, context = context[-spaces:] + continuation, context[:-spaces]
    if not context:
        return [tokenizer.token_to_id("<|endoftext|>")], tokenizer.encode(continuation).ids
    before = tokenizer.encode(context).ids
    return before, tokenizer.encode(context + continuation).ids[len(before):]


def log_likelihood(model, tokenizer, context, continuation):
    before, after = pair_of(tokenizer, context, continuation)
    ids = (before + after)[-model.config.n_positions - 1:]
    with torch.no_grad():
        logits = model(torch.tensor([ids[:-1]])).logits[0, -len(after):]
    return float(torch.log_softmax(logits.double(), -1).gather(-1, torch.tensor(after)[:, None]).sum())


def accuracy(rights):
    share = sum(rights) / len(rights)
    return share, math.sqrt(share * (1 - share) / (len(rights) - 1))


def best(values):
    return max(range(len(values)), key=lambda i: values[i])  # the first of equal ones


def main():
    teratron, folder = sys.argv[1], Path(sys.argv[2])

    def run(*arguments):
        return subprocess.run([teratron, *map(str, arguments)], check=True, capture_output=True, text=True).stdout

    (folder / "text").write_text("\n".join(words(4, 12) for _ in range(400)))
    run("tokenizer", "train", "--vocab-size", 400, "--out", folder / "tokenizer", folder / "text")
    run("data", "tokenize", "--tokenizer", folder / "tokenizer", "--out", folder / "data", folder / "text")
    run("train", "--data-path", folder / "data", "--tokenizer", folder / "tokenizer", "--num-layers", 2, "--hidden-size", 64,
        "--num-attention-heads", 4, "--seq-length", 64, "--max-position-embeddings", 96, "--micro-batch-size", 8, "--train-iters", 100,
        "--lr", 3e-3, "--hidden-dropout", 0, "--attention-dropout", 0, "--split", 1, "--peak-tflops", 1, "--save", folder / "run")
    run("convert", "--from", "teratron", "--to", "hf", folder / "run", folder / "hf")
    model = transformers.GPT2LMHeadModel.from_pretrained(folder / "hf").eval()
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "hf" / "tokenizer.json"))
    forms = ["plain", "hellaswag", "piqa", "arc", "openbookqa", "mmlu"]
    questions = [question_of(form) for form in forms * 10 + ["plain"] * 20]
    (folder / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line, *_ in questions))
    expected = [[log_likelihood(model, tokenizer, context, " " + choice) for choice in choices] for _, context, choices, _ in questions]
    acc = accuracy([best(sums) == right for sums, (*_, right) in zip(expected, questions)])
    norm, by_bytes = (accuracy([best([one / length(choice) for one, choice in zip(sums, choices)]) == right
                                for sums, (_, _, choices, right) in zip(expected, questions)]) for length in (len, lambda text: len(text.encode())))
    assert 0 < acc[0] < 1 and acc != norm, (acc, norm)  # or the comparison says little
    for layout in ([], ["--tp", 2, "--micro-batch-size", 3], ["--pp", 2, "--dp", 2]):
        ours = json.loads(run("eval", "multiple-choice", "--load", folder / "run", "--data", folder / "questions.jsonl", "--json", "-", *layout))
        print(layout, {key: value for key, value in ours.items() if key != "log_probabilities"}, acc, norm, by_bytes)
        assert ours["questions"] == len(questions) and ours["cut"] > 0
        for sums, wanted in zip(ours["log_probabilities"], expected, strict=True):
            assert all(abs(one - other) < 1e-4 * abs(other) for one, other in zip(sums, wanted, strict=True)), (sums, wanted)
        for key, value in (("acc", acc), ("acc_norm", norm), ("acc_bytes", by_bytes)):
            assert abs(ours[key] - value[0]) < 1e-9 and abs(ours[key + "_stderr"] - value[1]) < 1e-9, (key, ours[key], value)


main()
