"""PyTorch saves random tensors, views of shared storages among them, for Teratron to read.

    $(scripts/oracle-env | tail -n 1) tests/oracle/torch_saves.py SEED OUT.pt OUT.safetensors

OUT.pt is a dictionary of torch.save, OUT.safetensors the same tensors by the same names, each contiguous. Shapes of up to
four axes, slices with steps, transposed and permuted axes, offsets, narrowed rows, scalars, empty tensors, every floating
type, whole numbers; parameters, and tensors that share a storage. tests/checkpoint/torch_oracle_test.cc runs this.
"""

import random
import sys

import torch
from safetensors.torch import save_file

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8]


def random_base(rng):
    shape = [rng.randint(0 if rng.random() < 0.1 else 1, 7) for _ in range(rng.randint(0, 4))]
    dtype = rng.choice(DTYPES)
    values = torch.randn(shape) * 50
    return values.to(dtype) if dtype.is_floating_point else values.abs().to(dtype)


def random_view(rng, t):
    for _ in range(rng.randint(0, 3)):
        if t.dim() == 0:
            break
        axis = rng.randrange(t.dim())
        kind = rng.randrange(4)
        if kind == 0:
            t = t.permute(rng.sample(range(t.dim()), t.dim()))
        elif kind == 1 and t.shape[axis] > 1:
            begin = rng.randrange(t.shape[axis])
            t = t.narrow(axis, begin, rng.randint(1, t.shape[axis] - begin))
        elif kind == 2 and t.shape[axis] > 0:
            t = t[(slice(None),) * axis + (slice(rng.randrange(t.shape[axis]), None, rng.randint(1, 3)),)]
        elif kind == 3 and t.shape[axis] > 0:
            t = t.select(axis, rng.randrange(t.shape[axis]))
    return t


def main(seed, pickled, plain):
    rng = random.Random(int(seed))
    torch.manual_seed(int(seed))
    tensors = {}
    base = random_base(rng)
    for i in range(200):
        if rng.random() < 0.7:  # else another view of the last one's storage
            base = random_base(rng)
        view = random_view(rng, base)
        is_parameter = view.is_floating_point() and rng.random() < 0.2
        tensors[f"tensor {i}"] = torch.nn.Parameter(view) if is_parameter else view
    torch.save(tensors, pickled)
    save_file({name: t.detach().clone(memory_format=torch.contiguous_format) for name, t in tensors.items()}, plain)


if __name__ == "__main__":
    main(*sys.argv[1:])
