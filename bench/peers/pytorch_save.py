"""PyTorch's side of bench/checkpoint: a GPT-2's weights and AdamW's moments, saved once for each line of standard input.

    pytorch_save.py FOLDER LAYERS HIDDEN
    torch.save | distributed     {"seconds": ..}, with fsync of what was written
"""

import json
import os
import shutil
import sys
import time
import warnings

import torch
import torch.distributed.checkpoint

warnings.filterwarnings("ignore")
torch.set_num_threads(2)


def shapes(layers, hidden):
    yield from (("wte", (50257, hidden)), ("wpe", (1024, hidden)), ("ln_f.w", (hidden,)), ("ln_f.b", (hidden,)))
    for layer in range(layers):
        for name, rows, columns in (("qkv", 3, 1), ("out", 1, 1), ("fc", 4, 1), ("proj", 1, 4)):
            yield f"{layer}.{name}.w", (rows * hidden, columns * hidden)
            yield f"{layer}.{name}.b", (rows * hidden,)
        for name in ("ln_1.w", "ln_1.b", "ln_2.w", "ln_2.b"):
            yield f"{layer}.{name}", (hidden,)


def save_one_file(state, path):
    torch.save(state, path)
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def save_distributed(state, path):
    writer = torch.distributed.checkpoint.FileSystemWriter(path, sync_files=True)
    torch.distributed.checkpoint.save(state, storage_writer=writer, no_dist=True)


def remove(path):
    shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)


def main():
    folder, layers, hidden = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    state = {name + of: torch.rand(shape) for name, shape in shapes(layers, hidden) for of in ("", ".m", ".v")}
    print(json.dumps({"bytes": sum(4 * tensor.numel() for tensor in state.values())}), flush=True)
    for number, line in enumerate(sys.stdin):
        path = f"{folder}/{number % 2}"
        remove(path)
        save = save_one_file if line.strip() == "torch.save" else save_distributed
        begin = time.monotonic()
        save(state, path)
        print(json.dumps({"seconds": time.monotonic() - begin}), flush=True)


main()
