"""Make tests/golden/gpt2_tiny: what Hugging Face's GPT-2 computes, for our model to be compared with.

    nice $(scripts/oracle-env | tail -n 1) tests/golden/make_gpt2_golden.py

The files in the repository were made with torch 2.15.0 and transformers 5.23.0 on an x86 CPU; the tests read
them and need no Python. The weights are random and large, so that a mistake in any one part shows.

  config.json, model.safetensors   the model as save_pretrained writes it (fp32; lm_head is tied, so not stored)
  inputs.json                      ids [3][25], and what follows from them: inputs = ids[:, :24], targets = ids[:, 1:]
  expected.safetensors             "logits" [3,24,131] and "grad.NAME" for every parameter NAME of model.safetensors,
                                   for the mean cross-entropy over all 72 targets: computed in float64, stored as fp32
  expected.json                    that loss, and ten AdamW steps on the same batch: the losses before each update and
                                   the gradient norms before clipping, in fp32 and (to judge rounding by) in float64

The key biases' gradients are zero but for rounding (softmax ignores them), so compare with an absolute tolerance.
"""

import copy
import json
from pathlib import Path

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import save_file

OUT = Path(__file__).parent / "gpt2_tiny"
ADAM = dict(lr=1e-3, betas=(0.9, 0.95), eps=1e-8)
WEIGHT_DECAY, CLIP, STEPS = 0.1, 1.0, 10


def make_model():
    config = transformers.GPT2Config(
        n_layer=2, n_head=4, n_embd=32, vocab_size=131, n_positions=40, bos_token_id=130, eos_token_id=130,
        embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0, attn_implementation="eager")
    model = transformers.GPT2LMHeadModel(config).float()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(std=0.2)
            if ".ln_" in name and name.endswith("weight"):
                p.add_(1.0)
    return model


def mean_loss(model, inputs, targets):
    logits = model(inputs).logits
    return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def train(model, inputs, targets):
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in parameters if p.dim() == 2], "weight_decay": WEIGHT_DECAY},
         {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0}], **ADAM)
    losses, norms = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = mean_loss(model, inputs, targets)[1]
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(parameters, CLIP).item())
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "grad_norms": norms}


def main():
    torch.manual_seed(20190917)
    torch.set_num_threads(1)
    model = make_model()
    ids = torch.randint(131, (3, 25))
    inputs, targets = ids[:, :-1], ids[:, 1:]

    model.save_pretrained(OUT)
    (OUT / "generation_config.json").unlink(missing_ok=True)
    rows = lambda name, t: f'  "{name}": [\n    ' + ",\n    ".join(map(json.dumps, t.tolist())) + "\n  ]"
    (OUT / "inputs.json").write_text(
        "{\n" + ",\n".join([rows("ids", ids), rows("inputs", inputs), rows("targets", targets)]) + "\n}\n")

    exact = copy.deepcopy(model).double()
    logits, loss = mean_loss(exact, inputs, targets)
    loss.backward()
    tensors = {"grad." + name: p.grad for name, p in exact.named_parameters()}
    tensors["logits"] = logits.detach()
    save_file({name: t.float().contiguous() for name, t in tensors.items()}, OUT / "expected.safetensors")

    expected = {
        "description": "Hugging Face GPT2LMHeadModel with large random weights; made by tests/golden/make_gpt2_golden.py",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "loss": loss.item(),
        "adamw": {**ADAM, "weight_decay_2d": WEIGHT_DECAY, "weight_decay_1d": 0.0, "clip_grad_norm": CLIP},
        "steps_float32": train(copy.deepcopy(model), inputs, targets),
        "steps_float64": train(copy.deepcopy(model).double(), inputs, targets),
    }
    (OUT / "expected.json").write_text(json.dumps(expected, indent=2) + "\n")


if __name__ == "__main__":
    main()
