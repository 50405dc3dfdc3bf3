"""Measure data clean beside ftfy, data dedup beside datasketch, and memory over a ten times larger input.

One command: bench/corpus.

The text is made: paragraphs of words that occur as often as in English (Zipf), a third of the documents garbled, with
references of HTML or curly quotes, a tenth nearly the same as another one. The programs take turns; medians of the
rounds are shown. ftfy and datasketch run on as many processes as teratron has threads. The work is the same:

  clean   JSON lines -> repaired JSON lines; no tokens counted, no URLs, newlines kept
  dedup   JSON lines -> JSON lines of those kept: 5-grams of words, 130 minima, bands of 5, pairs compared exactly
"""

import argparse
import json
import multiprocessing
import os
import random
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import datasketch
import ftfy

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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("teratron", nargs="?", default="build/release/teratron")
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        small, large = f"{folder}/small.jsonl", f"{folder}/large.jsonl"
        make_corpus(small, given.megabytes)

        def run(command, source, *flags):
            out = subprocess.run([given.teratron, "data", command, source, "--out", f"{folder}/ours.jsonl", "--json", "-",
                                  "--threads", str(given.threads), *flags], check=True, capture_output=True, text=True)
            return json.loads(out.stdout)

        clean = ["--min-tokens", "0", "--no-url-rules", "--keep-newlines"]
        pairs = {"clean": (clean, clean_with_ftfy, "ftfy"), "dedup": ([], dedup_with_datasketch, "datasketch")}
        size = os.path.getsize(small) / 1e6
        print(f"{size:.1f} MB, {given.threads} threads, {given.rounds} rounds; "
              f"ftfy {ftfy.__version__}, datasketch {datasketch.__version__}")
        for command, (flags, theirs, name) in pairs.items():
            ours_seconds, their_seconds = [], []
            for _ in range(given.rounds):
                ours_seconds.append(seconds_of(lambda: run(command, small, *flags)))
                their_seconds.append(seconds_of(lambda: theirs(small, f"{folder}/theirs.jsonl", given.threads)))
            read = lambda path: [json.loads(line) for line in open(path)]
            ours, other = read(f"{folder}/ours.jsonl"), read(f"{folder}/theirs.jsonl")
            same = sum(a == b for a, b in zip(ours, other)) if command == "clean" else \
                len({one["id"] for one in ours} & {one["id"] for one in other})
            a, b = statistics.median(ours_seconds), statistics.median(their_seconds)
            print(f"{command}: {a:.2f} s ({size / a:.1f} MB/s), {name} {b:.2f} s: {b / a:.1f} times as fast; "
                  f"{len(ours)} documents, {name} {len(other)}, the same {same}")
        make_corpus(large, given.megabytes * 10)
        for command, (flags, _, _) in pairs.items():
            memory = [run(command, source, *flags)["peak_memory_bytes"] / 2**20 for source in (small, large)]
            print(f"{command}: peak memory {memory[0]:.0f} MiB, of the input ten times as large {memory[1]:.0f} MiB")


if __name__ == "__main__":
    main()
