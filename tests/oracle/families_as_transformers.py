"""Random small models of today's families, as transformers makes, trains and continues them.

    $(scripts/oracle-env | tail -n 1) tests/oracle/families_as_transformers.py FOLDER

FOLDER/cases.json lists cases: a name, a family, a seed, sizes, and either the batches of AdamW's updates or a prompt to
continue. Everything else about a model is drawn here, by the seed. FOLDER/NAME becomes the model as save_pretrained
writes it, with expected.json and expected.safetensors beside it. tests/model/families_oracle_test.cc runs this.

transformers computes norms and softmaxes in fp32 whatever the model's type. For values that are exact to 1e-9 these run
in double here (InDouble), as does everything but rotary positions: their tables stay fp32, as transformers has them, of
powers, cosines and sines that are rounded once (torch's own may be a unit off). Trainings in fp32, with nothing changed, say
how far fp32 alone is from that.
"""

import copy
import json
import random
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import save_file
from torch.overrides import TorchFunctionMode

CLASSES = {
    "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
    "mistral": (transformers.MistralConfig, transformers.MistralForCausalLM),
    "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM),
    "qwen3": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM),
    "gpt_neox": (transformers.GPTNeoXConfig, transformers.GPTNeoXForCausalLM),
}
STORED = {"gpt_neox": {"lm_head.weight": "embed_out.weight"}}  # where files have other names than modules
APART = 1e-3  # between the likeliest token's logit and the next, for generation


class InDouble(TorchFunctionMode):
    """What is asked to be fp32 is double."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        to_double = lambda value: torch.float64 if value is torch.float32 else value
        return func(*map(to_double, args), **{key: to_double(value) for key, value in (kwargs or {}).items()})


class RoundedPowers(TorchFunctionMode):
    """Powers of fp32 are computed in double and rounded."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.__rpow__:
            exponent, base = args
            return torch.pow(torch.tensor(base).double(), exponent.double()).float()
        return func(*args, **(kwargs or {}))


def draw_rotary(draw, positions):
    base = dict(rope_theta=draw.choice([10.0, 500.0, 10000.0, 1234567.8]))
    factor = dict(factor=draw.choice([1.5, 4.0, 8.0]))
    first = dict(original_max_position_embeddings=draw.choice([8, 16, positions]))
    return draw.choice([
        dict(base, rope_type="default"),
        dict(base, rope_type="default"),
        dict(base, rope_type="linear", **factor),
        dict(base, rope_type="dynamic", **factor),
        dict(base, rope_type="llama3", low_freq_factor=1.0, high_freq_factor=draw.choice([2.0, 4.0]), **factor, **first),
        dict(base, rope_type="yarn", **factor, **first),
        dict(base, rope_type="yarn", beta_fast=4.0, beta_slow=0.5, attention_factor=1.25, truncate=False, **factor,
             **first),
    ])


def draw_settings(family, sizes, draw):
    rotary = draw_rotary(draw, sizes["positions"])
    settings = dict(
        num_hidden_layers=sizes["layers"], hidden_size=sizes["hidden"], num_attention_heads=sizes["heads"],
        intermediate_size=sizes["ffn"], vocab_size=sizes["vocabulary"], max_position_embeddings=sizes["positions"],
        tie_word_embeddings=draw.random() < 0.5, bos_token_id=None, eos_token_id=None, pad_token_id=None,
        attn_implementation="eager")
    epsilon = draw.choice([1e-6, 1e-5, 1e-2])
    if family == "gpt_neox":
        head = sizes["hidden"] // sizes["heads"]
        shares = [share for share in (0.25, 0.5, 0.75, 1.0) if int(head * share) >= 2 and int(head * share) % 2 == 0]
        if rotary["rope_type"] == "dynamic":  # transformers divides by zero where two elements turn
            shares = [share for share in shares if int(head * share) > 2]
        if not shares:
            shares, rotary = [1.0], dict(rope_type="default", rope_theta=10.0)
        return dict(settings, layer_norm_eps=epsilon, hidden_act=draw.choice(["gelu", "gelu_new"]),
                    use_parallel_residual=draw.random() < 0.7, hidden_dropout=0.0, attention_dropout=0.0,
                    rope_parameters=dict(rotary, partial_rotary_factor=draw.choice(shares)))
    if rotary["rope_type"] == "dynamic" and sizes["head"] == 2:
        rotary = dict(rope_type="default", rope_theta=10.0)
    settings.update(num_key_value_heads=sizes["key_heads"], head_dim=sizes["head"], rms_norm_eps=epsilon,
                    rope_parameters=rotary)
    if family == "mistral":
        settings["sliding_window"] = draw.choice([None, 1, 2, 5])
    return settings


