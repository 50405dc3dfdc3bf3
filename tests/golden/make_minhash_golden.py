"""Make tests/golden/corpus/minhash.json: which of a planted corpus' documents datasketch finds to be alike.

    $(scripts/oracle-env | tail -n 1) -m pip install datasketch
    $(scripts/oracle-env | tail -n 1) tests/golden/make_minhash_golden.py

A document is a list of words, a word is a number; documents are copies of others with some words changed, so their
Jaccard similarities (of sets of 5-grams of words) lie everywhere between 0 and 1. For each document: its words, and the
documents before it with their exact similarity, where datasketch's MinHash (256 permutations) estimates it above 0.3.
"""

import json
import random
from pathlib import Path

import datasketch

OUT = Path(__file__).parent / "corpus" / "minhash.json"
NGRAM = 5


def ngrams(words):
    return {" ".join(map(str, words[i:i + NGRAM])) for i in range(len(words) - NGRAM + 1)}


def main():
    draw = random.Random(20261123)
    documents = []
    for number in range(160):
        if number % 4 == 0:
            words = [draw.randrange(3000) for _ in range(draw.randrange(40, 90))]
        else:
            words = list(documents[number - number % 4])
            for _ in range(draw.randrange(5)):
                words[draw.randrange(len(words))] = draw.randrange(3000)
        documents.append(words)
    sketches = []
    for words in documents:
        sketch = datasketch.MinHash(num_perm=256, seed=7)
        for ngram in ngrams(words):
            sketch.update(ngram.encode())
        sketches.append(sketch)
    rows = []
    for b, words in enumerate(documents):
        alike = []
        for a in range(b):
            estimate = sketches[a].jaccard(sketches[b])
            if estimate > 0.3:
                one, other = ngrams(documents[a]), ngrams(documents[b])
                exact = len(one & other) / len(one | other)
                alike.append([a, round(estimate, 4), round(exact, 6)])
        rows.append({"words": words, "alike": alike})
    with OUT.open("w") as file:
        file.write(json.dumps({"datasketch": datasketch.__version__})[:-1] + ', "documents": [\n')
        file.write(",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]}\n")


if __name__ == "__main__":
    main()
