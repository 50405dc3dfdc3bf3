"""Make tests/golden/bpe: what tiktoken and Hugging Face tokenizers make of text, for ours to be compared with.

    nice $(scripts/oracle-env | tail -n 1) tests/golden/make_bpe_golden.py

The files in the repository were made with tiktoken 0.14.0 and tokenizers 0.23.3; where both do a thing, the script
fails if they differ. The tests read the files and need no Python.

  texts.json      short, hard texts and their ids under GPT-2's vocabulary
  corpora.json    for files of ../shared/data: bytes, tokens, and a hash (FNV-1a) of the ids as little-endian int32
  characters.json a hash of one byte for each code point, in order and without surrogates: 1 for \\p{L}, 2 for \\p{N},
                  3 for \\s, else 0
  training.json   the merges of a vocabulary of 1000 trained by Hugging Face on Tiny Shakespeare (pairs seen twice or
                  more); it breaks ties as ours does
"""

import json
import random
import sys
from pathlib import Path

import numpy
import tiktoken

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "oracle"))
from bpe_oracle import DATA, fnv1a, hard_text, hugging_face_gpt2, hugging_face_merges, tiktoken_gpt2

OUT = Path(__file__).parent / "bpe"
CORPORA = ["wikitext103/wiki.test.tokens", "wikitext103/wiki.valid.tokens", "tinyshakespeare/input.txt",
           "lambada/lambada_test.jsonl"]


def read(name):
    return (DATA / name).read_bytes().decode()


def write(name, value):
    (OUT / name).write_text(json.dumps(value, separators=(",", ":")).replace("},{", "},\n{") + "\n")


def make_characters():
    """tiktoken drops what its pattern does not match: so a pattern of one class tells who is in it."""
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    classes = bytearray(len(characters))
    for value, pattern in enumerate([r"\p{L}", r"\p{N}", r"\s"], start=1):
        matcher = tiktoken.Encoding("class", pat_str=pattern, mergeable_ranks={bytes([b]): b for b in range(256)},
                                    special_tokens={})
        for i, character in enumerate(characters):
            if matcher.encode_ordinary(character):
                classes[i] = value
    return {"code_points": len(characters), "fnv1a": fnv1a(classes)}


def main():
    openai, hugging_face = tiktoken_gpt2(), hugging_face_gpt2()

    def encode(text):
        ids = openai.encode_ordinary(text)
        assert ids == hugging_face.encode(text).ids, f"the oracles differ: {text!r:.200}"
        return ids

    OUT.mkdir(exist_ok=True)
    rng = random.Random(1)
    texts = ["", " ", "  ", "\n", "a", " a", "a ", "  a", "a  b", "a \n b", "'s", "''s", " 's", "'ll'LL'd", "\u00a0a"]
    texts += [hard_text(rng, rng.randint(1, 6)) for _ in range(385)]
    write("texts.json", [{"text": text, "ids": encode(text)} for text in texts])

    corpora = {}
    for name in CORPORA:
        text = read(name)
        ids = encode(text)
        hashed = fnv1a(numpy.array(ids, dtype="<i4").tobytes())
        corpora[name] = {"bytes": len(text.encode()), "tokens": len(ids), "fnv1a": hashed}
    write("corpora.json", corpora)
    write("characters.json", make_characters())
    write("training.json", hugging_face_merges(read("tinyshakespeare/input.txt"), 1000, 2))


main()
