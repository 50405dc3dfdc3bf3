"""Drives bench/pipeline_bound: two stages of one core each beside half the time that one core takes for the same updates."""

import argparse
import contextlib
import datetime
import json
import pathlib
import signal
import sys
import tempfile

from side import cpu_name
from ways import ResidentWay, teratron, write_articles

DATA = pathlib.Path("../shared/data")
ONE_CORE, TWO_THREADS, AUTO = "one core", "one stage of two threads", "--schedule auto"
MIDDLE = ["--num-layers", 8, "--hidden-size", 384, "--num-attention-heads", 6]
APART = ["--reset-attention-mask", "--reset-position-ids"]


def stages(*flags):
    return ["--pp", 2, "--threads", 2, *flags]


# A case's words in the vocabulary, shape and data, and the ways by hand through two stages; `auto` and one core come to them.
CASES = {
    "a": ("four sequences of 1024 tokens", 4096, [*MIDDLE, "--seq-length", 1024, "--global-batch-size", 4], {
        "1f1b": stages(),
        "seq1f1b, uniform:4": stages("--token-slices", "uniform:4"),
        "seq1f1b, uniform:4, the vocabulary shared out":
            stages("--token-slices", "uniform:4", "--vocabulary-parallel")}),
    "b": ("one sequence of 4096 tokens", 4096, [*MIDDLE, "--seq-length", 4096, "--global-batch-size", 1], {
        "terapipe, uniform:8": stages("--token-slices", "uniform:8"),
        "terapipe, uniform:16": stages("--token-slices", "uniform:16"),
        "terapipe, uniform:16, the vocabulary shared out": stages("--token-slices", "uniform:16", "--vocabulary-parallel")}),
    "c": ("GPT-2 124M, four sequences of 512 tokens", 50257,
          ["--model", "124M", "--seq-length", 512, "--global-batch-size", 4], {
              "1f1b, the vocabulary shared out": stages("--vocabulary-parallel"),
              "seq1f1b, uniform:2, the vocabulary shared out":
                  stages("--token-slices", "uniform:2", "--vocabulary-parallel"),
              "1f1b, 9 and 3 layers": stages("--pipeline-layout", "9,3")}),
    "d": ("articles of WikiText103 apart, four samples of 2048 tokens", 4096,
          ["--num-layers", 8, "--hidden-size", 256, "--num-attention-heads", 4, "--seq-length", 2048,
           "--global-batch-size", 4, *APART, "--packing", "best-fit"], {
              "packed, 1f1b": stages(),
              "packed, uniform:4": stages("--token-slices", "uniform:4"),
              "packed, documents:4": stages("--token-slices", "documents:4"),
              "packed, documents:4, the vocabulary shared out":
                  stages("--token-slices", "documents:4", "--vocabulary-parallel")}),
}


def corpus(folder, words):
    """Articles of WikiText103 with a vocabulary of so many words."""
    made = folder / str(words)
    if not made.exists():
        made.mkdir()
        write_articles(made / "articles.jsonl")
        tokenizer = DATA / "gpt2-bpe"
        if words != 50257:
            tokenizer = made / "tokenizer"
            teratron("tokenizer", "train", "--vocab-size", words, "--out", tokenizer, made / "articles.jsonl")
        teratron("data", "tokenize", "--tokenizer", tokenizer, "--out", made / "corpus", made / "articles.jsonl")
        (made / "tokenizer.path").write_text(str(tokenizer))
    return ["--data-path", made / "corpus", "--tokenizer", (made / "tokenizer.path").read_text(), "--split", 1]


def run_case(folder, name, turns):
    """The case's table."""
    title, words, shape, by_hand = CASES[name]
    flags = [*corpus(folder, words), *shape, "--micro-batch-size", 1, "--train-iters", 1000]
    ways = [ResidentWay(way, more, folder) for way, more in
            {ONE_CORE: ["--threads", 1], TWO_THREADS: ["--threads", 2], **by_hand, AUTO: stages("--schedule", "auto")}.items()]
    with contextlib.ExitStack() as stack:
        for way in ways:
            stack.enter_context(way.running(flags))
        for _ in range(turns):
            for way in ways:
                way.turn()
        printed = ways[-1].printed()
    best = min(ways[2:-1], key=ResidentWay.median)
    lines = [f"| ({name}) {title} | ms an update | least | of half of one core's | the same of the least "
             "| of the best by hand |", "|---" * 6 + "|"]
    for way in ways:
        least = min(way.seconds)
        lines.append(f"| {way.name} | {1e3 * way.median():.0f} | {1e3 * least:.0f} | {2 * way.share_of(ways[0]):.3f} "
                     f"| {2 * least / min(ways[0].seconds):.3f} | {way.share_of(best):.3f} |")
    chosen = [line.strip() for line in printed.splitlines() if "chosen, of" in line or "instead:" in line]
    return "\n".join(lines) + "\n\n" + "".join(f"    {line}\n" for line in chosen)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", choices=list(CASES), action="append")
    parser.add_argument("--turns", type=int, default=7)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # no process stays behind, stopped
    print(f"{datetime.date.today()}, {cpu_name()}, fp32, two stages of one core each; {options.turns} turns of two updates, of which the second "
          f"counts, optimizer included; medians of milliseconds, and of ratios within a turn; "
          f"`bench/pipeline_bound {' '.join(sys.argv[1:])}`\n", flush=True)
    with tempfile.TemporaryDirectory() as name:
        for case in options.case or CASES:
            print(run_case(pathlib.Path(name), case, options.turns), flush=True)


main()
