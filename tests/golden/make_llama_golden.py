"""Make tests/golden/{llama,mistral,qwen2,qwen3,gpt_neox}_tiny: what Hugging Face's models compute, for ours to be compared with.

    nice $(scripts/oracle-env | tail -n 1) tests/golden/make_llama_golden.py

The versions are in each expected.json. The weights are random and large, so that a mistake in any one part shows. The
files are those of make_gpt2_golden.py, but for the greedy continuation: expected.json has "prompt" and the 16 ids that
generate() appends to it.
"""

import copy
import json
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file

from make_gpt2_golden import mean_loss, train

HERE = Path(__file__).parent
VOCABULARY, TOKENS = 67, 24
SIZES = dict(num_hidden_layers=2, hidden_size=16, num_attention_heads=4, num_key_value_heads=2, intermediate_size=24,
             vocab_size=VOCABULARY, max_position_embeddings=48, bos_token_id=None, eos_token_id=None, pad_token_id=None,
             attn_implementation="eager")
LLAMA3 = dict(rope_type="llama3", rope_theta=500.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=16)
MODELS = {
    # Llama 3.1's frequencies; an output projection of its own.
    "llama_tiny": (transformers.LlamaConfig, transformers.LlamaForCausalLM,
                   dict(SIZES, rope_parameters=LLAMA3, tie_word_embeddings=False, rms_norm_eps=1e-5)),
    # A window shorter than the sequences.
    "mistral_tiny": (transformers.MistralConfig, transformers.MistralForCausalLM,
                     dict(SIZES, sliding_window=7, tie_word_embeddings=False, num_key_value_heads=1, head_dim=4)),
    # Biases of queries, keys and values; tied; as many key heads as heads.
    "qwen2_tiny": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM,
                   dict(SIZES, num_key_value_heads=4, tie_word_embeddings=True)),
    # Norms of queries and keys; heads wider together than the model.
    "qwen3_tiny": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM,
                   dict(SIZES, head_dim=6, tie_word_embeddings=True)),
    # Half of each head turned; both halves of a layer read its input.
    "gpt_neox_tiny": (transformers.GPTNeoXConfig, transformers.GPTNeoXForCausalLM,
                      dict({key: value for key, value in SIZES.items() if key != "num_key_value_heads"},
                           rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.5))),
}


def make_model(config_class, model_class, settings):
    model = model_class(config_class(**settings)).float()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(std=0.2)
            if "norm" in name and name.endswith(".weight"):
                p.add_(1.0)
    return model


def make(name, config_class, model_class, settings):
    torch.manual_seed(20230227)
    out = HERE / name
    model = make_model(config_class, model_class, settings)
    ids = torch.randint(VOCABULARY, (3, TOKENS + 1))
    inputs, targets = ids[:, :-1], ids[:, 1:]
    model.save_pretrained(out)
    (out / "generation_config.json").unlink(missing_ok=True)
    (out / "inputs.json").write_text(json.dumps({"inputs": inputs.tolist(), "targets": targets.tolist()}) + "\n")

    exact = copy.deepcopy(model).double()
    logits, loss = mean_loss(exact, inputs, targets)
    loss.backward()
    stored = {"lm_head.weight": "embed_out.weight"} if name == "gpt_neox_tiny" else {}  # as files have it
    tensors = {"grad." + stored.get(key, key): p.grad for key, p in exact.named_parameters()}
    tensors["logits"] = logits.detach()
    save_file({key: t.float().contiguous() for key, t in tensors.items()}, out / "expected.safetensors")

    prompt = ids[:1, :5]
    continued = exact.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=16,
                               pad_token_id=0)
    expected = {
        "description": f"Hugging Face {model_class.__name__} with large random weights; by make_llama_golden.py",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "loss": loss.item(),
        "prompt": prompt[0].tolist(),
        "continued": continued[0, prompt.shape[1]:].tolist(),
        "steps_float64": train(copy.deepcopy(exact), inputs, targets),
    }
    (out / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


def main():
    torch.set_num_threads(1)
    for name, model in MODELS.items():
        make(name, *model)


if __name__ == "__main__":
    main()
