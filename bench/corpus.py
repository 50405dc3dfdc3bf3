"""Measure data clean beside ftfy, data dedup beside datasketch, and memory over an input that grows fortyfold.

One command: bench/corpus, with --save into bench/results/corpus.md.

The text is made: paragraphs of words that occur as often as in English (Zipf), a third of the documents garbled, with
references of HTML or curly quotes, a tenth nearly the same as another one. The programs take turns; medians of the
rounds are shown. ftfy and datasketch run on as many processes as teratron has threads. The work is the same:

  clean   JSON lines -> repaired JSON lines; no tokens counted, no URLs, newlines kept
  dedup   JSON lines -> JSON lines of those kept: 5-grams of words, 130 minima, bands of 5, pairs compared exactly
"""

import argparse
import datetime
import json
import multiprocessing
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import datasketch
import ftfy

from side import cpu_name

NGRAM, HASHES, ROWS, THRESHOLD = 5, 130, 5, 0.7
WORD = re.compile(r"[^\W_]+")


def make_corpus(path, megabytes, seed=1):
    draw = random.Random(seed)
    letters = "etaoinshrdlucmfwypvbgk"
    words = ["".join(draw.choice(letters) for _ in range(draw.randrange(2, 10))) for _ in range(20000)]
    weights = [1 / (rank + 2) for rank in range(len(words))]
    size, number, texts = 0, 0, []
    with open(path, "w") as file:
        while size < megabytes * 1e6:
            if texts and draw.random() < 0.1:
                text = draw.choice(texts).split(" ")
                text[draw.randrange(len(text))] = draw.choice(words)
                text = " ".join(text)
            else:
                picked = draw.choices(words, weights, k=draw.randrange(150, 900))
                for at in range(0, len(picked), draw.randrange(8, 20)):
                    picked[at] = picked[at].capitalize()
                    picked[at - 1] += "." if draw.random() < 0.8 else ".\n"
                text = " ".join(picked)
                if draw.random() < 1 / 3:
                    text = text.replace("e. ", draw.choice(["\u00e9. ", "\u2019s \u2014 ", " &amp; \u201cso\u201d "]))
                    if draw.random() < 0.5:
                        text = text.encode().decode("latin-1")
                texts = (texts + [text])[-500:]
            size += file.write(json.dumps({"id": number, "text": text}) + "\n")
            number += 1


def ftfy_line(line):
    record = json.loads(line)
    record["text"] = ftfy.fix_text(record["text"])
    return json.dumps(record) + "\n"


def clean_with_ftfy(source, target, threads):
    with open(source) as lines, open(target, "w") as out, multiprocessing.Pool(threads) as pool:
        out.writelines(pool.imap(ftfy_line, lines, 64))


def shingles(text):
    words = WORD.findall(text.lower())
    return {" ".join(words[i:i + NGRAM]) for i in range(max(1, len(words) - NGRAM + 1))}


def sketch_line(line):
    sketch = datasketch.MinHash(num_perm=HASHES)
    sketch.update_batch([one.encode() for one in shingles(json.loads(line)["text"])])
    return sketch


def dedup_with_datasketch(source, target, threads):
    lines = Path(source).read_text().splitlines(keepends=True)
    index = datasketch.MinHashLSH(num_perm=HASHES, params=(HASHES // ROWS, ROWS))
    group = list(range(len(lines)))

    def first(number):
        while group[number] != number:
            number = group[number]
        return number

    with multiprocessing.Pool(threads) as pool:
        for number, sketch in enumerate(pool.imap(sketch_line, lines, 16)):
            for other in index.query(sketch):
                a, b = first(other), first(number)
                if a == b:
                    continue
                one, two = shingles(json.loads(lines[other])["text"]), shingles(json.loads(lines[number])["text"])
                if len(one & two) > THRESHOLD * len(one | two):
                    group[max(a, b)] = min(a, b)
            index.insert(number, sketch)
    with open(target, "w") as out:
        out.writelines(line for number, line in enumerate(lines) if group[number] == number)


def seconds_of(action):
    start = time.monotonic()
    action()
    return time.monotonic() - start


class Tool:
    """A command of `teratron data`, and the peer that does the same work."""

    def __init__(self, command, flags, peer, peer_name, counts_same):
        self.command, self.flags, self.peer, self.peer_name, self.counts_same = command, flags, peer, peer_name, counts_same

    def run(self, options, source, target):
        out = subprocess.run([options.teratron, "data", self.command, source, "--overwrite", "--out", target, "--json", "-",
                              "--threads", str(options.threads), *self.flags], check=True, capture_output=True, text=True)
        return json.loads(out.stdout)

    def beside_peer(self, options, source, folder):
        """A row: seconds of both, taking turns, and how many documents come out the same."""
        ours, theirs, our_seconds, their_seconds = f"{folder}/ours.jsonl", f"{folder}/theirs.jsonl", [], []
        for _ in range(options.rounds):
            our_seconds.append(seconds_of(lambda: self.run(options, source, ours)))
            their_seconds.append(seconds_of(lambda: self.peer(source, theirs, options.threads)))
        a, b = statistics.median(our_seconds), statistics.median(their_seconds)
        our_records, their_records = ([json.loads(line) for line in open(path)] for path in (ours, theirs))
        return (f"| {self.command} | {a:.2f} | {os.path.getsize(source) / 1e6 / a:.1f} | {self.peer_name} {b:.2f} | {b / a:.1f} "
                f"| {len(our_records)}, {len(their_records)} | {self.counts_same(our_records, their_records)} |")


def same_texts(ours, theirs):
    return sum(a == b for a, b in zip(ours, theirs))


def same_kept(ours, theirs):
    return len({one["id"] for one in ours} & {one["id"] for one in theirs})


TOOLS = [
    Tool("clean", ["--min-tokens", "0", "--no-url-rules", "--keep-newlines"], clean_with_ftfy, f"ftfy {ftfy.__version__}", same_texts),
    Tool("dedup", [], dedup_with_datasketch, f"datasketch {datasketch.__version__}", same_kept),
]


def speeds(options, folder):
    lines = ["| data | s | MB/s | the peer, s | times as fast | documents left by both | the same |", "|---" * 7 + "|"]
    source = f"{folder}/speed.jsonl"
    make_corpus(source, options.megabytes)
    return "\n".join(lines + [tool.beside_peer(options, source, folder) for tool in TOOLS]) + "\n"


def memory_curve(options, folder):
    lines = ["| input, MB | " + " | ".join(f"{tool.command}, peak MiB" for tool in TOOLS) + " |", "|---" * (1 + len(TOOLS)) + "|"]
    for times in (1, 2, 5, 10, 20, 40):
        source = f"{folder}/{times}.jsonl"
        make_corpus(source, options.megabytes * times)
        peaks = [tool.run(options, source, f"{folder}/ours.jsonl")["peak_memory_bytes"] / 2**20 for tool in TOOLS]
        lines.append(f"| {os.path.getsize(source) / 1e6:.0f} | " + " | ".join(f"{peak:.0f}" for peak in peaks) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("teratron", nargs="?", default="build/release/teratron")
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tables = speeds(options, folder) + "\n" + memory_curve(options, folder)
    text = (f"{datetime.date.today()}, {cpu_name()}, {options.threads} threads; made text of {options.megabytes:g} MB, medians of "
            f"{options.rounds} rounds in turns; `bench/corpus {' '.join(sys.argv[1:])}`\n\n{tables}")
    print(text)
    if options.save:
        Path("bench/results/corpus.md").write_text("# bench/corpus\n\n" + text)


if __name__ == "__main__":
    main()
