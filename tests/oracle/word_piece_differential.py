"""The Hugging Face side of tests/tokenizer/word_piece_oracle_test.cc.

    $(scripts/oracle-env | tail -n 1) tests/oracle/word_piece_differential.py vocabulary FOLDER SEED
    $(scripts/oracle-env | tail -n 1) tests/oracle/word_piece_differential.py answers FOLDER SEED [FILE...]

`vocabulary` writes FOLDER/vocab.txt, tokens for the hard texts of a seed. `answers` reads the tokenizer that we saved in
FOLDER with transformers, saves it again in FOLDER/saved, and encodes hard texts and the lines of files: FOLDER/texts has
each text (its bytes' number, 4 bytes, then they), FOLDER/answers four checksums (CRC-32) of each: of its tokens with the
bytes they come from, as triples of little-endian int32, where special tokens are plain text; of the text that these decode
to; of tokens and bytes where special tokens are tokens; and of the ids with which transformers call a model. The last two
are of hard texts alone, and 0 for lines of files.
"""

import random
import struct
import sys
import zlib
from pathlib import Path

import numpy
import transformers

from word_piece_oracle import hard_text, plain, spans, vocabulary_of

ROUNDS, GROUP = 3000, 2000


def hard_texts(seed):
    rng = random.Random(seed)
    return [hard_text(rng, rng.choice([1, 2, 3, 5, 8, 60])) for _ in range(ROUNDS)]


def checksum(values):
    return zlib.crc32(numpy.array(values, dtype="<i4").tobytes())


def plain_answers(bare, texts):
    encodings = bare.encode_batch(texts, add_special_tokens=False)
    decoded = bare.decode_batch([encoding.ids for encoding in encodings], skip_special_tokens=False)
    return [(checksum(spans(text, encoding)), zlib.crc32(words.encode()))
            for text, encoding, words in zip(texts, encodings, decoded)]


def special_answers(loaded, texts):
    encodings = loaded.backend_tokenizer.encode_batch(texts, add_special_tokens=False)
    return [(checksum(spans(text, encoding)), checksum(ids))
            for text, encoding, ids in zip(texts, encodings, loaded(texts)["input_ids"])]


def main():
    request, folder, seed = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    texts = hard_texts(seed)
    if request == "vocabulary":
        tokens = vocabulary_of(random.Random(seed), texts, 60000)
        (folder / "vocab.txt").write_text("".join(token + "\n" for token in tokens), newline="\n")
        return
    loaded = transformers.AutoTokenizer.from_pretrained(folder, model_max_length=1 << 40)
    assert type(loaded).__name__.startswith("BertTokenizer"), type(loaded)
    loaded.save_pretrained(folder / "saved")
    bare, special = plain(loaded.backend_tokenizer), special_answers(loaded, texts)
    for file in sys.argv[4:]:
        texts += Path(file).read_bytes().decode().split("\n")
    special += [(0, 0)] * (len(texts) - len(special))
    with open(folder / "texts", "wb") as asked, open(folder / "answers", "wb") as answered:
        for begin in range(0, len(texts), GROUP):
            group = texts[begin:begin + GROUP]
            for text in group:
                data = text.encode()
                asked.write(struct.pack("<I", len(data)) + data)
            for sums, more in zip(plain_answers(bare, group), special[begin:begin + GROUP]):
                answered.write(struct.pack("<4I", *sums, *more))


main()
