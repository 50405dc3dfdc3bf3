"""Measure data extract beside trafilatura, on pages whose article is known.

One command: bench/extract.

  articles     scrapinghub/article-extraction-benchmark: 181 pages of news and blogs, articles marked by people
  readability  mozilla/readability, test/test-pages: 130 pages; the truth is what readability.js should give, as its
               authors looked it over, so it errs where that does

Pages are cut into two halves by a hash of their names. The rule of src/text/corpus/extract/article.h was made on the development halves
alone. A text counts as a bag of runs of four words, as that set's own script has it: precision and recall are
means over pages, F1 is made of both. The agreement is the same between the two programs, one taken for the truth. Each
program then takes all pages of a set on one core, by turns; medians of the rounds' processor time are shown. Ours has a
process to start and JSON to read and write in it.
"""

import argparse
import gzip
import hashlib
import json
import os
import random
import re
import resource
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import lxml.html
import trafilatura

WORD = re.compile(r"\w+")


def articles_set(folder):
    for name, truth in sorted(json.loads((folder / "ground-truth.json").read_text()).items()):
        yield name, gzip.open(folder / "html" / f"{name}.html.gz").read().decode("utf-8"), truth["articleBody"]


def readability_set(folder):
    for page in sorted((folder / "test" / "test-pages").iterdir()):
        expected = lxml.html.fromstring((page / "expected.html").read_text())
        yield page.name, (page / "source.html").read_text(), " ".join(expected.itertext())


def is_development(name):
    return int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) % 2 == 0


def shingles(text):
    words = WORD.findall(text)
    return Counter(tuple(words[at:at + 4]) for at in range(max(1, len(words) - 3))) if words else Counter()


def shares(truth, found):
    both = sum((truth & found).values())
    return (both / found.total() if found else None, both / truth.total() if truth else None)


def f1_of(pairs):
    precision = statistics.mean(one for one, _ in pairs if one is not None) if any(p is not None for p, _ in pairs) else 0
    recall = statistics.mean(one for _, one in pairs if one is not None)
    return 2 * precision * recall / max(1e-9, precision + recall), precision, recall


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def teratron(program, pages, folder):
    source, out = f"{folder}/pages.jsonl", f"{folder}/articles.jsonl"
    with open(source, "w") as file:
        file.writelines(json.dumps({"name": name, "html": html}) + "\n" for name, html, _ in pages)
    start = children_seconds()
    subprocess.run([program, "data", "extract", source, "--overwrite", "--out", out, "--threads", "1"], check=True, capture_output=True)
    seconds = children_seconds() - start
    return {one["name"]: one["text"] for one in map(json.loads, open(out))}, seconds


def theirs(pages):
    start = time.process_time()
    return {name: trafilatura.extract(html) or "" for name, html, _ in pages}, time.process_time() - start


def line(what, found, truth):
    f1, precision, recall = f1_of([shares(truth[name], found[name]) for name in truth])
    print(f"    {what:<12} F1 {f1:.4f}, precision {precision:.4f}, recall {recall:.4f}")


# How far F1 of ours is from theirs, and the standard deviation of that over draws of pages.
def difference(ours, other, truth, draws=1000):
    draw = random.Random(1)
    a = {name: shares(truth[name], ours[name]) for name in truth}
    b = {name: shares(truth[name], other[name]) for name in truth}
    names = list(truth)
    gaps = []
    for _ in range(draws):
        picked = draw.choices(names, k=len(names))
        gaps.append(f1_of([a[one] for one in picked])[0] - f1_of([b[one] for one in picked])[0])
    gap = f1_of(list(a.values()))[0] - f1_of(list(b.values()))[0]
    print(f"    ours - trafilatura: {gap:+.4f}, standard deviation {statistics.stdev(gaps):.4f}")


def measure(name, pages, given):
    ours_seconds, their_seconds = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(given.rounds):
            ours, seconds = teratron(given.teratron, pages, folder)
            ours_seconds.append(seconds)
            other, seconds = theirs(pages)
            their_seconds.append(seconds)
    print(f"{name}: {len(pages)} pages, {sum(len(html) for _, html, _ in pages) / 1e6:.1f} MB")
    for half, wanted in (("development", True), ("held-out", False)):
        if given.half not in (None, half):
            continue
        picked = [(one, truth) for one, _, truth in pages if is_development(one) == wanted]
        print(f"  {half} half, {len(picked)} pages")
        truth = {one: shingles(text) for one, text in picked}
        mine = {one: shingles(ours.get(one, "")) for one in truth}
        they = {one: shingles(other[one]) for one in truth}
        line("teratron", mine, truth)
        line("trafilatura", they, truth)
        difference(mine, they, truth)
        line("agreement", mine, {one: bag for one, bag in they.items()})
    a, b = len(pages) / statistics.median(ours_seconds), len(pages) / statistics.median(their_seconds)
    print(f"  one core, processor time: {a:.0f} pages/s, trafilatura {b:.1f}: {a / b:.1f} times as fast")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pages", type=Path)
    parser.add_argument("teratron", nargs="?", default="build/release/teratron")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--half", choices=["development", "held-out"])
    given = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core for both
    print(f"trafilatura {trafilatura.__version__}, {given.rounds} rounds")
    measure("articles", list(articles_set(given.pages / "article-extraction-benchmark")), given)
    measure("readability", list(readability_set(given.pages / "readability")), given)


if __name__ == "__main__":
    main()
