"""Drives bench/llama_cpp: a folder of transformers, the GGUF files that we make of it, and both programs in turns; medians."""

import argparse
import datetime
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from side import cpu_name

PROMPT = 64
NEW = {1: 1024, 16: 256}  # by texts: so many that what loading varies by is little beside them
FLAGS = {"f32": [], "f16": ["--fp16"], "bf16": ["--bf16"], "q8_0": ["--weights", "q8_0"], "q4_0": ["--weights", "q4_0"]}
SMOLLM2_135M = [30, 576, 9, 3, 1536, 49152]
TERATRON = "build/release/teratron"
LLAMA_CPP = Path(os.environ.get("TERATRON_LLAMA_CPP", "/var/tmp/teratron-llama-cpp"))
WORDS = "the cat sat on a mat and then it "


def run(*words):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout


def write_model(folder, sizes):
    """A random Llama, with the tokenizer of tests/golden whose ids the model's vocabulary begins with."""
    import torch
    import transformers
    layers, hidden, heads, key_heads, ffn, vocabulary = sizes
    torch.manual_seed(1)
    config = transformers.LlamaConfig(num_hidden_layers=layers, hidden_size=hidden, num_attention_heads=heads,
                                      num_key_value_heads=key_heads, intermediate_size=ffn, vocab_size=vocabulary,
                                      max_position_embeddings=2048, tie_word_embeddings=True)
    transformers.LlamaForCausalLM(config).float().save_pretrained(folder)
    shutil.copy("tests/golden/bpe_families/smollm.json", folder / "tokenizer.json")
    (folder / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"}')


def prompt_of(folder):
    """A text of PROMPT tokens."""
    import tokenizers
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    text = (WORDS * PROMPT)[: 8 * PROMPT]
    while len(tokenizer.encode(text).ids) > PROMPT:
        text = text[:-1]
    return text, len(tokenizer.encode(text).ids)


def ours(folder, kind, texts, prompt, threads):
    """New tokens a second: how much longer many tokens of each text and one more take than one does."""
    prompts = folder / "prompts.jsonl"
    prompts.write_text((json.dumps({"prompt": prompt}) + "\n") * texts)

    def seconds(new):
        begin = time.monotonic()
        run(TERATRON, "generate", "--load", folder, "--prompts", prompts, "--temperature", "0", "--ignore-end-of-text",
            "--max-new-tokens", new, "--batch-size", texts, "--threads", threads, *FLAGS[kind])
        return time.monotonic() - begin

    first = seconds(1)
    return texts * NEW[texts] / (seconds(NEW[texts] + 1) - first)


def theirs(folder, kind, texts, prompt_tokens, threads):
    answer = run(LLAMA_CPP / "llama_cpp", "time", folder / f"{kind}.gguf", texts, prompt_tokens, NEW[texts], threads)
    return texts * NEW[texts] / float(answer.split()[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", type=int, nargs=6, default=SMOLLM2_135M,
                        metavar=("LAYERS", "HIDDEN", "HEADS", "KEY_HEADS", "FFN", "VOCABULARY"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--types", nargs="+", choices=list(FLAGS), default=list(FLAGS))
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    rates = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_model(folder, options.model)
        prompt, prompt_tokens = prompt_of(folder)
        for kind in options.types:
            run(TERATRON, "convert", "--from", "hf", "--to", "gguf", "--type", kind, folder, folder / f"{kind}.gguf")
        for number in range(options.rounds):
            for texts in NEW:
                for kind in options.types:
                    pair = (ours(folder, kind, texts, prompt, options.threads),
                            theirs(folder, kind, texts, prompt_tokens, options.threads))
                    rates.setdefault((texts, kind), []).append(pair)
                    print(f"round {number + 1}, {texts} texts, {kind}: {pair[0]:.1f}, {pair[1]:.1f}", file=sys.stderr,
                          flush=True)
    lines = ["| texts | weights | Teratron, tokens/s | llama.cpp, tokens/s | ratio |", "|---" * 5 + "|"]
    for (texts, kind), pairs in rates.items():
        mine, other = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
        ratio = statistics.median(pair[0] / pair[1] for pair in pairs)
        lines.append(f"| {texts} | {kind} | {mine:.1f} | {other:.1f} | {ratio:.2f} |")
    layers, hidden, heads, key_heads, ffn, vocabulary = options.model
    source = (LLAMA_CPP / ".ready").read_text().strip()
    version = next((part for part in Path(source).parts if part.startswith("llama_cpp_python")), source)
    text = (f"{datetime.date.today()}, {cpu_name()}, {options.threads} threads; Llama of {layers} layers, hidden {hidden}, "
            f"{heads} heads, {key_heads} key heads, FFN {ffn}, vocabulary {vocabulary}; the llama.cpp of {version}; {NEW[1]} new "
            f"tokens of one text, {NEW[16]} of each of 16, after prompts of {prompt_tokens}, whose time is left out; "
            f"medians of {options.rounds} rounds in turns; "
            f"`bench/llama_cpp {' '.join(sys.argv[1:])}`\n\n" + "\n".join(lines) + "\n")
    print(text)
    if options.save:
        Path("bench/results/llama_cpp.md").write_text("# bench/llama_cpp\n\n" + text)


if __name__ == "__main__":
    main()
