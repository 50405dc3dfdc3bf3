"""Writes repetition/penalized.json: what Hugging Face transformers' RepetitionPenaltyLogitsProcessor makes of random
logits. Run in an environment with torch and transformers: python make_repetition_golden.py"""

import json
import os
import random

import torch
import transformers
from transformers import RepetitionPenaltyLogitsProcessor


def main():
    rng = random.Random(7)
    cases = []
    for penalty in (0.8, 1.0, 1.1, 1.3, 2.5):
        for _ in range(4):
            vocabulary = rng.randint(2, 12)
            text = [rng.randrange(vocabulary) for _ in range(rng.randint(1, 10))]
            logits = torch.tensor([rng.gauss(0, 3) for _ in range(vocabulary)], dtype=torch.float32)
            if rng.random() < 0.3:
                logits[text[0]] = 0
            made = RepetitionPenaltyLogitsProcessor(penalty)(torch.tensor([text]), logits[None].clone())[0]
            cases.append({"penalty": penalty, "text": text, "logits": logits.tolist(), "penalized": made.tolist()})
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "repetition")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "penalized.json"), "w", encoding="utf-8") as file:
        versions = {"transformers": transformers.__version__, "torch": torch.__version__}
        lines = ",\n".join("  " + json.dumps(case) for case in cases)
        file.write(json.dumps(versions)[:-1] + ', "cases": [\n' + lines + "\n]}\n")


if __name__ == "__main__":
    main()
