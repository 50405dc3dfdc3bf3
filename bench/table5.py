"""Table 5 of the Megatron-LM paper at a size that fits a laptop: BERTs of growing size, pre-trained on the same tokens, and
fine-tuned on the tasks whose data is at hand. One command: bench/table5.

Pre-training reads RACE's training articles. RACE: middle schools, a part of the training questions and all of the dev set.
SQuAD 1.1 has its dev set alone here: the last articles are held out, the others trained on. MNLI has 1,000 pairs of each
kind: the matched ones are trained on and the mismatched ones scored. Scores are medians over seeds. The paper has 336M to
3.9B parameters, and all of the data; only the shape of the result compares.
"""

import argparse
import datetime
import json
import sys
import tempfile
from pathlib import Path

from learning import (BERT_BATCH, BERT_TOKENS, DATA, NO_DROPOUT, TASK_TOKENS, draw, metrics_of, pretrain_bert, race_corpus, race_questions, run,
                      small_vocabulary)
from side import cpu_name

HELD_OUT = 8  # articles of SQuAD's dev set, of 48


def squad_articles(folder):
    articles = json.loads((DATA / "squad/dev-v1.1.from-html.json").read_text())["data"]
    for name, part in (("train", articles[:-HELD_OUT]), ("valid", articles[-HELD_OUT:])):
        (folder / f"squad-{name}.json").write_text(json.dumps({"data": part}))
    return [folder / "squad-train.json"], [folder / "squad-valid.json"]


def tasks_of(folder, options):
    """Name, flags, files to train on and to score, and what the score is called."""
    return [("race", ["--epochs", options.epochs, "--lr", 2e-4], [race_questions(folder, options.articles)],
             [DATA / "race/dev.middle.jsonl"], "accuracy"),
            ("squad1", ["--epochs", options.epochs, "--lr", 3e-4], *squad_articles(folder), "f1"),
            ("mnli", ["--epochs", 3 * options.epochs, "--lr", 2e-4], [DATA / "mnli-subset/mnli_matched.tsv"],
             [DATA / "mnli-subset/mnli_mismatched.tsv"], "accuracy")]


def pretrain(save, corpus, vocabulary, size, options):
    layers, hidden, heads, rate = size.split(":")
    model = ["--num-layers", layers, "--hidden-size", hidden, "--num-attention-heads", heads]
    pretrain_bert(save, corpus, vocabulary, model, options.updates, rate, options.threads)
    return [(line["iteration"], line["lm_loss"]) for line in metrics_of(save, "validation")]


def finetune(save, name, flags, train, valid, encoder, options):
    out = run("finetune", "--task", name, "--load", encoder, "--train-data", *train, "--valid-data", *valid, "--seq-length", TASK_TOKENS,
              "--global-batch-size", 16, "--micro-batch-size", 8, "--weight-decay", 0.01, *flags, *NO_DROPOUT, "--bf16", "--seeds", options.seeds, "--threads", options.threads,
              "--save", save, "--json", "-", tell=False)
    result = json.loads(out)
    return (result["median"] if options.seeds > 1 else result["runs"][0])["valid"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=2500)
    parser.add_argument("--articles", type=int, default=700, help="of RACE's middle schools, to fine-tune on")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sizes", nargs="+", default=["1:16:1:1e-3", "1:32:1:1e-3", "2:64:2:1e-3", "2:128:2:1e-3", "3:192:3:1e-3"], help="layers:hidden:heads:learning rate")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        vocabulary = small_vocabulary(folder)
        corpus = race_corpus(folder, vocabulary)
        tasks = tasks_of(folder, options)
        lines, rows = [], ["| layers, hidden, heads, rate | masked tokens, nats | " + " | ".join(f"{name} {metric}" for name, *_, metric in tasks) + " |",
                           "|---" * (2 + len(tasks)) + "|"]
        for size in options.sizes:
            encoder = folder / size.replace(":", "-")
            curve = pretrain(encoder, corpus, vocabulary, size, options)
            layers, hidden, heads, rate = size.split(":")
            lines.append(dict(name=f"L {layers}, h {hidden}, heads {heads}, lr {rate}", points=curve))
            scores = [finetune(folder / f"{encoder.name}-{name}", name, flags, train, valid, encoder, options)[metric]
                      for name, flags, train, valid, metric in tasks]
            rows.append(f"| {size.replace(':', ', ')} | {curve[-1][1]:.3f} | " + " | ".join(f"{score:.2f}" for score in scores) + " |")
            print(rows[-1], file=sys.stderr, flush=True)
    draw("table5", "BERTs of growing size on the same tokens", "updates", "loss of masked tokens, nats", lines)
    heading = (f"{datetime.date.today()}, {cpu_name()}; V 8192, initial weights of 0.06, {BERT_TOKENS} tokens ({TASK_TOKENS} in tasks), "
               f"batch {BERT_BATCH}, bf16, {options.updates} updates; medians of {options.seeds} seeds; "
               f"`bench/table5 {' '.join(sys.argv[1:])}`")
    text = heading + "\n\n" + "\n".join(rows) + "\n"
    print(text)
    Path("bench/results/table5.md").write_text(
        "# BERTs of growing size\n\nTable 5 of the Megatron-LM paper at a size that fits a laptop: a thousandth of its parameters, and parts of the data,\n"
        "so only the order of the rows compares.\n\n" + text)


main()
