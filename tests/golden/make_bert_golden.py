"""Make tests/golden/{bert,roberta,distilbert}_tiny, or more such folders: what Hugging Face's BERTs compute, for ours to be
compared with.

    nice $(scripts/oracle-env | tail -n 1) tests/golden/make_bert_golden.py [OUT SEED...]
    nice $(scripts/oracle-env | tail -n 1) tests/golden/make_bert_golden.py --tiny KIND

Without arguments the folder of BERT in the repository is made, of seed 9, with --tiny that of another kind; else
OUT/KIND-SEED for each kind and seed. The files in the repository
were made with torch 2.15.0 and transformers 5.23.0 on an x86 CPU; the tests read them and need no Python. Shapes are
random. The weights are random and large, biases among them, so that a mistake in any one part shows.

  config.json, model.safetensors   a BertForPreTraining, RobertaForMaskedLM or DistilBertForMaskedLM as save_pretrained
                                   writes it (fp32)
  inputs.json                      ids, token_types and targets [batch][tokens] (-100: none), lengths and labels [batch];
                                   behind a sequence's length there is padding. Types are BERT's alone; others are to
                                   ignore theirs
  expected.safetensors             "hidden" [batch,tokens,hidden] and of BERT "pooled" [batch,hidden] of the body in it, and
                                   "grad.NAME" for every tensor NAME of model.safetensors, of both losses' sum: computed
                                   in float64, stored as fp32
  expected.json                    the mean losses of masked tokens and of BERT's sentence orders, and ten AdamW steps on the
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

OUT = Path(__file__).parent
FIRST_POSITION = {"roberta": 2}  # positions follow the padding token's id
ADAM = dict(lr=1e-3, betas=(0.9, 0.95), eps=1e-8)
WEIGHT_DECAY, CLIP, STEPS, NO_TARGET = 0.1, 1.0, 10, -100


def make_config(kind, sizes):
    """`sizes` is of BertConfig; other kinds have the same by other names."""
    if kind == "bert":
        return transformers.BertConfig(**sizes)
    if kind == "roberta":
        sizes["max_position_embeddings"] += FIRST_POSITION[kind]
        return transformers.RobertaConfig(**sizes, type_vocab_size=1, pad_token_id=1)
    names = dict(num_hidden_layers="n_layers", num_attention_heads="n_heads", hidden_size="dim", intermediate_size="hidden_dim",
                 hidden_act="activation", hidden_dropout_prob="dropout", attention_probs_dropout_prob="attention_dropout")
    sizes.pop("layer_norm_eps")
    dropout = sizes["hidden_dropout_prob"]
    return transformers.DistilBertConfig(**{names.get(name, name): value for name, value in sizes.items()},
                                         qa_dropout=dropout, seq_classif_dropout=dropout)


def draw_weights(model, kind):
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(std=0.2)
            if "norm" in name.lower() and name.endswith("weight"):
                p.add_(1.0)
            if "position_embeddings" in name:
                p[:FIRST_POSITION.get(kind, 0)] = 0  # rows of no token
    return model


def most_tokens(config, kind):
    return config.max_position_embeddings - FIRST_POSITION.get(kind, 0)


def types_of(inputs, kind):
    return {"token_type_ids": inputs["token_types"]} if kind == "bert" else {}


def make_model(draw, kind):
    heads = draw.choice([1, 2, 4])
    hidden = heads * draw.choice([4, 6, 8])
    config = make_config(kind, dict(
        num_hidden_layers=draw.randint(1, 3), num_attention_heads=heads, hidden_size=hidden,
        intermediate_size=4 * hidden, vocab_size=draw.randint(20, 120), max_position_embeddings=draw.randint(12, 30),
        hidden_act=draw.choice(["gelu", "gelu_new"]), layer_norm_eps=draw.choice([1e-12, 1e-5]),
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager"))
    kinds = {"bert": transformers.BertForPreTraining, "roberta": transformers.RobertaForMaskedLM,
             "distilbert": transformers.DistilBertForMaskedLM}
    return draw_weights(kinds[kind](config).float(), kind)


def make_inputs(draw, config, kind):
    batch, tokens = draw.randint(2, 5), draw.randint(4, most_tokens(config, kind))
    of_tokens = lambda value: torch.tensor([[value(b, t) for t in range(tokens)] for b in range(batch)])
    lengths = [draw.randint(2, tokens) for _ in range(batch)]
    second = [draw.randint(1, length) for length in lengths]
    pad = config.pad_token_id or 0
    token = lambda: draw.randrange(pad + 1, config.vocab_size)  # transformers never trains the embedding of padding
    has_target = lambda b, t: t == 1 or t < lengths[b] and draw.random() < 0.3
    return {"ids": of_tokens(lambda b, t: token() if t < lengths[b] else pad),
            "token_types": of_tokens(lambda b, t: int(second[b] <= t < lengths[b])),
            "lengths": torch.tensor(lengths),
            "targets": of_tokens(lambda b, t: token() if has_target(b, t) else NO_TARGET),
            "labels": torch.tensor([draw.randrange(2) for _ in range(batch)])}


def mask_of(inputs):
    return (torch.arange(inputs["ids"].shape[1]) < inputs["lengths"][:, None]).long()


def mean_losses(model, inputs, kind):
    outputs = model(inputs["ids"], attention_mask=mask_of(inputs), **types_of(inputs, kind))
    logits = outputs.prediction_logits if kind == "bert" else outputs.logits
    masked = F.cross_entropy(logits.flatten(0, 1), inputs["targets"].flatten(), ignore_index=NO_TARGET)
    return [masked] + ([F.cross_entropy(outputs.seq_relationship_logits, inputs["labels"])] if kind == "bert" else [])


def train(model, inputs, kind):
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in parameters if p.dim() == 2], "weight_decay": WEIGHT_DECAY},
         {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0}], **ADAM)
    losses, norms = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = sum(mean_losses(model, inputs, kind))
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(parameters, CLIP).item())
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "grad_norms": norms}


def make_folder(out, seed, kind):
    draw = random.Random(seed)
    torch.manual_seed(seed)
    model = make_model(draw, kind)
    inputs = make_inputs(draw, model.config, kind)
    model.save_pretrained(out)
    (out / "inputs.json").write_text(json.dumps({name: value.tolist() for name, value in inputs.items()}) + "\n")

    exact = copy.deepcopy(model).double()
    losses = mean_losses(exact, inputs, kind)
    sum(losses).backward()
    parameters = dict(exact.named_parameters(remove_duplicate=False))
    with safe_open(out / "model.safetensors", "pt") as file:
        tensors = {"grad." + name: parameters[name].grad for name in file.keys()}
    with torch.no_grad():
        body = exact.base_model(inputs["ids"], attention_mask=mask_of(inputs), **types_of(inputs, kind))
    tensors["hidden"] = body.last_hidden_state
    if kind == "bert":
        tensors["pooled"] = body.pooler_output
    save_file({name: t.float().contiguous() for name, t in tensors.items()}, out / "expected.safetensors")
    (out / "expected.json").write_text(json.dumps({
        "description": f"Hugging Face {type(model).__name__} with large random weights; tests/golden/make_bert_golden.py",
        "torch": torch.__version__, "transformers": transformers.__version__,
        "masked_loss": losses[0].item(), **({"order_loss": losses[1].item()} if kind == "bert" else {}),
        "adamw": {**ADAM, "weight_decay_2d": WEIGHT_DECAY, "weight_decay_1d": 0.0, "clip_grad_norm": CLIP},
        "steps_float64": train(copy.deepcopy(model).double(), inputs, kind),
    }, indent=2) + "\n")


def main(out=None, *seeds):
    torch.set_num_threads(1)
    if out is None:
        return make_folder(OUT / "bert_tiny", 9, "bert")
    if out == "--tiny":
        return make_folder(OUT / f"{seeds[0]}_tiny", 9, seeds[0])
    for kind in ("bert", "roberta", "distilbert"):
        for seed in seeds:
            make_folder(Path(out) / f"{kind}-{seed}", int(seed), kind)


if __name__ == "__main__":
    main(*sys.argv[1:])
