"""BERT's WordPiece as Hugging Face tokenizers does it, and text that is hard to normalize: for tests/golden/
make_word_piece_golden.py and word_piece_differential.py.
"""

import json
import random
import zlib

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers

from bpe_oracle import POOLS, WORDS, span

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def normalizer(lower_case=True, strip_accents=True, split_chinese=True):
    return normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=split_chinese, strip_accents=strip_accents,
                                      lowercase=lower_case)


def word_piece(vocabulary, **options):
    """Without special tokens as added ones: to us they are plain text too, unless the caller asks for them."""
    tokenizer = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizer(**options)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    return tokenizer


def plain(tokenizer):
    """A copy to which special tokens are plain text, and which adds none."""
    described = json.loads(tokenizer.to_str())
    described.update(added_tokens=[], post_processor=None, truncation=None, padding=None)
    return tokenizers.Tokenizer.from_str(json.dumps(described))


def spans(text, encoding):
    """(id, begin, end) of each token. Hugging Face counts characters in Python, and we bytes."""
    if text.isascii():
        return [(id, *offsets) for id, offsets in zip(encoding.ids, encoding.offsets)]
    places = [0]
    for character in text:
        places.append(places[-1] + len(character.encode()))
    return [(id, places[begin], places[end]) for id, (begin, end) in zip(encoding.ids, encoding.offsets)]


MARKS = span(0x300, 0x34E) + [chr(code) for code in (0x591, 0x5B0, 0x64B, 0x651, 0x93C, 0x94D, 0xE38, 0xE48, 0xF71, 0xF72,
         0x302A, 0x302E, 0x302F, 0x3099, 0x1D165, 0x1D166, 0x1D16D, 0x1D16E, 0x16FF0, 0x1715, 0x1734, 0x111C9, 0x1171E)]
# Marks that are younger than Hugging Face's categories, of which Unicode 9's have their place among others.
YOUNG_MARKS = (span(0x898, 0x89F) + span(0x8CA, 0x8E1) + span(0x1ABF, 0x1ACE) + span(0x1DF6, 0x1DFB) +
               span(0x1E000, 0x1E006) + span(0x1E130, 0x1E136) + span(0x1E944, 0x1E94A) +
               [chr(code) for code in (0x7FD, 0x9FE, 0xC3C, 0x11442, 0x11446, 0x1145E, 0x11C3F, 0x11D42)])
HARD_POOLS = POOLS + [
    MARKS, MARKS, YOUNG_MARKS, MARKS + YOUNG_MARKS, span(0xC0, 0x24F), span(0x1E00, 0x1EFF), span(0x1F00, 0x1FFF),
    span(0x340, 0x344) + span(0xF73, 0xF81), span(0xAC00, 0xAC40) + span(0xD780, 0xD7A3), span(0x1100, 0x11FF),
    span(0xF900, 0xFAFF), span(0x2F800, 0x2F820), span(0x2B700, 0x2B9FF), span(0x2010, 0x2060), span(0x3000, 0x3030),
    span(0xA7C0, 0xA7DC), span(0x10D50, 0x10D65), span(0x1C80, 0x1C8A), span(0x16E90, 0x16EC0), span(0x2E40, 0x2E5D),
    list("\u0130\u0131\u00df\u1e9e\u03a3\u03c2\u01c4\u01c5\u212a\u212b\u1fef\u037e\u0387\ufb1d\U0001d15e\u2126"),
    list("\x00\x01\x08\x0b\x0c\x1f\x7f\x85\xad\u200b\u200e\u202e\ufeff\ufffd\ue000\U000e0001\u061c\u180e")]
PIECES = WORDS + SPECIAL + ["##ing", "[unused1]", "can't", "U.S.A.", "a" * 100, "b" * 101, "\u4e2d\u6587", "\ud55c\uad6d",
                            "e\u0301\u0323", "A\u030a", "\u1ea5\u0323", "x\u0344\u0323", "\u0f73\u0301", "9-to-5"]


def hard_text(rng: random.Random, pieces):
    """Text of so many pieces, each a word, a letter with marks, or characters of one script or of any."""
    text = []
    for _ in range(pieces):
        kind = rng.random()
        if kind < 0.2:
            text.append(rng.choice(PIECES))
        elif kind < 0.4:
            text.append(rng.choice(rng.choice(HARD_POOLS)))
            text.extend(rng.choice(rng.choice([MARKS, YOUNG_MARKS])) for _ in range(rng.randint(1, 5)))
        elif kind < 0.45:
            text.append(chr(rng.choice([rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)])))
        elif kind < 0.5:
            text.append(rng.choice(rng.choice(HARD_POOLS)) * rng.choice([2, 3, 8, 30, 99, 100, 101]))
        else:
            pool = rng.choice(HARD_POOLS)
            text.append("".join(rng.choice(pool) for _ in range(rng.randint(1, 9))))
        if rng.random() < 0.3:
            text.append(rng.choice([" ", " ", "\n", "\t ", "\u00a0", "\u2028", "\u3000"]))
    return "".join(text)


def vocabulary_of(rng: random.Random, texts, size):
    """A vocabulary in which most words of the texts are made of tokens: of characters as they are normalized in any way,
    and of parts of their words."""
    characters, parts = set(), set()
    for options in ((True, True), (True, False), (False, True), (False, False)):
        norm, words = normalizer(*options), pre_tokenizers.BertPreTokenizer()
        for text in texts:
            for word, _ in words.pre_tokenize_str(norm.normalize_str(text)):
                characters.update(word)
                begin = rng.randrange(len(word))
                parts.add(word[begin:begin + rng.randint(2, 6)])
    characters = [c for c in sorted(characters) if rng.random() < 0.97]
    parts = sorted(part for part in parts if len(part) > 1)
    tokens = characters + ["##" + c for c in characters]
    tokens += [rng.choice(["", "##"]) + part for part in rng.sample(parts, min(len(parts), max(0, size - len(tokens))))]
    rng.shuffle(tokens)
    return {token: i for i, token in enumerate(dict.fromkeys(SPECIAL + tokens))}


def blocks_of_characters(normalize):
    """A checksum (CRC-32) for each 1024 code points of what becomes of each of them: alone between letters, and next to marks whose
    places among other marks tell its own. Words are written with a line end behind each."""
    words = pre_tokenizers.BertPreTokenizer()
    for first in range(0, 0x110000, 1024):
        seen = []
        for code in range(first, first + 1024):
            if 0xD800 <= code < 0xE000:
                continue
            c = chr(code)
            text = normalize.normalize_str(f"a{c}b \u302e{c}\U0001d16d{c}")
            seen.extend(word + "\n" for word, _ in words.pre_tokenize_str(text))
        yield zlib.crc32("".join(seen).encode())
