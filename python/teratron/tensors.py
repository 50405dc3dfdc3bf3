"""Tensors of safetensors files as numpy arrays."""

import json
from pathlib import Path

import numpy

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?"}


def widened(bits):
    """float32 of bf16's bits, which numpy has no type for."""
    return (bits.astype(numpy.uint32) << 16).view(numpy.float32)


def tensors_of(path):
    """Tensors of one file by name: read-only views of it; of bf16, float32 copies."""
    path = Path(path)
    data = numpy.memmap(path, numpy.uint8, "r")
    length = int.from_bytes(data[:8].tobytes(), "little")
    if 8 + length > len(data):
        raise ValueError(f"'{path}' is no safetensors file, or is cut off")
    header = json.loads(data[8 : 8 + length].tobytes())
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        if end > len(data):
            raise ValueError(f"'{path}' is cut off in '{name}'")
        kind = entry["dtype"]
        values = data[begin:end].view("<u2" if kind == "BF16" else TYPES[kind])
        tensors[name] = (widened(values) if kind == "BF16" else values).reshape(entry["shape"])
    return tensors
