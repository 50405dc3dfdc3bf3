"""Drives bench/generation: each side a process that answers when asked, or, ggml's, one a round; medians."""

import argparse
import datetime
import json
import os
import re
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy

from side import Program, cpu_name

PROMPT, TOKENS, VOCABULARY, POSITIONS = 64, 64, 50257, 1024
MODELS = ("124M", "smollm2-135m")
THREADS = {**os.environ, "OMP_NUM_THREADS": "2"}


class Side:
    """A program in one precision, and the seconds that its runs took."""

    def __init__(self, name, dtype):
        self.name, self.dtype, self.answers = name, dtype, []

    def median(self, of):
        return statistics.median(answer[of] for answer in self.answers)

    def close(self):
        pass


class Server(Side):
    """Answers every "run" with what it measured."""

    def __init__(self, name, dtype, command):
        super().__init__(name, dtype)
        self.program = Program([str(word) for word in command], env=THREADS)
        self.about = self.program.ready

    def run(self):
        self.answers.append(self.program.ask("run"))

    def close(self):
        self.program.close()


class Ggml(Side):
    """The example `gpt-2-backend`, which prints what all its calls of the model took: a run with one new token, where the
    prompt is all that is computed, and one with all of them."""

    def __init__(self, program, dtype, model, folder):
        super().__init__("ggml", dtype)
        self.command = [program, "-m", write_ggml_model(folder, dtype, model), "-t", "2", "-b", str(PROMPT), "--ignore-eos",
                        "--top_k", "1", "-s", "1", "-p", " a" * PROMPT]

    def run(self):
        prompt, whole = (self.predict_seconds(count) for count in (1, 1 + TOKENS))
        self.answers.append({"prompt_s": prompt, "token_s": (whole - prompt) / TOKENS})

    def predict_seconds(self, new_tokens):
        out = subprocess.run([*self.command, "-n", str(new_tokens)], check=True, capture_output=True).stdout.decode(errors="replace")
        assert f"number of tokens in prompt = {PROMPT}," in out, out
        return float(re.search(r"predict time = *([0-9.]+) ms", out)[1]) / 1e3


def write_ggml_model(folder, dtype, model):
    """In the format that the example reads (its converter says how): sizes, words, then tensors, matrices in fp32 or fp16.
    Word 1 is " a", so that prompts of any length can be written; the others are never used."""
    path, is_f16 = f"{folder}/{dtype}.bin", dtype == "fp16"
    layers, hidden, heads = model["layers"], model["hidden"], model["heads"]
    random = numpy.random.default_rng(1)
    shapes = {"wte": (VOCABULARY, hidden), "wpe": (POSITIONS, hidden), "ln_f/g": (hidden,), "ln_f/b": (hidden,)}
    for layer in range(layers):
        of_layer = {"ln_1": None, "ln_2": None, "attn/c_attn": (3 * hidden, hidden), "attn/c_proj": (hidden, hidden),
                    "mlp/c_fc": (4 * hidden, hidden), "mlp/c_proj": (hidden, 4 * hidden)}
        for name, shape in of_layer.items():
            shapes[f"h{layer}/{name}/{'w' if shape else 'g'}"] = shape or (hidden,)
            shapes[f"h{layer}/{name}/b"] = (shape or (hidden,))[:1]
    with open(path, "wb") as file:
        file.write(struct.pack("7i", 0x67676D6C, VOCABULARY, POSITIONS, hidden, heads, layers, int(is_f16)))
        file.write(struct.pack("i", VOCABULARY))
        for number in range(VOCABULARY):
            word = b" a" if number == 1 else b"#%d" % number
            file.write(struct.pack("i", len(word)) + word)
        for name, shape in shapes.items():
            values = numpy.ones(shape) if name.endswith("/g") else 0.02 * random.standard_normal(shape)
            half = is_f16 and len(shape) == 2 and name != "wpe"
            full_name = f"model/{name}".encode()
            file.write(struct.pack("3i", len(shape), len(full_name), int(half)))
            file.write(struct.pack(f"{len(shape)}i", *reversed(shape)) + full_name)
            values.astype(numpy.float16 if half else numpy.float32).tofile(file)
    return path


def build_ggml(checkout):
    folder = "build/ggml"
    for words in (["cmake", "-S", checkout, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DGGML_BUILD_TESTS=OFF"],
                  ["ninja", "-C", folder, "gpt-2-backend"]):
        subprocess.run(words, check=True, stdout=sys.stderr)
    version = subprocess.run(["git", "-C", checkout, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    return Path(folder, "bin", "gpt-2-backend"), version


def table(sides):
    lines = ["| | prompt of 64, ms | a token, ms | tokens/s | share of the read rate | prompt, share of the training forward's rate |",
             "|---" * 6 + "|"]
    for side in sides:
        token = side.median("token_s")
        shares = "| |"
        if side.name == "Teratron":
            reads, prompt = (statistics.median(answer[of] / answer[by] for answer in side.answers)
                             for of, by in (("read_s", "token_s"), ("prompt_flops", "forward_flops")))
            shares = f"{100 * reads:.1f} % | {100 * prompt:.1f} % |"
        lines.append(f"| {side.name}, {side.dtype} | {1e3 * side.median('prompt_s'):.1f} | {1e3 * token:.2f} | {1 / token:.1f} | {shares}")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ggml", help="a checkout of github.com/ggml-org/ggml; without it that side is left out")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--model", choices=MODELS, default="124M", help="a GPT-2 or Llama of this preset's sizes")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    if options.ggml and options.model != "124M":
        parser.error("ggml's example is a GPT-2: --model 124M")
    with tempfile.TemporaryDirectory() as folder:
        sides, versions = [], []
        sides += [Server("Teratron", dtype, ["build/release/bench_generate", "serve", dtype, options.model])
                  for dtype in ("fp32", "bf16", "q8_0", "q4_0")]
        model = sides[0].about["model"]
        if options.ggml:
            program, version = build_ggml(options.ggml)
            sides += [Ggml(program, dtype, model, folder) for dtype in ("fp32", "fp16")]
            versions.append(f"ggml {version}")
        sides += [Server("transformers", dtype,
                         [sys.executable, "bench/peers/transformers_generate.py", name, json.dumps(model), PROMPT, TOKENS])
                  for dtype, name in (("fp32", "float32"), ("bf16", "bfloat16"))]
        versions += [f"transformers {sides[-1].about['version']}, torch {sides[-1].about['torch']}"]
        for _ in range(options.rounds):
            for side in sides:
                side.run()
        for side in sides:
            side.close()
    sides.sort(key=lambda side: ("Teratron", "ggml", "transformers").index(side.name))
    sizes = ", ".join(f"{name.replace('_', ' ')} {size}" for name, size in model.items() if name != "family")
    text = (f"{datetime.date.today()}, {cpu_name()}, 2 threads; {model['family']} of {sizes}; {'; '.join(versions)}; "
            f"medians of {options.rounds} rounds in turns; `bench/generation {' '.join(sys.argv[1:])}`\n\n{table(sides)}")
    print(text)
    if options.save:
        with open("bench/results/generation.md", "a") as file:
            file.write("\n" + text)


main()
