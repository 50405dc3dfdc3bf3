"""Make tests/golden/muon.json: what ten updates of Muon make of a layer's matrices, for ours to be compared with.

    nice $(scripts/oracle-env | tail -n 1) tests/golden/make_muon_golden.py

Written from the papers with PyTorch in double: the iteration and its coefficients from Keller Jordan's "Muon: An
optimizer for hidden layers in neural networks" (kellerjordan.github.io/posts/muon, 2024), the scale of the update and
the weight decay from Liu et al., "Muon is scalable for LLM training" (arXiv 2502.16982, section 2.2). The file has, by
parameter, the weights after ten updates. Weights and gradients before are numbers of a formula (uniform), which
the test computes, too. The rest of the parameters is torch.optim.AdamW's. The file in the repository was made with torch
2.15.0; the tests read it and need no Python.
"""

import json
from pathlib import Path

import torch

torch.set_default_dtype(torch.float64)
MASK = (1 << 64) - 1
# Name: shape, and how many matrices are packed along the first axis; 0: AdamW's.
PARAMETERS = {"qkv": ([18, 6], 3), "projection": ([6, 6], 1), "up": ([10, 6], 1), "down": ([6, 10], 1), "bias": ([10], 0),
              "table": ([7, 6], 0)}
NO_DECAY = {"bias"}
UPDATES, CLIP, DECAY, MOMENTUM, EPSILON = 10, 1.0, 0.1, 0.95, 1e-7
ADAM = dict(betas=(0.9, 0.999), eps=1e-8)


def rate(update):
    return 0.02 / update


def uniform(parameter, update, element):
    """From -0.5 to 0.5, by SplitMix64 (Steele, Lea and Flood, 2014)."""
    z = ((parameter << 40) + (update << 20) + element + 1) * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return ((z ^ z >> 31) >> 11) / 2**53 - 0.5


def drawn(index, update, shape):
    count = torch.Size(shape).numel()
    return torch.tensor([uniform(index, update, element) for element in range(count)]).reshape(shape)


def orthogonalized(matrix):
    x = matrix / (matrix.norm() + EPSILON)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x


def main():
    weights = {name: torch.nn.Parameter(drawn(index, 0, shape)) for index, (name, (shape, _)) in enumerate(PARAMETERS.items())}
    momentum = {name: torch.zeros_like(weight) for name, weight in weights.items()}
    others = [name for name, (_, matrices) in PARAMETERS.items() if matrices == 0]
    adamw = torch.optim.AdamW([{"params": [weights[name]], "weight_decay": 0.0 if name in NO_DECAY else DECAY} for name in others],
                              lr=1.0, **ADAM)
    for update in range(1, UPDATES + 1):
        for index, weight in enumerate(weights.values()):
            weight.grad = drawn(index, update, weight.shape)
        torch.nn.utils.clip_grad_norm_(weights.values(), CLIP)
        for group in adamw.param_groups:
            group["lr"] = rate(update)
        adamw.step()
        with torch.no_grad():
            for name, (_, matrices) in PARAMETERS.items():
                if matrices == 0:
                    continue
                weight, buffer = weights[name], momentum[name]
                buffer.mul_(MOMENTUM).add_(weight.grad)
                direction = weight.grad + MOMENTUM * buffer
                for block, towards in zip(weight.chunk(matrices), direction.chunk(matrices)):
                    scale = 0.2 * max(block.shape) ** 0.5
                    block.sub_(rate(update) * (scale * orthogonalized(towards) + DECAY * block))
    expected = {name: weight.detach().flatten().tolist() for name, weight in weights.items()}
    Path(__file__).with_name("muon.json").write_text(json.dumps(expected, indent=0) + "\n")


if __name__ == "__main__":
    main()
