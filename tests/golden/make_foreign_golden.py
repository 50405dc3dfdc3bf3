"""Make tests/golden/foreign: one GPT-2 in the files that nanoGPT, llm.c and Megatron-LM save, and as Hugging Face's folder.

    nice $(scripts/oracle-env | tail -n 1) tests/golden/make_foreign_golden.py

The files in the repository were made with torch 2.15.0 and transformers 5.23.0. The modules below have the names, shapes
and orders that those programs publish; none of their code is here. Weights are random and large, and values of bf16, so
that every type holds them exactly.

  hf                      the model as save_pretrained writes it, with its logits [2,7,19] in float64 stored as fp32
                          (logits.safetensors, "tanh" and "exact" for the two GELUs, and "inputs")
  hf_no_biases            the same with all biases zero, and its logits
  nanogpt.pt              state, optimizer (AdamW after a step), model_args, config
  nanogpt_compiled.pt     without biases, of torch.compile (_orig_mod.), in bf16, with masks as weights
  nanogpt_strides.pt      matrices that are transposed views, columns of wider storages, and one storage for several
  llmc.bin, llmc_bf16.bin llm.c's versions 3 and 5, with a vocabulary padded to 32
  megatron_0.pt, _1.pt, _3.pt   checkpoint_version 0, 1 and 3, whose queries, keys and values are in three orders
  megatron_core.pt        names of Megatron's core
  old_format.pt           a tensor as torch.save wrote it before it wrote zip archives
  hostile.pt              a dictionary that runs a command where Python loads it
"""

import argparse
import enum
import os
import random
import struct
import sys
import types
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import save_file

OUT = Path(__file__).parent / "foreign"
L, H, C, V, T = 2, 4, 16, 19, 8
PADDED = 32


class Norm(torch.nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(C))
        self.bias = torch.nn.Parameter(torch.zeros(C)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, (C,), self.weight, self.bias, 1e-5)