def make_model(case, draw):
    config_class, model_class = CLASSES[case["family"]]
    model = model_class(config_class(**draw_settings(case["family"], case["sizes"], draw))).float().train()
    generator = torch.Generator().manual_seed(draw.getrandbits(40))
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(std=min(0.3, 1.7 / case["sizes"]["hidden"] ** 0.5), generator=generator)
            if "norm" in name and name.endswith(".weight"):
                p.add_(1.0)
    return model


def as_double(model):
    """A copy that computes in double, under InDouble."""
    exact = copy.deepcopy(model).double()
    body, = (getattr(exact, name) for name in ("model", "gpt_neox") if hasattr(exact, name))
    rotary = body.rotary_emb
    with RoundedPowers():
        own = type(rotary)(model.config)
    mine, theirs = own.inv_freq, rotary.inv_freq.float()
    assert torch.all((mine - theirs).abs() <= 4e-7 * theirs.abs()), (mine, theirs)

    def forward(x, position_ids):
        angles = position_ids[..., None].float() * mine
        angles = torch.cat((angles, angles), dim=-1).double()
        return tuple((table.float() * own.attention_scaling).double() for table in (angles.cos(), angles.sin()))

    rotary.forward = forward
    return exact


def loss_of(model, batch):
    """The mean but for the rounding of its weights, which are fp32."""
    logits = model(torch.tensor(batch["inputs"])).logits
    losses = F.cross_entropy(logits.flatten(0, 1), torch.tensor(batch["targets"]).flatten(), reduction="sum")
    return logits, losses * batch["weight"]


def train(model, case, epsilon):
    """AdamW's updates; losses, norms before clipping, and of the first batch the logits and gradients."""
    parameters = list(model.parameters())
    decayed = [p for p in parameters if p.dim() == 2]
    others = [p for p in parameters if p.dim() == 1]
    settings = case["adamw"]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": settings["weight_decay"]},
                                   {"params": others, "weight_decay": 0.0}], lr=settings["learning_rate"],
                                  betas=(settings["beta1"], settings["beta2"]), eps=epsilon)
    losses, norms, first = [], [], {}
    for batch in case["batches"]:
        optimizer.zero_grad()
        logits, loss = loss_of(model, batch)
        loss.backward()
        if not first:
            first = {("grad", name): p.grad.clone() for name, p in model.named_parameters()}
            first["first", "logits"] = logits.detach()
        norms.append(torch.nn.utils.clip_grad_norm_(parameters, settings["clip"]).item())
        optimizer.step()
        losses.append(loss.item())
    return losses, norms, first


def distance(one, other):
    return sum(((p.detach().double() - q.detach().double()) ** 2).sum() for p, q in
               zip(one.parameters(), other.parameters())).sqrt().item()


def write_training(case, folder):
    model = make_model(case, random.Random(case["seed"]))
    model.save_pretrained(folder)
    expected, tensors = {}, {}
    for precision, epsilon in case["adamw"]["epsilon"].items():
        exact, single = as_double(model), copy.deepcopy(model)
        with InDouble():
            losses, norms, first = train(exact, case, epsilon)
        train(single, case, epsilon)
        tensors.update(first)
        tensors.update({(precision, name): p.detach() for name, p in exact.named_parameters()})
        expected[precision] = {"losses": losses, "norms": norms, "movement": distance(exact, model),
                               "fp32_from_double": distance(single, exact)}
    stored = STORED.get(case["family"], {})
    tensors = {f"{kind}.{stored.get(name, name)}": t for (kind, name), t in tensors.items()}
    save_file({name: t.contiguous().clone() for name, t in tensors.items()}, folder / "expected.safetensors")
    return expected


def write_continuation(case, folder):
    """The first model of the seed whose likeliest tokens are apart from the others all the way."""
    draw = random.Random(case["seed"])
    prompt = torch.tensor([case["prompt"]])
    for attempt in range(100):
        model = make_model(case, draw).eval()
        # With a window of one token its cache keeps all of them.
        has_cache = getattr(model.config, "sliding_window", None) != 1
        result = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, use_cache=has_cache,
                                max_new_tokens=case["new_tokens"], pad_token_id=0, output_logits=True,
                                return_dict_in_generate=True)
        best = torch.cat(result.logits).topk(2).values
        if (best[:, 0] - best[:, 1]).min() >= APART:
            break
    else:
        raise RuntimeError(f"no model of {case['name']} has logits that are apart")
    model.save_pretrained(folder)
    return {"continued": result.sequences[0, prompt.shape[1]:].tolist(), "attempts": attempt + 1}


def main(folder):
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    for case in json.loads(Path(folder, "cases.json").read_text()):
        out = Path(folder, case["name"])
        expected = write_training(case, out) if "batches" in case else write_continuation(case, out)
        (out / "generation_config.json").unlink(missing_ok=True)
        (out / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
