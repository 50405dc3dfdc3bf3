"""llama.cpp reads our GGUF files, and computes with them what we compute.

    $(scripts/oracle-env | tail -n 1) tests/oracle/gguf_as_llama_cpp.py build/release/teratron [--rounds N] [--seed N]

For random models of each family, made by transformers, with the tokenizers of tests/golden/bpe_families:
- the f32 file: 100 greedy tokens are those of `teratron generate`; ids of hard texts are those of tokenizers;
- f16, bf16 and q8_0: llama.cpp loads them, its logits are near those of the f32 file, and every value that gguf-py, the
  reader beside llama.cpp, finds is the f32 file's rounded: q8_0's within half a step.
llama.cpp is what scripts/llama-cpp builds. Without it, or without the pip package gguf, the program says so and ends with 0.
"""

import argparse
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "bpe_families"
TOKENS = 100
LLAMA3 = dict(rope_type="llama3", rope_theta=500.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)


class LlamaCpp:
    """bench/peers/llama_cpp.cc with one file: the cache in fp32, one thread."""

    def __init__(self, file):
        self.file = file

    def ask(self, what, *words, text=""):
        command = [program_of_llama_cpp(), what, self.file, *words]
        done = subprocess.run([str(word) for word in command], input=text.encode(), capture_output=True)
        assert done.returncode == 0, f"{what} {self.file}: {done.stderr.decode()}"
        return done.stdout

    def ids(self, texts):
        lines = self.ask("ids", text="".join(text.encode().hex() + "\n" for text in texts)).decode().split("\n")
        return [[int(word) for word in line.split()] for line in lines[:-1]]

    def logits(self, ids):
        return np.frombuffer(self.ask("logits", *ids), np.float32)

    def continue_greedily(self, ids, count):
        """The new ids, and by how much the likeliest stood out at the narrowest place."""
        lines = self.ask("continue", count, *ids).decode().split("\n")
        return [int(word) for word in lines[0].split()], float(lines[1])


def with_all_merges(tokenizer):
    """SentencePiece's list: every pair of tokens whose text is a token merges, tokens in the order of their first merge."""
    model, added = tokenizer["model"], {token["content"] for token in tokenizer["added_tokens"]}
    plain = {token for token in model["vocab"] if token not in added and not token.startswith("<0x")}
    split = [merge if isinstance(merge, list) else merge.split(" ") for merge in model["merges"]]
    order = dict.fromkeys(left + right for left, right in split)
    order.update(dict.fromkeys(token for token in sorted(plain) if len(token) > 1))
    model["merges"] = [[token[:cut], token[cut:]] for token in order for cut in range(1, len(token))
                       if token[:cut] in plain and token[cut:] in plain]
    return tokenizer


def random_sizes(rng, heads, head_size):
    return dict(num_hidden_layers=rng.choice([1, 2, 3]), hidden_size=heads * head_size, num_attention_heads=heads,
                intermediate_size=rng.choice([64, 96]), max_position_embeddings=256, bos_token_id=None, eos_token_id=None,
                pad_token_id=None, attn_implementation="eager")


def families(rng):
    """(name, configuration, tokenizer) of each family, of random sizes."""
    import transformers as t
    heads, head_size = rng.choice([(4, 16), (2, 32), (4, 24)])
    sizes = random_sizes(rng, heads, head_size)
    grouped = dict(sizes, num_key_value_heads=rng.choice([1, 2, heads]), tie_word_embeddings=rng.random() < 0.5)
    linear = dict(rope_type="linear", factor=2.0, rope_theta=10000.0)
    plain = dict(rope_type="default", rope_theta=rng.choice([100.0, 10000.0, 1e6]))
    neox = dict(sizes, hidden_act="gelu_new", rope_parameters=dict(plain, partial_rotary_factor=rng.choice([0.25, 0.5, 1.0])),
                use_parallel_residual=rng.random() < 0.7, tie_word_embeddings=rng.random() < 0.3)
    return [
        ("llama 3", t.LlamaConfig(**dict(grouped, rope_parameters=LLAMA3)), "llama3"),
        ("llama 2", t.LlamaConfig(**dict(grouped, rope_parameters=rng.choice([plain, linear]), head_dim=rng.choice([16, 48]))),
         "llama2"),
        ("smollm", t.LlamaConfig(**dict(grouped, rope_parameters=plain)), "smollm"),
        ("mistral", t.MistralConfig(**dict(grouped, rope_parameters=plain, sliding_window=rng.choice([None, 256, 300]))),
         "mistral"),
        ("qwen 2", t.Qwen2Config(**dict(grouped, rope_parameters=rng.choice([plain, linear]))), "qwen3"),
        ("qwen 3", t.Qwen3Config(**dict(grouped, rope_parameters=plain, head_dim=rng.choice([16, 48]))), "qwen3"),
        ("gpt-neox", t.GPTNeoXConfig(**neox), "neox"),
        ("gpt-2", t.GPT2Config(n_layer=sizes["num_hidden_layers"], n_embd=heads * head_size, n_head=heads, n_positions=256,
                               activation_function="gelu_new", bos_token_id=None, eos_token_id=None), "gpt2"),
    ]


def write_model(config, tokenizer, folder, seed):
    import torch
    import transformers
    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(seed)
    ids = {token["id"] for token in tokenizer["added_tokens"]} | set(tokenizer["model"]["vocab"].values())
    config.vocab_size = len(ids)
    model = transformers.AutoModelForCausalLM.from_config(config).float()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_norm = parameter.dim() == 1 and ("norm" in name or "ln_" in name) and name.endswith("weight")
            parameter.normal_(std=0.1 if parameter.dim() == 1 else 0.2)
            if is_norm:
                parameter.add_(1.0)
    model.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    names = [token["content"] for token in tokenizer["added_tokens"]]
    end = next(name for name in ("<|endoftext|>", "<|end_of_text|>", "</s>") if name in names)
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end}))


