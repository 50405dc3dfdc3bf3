"""Make tests/golden/gpt2_tiny/documents.json: documents that share a sample, computed by PyTorch with an explicit mask.

    nice $(scripts/oracle-env | tail -n 1) tests/golden/make_documents_golden.py

The model is that of gpt2_tiny; weights are its fp32 ones, arithmetic is float64. Token 130 ends a document. As
Megatron-LM has it: a token attends to its own document (--reset-attention-mask), positions begin at 0 behind each end
(--reset-position-ids), and the loss is the mean over targets whose input is no end (--eod-mask-loss).

  inputs, targets   [3][24]
  loss              the mean cross-entropy
  gradients         for every parameter NAME of model.safetensors two numbers of its gradient g, read in the order
                    in which it is stored: its norm, and the sum of g[i] * cos(0.7 * i + 1)
"""

import json
from pathlib import Path

import torch
import torch.nn.functional as F
import transformers

OUT = Path(__file__).parent / "gpt2_tiny"
END = 130


def main():
    torch.manual_seed(20230601)
    torch.set_num_threads(1)
    model = transformers.GPT2LMHeadModel.from_pretrained(OUT, attn_implementation="eager", dtype=torch.float64)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    ids = torch.randint(END, (3, 25))
    # Documents of one token and of several; an end that is the first token, and ends that are the last.
    for row, ends in enumerate([[4, 5, 13], [0, 7, 20, 23], [11, 24]]):
        ids[row, ends] = END
    inputs, targets = ids[:, :-1], ids[:, 1:]
    document = torch.zeros_like(inputs)
    document[:, 1:] = (inputs[:, :-1] == END).cumsum(1)
    sees = (document[:, :, None] == document[:, None, :]) & torch.ones(24, 24, dtype=torch.bool).tril()
    mask = torch.zeros(sees.shape, dtype=torch.float64).masked_fill(~sees, float("-inf"))[:, None]
    first = (document[:, :, None] == document[:, None, :]).long().argmax(2)  # of the token's document
    positions = torch.arange(24) - first
    logits = model(inputs, attention_mask=mask, position_ids=positions).logits
    losses = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    weights = (inputs != END).flatten().double()
    loss = (losses * weights).sum() / weights.sum()
    loss.backward()

    rows = lambda name, t: f'  "{name}": [\n    ' + ",\n    ".join(map(json.dumps, t.tolist())) + "\n  ]"
    gradients = []
    for name, p in model.named_parameters():
        g = p.grad.flatten()
        wave = torch.cos(0.7 * torch.arange(g.numel(), dtype=torch.float64) + 1)
        gradients.append(f"    {json.dumps(name)}: {json.dumps([g.norm().item(), (g * wave).sum().item()])}")
    (OUT / "documents.json").write_text(
        "{\n" + ",\n".join([
            '  "description": "made by tests/golden/make_documents_golden.py"',
            f'  "torch": {json.dumps(torch.__version__)}', f'  "transformers": {json.dumps(transformers.__version__)}',
            rows("inputs", inputs), rows("targets", targets), f'  "loss": {json.dumps(loss.item())}',
            '  "gradients": {\n' + ",\n".join(gradients) + "\n  }"]) + "\n}\n")


if __name__ == "__main__":
    main()
