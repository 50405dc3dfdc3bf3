"""Make tests/golden/bpe_families: small tokenizers with the published steps of today's models, and their answers.

    nice $(scripts/oracle-env | tail -n 1) tests/golden/make_bpe_families_golden.py

Trained by Hugging Face tokenizers 0.23 on the multilingual golden texts and source code. For each family:

  FAMILY.json        the tokenizer: expressions, normalizer, decoder, flags and added tokens as in the published files of
                     llama3 (3.1), qwen3, neox (GPT-NeoX, Pythia), smollm, llama2 (2, TinyLlama: the normalizer prepends),
                     mistral (0.3: Metaspace, "first", not split), and metaspace ("always", split), which nobody published
  texts.json         short, hard texts
  FAMILY_ids.json    for each: [ids where special tokens are plain text, the text they decode to unless it is the same,
                     ids where special tokens are tokens unless they are the same]
"""

import json
import random
import sys
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "oracle"))
from bpe_families import answer, family_text, multilingual_texts, source_texts

OUT = Path(__file__).parent / "bpe_families"
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}DIGITS| ?[^\s\p{L}\p{N}]+[\r\n]*|"
           r"\s*[\r\n]+|\s+(?!\S)|\s+")
NEVER = [0xC0, 0xC1, *range(0xF5, 0x100)]  # bytes that no UTF-8 has, and no vocabulary learnt from it
SPACE = "\u2581"


def byte_level(space=False, regex=True):
    return {"type": "ByteLevel", "add_prefix_space": space, "trim_offsets": True, "use_regex": regex}


def split(digits):
    pattern = {"Regex": PATTERN.replace("DIGITS", digits)}
    return {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}, byte_level(regex=False)]}


def beginning(token, number):
    piece, text = {"SpecialToken": {"id": token, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    other = [{"SpecialToken": {"id": token, "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}]
    return {"type": "TemplateProcessing", "single": [piece, text], "pair": [piece, text, *other],
            "special_tokens": {token: {"id": token, "ids": [number], "tokens": [token]}}}


def added(number, content, special=True, normalized=False):
    return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": normalized, "special": special}


def texts():
    """What is learnt from."""
    return [text[:400] for text in multilingual_texts()] + [text[:3000] for text in source_texts()]


def learn(steps, size, alphabet, **options):
    tokenizer = Tokenizer(models.BPE())
    # The steps as an object of the library: it takes them from a whole file only.
    whole = json.loads(tokenizer.to_str())
    whole["pre_tokenizer"] = steps
    tokenizer = Tokenizer.from_str(json.dumps(whole))
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, initial_alphabet=alphabet, **options)
    tokenizer.train_from_iterator(texts(), trainer)
    return json.loads(tokenizer.to_str())["model"]


def byte_level_file(steps, normalizer, special, template=False, found=(), lacks=(), ignore_merges=False, in_vocabulary=0):
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    marks = {0xC0: "\u00c0", 0xC1: "\u00c1"} | {byte: chr(byte) for byte in range(0xF5, 0x100)}
    alphabet = [one for one in alphabet if one not in [marks[byte] for byte in lacks]]
    model = learn(steps, 620, alphabet, special_tokens=special[:in_vocabulary])
    model["ignore_merges"] = ignore_merges
    if ignore_merges:  # a word that no merges make
        model["vocab"]["\u0120unmergeable"] = len(model["vocab"])
    number = len(model["vocab"])
    tokens = [added(model["vocab"][text], text) for text in special[:in_vocabulary]]
    for text in special[in_vocabulary:]:
        tokens.append(added(number + len(tokens) - in_vocabulary, text, special=text != "<think>"))
    for text in found:
        tokens.append(added(number + len(tokens) - in_vocabulary, text, special=False, normalized=True))
    processor = byte_level()
    if template:
        processor = {"type": "Sequence", "processors": [byte_level(), beginning(special[0], tokens[0]["id"])]}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": tokens, "normalizer": normalizer,
            "pre_tokenizer": steps, "post_processor": processor, "decoder": byte_level(True), "model": model}


def sentence_piece_file(normalizer, steps, strip, more_merges):
    special = ["<unk>", "<s>", "</s>"]
    control = special + [f"<0x{byte:02X}>" for byte in range(256)]
    learnt = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True}
    model = learn(learnt, 900, [], special_tokens=control, limit_alphabet=260)
    runs = [[SPACE, SPACE], [SPACE * 2, SPACE * 2], *more_merges]
    for left, right in runs:
        model["vocab"].setdefault(left + right, len(model["vocab"]))
    model |= {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "merges": runs + model["merges"]}
    end = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if strip else []
    decoder = {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
                                                {"type": "ByteFallback"}, {"type": "Fuse"}, *end]}
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [added(number, text) for number, text in enumerate(special)], "normalizer": normalizer,
            "pre_tokenizer": steps, "post_processor": beginning("<s>", 1), "decoder": decoder, "model": model}


def metaspace(scheme, is_split):
    return {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": is_split}


def families():
    nfc = {"type": "NFC"}
    prepend = {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": SPACE}, {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}]}
    digits = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level()]}
    crossing = [[".", SPACE], ["." + SPACE, "T"]]
    return {
        "llama3": byte_level_file(split("{1,3}"), None, ["<|begin_of_text|>", "<|end_of_text|>"], template=True,
                                  ignore_merges=True),
        "qwen3": byte_level_file(split(""), nfc, ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>"]),
        "neox": byte_level_file(byte_level(), nfc, ["<|endoftext|>", "<|padding|>"], lacks=NEVER, in_vocabulary=2,
                                found=[" " * count for count in range(24, 1, -1)]),
        "smollm": byte_level_file(digits, None, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], lacks=NEVER,
                                  in_vocabulary=3),
        "llama2": sentence_piece_file(prepend, None, True, []),
        "mistral": sentence_piece_file(None, metaspace("first", False), True, crossing),
        "metaspace": sentence_piece_file(None, metaspace("always", True), True, crossing),
    }


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def write_list(name, values):
    (OUT / name).write_text("[" + ",\n".join(map(compact, values)) + "]\n")


def main():
    OUT.mkdir(exist_ok=True)
    rng = random.Random(1)
    chosen = ["", " ", "  ", "a", " a", "\u2581", "\u2581a", "\n"]
    chosen += [family_text(rng, rng.randint(1, 6)) for _ in range(110)]
    chosen += [text[:120] for text in multilingual_texts()[::12]] + [text[400:900] for text in source_texts()[::6]]
    write_list("texts.json", chosen)
    for name, content in families().items():
        path = OUT / f"{name}.json"
        path.write_text("{" + ",\n".join(f"{compact(key)}:{compact(value)}" for key, value in content.items()) + "}\n")
        answers = []
        for text, (ids, decoded, special, _) in zip(chosen, answer(path, chosen)):
            answers.append([ids, None if decoded == text else decoded, None if special == ids else special])
        write_list(f"{name}_ids.json", answers)


main()
