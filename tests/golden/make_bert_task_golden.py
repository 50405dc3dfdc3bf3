"""Make tests/golden/bert_{classification,choice,spans,tokens}, {roberta,distilbert}_classification, or more such folders:
what Hugging Face's fine-tuned BERTs compute.

    nice $(scripts/oracle-env | tail -n 1) tests/golden/make_bert_task_golden.py [OUT SEED...]
    nice $(scripts/oracle-env | tail -n 1) tests/golden/make_bert_task_golden.py --one KIND HEAD

Without arguments the folders of BERT in the repository are made, with --one another; else OUT/SEED-KIND-HEAD for each seed,
kind and head. Shapes are random. The
weights are random and large, biases among them, so that a mistake in any one part shows.

  config.json, model.safetensors   a model as save_pretrained writes it (fp32)
  inputs.json                      ids and token_types [batch][tokens], lengths [batch] and the labels of all of them, one
                                   after the other; of choices, four sequences follow one another; of spans, a beginning
                                   and an end for each sequence; of tokens [batch][tokens], -100 where there is none
  expected.safetensors             "outputs": logits [batch,labels], [batch / 4,4], [batch,2,tokens] or [batch,tokens,labels];
                                   and "grad.NAME" for every tensor NAME of model.safetensors: computed in float64, stored as fp32
  expected.json                    three AdamW steps on the same batch: the losses before each update and the gradient norms
                                   before clipping. The loss of spans is PyTorch's cross-entropy of each sequence's own
                                   logits: that of BertForQuestionAnswering has the padding in its softmax, too

The gradients of what a softmax ignores are zero but for rounding (the biases of choices and spans, of keys), so compare
with an absolute tolerance.
"""

import copy
import json
import random
import sys
from pathlib import Path

import torch
import transformers
from make_bert_golden import ADAM, CLIP, WEIGHT_DECAY, draw_weights, make_config, mask_of, most_tokens, types_of
from safetensors import safe_open
from safetensors.torch import save_file

OUT = Path(__file__).parent
STEPS, CHOICES = 3, 4
HEADS = {"classification": "ForSequenceClassification", "choice": "ForMultipleChoice", "spans": "ForQuestionAnswering",
         "tokens": "ForTokenClassification"}
KINDS = {"bert": "Bert", "roberta": "Roberta", "distilbert": "DistilBert"}


def make_model(draw, kind, head):
    heads = draw.choice([1, 2, 4])
    hidden = heads * draw.choice([4, 6])
    labels = {"num_labels": draw.randint(2, 5)} if head in ("classification", "tokens") else {}
    config = make_config(kind, dict(
        num_hidden_layers=draw.randint(1, 2), num_attention_heads=heads, hidden_size=hidden,
        intermediate_size=4 * hidden, vocab_size=draw.randint(20, 60), max_position_embeddings=draw.randint(12, 20),
        hidden_act=draw.choice(["gelu", "gelu_new"]), layer_norm_eps=draw.choice([1e-12, 1e-5]),
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager", **labels))
    return draw_weights(getattr(transformers, KINDS[kind] + HEADS[head])(config).float(), kind)


def make_inputs(draw, config, kind, head):
    batch, tokens = CHOICES * draw.randint(1, 2), draw.randint(4, most_tokens(config, kind))
    of_tokens = lambda value: torch.tensor([[value(b, t) for t in range(tokens)] for b in range(batch)])
    lengths = torch.tensor([draw.randint(2, tokens) for _ in range(batch)])
    second = [draw.randint(1, int(length)) for length in lengths]
    labels = {"classification": lambda: [draw.randrange(config.num_labels) for _ in range(batch)],
              "choice": lambda: [draw.randrange(CHOICES) for _ in range(batch // CHOICES)],
              "spans": lambda: [draw.randrange(int(length)) for length in lengths for _ in range(2)],
              "tokens": lambda: [[draw.randrange(config.num_labels) if t < int(length) and draw.random() < 0.7 else -100
                                  for t in range(tokens)] for length in lengths]}[head]()
    return {"ids": of_tokens(lambda b, t: draw.randrange((config.pad_token_id or 0) + 1, config.vocab_size)),  # padding's is never trained
            "token_types": of_tokens(lambda b, t: int(second[b] <= t)),
            "lengths": lengths,
            "labels": torch.tensor(labels)}


def run(model, inputs, kind, head):
    """Outputs with the loss; of spans, the loss of the sequences' own tokens."""
    texts = {"input_ids": inputs["ids"], "attention_mask": mask_of(inputs), **types_of(inputs, kind)}
    if head == "choice":
        texts = {name: value.unflatten(0, (-1, CHOICES)) for name, value in texts.items()}
    if head != "spans":
        return model(**texts, labels=inputs["labels"])
    outputs = model(**texts)
    own = logits_of(outputs, head).masked_fill(mask_of(inputs).unsqueeze(1) == 0, float("-inf"))
    outputs.loss = torch.nn.functional.cross_entropy(own.flatten(0, 1), inputs["labels"])
    return outputs


def logits_of(outputs, head):
    return torch.stack([outputs.start_logits, outputs.end_logits], 1) if head == "spans" else outputs.logits


def train(model, inputs, kind, head):
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in parameters if p.dim() == 2], "weight_decay": WEIGHT_DECAY},
         {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0}], **ADAM)
    losses, norms = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = run(model, inputs, kind, head).loss
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(parameters, CLIP).item())
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "grad_norms": norms}


def make_folder(out, kind, head, seed):
    draw = random.Random(f"{head} {seed}")
    torch.manual_seed(seed)
    model = make_model(draw, kind, head)
    inputs = make_inputs(draw, model.config, kind, head)
    model.save_pretrained(out)
    (out / "inputs.json").write_text(json.dumps({name: value.tolist() for name, value in inputs.items()}) + "\n")

    exact = copy.deepcopy(model).double()
    run(exact, inputs, kind, head).loss.backward()
    parameters = dict(exact.named_parameters(remove_duplicate=False))
    with safe_open(out / "model.safetensors", "pt") as file:
        tensors = {"grad." + name: parameters[name].grad for name in file.keys()}
    with torch.no_grad():
        tensors["outputs"] = logits_of(run(exact, inputs, kind, head), head)
    save_file({name: t.float().contiguous() for name, t in tensors.items()}, out / "expected.safetensors")
    (out / "expected.json").write_text(json.dumps({
        "description": f"{type(model).__name__} with large random weights; tests/golden/make_bert_task_golden.py",
        "torch": torch.__version__, "transformers": transformers.__version__,
        "adamw": {**ADAM, "weight_decay_2d": WEIGHT_DECAY, "weight_decay_1d": 0.0, "clip_grad_norm": CLIP},
        "steps_float64": train(copy.deepcopy(model).double(), inputs, kind, head),
    }, indent=2) + "\n")


def main(out=None, *seeds):
    torch.set_num_threads(1)
    if out == "--one":
        kind, head = seeds
        return make_folder(OUT / f"{kind}_{head}", kind, head, 5)
    for head in HEADS:
        if out is None:
            make_folder(OUT / f"bert_{head}", "bert", head, 5)
        for kind in KINDS:
            for seed in seeds:
                make_folder(Path(out) / f"{seed}-{kind}-{head}", kind, head, int(seed))


if __name__ == "__main__":
    main(*sys.argv[1:])
