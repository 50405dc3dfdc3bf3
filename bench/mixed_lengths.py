"""Drives bench/mixed_lengths: each way to train on documents a process of its own, taking turns; medians."""

import argparse
import datetime
import json
import pathlib
import re
import sys
import tempfile

from side import cpu_name
from ways import Way, take_turns, teratron, write_articles

APART = ["--reset-attention-mask", "--reset-position-ids"]
PACKED = [*APART, "--packing", "best-fit"]
WAYS = {
    "stream, 1f1b": APART,
    "stream, uniform:4": [*APART, "--token-slices", "uniform:4"],
    "packed, 1f1b": PACKED,
    "packed, uniform:4": [*PACKED, "--token-slices", "uniform:4"],
    "packed, documents:4": [*PACKED, "--token-slices", "documents:4"],
    "packed, documents:8": [*PACKED, "--token-slices", "documents:8"],
}


def padding_shares(corpus, seq):
    """The shares of padding where every document, or piece of a long one, is a sample, and where they are packed."""
    info = teratron("train", "--data-path", corpus, "--split", 1, "--tokenizer", corpus.parent / "tok", "--num-layers", 1,
                    "--hidden-size", 16, "--num-attention-heads", 1, "--seq-length", seq, "--train-iters", 1,
                    "--global-batch-size", 1, "--micro-batch-size", 1, *PACKED)
    pieces, samples, padding = re.search(r"([\d,]+) documents and pieces .* into ([\d,]+) samples .*?, ([\d.]+) %",
                                         info).groups()
    packed = float(padding) / 100
    inputs = (1 - packed) * int(samples.replace(",", ""))
    return 1 - inputs / int(pieces.replace(",", "")), packed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", action="store_true")
    for name, value in dict(rounds=5, updates=8, seq=2048, layers=8, hidden=256, heads=4, batch=4).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_articles(folder / "articles.jsonl")
        teratron("tokenizer", "train", "--vocab-size", 4096, "--out", folder / "tok", folder / "articles.jsonl")
        teratron("data", "tokenize", "--tokenizer", folder / "tok", "--out", folder / "corpus", folder / "articles.jsonl")
        shape = ["--data-path", folder / "corpus", "--split", 1, "--tokenizer", folder / "tok", "--pp", 2, "--threads", 2,
                 "--num-layers", options.layers, "--hidden-size", options.hidden, "--num-attention-heads", options.heads,
                 "--seq-length", options.seq, "--micro-batch-size", 1, "--global-batch-size", options.batch,
                 "--train-iters", options.updates]
        alone, packed = padding_shares(folder / "corpus", options.seq)
        ways = [Way(name, flags, folder) for name, flags in WAYS.items()]
        take_turns(ways, shape, options.rounds)
    tokens = options.batch * options.seq
    medians = {way.name: way.median() for way in ways}
    rates = {name: tokens * (1 - (packed if name.startswith("packed") else 0)) / one for name, one in medians.items()}
    rows = [f"| padded, 1f1b (as packed, but for the padding) | | {100 * alone:.1f} % "
            f"| {tokens * (1 - alone) / medians['packed, 1f1b']:.0f} | |"]
    for name, rate in rates.items():
        share = f"{100 * packed:.1f} %" if name.startswith("packed") else "0"
        rows.append(f"| {name} | {1e3 * medians[name]:.0f} | {share} | {rate:.0f} | {rate / rates['packed, 1f1b']:.3f} |")
    text = (f"{datetime.date.today()}, {cpu_name()}, two stages of one core, {options.layers} layers, hidden "
            f"{options.hidden}, {options.seq} tokens, {options.batch} micro-batches of one sequence; documents: the "
            f"articles of WikiText103's validation and test parts, apart; medians of {options.rounds} interleaved rounds; "
            f"`bench/mixed_lengths {' '.join(sys.argv[1:])}`\n\n"
            "| way | ms an update | padding | tokens/s without padding | of packing alone |\n" + "|---" * 5 + "|\n"
            + "\n".join(rows) + "\n")
    print(text)
    if options.save:
        with open("bench/results/mixed_lengths.md", "w") as file:
            file.write("# bench/mixed_lengths\n\n" + text)


main()
