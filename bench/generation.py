"""Drives bench/generation: each side is a process that answers when asked; medians."""

import argparse
import datetime
import json
import os
import statistics
import sys

from side import Program, cpu_name, publish, require

# Tokens of the prompt whose time is taken, of the text that new tokens follow, and the new ones.
PROMPT, CONTEXT, TOKENS = 512, 64, 64
MODELS = ("124M", "smollm2-135m")
THREADS = {**os.environ, "OMP_NUM_THREADS": "2"}


class Side:
    """A program in one precision, and the seconds that its runs took."""

    def __init__(self, name, dtype, command):
        self.name, self.dtype, self.answers = name, dtype, []
        self.program = Program([str(word) for word in command], env=THREADS)
        self.about = self.program.ready

    def run(self):
        self.answers.append(self.program.ask("run"))

    def median(self, of):
        return statistics.median(answer[of] for answer in self.answers)


def table(sides):
    lines = [f"| | prompt of {PROMPT}, ms | a token, ms | tokens/s | share of the read rate | prompt, share of the training forward's rate |",
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
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--model", choices=MODELS, default="124M", help="a GPT-2 or Llama of this preset's sizes")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    require("torch", "transformers")
    sides = [Side("Teratron", dtype, ["build/release/bench_generate", "serve", dtype, options.model, PROMPT, CONTEXT, TOKENS])
             for dtype in ("fp32", "bf16", "q8_0", "q4_0")]
    model = sides[0].about["model"]
    sides += [Side("transformers", dtype,
                   [sys.executable, "bench/peers/transformers_generate.py", name, json.dumps(model), PROMPT, CONTEXT, TOKENS])
              for dtype, name in (("fp32", "float32"), ("bf16", "bfloat16"))]
    for _ in range(options.rounds):
        for side in sides:
            side.run()
    for side in sides:
        side.program.close()
    about = sides[-1].about
    sizes = ", ".join(f"{name.replace('_', ' ')} {size}" for name, size in model.items() if name != "family")
    text = (f"{datetime.date.today()}, {cpu_name()}, 2 threads; {model['family']} of {sizes}; transformers {about['version']}, torch {about['torch']}; "
            f"medians of {options.rounds} rounds in turns; `bench/generation {' '.join(sys.argv[1:])}`\n\n{table(sides)}")
    publish("generation", text, options.save)


main()
