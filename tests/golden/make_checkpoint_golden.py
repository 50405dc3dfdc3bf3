"""Make tests/golden/checkpoint_0_1: a run that an earlier version began, and what that version made of it in the end.

    tests/golden/make_checkpoint_golden.py TERATRON

The files in the repository were made with the binary of commit 1bb9fa8 (format version 1, before checkpoints said what
kind of model they hold and how the corpus was split), on an x86 CPU with AVX512; the tests read them and need no Python.

  corpus.bin, corpus.idx       24 documents of tokens below 40, in which most tokens follow from the one before
  run/                         the folder of --save after 3 of 6 updates
  expected.json                the losses of updates 4 to 6 and the validation loss after them
  expected.safetensors         the weights after update 6
"""

import json
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

OUT = Path(__file__).parent / "checkpoint_0_1"
VOCAB = 40
FLAGS = dict(num_layers=2, hidden_size=8, num_attention_heads=2, vocab_size=VOCAB, make_vocab_size_divisible_by=8,
             seq_length=8, micro_batch_size=2, global_batch_size=4, train_iters=3, lr_decay_iters=6, lr=1e-2, seed=7,
             split="5,1", eval_iters=2, threads=1)


def write_corpus():
    """Megatron's indexed format: 9 bytes of magic, version 1, type 8 (u16), counts, lengths, offsets, documents."""
    draw = random.Random(1)
    documents = []
    for _ in range(24):
        tokens = [draw.randrange(VOCAB)]
        for _ in range(draw.randrange(10, 30)):
            tokens.append(draw.randrange(VOCAB) if draw.random() < 0.2 else (tokens[-1] * 7 + 3) % VOCAB)
        documents.append(tokens)
    lengths = [len(tokens) for tokens in documents]
    offsets = [2 * sum(lengths[:i]) for i in range(len(lengths))]
    with open(OUT / "corpus.bin", "wb") as file:
        for tokens in documents:
            file.write(struct.pack(f"<{len(tokens)}H", *tokens))
    with open(OUT / "corpus.idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(lengths), len(lengths) + 1))
        file.write(struct.pack(f"<{len(lengths)}i", *lengths) + struct.pack(f"<{len(offsets)}q", *offsets))
        file.write(struct.pack(f"<{len(lengths) + 1}q", *range(len(lengths) + 1)))


def train(teratron, save, **more):
    flags = {**FLAGS, "data_path": OUT / "corpus", "save": save, **more}
    words = [word for name, value in flags.items() for word in ("--" + name.replace("_", "-"), str(value))]
    subprocess.run([teratron, "train", *words], check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def main():
    teratron = sys.argv[1]
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    write_corpus()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        train(teratron, run)
        (OUT / "run").mkdir()
        for name in ("latest_checkpointed_iteration.txt", "iter_0000003"):
            copy = shutil.copytree if (run / name).is_dir() else shutil.copy
            copy(run / name, OUT / "run" / name)
        result = Path(folder) / "result.json"
        train(teratron, run, load=run, train_iters=6, json=result)
        rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        losses = [row["loss"] for row in rows if "loss" in row and row["iteration"] > 3]
        validation = json.loads(result.read_text())["validation_loss"]
        (OUT / "expected.json").write_text(json.dumps({"losses": losses, "validation_loss": validation}, indent=1) + "\n")
        shutil.copy(run / "iter_0000006" / "model.safetensors", OUT / "expected.safetensors")


main()
