"""Make tests/golden/squad_score.jsonl: answers as the official scripts of SQuAD normalize and score them.

    python3 tests/golden/make_squad_score_golden.py

The rules are those of evaluate-v1.1.py and of 2.0's, written down anew with the same calls of Python 3. Texts are random,
of the characters on which implementations differ: capital sigmas, letters that have case without being letters, marks,
all white space of Python, punctuation in and out of ASCII, articles. A line is
[prediction, answer, normalized prediction, normalized answer, exact match, F1 of 1.1, F1 of 2.0].
"""

import collections
import json
import random
import re
import string
from pathlib import Path

OUT = Path(__file__).parent / "squad_score.jsonl"

SPACES = "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2003\u200a\u2028\u2029\u202f\u205f\u3000"
NO_SPACES = "\u180e\u200b\u2060\ufeff\x00\x08\x7f"
LETTERS = "ΣΣΣΣσςΟΔοAaNntTHEheİIıiÀßẞǅ中ª1²Ⅷ٣"
OF_CASE = "ªºʰͅⅠⅷⒶⓩ🄰🅐🅰"
WITHIN = "'’.·:‧\u00ad\u0301\u0345ʰˈ^`¨\u200d＇：︓՟״"
PUNCTUATION = string.punctuation + "–—“”‘¿¡€§«»…、。！＿"
WORDS = ["a", "an", "the", "A", "The", "ΟΔΟΣ", "οδος", "İzmir", "U.S.", "an.", "_a_", "a-b", "x", "y", "ΑΣ'Β", "1a"]


def normalize(text):
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def f1(prediction, answer, both_empty):
    given, right = normalize(prediction).split(), normalize(answer).split()
    if not given and not right:
        return both_empty
    same = sum((collections.Counter(given) & collections.Counter(right)).values())
    if same == 0:
        return 0
    precision, recall = same / len(given), same / len(right)
    return 2 * precision * recall / (precision + recall)


def text_of(rng):
    text = ""
    for _ in range(rng.randint(0, 7)):
        kind = rng.random()
        if kind < 0.3:
            text += rng.choice(WORDS)
        else:
            text += rng.choice(rng.choice([SPACES, SPACES, NO_SPACES, LETTERS, LETTERS, OF_CASE, WITHIN, PUNCTUATION]))
    return text


def pairs(rng, count):
    yield "an", "A"
    yield "", "."
    yield "οδος", "ΟΔΟΣ"
    for _ in range(count):
        prediction = text_of(rng)
        answer = prediction.swapcase() if rng.random() < 0.2 else text_of(rng)
        yield prediction, answer


def main(count=700):
    with OUT.open("w") as file:
        for prediction, answer in pairs(random.Random(11), count):
            exact = normalize(prediction) == normalize(answer)
            line = [prediction, answer, normalize(prediction), normalize(answer), int(exact),
                    f1(prediction, answer, 0), f1(prediction, answer, 1)]
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
