"""Fuzz Teratron's byte-level BPE against tiktoken and Hugging Face tokenizers, through its command line.

    nice $(scripts/oracle-env | tail -n 1) tests/oracle/bpe_differential.py [--teratron BINARY] [--seed N] [--rounds N]

Each round encodes one long and five short hard texts with GPT-2's vocabulary, which must give the ids of both oracles,
takes arbitrary bytes to tokens and back, and (every tenth round) trains a vocabulary as Hugging Face does, whose
transformers must then load it and encode alike, and we what transformers save of it. Exits with 1 at the first difference, and shows where it is.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import transformers

from bpe_oracle import GPT2, hard_text, hugging_face_gpt2, hugging_face_merges, tiktoken_gpt2

ROOT = Path(__file__).resolve().parents[2]


class Teratron:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder

    def run(self, *words):
        subprocess.run([self.binary, "tokenizer", *map(str, words)], check=True, stdout=subprocess.DEVNULL)

    def encode(self, data, tokenizer=GPT2):
        (self.folder / "text").write_bytes(data)
        self.run("encode", "--overwrite", "--tokenizer", tokenizer, self.folder / "text", self.folder / "ids")
        return numpy.fromfile(self.folder / "ids", dtype="<u4").tolist()

    def decode_last(self):
        self.run("decode", "--overwrite", "--tokenizer", GPT2, self.folder / "ids", self.folder / "back")
        return (self.folder / "back").read_bytes()

    def train(self, text, vocab_size):
        (self.folder / "corpus").write_bytes(text.encode())
        self.run("train", "--overwrite", "--vocab-size", vocab_size, "--out", self.folder / "trained", self.folder / "corpus")
        merges = json.loads((self.folder / "trained" / "tokenizer.json").read_text())["model"]["merges"]
        return [merge if isinstance(merge, str) else " ".join(merge) for merge in merges]


def fail(what, ours, theirs, show):
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
    print(f"{what} differs at {at}: ours {ours[at:at + 8]}, theirs {theirs[at:at + 8]}; after {show(theirs[:at])!r}")
    sys.exit(1)


def arbitrary_bytes(rng):
    """Bytes of which some are whole characters and some are not."""
    data = bytearray(hard_text(rng, 200).encode())
    for _ in range(len(data) // 20):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data) + rng.randbytes(rng.randrange(2000))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--teratron", default=ROOT / "build" / "release" / "teratron")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    openai, hugging_face, rng = tiktoken_gpt2(), hugging_face_gpt2(), random.Random(options.seed)
    texts = characters = tokens = trainings = 0
    with tempfile.TemporaryDirectory() as folder:
        teratron = Teratron(options.teratron, Path(folder))
        for turn in range(options.rounds):
            for pieces in (20000, 1, 2, 3, 5, 30):
                text = hard_text(rng, pieces)
                ids, expected = teratron.encode(text.encode()), openai.encode_ordinary(text)
                for oracle, theirs in (("tiktoken", expected), ("Hugging Face", hugging_face.encode(text).ids)):
                    if ids != theirs:
                        fail(f"seed {options.seed}, round {turn}: {oracle}", ids, theirs,
                             lambda before: openai.decode_bytes(before)[-40:])
                texts, characters, tokens = texts + 1, characters + len(text), tokens + len(ids)
            data = arbitrary_bytes(rng)
            teratron.encode(data)
            if teratron.decode_last() != data:
                sys.exit(f"seed {options.seed}, round {turn}: bytes do not come back: {data!r:.400}")
            if turn % 10 == 0:
                text = hard_text(rng, 3000).replace("\0", "")  # a file with one is refused: not text
                ours, theirs = teratron.train(text, 257 + 400), hugging_face_merges(text, 256 + 400, 2)
                if ours != theirs:
                    fail(f"seed {options.seed}, round {turn}: training", ours, theirs, lambda before: before[-5:])
                loaded = transformers.AutoTokenizer.from_pretrained(Path(folder) / "trained")
                text = hard_text(rng, 3000).replace(loaded.eos_token, "")  # transformers would make a token of it
                loaded.save_pretrained(Path(folder) / "saved")  # which writes another post-processor than we do
                theirs = loaded(text)["input_ids"]
                for files in ("trained", "saved"):
                    ours = teratron.encode(text.encode(), Path(folder) / files)
                    if ours != theirs:
                        fail(f"seed {options.seed}, round {turn}: the vocabulary {files}", ours, theirs, loaded.decode)
                trainings += 1
    print(f"identical: {texts} texts, {characters} characters, {tokens} tokens; {options.rounds} strings of arbitrary "
          f"bytes came back; {trainings} vocabularies trained alike")


main()
