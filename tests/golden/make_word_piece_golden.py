"""Make tests/golden/word_piece: what Hugging Face tokenizers make of text by BERT's rules, for ours to be compared with.

    nice $(scripts/oracle-env | tail -n 1) tests/golden/make_word_piece_golden.py

The files in the repository were made with tokenizers 0.23.3. The tests read the files and need no Python.

  vocab.txt        a vocabulary of parts of the hard texts' words
  texts.json       hard texts, and for three ways to normalize (lower case, strip accents, split Chinese: as digits) their
                   tokens with the bytes they come from, and what becomes of the ids when they are decoded
  corpora.json     for files of ../shared/data under BERT's uncased vocabulary: bytes, tokens, and a hash (FNV-1a) of the
                   ids as little-endian int32
  characters.json  every code point, uncased and cased: a checksum for each 1024 of them (blocks_of_characters tells of what)
"""

import itertools
import json
import random
import sys
from pathlib import Path

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "oracle"))
from bpe_oracle import DATA, fnv1a
from word_piece_oracle import blocks_of_characters, hard_text, normalizer, spans, vocabulary_of, word_piece

OUT = Path(__file__).parent / "word_piece"
CORPORA = ["wikitext103/wiki.test.tokens", "tinyshakespeare/input.txt", "lambada/lambada_test.jsonl",
           "squad/dev-v1.1.from-html.json", "race/dev.middle.jsonl", "mnli-subset/mnli_matched.tsv"]


def options_of(way):
    return dict(zip(("lower_case", "strip_accents", "split_chinese"), (digit == "1" for digit in way)))


def write(name, value):
    (OUT / name).write_text(json.dumps(value, separators=(",", ":")).replace("},{", "},\n{") + "\n")


def main():
    OUT.mkdir(exist_ok=True)
    rng = random.Random(1)
    texts = ["", " ", "a", "don't [MASK] it", "##ing", "\u0130stanbul \u0130", "na\u00efve caf\u00e9", "a\u4e2d\u6587b"]
    texts += [hard_text(rng, rng.randint(1, 6)) for _ in range(142)]
    vocabulary = vocabulary_of(rng, texts, 6000)
    (OUT / "vocab.txt").write_text("".join(token + "\n" for token in vocabulary), newline="\n")
    expected = []
    for text in texts:
        answers = {}
        for way in ("111", "001", "100"):
            tokenizer = word_piece(vocabulary, **options_of(way))
            encoding = tokenizer.encode(text)
            decoded = tokenizer.decode(encoding.ids, skip_special_tokens=False)
            answers[way] = {"spans": list(itertools.chain(*spans(text, encoding))), "decoded": decoded}
        expected.append({"text": text, "ways": answers})
    write("texts.json", expected)

    lines = (DATA / "bert-vocab" / "vocab.txt").read_text().splitlines()
    tokenizer = word_piece({token: i for i, token in enumerate(lines)})
    corpora = {}
    for name in CORPORA:
        text = (DATA / name).read_bytes().decode()
        ids = tokenizer.encode(text).ids
        hashed = fnv1a(numpy.array(ids, dtype="<i4").tobytes())
        corpora[name] = {"bytes": len(text.encode()), "tokens": len(ids), "fnv1a": hashed}
    write("corpora.json", corpora)
    write("characters.json", {way: list(blocks_of_characters(normalizer(**options_of(way)))) for way in ("111", "001")})


main()
