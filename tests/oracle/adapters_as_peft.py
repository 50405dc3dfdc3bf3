"""Random small models with random LoRA adapters, as PEFT makes, trains and reads them.

    $(scripts/oracle-env | tail -n 1) tests/oracle/adapters_as_peft.py make|read FOLDER

FOLDER/cases.json lists cases. `make` writes FOLDER/NAME/model, the adapters FOLDER/NAME/adapters and, after AdamW's updates
in fp32, FOLDER/NAME/trained, with their losses. `read` loads the adapters of FOLDER/NAME/back, which Teratron has written,
and gives the loss of the first batch. tests/model/adapters_oracle_test.cc runs this.
"""

import json
import sys
from pathlib import Path

import numpy as np
import peft
import torch
import torch.nn.functional as F
import transformers


def make_model(case):
    size = dict(vocab_size=case["vocabulary"], bos_token_id=None, eos_token_id=None, pad_token_id=None,
                attn_implementation="eager")
    layers, hidden, heads = case["layers"], case["hidden"], case["heads"]
    if case["family"] == "gpt2":
        config = transformers.GPT2Config(n_layer=layers, n_embd=hidden, n_head=heads, n_positions=16, resid_pdrop=0.0,
                                         embd_pdrop=0.0, attn_pdrop=0.0, **size)
        return transformers.GPT2LMHeadModel(config)
    size.update(num_hidden_layers=layers, hidden_size=hidden, num_attention_heads=heads, intermediate_size=3 * hidden,
                max_position_embeddings=16)
    if case["family"] == "gpt_neox":
        rotary = dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5)
        return transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(
            hidden_dropout=0.0, attention_dropout=0.0, rope_parameters=rotary, **size))
    size["num_key_value_heads"] = case["key_heads"]
    if case["family"] == "qwen2":
        return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**size))
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**size))


def loss_of(model, batch):
    logits = model(torch.tensor(batch["inputs"])).logits
    losses = F.cross_entropy(logits.flatten(0, 1), torch.tensor(batch["targets"]).flatten(), reduction="sum")
    return losses * batch["weight"]


def in_eight_bits(rows):
    """Rows as GGUF's Q8_0 holds them: of 32 values the step is the smallest in fp16 whose 127-fold reaches all."""
    blocks = rows.reshape(-1, 32)
    largest = np.abs(blocks).max(axis=1, keepdims=True)
    step = (largest / np.float32(127)).astype(np.float16)
    step = np.where(step.astype(np.float32) * np.float32(127) < largest, np.nextafter(step, np.float16(np.inf)), step)
    step = step.astype(np.float32)
    return (np.clip(np.rint(blocks / step), -127, 127) * step).reshape(rows.shape)


def round_to_eight_bits(model):
    """Matrices of products and the token table; GPT-2's lie [inputs, outputs]."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() != 2 or "wpe" in name:
                continue
            transposed = isinstance(model.get_submodule(name.rsplit(".", 1)[0]), transformers.pytorch_utils.Conv1D)
            rows = (p.T if transposed else p).contiguous().numpy()
            rounded = torch.from_numpy(in_eight_bits(rows))
            p.copy_(rounded.T if transposed else rounded)


def make(case, folder):
    torch.manual_seed(case["seed"])
    model = make_model(case).float()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(std=0.2)
            if "norm" in name or "ln_" in name:
                p.add_(1.0 if name.endswith("weight") else 0.0)
    model.save_pretrained(folder / "model")
    if case["eight_bits"]:
        round_to_eight_bits(model)
    config = peft.LoraConfig(task_type="CAUSAL_LM", r=case["rank"], lora_alpha=case["alpha"], lora_dropout=0.0,
                             use_rslora=case["rslora"], target_modules=case["targets"],
                             fan_in_fan_out=case["family"] == "gpt2")
    adapted = peft.get_peft_model(model, config).train()
    with torch.no_grad():
        for name, p in adapted.named_parameters():
            if "lora_" in name:
                p.normal_(std=0.3)
    adapted.save_pretrained(folder / "adapters")
    trained = [p for p in adapted.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=case["learning_rate"], weight_decay=0.1, eps=case["epsilon"])
    losses = []
    for batch in case["batches"]:
        optimizer.zero_grad()
        loss = loss_of(adapted, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        losses.append(loss.item())
    adapted.save_pretrained(folder / "trained")
    return {"losses": losses}


def read(case, folder):
    model = type(make_model(case)).from_pretrained(folder / "model", attn_implementation="eager")
    if case["eight_bits"]:
        round_to_eight_bits(model)
    adapted = peft.PeftModel.from_pretrained(model, folder / "back").eval()
    with torch.no_grad():
        return {"loss": loss_of(adapted, case["batches"][0]).item()}


def main(what, folder):
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    for case in json.loads(Path(folder, "cases.json").read_text()):
        out = Path(folder, case["name"])
        result = {"make": make, "read": read}[what](case, out)
        (out / f"{what}.json").write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
