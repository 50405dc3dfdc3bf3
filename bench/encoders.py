"""Drives bench/encoders: a BERT that transformers saved and torch.onnx exported, its vectors by each side in turns; medians.

The time is that of computing vectors of texts cut into tokens: `embed --json` says ours, without loading and tokenization, and the
others' programs leave both out, too. Vectors may differ by rounding.
"""

import argparse
import datetime
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import torch
import transformers

from side import Program, cpu_name, publish
from ways import ARTICLES

TERATRON = "build/release/teratron"
VOCABULARY = Path("../shared/data/bert-vocab/vocab.txt")
LONGEST = 128  # tokens
BATCHES = (32, 1)
TOLERANCE = 1e-4  # of values of about 1


def write_model(folder, layers):
    torch.manual_seed(1)
    config = transformers.BertConfig(num_hidden_layers=layers, hidden_size=384, num_attention_heads=12, intermediate_size=1536,
                                     attn_implementation="eager")  # onnxruntime fuses more of it
    model = transformers.BertModel(config, add_pooling_layer=False).eval()
    model.save_pretrained(folder)
    shutil.copy(VOCABULARY, folder / "vocab.txt")
    return model


class Outputs(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def export(model, path):
    ids = torch.ones(2, 16, dtype=torch.int64)
    sizes = {0: torch.export.Dim("texts", min=1, max=1024), 1: torch.export.Dim("tokens", min=2, max=512)}
    torch.onnx.export(Outputs(model), (ids, torch.ones_like(ids)), path, input_names=["input_ids", "attention_mask"],
                      output_names=["outputs"], dynamo=True, dynamic_shapes=(sizes, sizes), external_data=False, verbose=False)


def some_sentences(count):
    text = "".join((ARTICLES / f"wiki.{part}.tokens").read_text() for part in ("test", "valid"))
    lines = (line.strip() for line in text.splitlines() if line.strip() and not line.startswith(" ="))
    return [one for line in lines for one in re.split(r"(?<= \.) ", line) if len(one) > 20][:count]


class Ours:
    name = "Teratron"

    def __init__(self, folder, options):
        self.words = [TERATRON, "embed", folder / "texts", "--load", folder / "hf", "--pooling", "mean", "--seq-length", LONGEST,
                      "--threads", options.threads, "--json", "-", "--overwrite"]
        self.texts = options.sentences

    def run(self, batch, out):
        words = [*self.words, "--batch-size", batch, "--out", out]
        done = subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE, text=True)
        return self.texts / json.loads(done.stdout)["texts_per_second"]


class Runtime:
    def __init__(self, name, folder, options):
        self.program = Program([sys.executable, "bench/peers/onnx_encoder.py", name, str(folder / "model.onnx"), str(folder / "ids.json"),
                                str(options.threads)], env={**os.environ, "OMP_NUM_THREADS": str(options.threads)})
        self.name = f"{name} {self.program.ready['version']}"

    def run(self, batch, out):
        return self.program.ask(json.dumps({"batch": batch, "out": str(out)}))["seconds"]


def require_same_vectors(ours, theirs, name):
    worst = numpy.abs(ours - theirs).max()
    if worst > TOLERANCE:
        sys.exit(f"error: {name}'s vectors differ from ours by {worst:.1e}")
    return worst


def prepare(folder, options):
    """The model in both forms, the texts, and their ids. Returns how many tokens they have."""
    model = write_model(folder / "hf", options.layers)
    export(model, folder / "model.onnx")
    texts = some_sentences(options.sentences)
    (folder / "texts").write_text("".join(text + "\n" for text in texts))
    ids = transformers.BertTokenizer.from_pretrained(folder / "hf")(texts, truncation=True, max_length=LONGEST)["input_ids"]
    (folder / "ids.json").write_text(json.dumps(ids))
    return sum(map(len, ids))


def measure(folder, options):
    """Rows of the table."""
    sides = [Ours(folder, options), Runtime("onnxruntime", folder, options), Runtime("openvino", folder, options)]
    seconds = {(batch, side.name): [] for batch in BATCHES for side in sides}
    worst = {}
    for _ in range(options.rounds):
        for batch in BATCHES:
            for side in sides:
                out = folder / f"{side.name}.npy"
                seconds[batch, side.name].append(side.run(batch, out))
                worst[batch, side.name] = require_same_vectors(numpy.load(folder / "Teratron.npy"), numpy.load(out), side.name)
    for side in sides[1:]:
        side.program.close()
    rows = []
    for (batch, name), times in seconds.items():
        ours = seconds[batch, "Teratron"]
        ratio = statistics.median(its / our for our, its in zip(ours, times))
        rows.append(f"| {batch} | {name} | {options.sentences / statistics.median(times):.0f} | {ratio:.2f} "
                    f"| {worst[batch, name]:.1e} |")
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokens = prepare(folder, options)
        rows = measure(folder, options)
    lines = ["| sentences at a time | | sentences/s | Teratron is as many times as fast | vectors differ by |", "|---" * 5 + "|", *rows]
    text = (f"{datetime.date.today()}, {cpu_name()}, {options.threads} threads, fp32; BERT of {options.layers} layers, hidden 384, "
            f"12 heads; {options.sentences} sentences of {tokens / options.sentences:.1f} tokens in the mean; exported by torch {torch.__version__}; "
            f"medians of {options.rounds} rounds in turns; `bench/encoders {' '.join(sys.argv[1:])}`\n\n" + "\n".join(lines) + "\n")
    publish("encoders", text, options.save)


if __name__ == "__main__":
    main()
