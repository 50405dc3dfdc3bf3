"""The others' side of bench/bpe: tiktoken encodes with GPT-2's vocabulary, Hugging Face tokenizers trains a new one.

Takes turns with bench/bpe.cc and speaks as it does: for each line "encode FILE" or "train VOCAB_SIZE FILE" on standard
input it prints {"seconds": .., "tokens": ..}. Encoding is timed as tiktoken's own GPT-2 does it (its present pattern),
by the faster of its two calls; the text is decoded from UTF-8 beforehand. Written for tiktoken 0.14, tokenizers 0.23.
"""

import json
import sys
import time
from pathlib import Path

import tiktoken
import tokenizers
from tiktoken_ext.openai_public import r50k_pat_str

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "oracle"))
from bpe_oracle import hugging_face_merges, tiktoken_gpt2


def timed(work):
    start = time.perf_counter()
    result = work()
    return dict(seconds=time.perf_counter() - start, tokens=len(result))


def main():
    encoding = tiktoken_gpt2(r50k_pat_str)
    print(json.dumps(dict(ready=True, tiktoken=tiktoken.__version__, tokenizers=tokenizers.__version__)), flush=True)
    for line in sys.stdin:
        request, rest = line.rstrip("\n").split(" ", 1)
        if request == "train":
            vocab_size, file = rest.split(" ", 1)
            text = Path(file).read_bytes().decode()
            answer = timed(lambda: hugging_face_merges(text, int(vocab_size) - 1, 2))
        else:
            text = Path(rest).read_bytes().decode()
            answer = min((timed(lambda: encoding.encode_ordinary(text)),
                          timed(lambda: encoding.encode_to_numpy(text, disallowed_special=()))),
                         key=lambda measured: measured["seconds"])
        print(json.dumps(answer), flush=True)


main()
