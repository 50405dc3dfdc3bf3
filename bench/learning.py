"""What the benchmarks share that train models for as long as it takes to learn something."""

import json
import subprocess
import sys
from pathlib import Path

TERATRON = "build/release/teratron"
DATA = Path("../shared/data")
BERT_TOKENS, BERT_BATCH = 128, 32
NO_DROPOUT = ["--hidden-dropout", 0, "--attention-dropout", 0]


def run(*words, tell=True):
    done = subprocess.run([TERATRON, *map(str, words)], stdout=subprocess.PIPE, stderr=None if tell else subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return done.stdout


def race_corpus(folder):
    """RACE's training articles as sentences of WordPiece tokens; the prefix of the files."""
    files = [DATA / f"race/train.{level}.jsonl.zst" for level in ("high", "middle")]
    run("data", "tokenize", "--tokenizer", DATA / "bert-vocab", "--split-sentences", "--json-key", "article", "--out", folder / "corpus", *files,
        tell=False)
    return folder / "corpus"


def race_questions(folder, articles):
    """A file of the first articles for middle schools, with their questions, to fine-tune on."""
    lines = subprocess.run(["zstd", "-dc", DATA / "race/train.middle.jsonl.zst"], check=True, capture_output=True, text=True).stdout.splitlines()
    (folder / "race.jsonl").write_text("\n".join(lines[:articles]) + "\n")
    return folder / "race.jsonl"


def pretrain_bert(save, corpus, model, updates, warmup, interval, evaluated, threads):
    """A BERT without dropout, on sequences of BERT_TOKENS. model: flags; evaluated: micro-batches every `interval` updates."""
    run("train", *model, "--seq-length", BERT_TOKENS, "--tokenizer", DATA / "bert-vocab", "--data-path", corpus, "--split", "29,1",
        "--micro-batch-size", BERT_BATCH // 2, "--global-batch-size", BERT_BATCH, "--lr", 1e-3, "--lr-decay-style", "linear",
        "--lr-warmup-iters", warmup, *NO_DROPOUT, "--train-iters", updates, "--eval-interval", interval, "--eval-iters", evaluated,
        "--threads", threads, "--save", save)


def metrics_of(folder, kind):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == kind]


def draw(name, title, x_axis, y_axis, lines):
    """bench/results/NAME.json and its picture, NAME.svg."""
    chart = dict(title=title, x_axis=x_axis, y_axis=y_axis, lines=lines)
    path = Path("bench/results") / f"{name}.json"
    path.write_text(json.dumps(chart))
    with path.open() as source, path.with_suffix(".svg").open("w") as picture:
        subprocess.run(["build/release/bench_line_chart"], check=True, stdin=source, stdout=picture)
