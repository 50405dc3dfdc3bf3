"""Drives bench/near_duplicates: makes the texts, and lets `teratron data dedup`, datatrove and text-dedup take turns; medians.

A document is drawn of whole sentences of WikiText-103's articles, so that documents share no more than a few 5-grams; a tenth of them
are an earlier document with two words changed, of a similarity of 0.9 or more, which all sides find. Ours are the defaults of `data
dedup`, whose candidates are also compared exactly; the others compare no pairs.
"""

import argparse
import datetime
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from side import Program, cpu_name, publish
from ways import ARTICLES

TERATRON = "build/release/teratron"
WAYS = ("spacy", "spaces")  # by which datatrove cuts texts into words
ALONE = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def sentences():
    text = "".join((ARTICLES / f"wiki.{part}.tokens").read_text() for part in ("valid", "test"))
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith(" =")]
    return [one + " ." for line in lines for one in re.split(r" \. ", line) if len(one) > 20]


def make_corpus(file, megabytes):
    """The group of each document: the number of the first one that it is a copy of, or its own."""
    draw, all_of_them = random.Random(1), sentences()
    groups, texts, size = [], [], 0
    with open(file, "w") as out:
        while size < 1e6 * megabytes:
            number = len(groups)
            if number > 0 and draw.random() < 0.1:
                of = draw.choice(groups)
                words = texts[of].split(" ")
                for _ in range(2):
                    words[draw.randrange(len(words))] = f"changed{draw.randrange(1000)}"
                groups.append(of)
                text = " ".join(words)
            else:
                groups.append(number)
                text = draw.choice(all_of_them)
                words = draw.randrange(300, 900)
                while text.count(" ") < words:
                    text += " " + draw.choice(all_of_them)
            texts.append(text)
            size += out.write(json.dumps({"id": str(number), "text": text}) + "\n")
    return groups


def kept(file):
    return [int(json.loads(line)["id"]) for line in open(file)]


class Ours:
    name = "Teratron"

    def run(self, source, work):
        start = time.monotonic()
        subprocess.run([TERATRON, "data", "dedup", source, "--overwrite", "--out", work / "kept.jsonl", "--threads", "1"], check=True,
                       capture_output=True)
        return time.monotonic() - start, kept(work / "kept.jsonl")


class Datatrove:
    def __init__(self, way):
        self.name = f"datatrove, words by {way}"
        self.program = Program([sys.executable, "bench/peers/datatrove_minhash.py", way], env=ALONE)
        self.version = self.program.ready["version"]

    def run(self, source, work):
        answer = self.program.ask(json.dumps({"input": str(source.parent), "work": str(work)}))
        return answer["seconds"], [number for file in sorted((work / "kept").iterdir()) for number in kept(file)]


class TextDedup:
    name = "text-dedup"

    def __init__(self):
        self.program = Program([os.environ["TEXT_DEDUP_PYTHON"], "bench/peers/text_dedup_minhash.py"], env=ALONE)
        self.version = self.program.ready["version"]

    def run(self, source, work):
        answer = self.program.ask(json.dumps({"input": str(source.parent), "work": str(work)}))
        return answer["seconds"], answer["kept"]


def require_one_of_each(name, groups, numbers):
    """Ends unless one document of every group is kept."""
    found = [groups[number] for number in numbers]
    lost, twice = len(set(groups) - set(found)), len(found) - len(set(found))
    if lost + twice > 0:
        sys.exit(f"error: {name} keeps no document of {lost} groups, and {twice} too many of others")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--words", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    sides = [Ours(), *map(Datatrove, options.words), TextDedup()]
    seconds, numbers = {side.name: [] for side in sides}, {}
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "input" / "texts.jsonl"
        source.parent.mkdir()
        groups = make_corpus(source, options.megabytes)
        size = source.stat().st_size / 1e6
        for turn in range(options.rounds):
            for number, side in enumerate(sides):
                work = Path(name) / f"{turn}-{number}"
                work.mkdir()
                taken, numbers[side.name] = side.run(source, work)
                require_one_of_each(side.name, groups, numbers[side.name])
                seconds[side.name].append(taken)
                print(f"round {turn + 1}, {side.name}: {taken:.2f} s", file=sys.stderr, flush=True)
    for side in sides[1:]:
        side.program.close()
    lines = ["| | s | MB/s | Teratron is as many times as fast | documents kept | the same as Teratron's |", "|---" * 6 + "|"]
    ours = sides[0].name
    for name, times in seconds.items():
        median, ratio = statistics.median(times), statistics.median(its / our for our, its in zip(seconds[ours], times))
        same = len(set(numbers[name]) & set(numbers[ours]))
        lines.append(f"| {name} | {median:.2f} | {size / median:.2f} | {ratio:.1f} | {len(numbers[name])} | {same} |")
    text = (f"{datetime.date.today()}, {cpu_name()}, one thread each; datatrove {sides[1].version}, text-dedup {sides[-1].version}; {len(groups)} documents of "
            f"{size:.1f} MB, {len(groups) - len(set(groups))} of them copies with two words changed; medians of {options.rounds} rounds in turns; "
            f"`bench/near_duplicates {' '.join(sys.argv[1:])}`\n\n" + "\n".join(lines) + "\n")
    publish("near_duplicates", text, options.save)


if __name__ == "__main__":
    main()
