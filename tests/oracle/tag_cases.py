"""Cases of labels of words: the spans that seqeval counts in them, which are conlleval's.

    $(scripts/oracle-env | tail -n 1) tests/oracle/tag_cases.py FOLDER

Writes FOLDER/cases.jsonl, a case a line: names, and sentences of labels and of what a model says, by the number of their name;
many begin, go on or change their type where no scheme allows it. tests/tasks/tag_oracle_test.cc compares ours with them.
"""

import json
import random
import sys
import warnings
from pathlib import Path

from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.metrics.sequence_labeling import get_entities, precision_recall_fscore_support

DRAW = random.Random(13)


def names_of_case():
    types = DRAW.sample(["PER", "LOC", "ORG", "A-B", "work of art"], DRAW.randint(1, 4))
    parts = DRAW.choice(["BI", "BIES", "I", "BIE", "IES"])
    names = [f"{part}-{of}" for part in parts for of in types] + ["O"] + (["B", "I"] if DRAW.random() < 0.2 else [])
    DRAW.shuffle(names)
    return names


def case():
    names = names_of_case()
    weights = [3 if name == "O" else 1 for name in names]
    sentences = []
    for _ in range(DRAW.randint(1, 6)):
        labels = DRAW.choices(range(len(names)), weights=weights, k=DRAW.randint(1, 12))
        said = [label if DRAW.random() < 0.7 else DRAW.randrange(len(names)) for label in labels]
        sentences.append([labels, said])
    true, predicted = ([[names[label] for label in sentence[side]] for sentence in sentences] for side in (0, 1))
    found = sorted({entity[0] for entity in get_entities(true)} | {entity[0] for entity in get_entities(predicted)})
    by_type = {}
    if found:
        each = precision_recall_fscore_support(true, predicted, average=None, zero_division=0)
        by_type = {name: [float(column[i]) for column in each[:3]] + [int(each[3][i])] for i, name in enumerate(found)}
    return dict(names=names, sentences=sentences, by_type=by_type,
                all=[float(score(true, predicted, zero_division=0)) for score in (precision_score, recall_score, f1_score)])


def main(folder):
    warnings.simplefilter("ignore")
    (Path(folder) / "cases.jsonl").write_text("".join(json.dumps(case()) + "\n" for _ in range(1000)))


if __name__ == "__main__":
    main(*sys.argv[1:])
