"""GPT-2's BPE as others do it, and text that is hard to split: for tests/golden/make_bpe_golden.py and the differential.

Two oracles, of different making: tiktoken (OpenAI; Rust's fancy-regex) and Hugging Face tokenizers (Oniguruma).
"""

import json
import os
import random
from pathlib import Path

import tiktoken
import tokenizers
from tiktoken.load import data_gym_to_mergeable_bpe_ranks
from tokenizers import decoders, models, pre_tokenizers, trainers

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
GPT2 = DATA / "gpt2-bpe"
# As OpenAI published it with GPT-2; tiktoken itself uses a faster form of it.
PATTERN = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def tiktoken_gpt2(pattern=PATTERN):
    os.environ["TIKTOKEN_CACHE_DIR"] = ""  # or it leaves copies of the two files in /tmp
    ranks = data_gym_to_mergeable_bpe_ranks(vocab_bpe_file=str(GPT2 / "vocab.bpe"),
                                            encoder_json_file=str(GPT2 / "encoder.json"))
    return tiktoken.Encoding("gpt2", pat_str=pattern, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 50256})


def hugging_face_gpt2():
    """Without "<|endoftext|>" as an added token, since we and tiktoken's encode_ordinary take it as plain text."""
    tokenizer = tokenizers.Tokenizer(
        models.BPE.from_file(str(GPT2 / "encoder.json"), str(GPT2 / "vocab.bpe"), dropout=None, unk_token=None))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def hugging_face_merges(text, vocab_size, minimum_count):
    """The merges that Hugging Face's trainer finds, as "left right" in the byte alphabet."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, min_frequency=minimum_count, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([text], trainer)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return [merge if isinstance(merge, str) else " ".join(merge) for merge in merges]


def fnv1a(data):
    """64-bit FNV-1a of bytes: short to write in both languages."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def span(first, last):
    return [chr(code) for code in range(first, last + 1)]


SPACES = list("\t\n\v\f\r \u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000") + span(0x2000, 0x200A)
NEARLY_SPACES = list("\u180e\u200b\u200c\u200d\u2060\ufeff\x1c\x1d\x1e\x1f")
POOLS = [
    span(0x61, 0x7A), span(0x41, 0x5A), span(0x30, 0x39), span(0x21, 0x2F) + span(0x3A, 0x40), [" "], ["\n"],
    SPACES, NEARLY_SPACES, [" ", "'"], list("'stremvld "),
    span(0xC0, 0x17F), span(0x391, 0x3C9), span(0x410, 0x44F), span(0x5D0, 0x5EA), span(0x620, 0x64A),
    span(0x904, 0x94D), span(0xE01, 0xE4E), span(0x1200, 0x1248), span(0x3041, 0x30FF), span(0x4E00, 0x4F00),
    span(0xAC00, 0xAC80), span(0x10330, 0x1034A), span(0x1D400, 0x1D454), span(0x20000, 0x20040),
    span(0x105C0, 0x105F3), span(0x10D40, 0x10D85), span(0x13460, 0x134A0),  # letters and digits new in Unicode 16
    span(0x1C89, 0x1C8A) + span(0xA7CB, 0xA7CD) + span(0x16D40, 0x16D79),  # and more of them
    span(0x660, 0x669) + span(0x966, 0x96F), span(0x2150, 0x2188), list("\u00b2\u00b3\u00b9\u00bc\u00bd\u3007\u3021"),
    span(0x1D7CE, 0x1D7FF), span(0x300, 0x36F), span(0x20D0, 0x20F0), span(0x00, 0x1F), span(0x7F, 0x9F),
    span(0x1F600, 0x1F640), list("\U0001f468\u200d\U0001f469\u200d\U0001f467\ufe0f\U0001f3fb\U0001f3ff\u2764"),
    span(0x1F1E6, 0x1F1FF), span(0x2190, 0x2200), span(0x2018, 0x201F), span(0xE000, 0xE008), span(0xFFFD, 0xFFFF),
    list("\ufdd0\U0001fffe\U000e0001\U000f0000\U0010ffff\u0378\u0590\ud7ff\U000323b0"),
]
WORDS = ["the", "don't", "I'll", "WE'RE", "it's", "they've", "I'm", "he'd", "'S", "'sup", "\u2019s", "n't", "hello",
         "Tokenization", "<|endoftext|>", "<unk>", " @-@ ", "10,000", "3.14", "http://x.org/?a=b", "...", "----", "\r\n",
         "\u00e9", "e\u0301", "na\u00efve", "\ufb01", "\u0130", "\u01c5", "\u1e9e", "antidisestablishmentarianism"]


def hard_text(rng: random.Random, pieces):
    """Text of so many pieces, each a word, a run of one character, or characters of one script or of any."""
    text = []
    for _ in range(pieces):
        kind = rng.random()
        if kind < 0.25:
            text.append(rng.choice(WORDS))
        elif kind < 0.35:
            text.append(rng.choice(rng.choice(POOLS)) * rng.choice([1, 2, 3, 5, 8, 9, 30]))
        elif kind < 0.4:
            text.append(chr(rng.choice([rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)])))
        else:
            pool = rng.choice(POOLS)
            text.append("".join(rng.choice(pool) for _ in range(rng.randint(1, 9))))
        if rng.random() < 0.3:
            text.append(rng.choice([" ", " ", "  ", "\n", " \n", "\u00a0"]))
    return "".join(text)
