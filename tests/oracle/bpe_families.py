"""Hugging Face tokenizers of the families beside GPT-2: their published steps, and what they make of text.

Shared by tests/golden/make_bpe_families_golden.py and, as a program, the other side of
tests/tokenizer/bpe_families_oracle_test.cc:

    $(scripts/oracle-env | tail -n 1) tests/oracle/bpe_families.py TOKENIZER_JSON SAVED_JSON SEED ANSWERS

It encodes hard texts, source code and the multilingual golden texts with TOKENIZER_JSON, requires the same ids of
SAVED_JSON (as we wrote it), and writes ANSWERS: for each text [text, ids where special tokens are plain text, their
decoded text, ids where they are tokens, their decoded text].
"""

import json
import random
import sys
from pathlib import Path

import tokenizers

from bpe_oracle import hard_text, span

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "golden" / "corpus"
PIECES = ["\u2581", "\u2581the", "\r\n", "\r\n\r\n", "\n\n  ", "!\n", "?!\r\n\n", " \n ", "1", "12", "123", "1234567", "0x1F", "'S", "'LL",
          "'rE", "'\u017f", "'\u017fe", "\u212b", "\u0344", "e\u0301\u0323", "\u00e9\u0323", "\u1e69\u0307", "<\u0338",
          "\u1100\u1161\u11a8", "\uac00\u11a8", "\u0958", "\u0915\u093c", "\u0627\u0653", "\u0f73", "\U0001d15e", "\ufa30",
          "\U00011131\U00011127", "\U00011938", "\u0b47\u0b56", "a" * 40, "=" * 70, " " * 30, "\t\t\t", "    return x;\n",
          "if (a != b) {\n", "\u4e2d\u6587" * 20, "\U0001f600", "\u200d", "\ufeff", "\U00011de3", "\U00016ff4", "\u2160",
          "<s>", "</s>", "<unk>", "<0x41>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<think>", "[INST]", "\0", "\x7f",
          "\ud7ff", "\ue000", "\U0010ffff", "\U000e0001", "\uffff", "\u00a0", "\u3000", "\u2028", "\u0085", "_x", "\t_", "#!", "  ", "   "]
MARKS = span(0x300, 0x315) + span(0x323, 0x330) + ["\u0345", "\u05b0", "\u0653", "\u3099", "\u094d", "\u1ab0", "\u0338"]
BASES = list("aeoAEO<>= \u00e9\u1ea1\u0915\u304b\u0627\u1100\u1161\u03b1\u212b")


def family_text(rng, pieces):
    text = []
    for _ in range(pieces):
        kind = rng.random()
        if kind < 0.45:
            text.append(hard_text(rng, 1))
        elif kind < 0.55:
            text.append(rng.choice(BASES) + "".join(rng.choice(MARKS) for _ in range(rng.randint(1, 4))))
        elif kind < 0.62:
            text.append(rng.choice(PIECES) * rng.choice([2, 3, 4, 25]))
        elif kind < 0.65:
            text.append("".join(chr(rng.choice([rng.randrange(0xD800), rng.randrange(0xE000, 0x20000)])) for _ in range(9)))
        else:
            text.append(rng.choice(PIECES))
    return "".join(text)


def multilingual_texts():
    texts = []
    for name in ("langid.jsonl", "ftfy.jsonl", "extract.jsonl"):
        for line in (CORPUS / name).read_text().split("\n"):
            if not line:
                continue
            texts += [value for value in json.loads(line).values() if isinstance(value, str)]
    return [text for text in texts if text.isprintable() or len(text) > 8]


def source_texts():
    files = sorted((ROOT / "src" / "text" / "tokenizer").rglob("*.cc")) + sorted((ROOT / "tests" / "oracle").glob("*.py"))
    return [file.read_text() for file in files]


def is_written_like_special(text):
    return len(text) > 2 and (text[0] + text[-1] in ("<>", "[]"))


def plain(path):
    """The tokenizer to which special tokens are plain text."""
    content = json.loads(Path(path).read_text())
    content["added_tokens"] = [token for token in content["added_tokens"]
                               if not token["special"] and not is_written_like_special(token["content"])]
    content["post_processor"] = None
    return tokenizers.Tokenizer.from_str(json.dumps(content))


def answer(path, texts):
    """[ids with special tokens as text, decoded, ids with special tokens, decoded] of each text."""
    bare, whole = plain(path), tokenizers.Tokenizer.from_file(str(path))
    answers = []
    for text in texts:
        ids, special = bare.encode(text).ids, whole.encode(text, add_special_tokens=False).ids
        answers.append([ids, bare.decode(ids, skip_special_tokens=False), special,
                        whole.decode(special, skip_special_tokens=False)])
    return answers


def main():
    theirs, saved, seed, out = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    rng = random.Random(seed)
    texts = [family_text(rng, rng.choice([1, 2, 3, 5, 8, 60])) for _ in range(3000)]
    texts += multilingual_texts() + source_texts() + ["a" * 5000 + " " * 5000 + "1" * 5000 + "\n" * 3000 + "\u4e2d" * 3000]
    answers = answer(theirs, texts)
    for text, one, other in zip(texts, answers, answer(saved, texts)):
        assert one == other, f"as saved, {text!r} has other tokens: {other}, not {one}"
    Path(out).write_text(json.dumps([[text, *one] for text, one in zip(texts, answers)]))


if __name__ == "__main__":
    main()
