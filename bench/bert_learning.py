"""What a small BERT learns on two cores, on the data in ../shared/data/race (one command: bench/bert_learning).

Pre-training on RACE's training articles: the loss of masked tokens on held-out documents against the entropy of single
tokens (what a model reaches that knows how frequent each token is and nothing of its neighbours), and how often the order
of two texts is found right, in standard errors above chance, which is one half. Then fine-tuning on RACE's questions for
middle schools from those weights and from random ones: accuracy on all of RACE's dev set, where chance is one of four.
"""

import argparse
import datetime
import json
import math
import sys
import tempfile
from pathlib import Path

from learning import (BERT_BATCH, BERT_TOKENS, DATA, EVALUATED, NO_DROPOUT, TASK_TOKENS, draw, metrics_of, pretrain_bert, race_corpus, race_questions,
                      run, small_vocabulary, token_entropy)
from side import cpu_name

SHAPE = ["--num-layers", 2, "--hidden-size", 128, "--num-attention-heads", 2]


def errors_above(chance, share, count):
    """How far a share of `count` answers is above chance, in standard errors of chance."""
    return (share - chance) / math.sqrt(chance * (1 - chance) / count)


def finetune(name, start, questions, folder, options):
    """dev accuracy and its distance from chance in standard errors."""
    out = run("finetune", "--task", "race", *start, "--train-data", questions, "--valid-data", DATA / "race/dev.middle.jsonl",
              DATA / "race/dev.high.jsonl", "--seq-length", TASK_TOKENS, "--epochs", options.epochs, "--global-batch-size", 16, "--micro-batch-size", 8,
              "--lr", 3e-4, "--weight-decay", 0.01, *NO_DROPOUT, "--bf16", "--threads", options.threads, "--save", folder / name, "--json", "-", tell=False)
    scores = json.loads(out)["runs"][0]["valid"]
    asked = sum(len(json.loads(line)["questions"]) for level in ("middle", "high") for line in open(DATA / f"race/dev.{level}.jsonl"))
    return scores, errors_above(0.25, scores["accuracy"] / 100, asked)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=3000)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--articles", type=int, default=1400, help="of RACE's middle schools, to fine-tune on")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        vocabulary = small_vocabulary(folder)
        corpus = race_corpus(folder, vocabulary)
        entropy = token_entropy(corpus)
        save = folder / "pretrained"
        pretrain_bert(save, corpus, vocabulary, SHAPE, options.updates, options.rate, options.threads)
        curve = [(line["iteration"], line["lm_loss"], line["sop_loss"], line["sop_accuracy"]) for line in metrics_of(save, "validation")]
        questions = race_questions(folder, options.articles)
        shape = ["--model-type", "bert", *SHAPE, "--tokenizer", vocabulary]
        tuned = {name: finetune(name, start, questions, folder, options)
                 for name, start in (("pre-trained", ["--load", save]), ("from random weights", shape))}
    first, last = curve[0][0], curve[-1][0]
    draw("bert_learning", f"BERT (L 2, h 128) on RACE's articles; entropy of single tokens {entropy:.3f}", "updates", "loss of masked tokens, nats",
         [dict(name="held-out documents", points=[[i, lm] for i, lm, *_ in curve]),
          dict(name="entropy of single tokens", points=[[first, entropy], [last, entropy]])])
    draw("bert_order", "The order of two texts, found by a BERT (L 2, h 128)", "updates", "right, held-out pairs",
         [dict(name="held-out documents", points=[[i, right] for i, *_, right in curve]),
          dict(name="chance", points=[[first, 0.5], [last, 0.5]])])
    pairs = EVALUATED * BERT_BATCH
    rows = ["| after updates | masked tokens, nats | order of texts, nats | order right | standard errors above chance |", "|---|---|---|---|---|"]
    rows += [f"| {i} | {lm:.4f} | {sop:.4f} | {100 * right:.2f} % | {errors_above(0.5, right, pairs):.1f} |" for i, lm, sop, right in curve]
    rows += ["", "| RACE dev, fine-tuned | accuracy | middle | high | standard errors above chance |", "|---|---|---|---|---|"]
    rows += [f"| {name} | {s['accuracy']:.2f} % | {s['accuracy_middle']:.2f} % | {s['accuracy_high']:.2f} % | {above:.1f} |"
             for name, (s, above) in tuned.items()]
    heading = (f"{datetime.date.today()}, {cpu_name()}; L 2, h 128, 2 heads, V 8192, initial weights of 0.06, {BERT_TOKENS} tokens, batch {BERT_BATCH}, bf16, {last} updates; entropy of "
               f"single tokens {entropy:.4f} nats, chance {math.log(2):.4f}; {pairs} held-out pairs; fine-tuned on the first {options.articles} articles of "
               f"train.middle, {TASK_TOKENS} tokens, {options.epochs} epochs; seed 1234; `bench/bert_learning {' '.join(sys.argv[1:])}`")
    text = heading + "\n\n" + "\n".join(rows) + "\n"
    print(text)
    Path("bench/results/bert_learning.md").write_text(
        "# What a small BERT learns on two cores\n\nLosses are nats, on documents that were held out. These models are a thousandth of the paper's: that they "
        "learn is what\nthis shows, not how well BERTs do.\n\n" + text)


main()
