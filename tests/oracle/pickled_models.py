"""Small models of transformers, each in two folders: as save_pretrained writes it, and with what torch.save makes of its state.

    $(scripts/oracle-env | tail -n 1) tests/oracle/pickled_models.py OUT

OUT/NAME/safetensors, OUT/NAME/pickled and, as PyTorch wrote before 1.6, OUT/NAME/old for gpt2, bert and llama. States have what safetensors leave out: the tied output
projection beside its embedding, of the same storage, and the buffers that transformers once saved. tests/checkpoint/torch_oracle_test.cc
runs this.
"""

import sys
from pathlib import Path

import torch
from transformers import BertConfig, BertForPreTraining, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

MODELS = {
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=60, n_positions=32, n_embd=16, n_layer=2, n_head=2)),
    "bert": lambda: BertForPreTraining(BertConfig(vocab_size=60, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
                                                  max_position_embeddings=32)),
    "llama": lambda: LlamaForCausalLM(LlamaConfig(vocab_size=60, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
                                                  tie_word_embeddings=True)),
}
BUFFERS = (".position_ids", ".inv_freq")


def main():
    for name, make in MODELS.items():
        torch.manual_seed(7)
        model = make()
        folder = Path(sys.argv[1]) / name
        model.save_pretrained(folder / "safetensors")
        (folder / "pickled").mkdir()
        (folder / "pickled/config.json").write_bytes((folder / "safetensors/config.json").read_bytes())
        buffers = {key: value.detach() for key, value in model.named_buffers() if key.endswith(BUFFERS)}
        torch.save(model.state_dict() | buffers, folder / "pickled/pytorch_model.bin")
        (folder / "old").mkdir()
        (folder / "old/config.json").write_bytes((folder / "safetensors/config.json").read_bytes())
        torch.save(model.state_dict() | buffers, folder / "old/pytorch_model.bin", _use_new_zipfile_serialization=False)


main()