def tokenizer_of(name):
    if name == "gpt2":  # GPT-NeoX's without what it has beside GPT-2's
        tokenizer = json.loads((GOLDEN / "neox.json").read_text())
        tokenizer["normalizer"] = None
        return tokenizer
    tokenizer = json.loads((GOLDEN / f"{name}.json").read_text())
    return with_all_merges(tokenizer) if tokenizer["model"].get("byte_fallback") else tokenizer


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done


def program_of_llama_cpp():
    return Path(os.environ.get("TERATRON_LLAMA_CPP", "/var/tmp/teratron-llama-cpp")) / "llama_cpp"


def compare_ids(llama, tokenizer_path, rng, is_sentence_piece):
    """Texts whose ids differ, of all. Leaves out what the notes of `convert` name, and characters younger than Unicode 14."""
    import tokenizers
    from bpe_families import family_text, multilingual_texts, source_texts
    theirs = tokenizers.Tokenizer.from_file(str(tokenizer_path))
    texts = [family_text(rng, rng.choice([1, 2, 3, 5, 8])) for _ in range(600)]
    texts += [text[:4000] for text in multilingual_texts() + source_texts()]
    texts = [unicodedata.normalize("NFC", text) for text in texts]
    texts = [text for text in texts if "Cn" not in map(unicodedata.category, text)]
    if is_sentence_piece:
        texts = [text for text in texts if not text.startswith((" ", "\u2581")) and "<" not in text]
    ours = [theirs.encode(text, add_special_tokens=False).ids for text in texts]
    return [text for text, one, other in zip(texts, ours, llama.ids(texts)) if one != other], len(texts)


def compare_values(exact, rounded, kind):
    """Every tensor of two files, as gguf-py reads them."""
    from gguf import GGUFReader, dequantize
    originals = {tensor.name: tensor for tensor in GGUFReader(exact).tensors}
    for tensor in GGUFReader(rounded).tensors:
        original = originals.pop(tensor.name)
        assert list(tensor.shape) == list(original.shape), tensor.name
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float64)
        wanted = original.data.astype(np.float64)
        if tensor.tensor_type == original.tensor_type:
            assert np.array_equal(values, wanted), tensor.name
        elif kind == "q8_0":
            blocks = np.frombuffer(tensor.data.tobytes(), np.uint8).reshape(-1, 34)
            steps = blocks[:, :2].copy().view(np.float16).astype(np.float64)
            distance = np.abs(values - wanted).reshape(-1, 32)
            assert (distance <= 0.5 * steps * (1 + 1e-6)).all(), tensor.name
        elif kind == "f16":
            assert np.array_equal(values, wanted.astype(np.float16).astype(np.float64)), tensor.name
        else:
            assert (np.abs(values - wanted) <= np.abs(wanted) * 2.0 ** -8).all(), tensor.name
    assert not originals, list(originals)


def check_family(teratron, name, config, tokenizer_name, seed, folder):
    import tokenizers
    rng = random.Random(seed)
    tokenizer = tokenizer_of(tokenizer_name)
    write_model(config, tokenizer, folder, seed)
    files = {kind: folder / f"{kind}.gguf" for kind in ("f32", "f16", "bf16", "q8_0")}
    for kind, path in files.items():
        run(teratron, "convert", "--from", "hf", "--to", "gguf", "--type", kind, folder, path)
    prompt = "the cat sat on 12 mats"
    ours = json.loads(run(teratron, "generate", "--load", folder, "--prompt", prompt, "--temperature", "0", "--seed", "1",
                          "--ignore-end-of-text", "--max-new-tokens", TOKENS, "--json", "-").stdout)
    llama = LlamaCpp(files["f32"])
    ids = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")).encode(prompt).ids
    new, narrowest = llama.continue_greedily(ids, TOKENS)
    assert new == ours["tokens"][-TOKENS:] or narrowest < 1e-5, f"{name}: {new} by llama.cpp, {ours} by Teratron, apart by {narrowest}"
    different, texts = compare_ids(llama, folder / "tokenizer.json", rng, bool(tokenizer["model"].get("byte_fallback")))
    assert not different, f"{name}: other ids of {len(different)} of {texts} texts, as {different[:3]!r}"
    exact, apart = llama.logits(ids), {}
    for kind in ("f16", "bf16", "q8_0"):
        apart[kind] = float(np.abs(LlamaCpp(files[kind]).logits(ids) - exact).max() / exact.std())
        compare_values(files["f32"], files[kind], kind)
    assert apart["f16"] < 0.05 and apart["bf16"] < 0.3 and apart["q8_0"] < 0.6, apart
    print(f"{name}: {TOKENS} tokens the same, the likeliest by {narrowest:.2g} at least; ids of {texts} texts; logits of "
          + ", ".join(f"{kind} within {value:.2g}" for kind, value in apart.items()) + " of their deviation", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("teratron")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if importlib.util.find_spec("gguf") is None:
        return print(f"skipped: no gguf in {sys.executable}; scripts/oracle-env installs it")
    if not program_of_llama_cpp().exists():
        return print(f"skipped: no llama.cpp at {program_of_llama_cpp()}; scripts/llama-cpp builds it")
    for number in range(options.rounds):
        seed = options.seed + number
        for name, config, tokenizer in families(random.Random(seed)):
            with tempfile.TemporaryDirectory() as folder:
                check_family(Path(options.teratron).resolve(), name, config, tokenizer, seed, Path(folder))


if __name__ == "__main__":
    main()
