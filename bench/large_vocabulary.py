"""Drives bench/large_vocabulary: each way through the pipeline a process of its own, taking turns; medians."""

import argparse
import datetime
import json
import pathlib
import sys
import tempfile

from side import cpu_name
from ways import Way, take_turns, teratron

DATA = pathlib.Path("../shared/data")
# Output projection and layer are as large beside one another: words over twelve times the hidden size.
SHAPES = {
    "small": (["--num-layers", 12, "--hidden-size", 256, "--num-attention-heads", 4], 16384, "12 layers, hidden size 256"),
    "124M": (["--model", "124M", "--vocab-size", 50257], 50257, "GPT-2 124M, 12 layers"),
}
TWO_STAGES = ["--pp", 2]
SHARED = [*TWO_STAGES, "--vocabulary-parallel"]
WAYS = {
    "one stage, two threads": ["--threads", 2],
    "1f1b": TWO_STAGES,
    "1f1b, --pipeline-layout auto": [*TWO_STAGES, "--pipeline-layout", "auto"],
    "1f1b, 8 and 4 layers": [*TWO_STAGES, "--pipeline-layout", "8,4"],
    "seq1f1b, uniform:4": [*TWO_STAGES, "--token-slices", "uniform:4"],
    "seq1f1b, uniform:4, 8 and 4 layers": [*TWO_STAGES, "--token-slices", "uniform:4", "--pipeline-layout", "8,4"],
    "1f1b, the vocabulary shared out": SHARED,
    "seq1f1b, uniform:4, the vocabulary shared out": [*SHARED, "--token-slices", "uniform:4"],
    "--schedule auto": [*TWO_STAGES, "--schedule", "auto"],
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--shape", choices=list(SHAPES), default="small")
    for name, value in dict(rounds=2, updates=6, batch=4, seq=256).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        text = folder / "text.jsonl"
        text.write_text(json.dumps({"text": (DATA / "wikitext103/wiki.test.tokens").read_text()}) + "\n")
        flags, words, shape_text = SHAPES[options.shape]
        tokenizer = DATA / "gpt2-bpe"
        if options.shape == "small":
            tokenizer = folder / "tokenizer"
            teratron("tokenizer", "train", "--vocab-size", words, "--out", tokenizer, text)
        teratron("data", "tokenize", "--tokenizer", tokenizer, "--out", folder / "corpus", text)
        shape = ["--data-path", folder / "corpus", "--tokenizer", tokenizer, "--split", 1, *flags, "--micro-batch-size", 1,
                 "--seq-length", options.seq, "--global-batch-size", options.batch, "--train-iters", options.updates]
        ways = [Way(name, flags, folder) for name, flags in WAYS.items()]
        printed = take_turns(ways, shape, options.rounds)
    best = ways[0].median()
    rows = [f"| {way.name} | {1e3 * way.median():.0f} | {way.median() / best:.3f} |" for way in ways]
    text = (f"{datetime.date.today()}, {cpu_name()}, {shape_text}, vocabulary {words:,}, fp32, {options.batch} sequences of {options.seq} tokens an "
            f"update; two stages of one core each; medians of interleaved rounds ({options.rounds}) of {options.updates} updates, the first of "
            f"each left out; `bench/large_vocabulary {' '.join(sys.argv[1:])}`\n\n"
            "| way | ms an update | times one stage of two threads |\n|---|---|---|\n" + "\n".join(rows) + "\n\n" + "\n".join(line for line in printed.splitlines() if "instead:" in line or "chosen, of" in line) + "\n")
    print(text)
    if options.save:
        with open("bench/results/large_vocabulary.md", "w") as file:
            file.write("# bench/large_vocabulary\n\n" + text)


main()
