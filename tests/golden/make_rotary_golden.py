"""Make tests/golden/rotary.json: the frequencies of rotary positions that transformers computes from config.json.

    nice $(scripts/oracle-env | tail -n 1) tests/golden/make_rotary_golden.py

A case has the fields of config.json that decide ("config"; the rest is in tests/checkpoint/rotary_config_test.cc), the
frequencies in fp32 of a model just made, and the factor of cosines and sines; small heads their cosines and sines at
position 7 ("table"). Frequencies of "dynamic" are those after a text of the longest length that
max_position_embeddings allows.
"""

import json
from pathlib import Path

import torch
import transformers

HEADS = (6, 16, 80, 128)
POSITION = 7
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
SCALINGS = [
    dict(rope_type="default"),
    dict(rope_type="linear", factor=3.0),
    dict(rope_type="linear", factor=2.3),
    dict(rope_type="dynamic", factor=2.0),
    dict(rope_type="dynamic", factor=1.7),
    LLAMA3,
    dict(LLAMA3, factor=32.0, low_freq_factor=0.7, high_freq_factor=5.3),
    dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=64),
    dict(rope_type="yarn", factor=40.0, original_max_position_embeddings=16, mscale=0.707, mscale_all_dim=1.1),
    dict(rope_type="yarn", factor=2.5, original_max_position_embeddings=256, attention_factor=1.3, beta_fast=9.5,
         beta_slow=2.0),
    dict(rope_type="yarn", factor=8.0, original_max_position_embeddings=64, truncate=False),
    dict(rope_type="yarn", factor=0.5, original_max_position_embeddings=1024),
]
BASES = (100.0, 10000.0, 1234567.8)


def case(head_dim, base, scaling):
    config = transformers.LlamaConfig(num_hidden_layers=1, hidden_size=4, num_attention_heads=1, head_dim=head_dim,
                                      intermediate_size=8, vocab_size=3, max_position_embeddings=512,
                                      rope_parameters=dict(scaling, rope_theta=base))
    rotary = transformers.models.llama.modeling_llama.LlamaRotaryEmbedding(config)
    tables = rotary(torch.zeros(1, dtype=torch.float32), torch.arange(512)[None])
    found = {"config": {"head_dim": head_dim, "rope_parameters": dict(scaling, rope_theta=base)},
             "frequencies": rotary.inv_freq.tolist(), "attention": rotary.attention_scaling}
    if head_dim == HEADS[0]:
        found["table"] = torch.cat([table[0, POSITION, : head_dim // 2] for table in tables]).tolist()
    return found


def main():
    cases = [case(head, base, scaling) for scaling in SCALINGS for head in HEADS for base in BASES]
    lines = ",\n".join(json.dumps(one) for one in cases)
    versions = json.dumps({"torch": torch.__version__, "transformers": transformers.__version__})[1:-1]
    (Path(__file__).parent / "rotary.json").write_text(f'{{{versions}, "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
