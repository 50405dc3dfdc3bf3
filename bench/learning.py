"""What the benchmarks share that train models for as long as it takes to learn something."""

import array
import collections
import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path

TERATRON = os.environ.get("TERATRON", "build/release/teratron")
DATA = Path("../shared/data")
BERT_TOKENS, BERT_BATCH, EVALUATED = 512, 32, 80  # held-out samples: so many batches
TASK_TOKENS = 128
NO_DROPOUT = ["--hidden-dropout", 0, "--attention-dropout", 0]


def start(*words, tell=False):
    """teratron with these arguments, run to its end; its errors and progress are shown with `tell`."""
    return subprocess.run([TERATRON, *map(str, words)], stdout=subprocess.PIPE, stderr=None if tell else subprocess.PIPE, text=True)


def run(*words, tell=True):
    done = start(*words, tell=tell)
    if done.returncode != 0:
        sys.exit(done.stderr or done.returncode)
    return done.stdout


def race_corpus(folder, vocabulary=DATA / "bert-vocab"):
    """RACE's training articles as sentences of WordPiece tokens; the prefix of the files."""
    files = [DATA / f"race/train.{level}.jsonl.zst" for level in ("high", "middle")]
    prefix = folder / f"corpus-{vocabulary.name}"
    run("data", "tokenize", "--tokenizer", vocabulary, "--split-sentences", "--json-key", "article", "--overwrite", "--out", prefix, *files, tell=False)
    return prefix


def token_counts(prefix):
    return collections.Counter(array.array("H", prefix.with_suffix(".bin").read_bytes()))


def token_entropy(prefix):
    """Of the corpus's tokens, in nats: the loss of a model that knows how frequent each token is, and nothing else."""
    counts = token_counts(prefix)
    total = sum(counts.values())
    return sum(-count / total * math.log(count / total) for count in counts.values())


def small_vocabulary(folder, size=8192):
    """A folder with the part of BERT's uncased vocabulary that RACE uses most: its articles have 5 % more tokens by it, and
    a model of this size spends a quarter of the time on its output. Pieces of a single character stay, which words are
    spelt with that have no other pieces now."""
    words = (DATA / "bert-vocab/vocab.txt").read_text(encoding="utf8").rstrip("\n").split("\n")
    counts = token_counts(race_corpus(folder))
    kept = {i for i, word in enumerate(words) if word in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")}
    kept |= {i for i, word in enumerate(words)
             if len(character := word.removeprefix("##")) == 1 and (counts[i] > 0 or character.isascii())}
    for token, _ in counts.most_common():
        if len(kept) == size:
            break
        kept.add(token)
    small = folder / f"vocabulary-{size}"
    small.mkdir(exist_ok=True)
    (small / "vocab.txt").write_text("".join(f"{words[i]}\n" for i in sorted(kept)), encoding="utf8")
    return small


def python_docs(folder, vocabulary):
    """The documentation of Python as FOLDER/corpus, and FOLDER/tokenizer, learnt from all but the last thirtieth of it, as
    quickstart makes them."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["scripts/python-docs", folder], check=True)
    texts = (folder / "files").read_text().split()
    if not (folder / "tokenizer/vocab.json").exists():
        learnt = texts[:len(texts) - (len(texts) + 29) // 30]
        run("tokenizer", "train", "--vocab-size", vocabulary, "--overwrite", "--out", folder / "tokenizer", *learnt, tell=False)
    if not (folder / "corpus.idx").exists():
        run("data", "tokenize", "--tokenizer", folder / "tokenizer", "--overwrite", "--out", folder / "corpus", *texts, tell=False)


def race_questions(folder, articles):
    """A file of the first articles for middle schools, with their questions, to fine-tune on."""
    lines = subprocess.run(["zstd", "-dc", DATA / "race/train.middle.jsonl.zst"], check=True, capture_output=True, text=True).stdout.splitlines()
    (folder / "race.jsonl").write_text("\n".join(lines[:articles]) + "\n")
    return folder / "race.jsonl"


def pretrain_bert(save, corpus, vocabulary, model, updates, rate, threads):
    """A BERT without dropout, in bf16. model: flags of its shape. Samples are as long as most articles are: whether a text
    is the beginning of an article is what tells most about the order of sentences. Initial weights are three times as large
    as usual, for layers that are a tenth as wide: with 0.02, [CLS] learns nothing of the texts in the updates of an hour."""
    run("train", "--model-type", "bert", *model, "--seq-length", BERT_TOKENS, "--tokenizer", vocabulary, "--data-path", corpus, "--split", "9,1",
        "--micro-batch-size", BERT_BATCH // 4, "--global-batch-size", BERT_BATCH, "--lr", rate, "--lr-decay-style", "linear",
        "--lr-warmup-iters", updates // 20, "--init-method-std", 0.06, *NO_DROPOUT, "--bf16", "--train-iters", updates, "--eval-interval", updates // 24,
        "--eval-iters", EVALUATED, "--threads", threads, "--save", save, "--save-interval", updates, tell=False)


def metrics_of(folder, kind):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == kind]


def loss_curve(losses, shown=25):
    """Points of a figure: the means of so many updates' losses."""
    return [[i + shown, statistics.mean(losses[i:i + shown])] for i in range(0, len(losses), shown)]


def draw(name, title, x_axis, y_axis, lines):
    """bench/results/NAME.json and its picture, NAME.svg, whose y axis begins at the tenth below the least value."""
    least = math.floor(10 * min(y for line in lines for _, y in line["points"])) / 10
    chart = dict(title=title, x_axis=x_axis, y_axis=y_axis, y_least=least, lines=lines)
    path = Path("bench/results") / f"{name}.json"
    path.write_text(json.dumps(chart))
    with path.open() as source, path.with_suffix(".svg").open("w") as picture:
        subprocess.run(["build/release/bench_chart"], check=True, stdin=source, stdout=picture)
