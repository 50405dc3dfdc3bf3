"""Make tests/golden/side_files.json: what transformers makes of the files beside a vocabulary, for ours to be compared with.

    HF_HUB_OFFLINE=1 nice $(scripts/oracle-env | tail -n 1) tests/golden/make_side_files_golden.py

The file in the repository was made with transformers 5.24.0 and tokenizers 0.23.3. It has small vocabularies, and cells:
files to put beside one of them, texts, and their ids, without the tokens that BERT's callers add. "read" says whether ours
is to read them so, or to refuse them by name.
"""

import json
import tempfile
from pathlib import Path

import transformers
from tokenizers import pre_tokenizers
from transformers import AutoTokenizer

END = "<|endoftext|>"
MERGES = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("\u0120", "hello"), ("\u0120", "w")]
ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())
VOCABULARY = {token: i for i, token in enumerate(ALPHABET + [a + b for a, b in MERGES] + [END])}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "hell", "##o", "he", "##llo", "w", "##orld", "\u4e2d", "\u56fd",
         "W", "[E]", "\u4e2d\u56fd", "##\u56fd"]
BYTE_PAIR_TEXTS = ["hello hello", f"hello{END}hello <|pad|>hello", "", " hello", "\nhello", "\u00a0hello\n hello", "\u4e2d\u56fd",
                   "hello" * 50_000 + "\nhello world " * 30_000 + "hello"]
WORD_TEXTS = ["hello w\u00f6rld", "hello[MASK]hello <pad>W", "\u4e2d\u56fd hello", "Hello othello W"]


def token(text, special=True, **more):
    return {"content": text, "special": special, "lstrip": False, "rstrip": False, "normalized": False, "single_word": False,
            **more}


def byte_pair_cells():
    size = len(VOCABULARY)
    gpt2 = {"tokenizer_class": "GPT2Tokenizer"}
    config = lambda **more: {"tokenizer_config.json": {**gpt2, **more}}  # noqa: E731
    yield True, config()
    for flag in (True, False):
        yield True, config(add_prefix_space=flag)
        yield not flag, config(add_bos_token=flag)
        yield not flag, config(add_eos_token=flag)
    # transformers writes this number where a tokenizer has no longest text.
    for number in ("1000000000000000019884624838656", "-18446744073709551616", "1e400", "NaN", "-Infinity"):
        yield True, {"tokenizer_config.json": f'{{"model_max_length": {number}, "add_prefix_space": true, "tokenizer_class": "GPT2Tokenizer"}}'}
    for errors in ("replace", "strict", "ignore"):
        yield True, config(errors=errors)
    yield True, config(bos_token=END, eos_token=END, unk_token=END)
    yield True, config(eos_token=token(END, __type="AddedToken"))
    for key in ("bos_token", "eos_token", "unk_token", "pad_token"):
        yield False, config(**{key: "<|pad|>"})
        yield False, config(**{key: "hello"})
        yield True, {**config(**{key: "<|pad|>"}), "added_tokens.json": {"<|pad|>": size}}
        yield False, {**config(), "special_tokens_map.json": {key: "<|pad|>"}}
    yield False, config(additional_special_tokens=["<|pad|>"])
    yield True, {**config(), "added_tokens.json": {"<|pad|>": size}}
    yield False, {**config(), "added_tokens.json": {"world": size}}
    yield True, config(added_tokens_decoder={str(size - 1): token(END)})
    yield True, config(added_tokens_decoder={str(size): token("<|pad|>")})
    yield True, config(add_prefix_space=True, added_tokens_decoder={str(size): token("<|pad|>")})
    for option in ("lstrip", "rstrip", "single_word"):
        yield False, config(added_tokens_decoder={str(size): token("<|pad|>", **{option: True})})
    yield False, config(added_tokens_decoder={str(size): token("world", special=False)})
    yield False, config(added_tokens_decoder={str(VOCABULARY["hello"]): token("hello", special=False)})
    yield True, {"tokenizer_config.json": {"tokenizer_class": "CodeGenTokenizer"}}
    for other in ("RobertaTokenizer", "RobertaTokenizerFast", "BartTokenizer", "Qwen2Tokenizer"):
        yield False, {"tokenizer_config.json": {"tokenizer_class": other}}


def word_cells():
    bert = {"tokenizer_class": "BertTokenizer", "do_lower_case": False}
    config = lambda **more: {"tokenizer_config.json": {**bert, **more}}  # noqa: E731
    yield True, config()
    for lower in (True, False):
        for key in ("strip_accents", "tokenize_chinese_chars"):
            for flag in (True, False):
                yield True, config(do_lower_case=lower, **{key: flag})
    yield True, config(never_split=["hello"])
    yield True, config(added_tokens_decoder={"4": token("[MASK]")})
    yield True, {"tokenizer_config.json": {**bert, "tokenizer_class": "DistilBertTokenizer"}}
    yield True, {**config(), "special_tokens_map.json": {"unk_token": "[E]"}}
    yield False, {**config(), "added_tokens.json": {"<pad>": len(WORDS)}}
    yield False, config(added_tokens_decoder={str(len(WORDS)): token("<pad>")})
    yield False, config(added_tokens_decoder={"5": token("hello", special=False)})
    yield False, config(additional_special_tokens=["<pad>"])
    yield False, config(additional_special_tokens=["hello"])
    yield False, {"tokenizer_config.json": {**bert, "tokenizer_class": "MPNetTokenizer"}}
    yield False, {"tokenizer_config.json": {**bert, "tokenizer_class": "FunnelTokenizer"}}


def ids_of(files, texts):
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            text = content if isinstance(content, str) else json.dumps(content)
            (Path(folder) / name).write_text(text)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        return [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]


def shortened(ids):
    """The ids, or how many there are, their sum and the sum of each by its place: the long text's would fill pages."""
    if len(ids) < 100:
        return ids
    return {"count": len(ids), "sum": sum(ids), "by_place": sum(i * (1 + place % 1000) for place, i in enumerate(ids))}


def main():
    transformers.logging.set_verbosity_error()
    merges = "#version: 0.2\n" + "\n".join(" ".join(pair) for pair in MERGES) + "\n"
    kinds = [("byte pair", {"vocab.json": VOCABULARY, "merges.txt": merges}, BYTE_PAIR_TEXTS, byte_pair_cells()),
             ("WordPiece", {"vocab.txt": "\n".join(WORDS) + "\n"}, WORD_TEXTS, word_cells())]
    out = []
    for kind, vocabulary, texts, cells in kinds:
        made = []
        for read, files in cells:
            ids = [shortened(one) for one in ids_of({**vocabulary, **files}, texts)] if read else None
            made.append({"read": read, "files": files, "ids": ids})
        short = [text if len(text) < 100 else None for text in texts]  # None: the long one, which the test makes too
        out.append({"kind": kind, "vocabulary": vocabulary, "texts": short, "cells": made})
    path = Path(__file__).parent / "side_files.json"
    path.write_text(json.dumps(out, separators=(",", ":")).replace('{"read"', '\n{"read"') + "\n")


main()