class Attention(torch.nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.c_attn = torch.nn.Linear(C, 3 * C, bias=bias)
        self.c_proj = torch.nn.Linear(C, C, bias=bias)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (part.view(b, t, H, C // H).transpose(1, 2) for part in self.c_attn(x).split(C, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(b, t, C))


class Mlp(torch.nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.c_fc = torch.nn.Linear(C, 4 * C, bias=bias)
        self.c_proj = torch.nn.Linear(4 * C, C, bias=bias)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x)))


class Block(torch.nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.ln_1, self.attn, self.ln_2, self.mlp = Norm(bias), Attention(bias), Norm(bias), Mlp(bias)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class NanoGpt(torch.nn.Module):
    """A module with the names and shapes of nanoGPT's GPT."""

    def __init__(self, bias=True):
        super().__init__()
        self.transformer = torch.nn.ModuleDict({
            "wte": torch.nn.Embedding(V, C), "wpe": torch.nn.Embedding(T, C),
            "h": torch.nn.ModuleList(Block(bias) for _ in range(L)), "ln_f": Norm(bias)})
        self.lm_head = torch.nn.Linear(C, V, bias=False)
        self.transformer["wte"].weight = self.lm_head.weight

    def forward(self, ids):
        x = self.transformer["wte"](ids) + self.transformer["wpe"](torch.arange(ids.shape[1]))
        for block in self.transformer["h"]:
            x = block(x)
        return self.lm_head(self.transformer["ln_f"](x))


def randomize(model):
    with torch.no_grad():
        for name, p in model.named_parameters():
            values = torch.randn_like(p) * 0.3 + (1.0 if ".ln_" in name and name.endswith("weight") else 0.0)
            p.copy_(values.bfloat16().float())
    return model


def hugging_face(state, activation):
    config = transformers.GPT2Config(
        n_layer=L, n_head=H, n_embd=C, vocab_size=V, n_positions=T, bos_token_id=0, eos_token_id=0,
        activation_function=activation, embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0)
    model = transformers.GPT2LMHeadModel(config).float()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name not in state:
                p.zero_()
                continue
            is_turned = name.endswith("weight") and any(part in name for part in (".c_attn.", ".c_proj.", ".c_fc."))
            p.copy_(state[name].t() if is_turned else state[name])
    return model


def save_hugging_face(model, folder):
    state = dict(model.state_dict())
    ids = torch.randint(V, (2, 7))
    logits = {}
    for name, activation in (("tanh", "gelu_new"), ("exact", "gelu")):
        theirs = hugging_face(state, activation)
        logits[name] = theirs.double()(ids).logits.detach()
        if name == "exact":
            assert torch.allclose(logits[name], NanoGpt.forward(model.double(), ids), rtol=0, atol=1e-12)
            model.float()
        else:
            theirs.float().save_pretrained(OUT / folder)
            (OUT / folder / "generation_config.json").unlink(missing_ok=True)
    tensors = {name: t.float().contiguous() for name, t in logits.items()}
    save_file({**tensors, "inputs": ids.int()}, OUT / folder / "logits.safetensors")


def nanogpt(model, bias, state=None, optimizer=None):
    arguments = dict(n_layer=L, n_head=H, n_embd=C, block_size=T, bias=bias, vocab_size=V, dropout=0.0)
    return {"model": state or model.state_dict(), "optimizer": optimizer or {}, "model_args": arguments, "iter_num": 2000,
            "best_val_loss": torch.tensor(1.25), "config": {"out_dir": "out", "learning_rate": 1e-3, "compile": True}}


def trained_optimizer(model, ids):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, weight_decay=0.0)
    F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
    optimizer.step()
    model.zero_grad()
    return optimizer.state_dict()


def strided(state):
    """The same values in other places of other storages."""
    wide = torch.full((3 * C, 64), 7.0)
    result = {}
    for i, (name, t) in enumerate(state.items()):
        if t.dim() == 2 and t.shape[0] <= wide.shape[0] and t.shape[1] == C and i % 3 == 0:
            result[name] = wide.clone()[:t.shape[0], 11:11 + C]
            result[name].copy_(t)
        elif t.dim() == 2:
            result[name] = t.t().contiguous().t()
        else:
            result[name] = torch.stack([t, t + 1], dim=1)[:, 0]
    result["lm_head.weight"] = state["lm_head.weight"].clone()
    return result


def llm_c(state, dtype):
    per_layer = ["ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight",
                 "attn.c_proj.bias", "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight", "mlp.c_fc.bias",
                 "mlp.c_proj.weight", "mlp.c_proj.bias"]
    padded = F.pad(state["transformer.wte.weight"], (0, 0, 0, PADDED - V), value=5.0)
    tensors = [padded, state["transformer.wpe.weight"]]
    tensors += [state[f"transformer.h.{i}.{name}"] for name in per_layer for i in range(L)]
    tensors += [state["transformer.ln_f.weight"], state["transformer.ln_f.bias"]]
    header = [20240326, 3 if dtype == torch.float32 else 5, T, V, L, H, C, PADDED]
    numbers = b"".join(t.to(dtype).contiguous().view(torch.uint8).numpy().tobytes() for t in tensors)
    return struct.pack("<256i", *header, *[0] * (256 - len(header))) + numbers


class ModelType(enum.Enum):
    encoder_or_decoder = 1


ModelType.__module__ = "megatron.core.enums"


def reordered(t, version):
    """Rows of queries, keys and values as that checkpoint_version has them."""
    apart = t.view(3, H, C // H, *t.shape[1:])
    axes = {0: (0, 1, 2), 1: (1, 2, 0), 3: (1, 0, 2)}[version]
    return apart.permute(*axes, *range(3, apart.dim())).reshape(t.shape).clone()


def megatron_args(**more):
    return argparse.Namespace(
        num_layers=L, hidden_size=C, num_attention_heads=H, max_position_embeddings=T, ffn_hidden_size=4 * C,
        hidden_dropout=0.0, attention_dropout=0.0, layernorm_epsilon=1e-5, init_method_std=0.02, kv_channels=C // H,
        tensor_model_parallel_size=1, pipeline_model_parallel_size=1, bias_gelu_fusion=True, openai_gelu=False,
        padded_vocab_size=V, params_dtype=torch.float16, num_experts=None, data_path=["corpus_text_document"], **more)


def megatron(state, version, core=False):
    layers = {}
    names = {"ln_1": "input_layernorm", "attn.c_attn": "attention.query_key_value", "attn.c_proj": "attention.dense",
             "ln_2": "post_attention_layernorm", "mlp.c_fc": "mlp.dense_h_to_4h", "mlp.c_proj": "mlp.dense_4h_to_h"}
    core_names = {"ln_1": "self_attention.linear_qkv.layer_norm_", "attn.c_attn": "self_attention.linear_qkv",
                  "attn.c_proj": "self_attention.linear_proj", "ln_2": "mlp.linear_fc1.layer_norm_",
                  "mlp.c_fc": "mlp.linear_fc1", "mlp.c_proj": "mlp.linear_fc2"}
    for i in range(L):
        for theirs, name in (core_names if core else names).items():
            for kind in ("weight", "bias"):
                t = state[f"transformer.h.{i}.{theirs}.{kind}"]
                if theirs == "attn.c_attn":
                    t = reordered(t, version)
                if version == 3:
                    name = name.replace(".attention.", ".self_attention.")
                key = f"layers.{i}.{name}{kind}" if name.endswith("_") else f"layers.{i}.{name}.{kind}"
                layers[key] = t.half() if version == 0 else t
    words, positions = state["transformer.wte.weight"], state["transformer.wpe.weight"]
    last = {f"final_layernorm.{kind}": state[f"transformer.ln_f.{kind}"] for kind in ("weight", "bias")}
    if core:
        flat = {"embedding.word_embeddings.weight": words, "embedding.position_embeddings.weight": positions}
        flat |= {f"decoder.{key}": t for key, t in (layers | last).items()}
        flat["decoder.layers.0.self_attention.linear_qkv._extra_state"] = None
        model = flat
    else:
        embedding = {"word_embeddings": {"weight": words}, "position_embeddings": {"weight": positions}}
        stack = "encoder" if version == 3 else "transformer"
        model = {"language_model": {"embedding": embedding, stack: layers | last}}
    saved = {"args": megatron_args(model_type=ModelType.encoder_or_decoder), "iteration": 100, "model": model,
             "rng_state": [{"random_rng_state": random.getstate(), "np_rng_state": np.random.get_state(),
                            "torch_rng_state": torch.get_rng_state(), "rng_tracker_states": {}}]}
    if version > 0:
        saved["checkpoint_version"] = float(version)
    return saved


class Command:
    def __reduce__(self):
        return os.system, ("touch harm",)


def main():
    torch.manual_seed(20190917)
    random.seed(1)
    np.random.seed(1)
    torch.set_num_threads(1)
    OUT.mkdir(exist_ok=True)
    model, without = randomize(NanoGpt()), randomize(NanoGpt(bias=False))
    save_hugging_face(model, "hf")
    save_hugging_face(without, "hf_no_biases")

    optimizer = trained_optimizer(model, torch.randint(V, (1, 5)))
    torch.save(nanogpt(model, True, optimizer=optimizer), OUT / "nanogpt.pt")
    state = {name: t.detach() for name, t in model.state_dict().items()}
    torch.save(nanogpt(model, True, state=strided(state)), OUT / "nanogpt_strides.pt")
    masks = {f"_orig_mod.transformer.h.{i}.attn.bias": torch.ones(1, 1, T, T).tril().bool() for i in range(L)}
    compiled = {f"_orig_mod.{name}": t.bfloat16() for name, t in without.state_dict().items()}
    torch.save(nanogpt(without, False, state=compiled | masks), OUT / "nanogpt_compiled.pt")
    torch.save({"model": state["transformer.wpe.weight"]}, OUT / "old_format.pt", _use_new_zipfile_serialization=False)
    torch.save({"model": {}, "model_args": {}, "config": Command()}, OUT / "hostile.pt")
    (OUT / "llmc.bin").write_bytes(llm_c(state, torch.float32))
    (OUT / "llmc_bf16.bin").write_bytes(llm_c(state, torch.bfloat16))
    for name in ("megatron", "megatron.core", "megatron.core.enums"):  # so that pickle finds the enumeration
        sys.modules[name] = types.ModuleType(name)
    sys.modules["megatron.core.enums"].ModelType = ModelType
    for version in (0, 1, 3):
        torch.save(megatron(state, version), OUT / f"megatron_{version}.pt")
    torch.save(megatron(state, 3, core=True), OUT / "megatron_core.pt")


if __name__ == "__main__":
    main()
