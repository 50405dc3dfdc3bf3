"""The PyTorch side of bench/adapters: full training steps (training_steps.py) of PEFT's LoRA beside every linear layer of
transformers' Llama or Qwen2, with random weights, on one fixed batch of random tokens.

--precision fp32; autocast: fp32 weights, bf16 products; bf16: weights, adapters and moments in bf16, PyTorch's fastest.
"""

import peft
import torch
import torch.nn as nn
import torch.nn.functional as F
import transformers

from training_steps import begin, parser_of, peak_rss, serve_language_model


class Loss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, targets):
        logits = self.model(input_ids=ids, use_cache=False).logits
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def make_model(o, dtype):
    size = dict(num_hidden_layers=o.layers, hidden_size=o.hidden, num_attention_heads=o.heads, vocab_size=o.vocab,
                num_key_value_heads=o.key_heads, intermediate_size=o.ffn, max_position_embeddings=o.seq,
                tie_word_embeddings=True, attn_implementation="sdpa")
    torch.set_default_dtype(dtype)
    if o.qwen:
        model = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**size))
    else:
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**size))
    torch.set_default_dtype(torch.float32)
    lora = peft.LoraConfig(task_type="CAUSAL_LM", r=o.rank, lora_alpha=o.rank, lora_dropout=0.0, target_modules="all-linear")
    return Loss(peft.get_peft_model(model, lora, autocast_adapter_dtype=False)).train()


def main():
    parser = parser_of("LoRA steps with PEFT, driven over standard input", layers=30, hidden=576, heads=9, key_heads=3,
                       ffn=1536, seq=1024, vocab=49152, llama=1, qwen=0, rank=16)
    parser.add_argument("--precision", choices=["fp32", "autocast", "bf16"], default="fp32")
    o = parser.parse_args()
    o.bf16 = o.precision == "autocast"
    stages = {"import": peak_rss()}
    begin(o)
    transformers.logging.set_verbosity_error()
    model = make_model(o, torch.bfloat16 if o.precision == "bf16" else torch.float32)
    serve_language_model(o, model, stages, 0)


if __name__ == "__main__":
    main()
