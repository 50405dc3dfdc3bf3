"""What a small BERT learns on two cores, on the data in ../shared/data/race (one command: bench/bert_learning).

Pre-training on RACE's training articles: the loss of masked tokens on held-out documents against the entropy of single
tokens (what a model reaches that knows how frequent each token is and nothing of its neighbours), and that of the order of
sentences against log 2 (chance). Then fine-tuning on RACE's questions for middle schools from those weights and from
random ones: accuracy on all of RACE's dev set, in standard errors above chance, which is one of four.
"""

import argparse
import array
import collections
import datetime
import json
import math
import sys
import tempfile
from pathlib import Path

from learning import BERT_BATCH, BERT_TOKENS, DATA, NO_DROPOUT, draw, metrics_of, pretrain_bert, race_corpus, race_questions, run
from side import cpu_name


def token_entropy(prefix):
    """Of the corpus's tokens, in nats."""
    tokens = array.array("H", prefix.with_suffix(".bin").read_bytes())
    counts = collections.Counter(tokens)
    return sum(-count / len(tokens) * math.log(count / len(tokens)) for count in counts.values())


def finetune(name, start, questions, folder, options):
    """dev accuracy and its distance from chance in standard errors."""
    out = run("finetune", "--task", "race", *start, "--train-data", questions, "--valid-data", DATA / "race/dev.middle.jsonl",
              DATA / "race/dev.high.jsonl", "--seq-length", BERT_TOKENS, "--epochs", options.epochs, "--global-batch-size", 16, "--micro-batch-size", 8,
              "--lr", 3e-4, *NO_DROPOUT, "--threads", options.threads, "--save", folder / name, "--json", "-")
    scores = json.loads(out)["runs"][0]["valid"]
    asked = sum(len(json.loads(line)["questions"]) for level in ("middle", "high") for line in open(DATA / f"race/dev.{level}.jsonl"))
    error = 100 * math.sqrt(0.25 * 0.75 / asked)
    return scores, (scores["accuracy"] - 25) / error


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=4000)
    parser.add_argument("--articles", type=int, default=1400, help="of RACE's middle schools, to fine-tune on")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pretrained", type=Path, help="a run that has been pre-trained so; otherwise it is made")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        corpus = race_corpus(folder)
        entropy = token_entropy(corpus)
        save = options.pretrained or folder / "pretrained"
        if not options.pretrained:
            pretrain_bert(save, corpus, ["--model", "bert-tiny"], options.updates, 100, 250, 64, options.threads)
        curve = [(line["iteration"], line["lm_loss"], line["sop_loss"]) for line in metrics_of(save, "validation")]
        last = curve[-1]
        questions = race_questions(folder, options.articles)
        shape = ["--model", "bert-tiny", "--tokenizer", DATA / "bert-vocab"]
        tuned = {name: finetune(name, start, questions, folder, options)
                 for name, start in (("pre-trained", ["--load", save]), ("from random weights", shape))}
    draw("bert_learning", f"BERT (L 4, h 256) on RACE's articles; entropy of single tokens {entropy:.3f}", "updates", "loss of masked tokens, nats",
         [dict(name="held-out documents", points=[[i, lm] for i, lm, _ in curve]),
          dict(name="entropy of single tokens", points=[[curve[0][0], entropy], [last[0], entropy]])])
    rows = ["| after updates | masked tokens | entropy of single tokens | order of sentences | chance |", "|---|---|---|---|---|"]
    rows += [f"| {i} | {lm:.4f} | {entropy:.4f} | {sop:.4f} | {math.log(2):.4f} |" for i, lm, sop in curve]
    rows += ["", "| RACE dev, fine-tuned | accuracy | middle | high | standard errors above chance |", "|---|---|---|---|---|"]
    rows += [f"| {name} | {s['accuracy']:.2f} % | {s['accuracy_middle']:.2f} % | {s['accuracy_high']:.2f} % | {above:.1f} |"
             for name, (s, above) in tuned.items()]
    heading = (f"{datetime.date.today()}, {cpu_name()}; L 4, h 256, 4 heads, {BERT_TOKENS} tokens, batch {BERT_BATCH}, {last[0]} updates; fine-tuned on the "
               f"first {options.articles} articles of train.middle, {options.epochs} epochs; seed 1234; `bench/bert_learning {' '.join(sys.argv[1:])}`")
    text = heading + "\n\n" + "\n".join(rows) + "\n"
    print(text)
    Path("bench/results/bert_learning.md").write_text(
        "# What a small BERT learns on two cores\n\nLosses are nats, on documents that were held out. These models are a thousandth of the paper's: that they "
        "learn is what\nthis shows, not how well BERTs do.\n\n" + text)


main()
