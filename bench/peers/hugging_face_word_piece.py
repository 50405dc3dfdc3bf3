"""The other side of bench/word_piece: Hugging Face tokenizers encode with BERT's vocabulary.

Takes turns with bench/word_piece.cc and speaks as it does: for each line "ids FILE" or "spans FILE" on standard input it
prints {"seconds": .., "tokens": ..} for the lines of the file. Ids alone are timed by the faster of its two calls for many
texts, one of which leaves places out; the text is decoded from UTF-8 and cut into lines beforehand. Lists for Python are
not made: Encoding objects are all that it has to give. Seconds are the processor's. Written for tokenizers 0.23.
"""

import json
import sys
import time
from pathlib import Path

import tokenizers

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "oracle"))
from word_piece_oracle import word_piece


def timed(encode, lines):
    start = time.process_time()
    encodings = encode(lines)
    seconds = time.process_time() - start
    return dict(seconds=seconds, tokens=sum(len(encoding) for encoding in encodings))


def main():
    vocabulary = (Path(sys.argv[1]) / "vocab.txt").read_text().splitlines()
    tokenizer = word_piece({token: i for i, token in enumerate(vocabulary)})
    print(json.dumps(dict(ready=True, tokenizers=tokenizers.__version__)), flush=True)
    for line in sys.stdin:
        request, file = line.rstrip("\n").split(" ", 1)
        lines = Path(file).read_bytes().decode().split("\n")
        answer = timed(tokenizer.encode_batch, lines)
        if request == "ids":
            answer = min(answer, timed(tokenizer.encode_batch_fast, lines), key=lambda measured: measured["seconds"])
        print(json.dumps(answer), flush=True)


main()
