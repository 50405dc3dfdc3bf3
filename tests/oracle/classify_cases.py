"""Cases of tables and of metrics: what Python's csv module reads, what scikit-learn and SciPy compute.

    $(scripts/oracle-env | tail -n 1) tests/oracle/classify_cases.py FOLDER

Writes FOLDER/N.csv, and tables.json with the rows of each that have a cell; FOLDER/metrics.jsonl, a case a line.
tests/tasks/classify_oracle_test.cc compares ours with them.
"""

import csv
import io
import json
import random
import sys
import warnings
from pathlib import Path

import numpy
import scipy.stats
import sklearn.metrics

DRAW = random.Random(11)
PIECES = ['"', '""', ",", "\n", "\r\n", "\r", " ", "a", "bc", "é", "雪", "\t", "'", "\\", ";"]


def is_open(text):
    """Whether a quote has no end, so that a line more would be part of its cell."""
    return list(csv.reader(io.StringIO(text + "\nZ", newline="")))[-1] != ["Z"]


def raw_table():
    """Any pieces in any order."""
    return "".join(DRAW.choices(PIECES, weights=[6, 2, 6, 3, 2, 1] + [2] * 9, k=DRAW.randint(1, 60)))


def written_table():
    """As csv.writer writes cells of any pieces."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator=DRAW.choice(["\n", "\r\n"]), quoting=DRAW.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    for _ in range(DRAW.randint(1, 8)):
        writer.writerow("".join(DRAW.choices(PIECES, k=DRAW.randint(0, 6))) for _ in range(DRAW.randint(1, 5)))
    return out.getvalue()


def write_tables(folder):
    tables = []
    while len(tables) < 600:
        text = raw_table() if len(tables) % 2 else written_table()
        if not text.strip("\r\n") or is_open(text):  # an error here; Python ends the cell at the end of the file
            continue
        mark = DRAW.choice(["", "\ufeff"])
        (folder / f"{len(tables)}.csv").write_bytes((mark + text).encode())
        tables.append([row for row in csv.reader(io.StringIO(text, newline="")) if row])
    (folder / "tables.json").write_text(json.dumps(tables))


def label_case():
    count = DRAW.randint(2, 6)
    labels = DRAW.sample(range(count), DRAW.randint(1, count))  # some labels never occur, or are never predicted
    said = DRAW.sample(range(count), DRAW.randint(1, count))
    n = DRAW.randint(1, 60)
    true, predicted = DRAW.choices(labels, k=n), DRAW.choices(said, k=n)
    for i in range(n):
        if DRAW.random() < 0.4:
            predicted[i] = true[i]
    return dict(count=count, labels=true, predicted=predicted, expected=[
        sklearn.metrics.accuracy_score(true, predicted), sklearn.metrics.f1_score(true, predicted, average="macro"),
        sklearn.metrics.matthews_corrcoef(true, predicted)])


def number_case():
    n = DRAW.randint(1, 60)
    true = [DRAW.choice([DRAW.gauss(2, 3), float(DRAW.randint(0, 4))]) for _ in range(n)]
    predicted = [DRAW.choice([value + DRAW.gauss(0, 1), value, DRAW.gauss(0, 2)]) for value in true]
    if DRAW.random() < 0.1:
        predicted = [1.5] * n
    defined = n > 1 and len(set(true)) > 1 and len(set(predicted)) > 1
    return dict(count=0, labels=true, predicted=predicted, expected=[
        scipy.stats.pearsonr(true, predicted).statistic if defined else 0,
        scipy.stats.spearmanr(true, predicted).statistic if defined else 0,
        sklearn.metrics.mean_squared_error(true, predicted)])


def main(folder):
    warnings.simplefilter("ignore")
    folder = Path(folder)
    write_tables(folder)
    cases = [label_case() if i % 2 else number_case() for i in range(1000)]
    assert all(numpy.isfinite(case["expected"]).all() for case in cases)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))


if __name__ == "__main__":
    main(*sys.argv[1:])
