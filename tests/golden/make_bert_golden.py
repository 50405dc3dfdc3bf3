"""Make tests/golden/bert_tiny, or more such folders: what Hugging Face's BERT computes, for ours to be compared with.

    nice $(scripts/oracle-env | tail -n 1) tests/golden/make_bert_golden.py [OUT SEED...]

Without arguments the folder in the repository is made, of seed 9; else OUT/SEED for each. The files in the repository
were made with torch 2.15.0 and transformers 5.23.0 on an x86 CPU; the tests read them and need no Python. Shapes are
random. The weights are random and large, biases among them, so that a mistake in any one part shows.

  config.json, model.safetensors   a BertForPreTraining as save_pretrained writes it (fp32)
  inputs.json                      ids, token_types and targets [batch][tokens] (-100: none), lengths and labels [batch];
                                   behind a sequence's length there is padding
  expected.safetensors             "hidden" [batch,tokens,hidden] and "pooled" [batch,hidden] of the BertModel in it, and
                                   "grad.NAME" for every tensor NAME of model.safetensors, of both losses' sum: computed
                                   in float64, stored as fp32
  expected.json                    the mean losses of masked tokens and of sentence orders, and ten AdamW steps on the
                                   same batch: the losses' sums before each update and the gradient norms before clipping

The key biases' gradients are zero but for rounding (softmax ignores them), so compare with an absolute tolerance.
"""

import copy
import json
import random
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
import transformers
from safetensors import safe_open
from safetensors.torch import save_file

OUT = Path(__file__).parent / "bert_tiny"
ADAM = dict(lr=1e-3, betas=(0.9, 0.95), eps=1e-8)
WEIGHT_DECAY, CLIP, STEPS, NO_TARGET = 0.1, 1.0, 10, -100


def make_model(draw):
    heads = draw.choice([1, 2, 4])
    hidden = heads * draw.choice([4, 6, 8])
    config = transformers.BertConfig(
        num_hidden_layers=draw.randint(1, 3), num_attention_heads=heads, hidden_size=hidden,
        intermediate_size=4 * hidden, vocab_size=draw.randint(20, 120), max_position_embeddings=draw.randint(12, 30),
        hidden_act=draw.choice(["gelu", "gelu_new"]), layer_norm_eps=draw.choice([1e-12, 1e-5]),
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager")
    model = transformers.BertForPreTraining(config).float()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(std=0.2)
            if "LayerNorm" in name and name.endswith("weight"):
                p.add_(1.0)
    return model


def make_inputs(draw, config):
    batch, tokens = draw.randint(2, 5), draw.randint(4, config.max_position_embeddings)
    of_tokens = lambda value: torch.tensor([[value(b, t) for t in range(tokens)] for b in range(batch)])
    lengths = [draw.randint(2, tokens) for _ in range(batch)]
    second = [draw.randint(1, length) for length in lengths]
    token = lambda: draw.randrange(1, config.vocab_size)  # 0 is padding, whose embedding transformers never trains
    has_target = lambda b, t: t == 1 or t < lengths[b] and draw.random() < 0.3
    return {"ids": of_tokens(lambda b, t: token() if t < lengths[b] else 0),
            "token_types": of_tokens(lambda b, t: int(second[b] <= t < lengths[b])),
            "lengths": torch.tensor(lengths),
            "targets": of_tokens(lambda b, t: token() if has_target(b, t) else NO_TARGET),
            "labels": torch.tensor([draw.randrange(2) for _ in range(batch)])}


def mask_of(inputs):
    return (torch.arange(inputs["ids"].shape[1]) < inputs["lengths"][:, None]).long()


def mean_losses(model, inputs):
    outputs = model(inputs["ids"], attention_mask=mask_of(inputs), token_type_ids=inputs["token_types"])
    masked = F.cross_entropy(outputs.prediction_logits.flatten(0, 1), inputs["targets"].flatten(), ignore_index=NO_TARGET)
    return masked, F.cross_entropy(outputs.seq_relationship_logits, inputs["labels"])


def train(model, inputs):
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in parameters if p.dim() == 2], "weight_decay": WEIGHT_DECAY},
         {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0}], **ADAM)
    losses, norms = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = sum(mean_losses(model, inputs))
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(parameters, CLIP).item())
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "grad_norms": norms}


def make_folder(out, seed):
    draw = random.Random(seed)
    torch.manual_seed(seed)
    model = make_model(draw)
    inputs = make_inputs(draw, model.config)
    model.save_pretrained(out)
    (out / "inputs.json").write_text(json.dumps({name: value.tolist() for name, value in inputs.items()}) + "\n")

    exact = copy.deepcopy(model).double()
    masked, order = mean_losses(exact, inputs)
    (masked + order).backward()
    parameters = dict(exact.named_parameters(remove_duplicate=False))
    with safe_open(out / "model.safetensors", "pt") as file:
        tensors = {"grad." + name: parameters[name].grad for name in file.keys()}
    with torch.no_grad():
        body = exact.bert(inputs["ids"], attention_mask=mask_of(inputs), token_type_ids=inputs["token_types"])
    tensors |= {"hidden": body.last_hidden_state, "pooled": body.pooler_output}
    save_file({name: t.float().contiguous() for name, t in tensors.items()}, out / "expected.safetensors")
    (out / "expected.json").write_text(json.dumps({
        "description": "Hugging Face BertForPreTraining with large random weights; tests/golden/make_bert_golden.py",
        "torch": torch.__version__, "transformers": transformers.__version__,
        "masked_loss": masked.item(), "order_loss": order.item(),
        "adamw": {**ADAM, "weight_decay_2d": WEIGHT_DECAY, "weight_decay_1d": 0.0, "clip_grad_norm": CLIP},
        "steps_float64": train(copy.deepcopy(model).double(), inputs),
    }, indent=2) + "\n")


def main(out=None, *seeds):
    torch.set_num_threads(1)
    if out is None:
        make_folder(OUT, 9)
    for seed in seeds:
        make_folder(Path(out) / seed, int(seed))


if __name__ == "__main__":
    main(*sys.argv[1:])
