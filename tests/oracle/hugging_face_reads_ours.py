"""Hugging Face's own packages read what Teratron exports.

    $(scripts/oracle-env | tail -n 1) tests/oracle/hugging_face_reads_ours.py EXPORTED_FOLDER ORIGINAL_FOLDER

ORIGINAL_FOLDER is a model that transformers saved (of tests/golden); EXPORTED_FOLDER is the same model after import into
Teratron and export from it. transformers must load both as the same model, every weight bit by bit and
with none missing, and compute the same with both. tests/checkpoint/hugging_face_oracle_test.cc runs this.
"""

import sys
from pathlib import Path

import torch
import transformers
from safetensors import safe_open


def load(folder):
    architecture, = transformers.AutoConfig.from_pretrained(folder).architectures
    model, notes = getattr(transformers, architecture).from_pretrained(folder, output_loading_info=True)
    for kind, names in notes.items():
        assert not names, f"{folder}: {kind}: {names}"
    return model.eval()


def main(exported, original):
    stored = {}
    for path in Path(exported).glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            assert file.metadata() == {"format": "pt"}, file.metadata()
            stored.update({name: file.get_tensor(name) for name in file.keys()})
    ours, theirs = load(exported), load(original)
    assert type(ours) is type(theirs)
    expected = theirs.state_dict()
    for name, value in ours.state_dict().items():
        assert value.dtype == expected[name].dtype and torch.equal(value, expected[name]), name
        if name in stored:  # what is tied is stored once
            assert torch.equal(value, stored[name]), name
    with safe_open(f"{original}/model.safetensors", "pt") as file:
        assert set(file.keys()) == set(stored)
    ours_config, theirs_config = ours.config.to_dict(), theirs.config.to_dict()
    for key, value in theirs_config.items():
        if key not in ("_name_or_path", "transformers_version", "bos_token_id", "eos_token_id"):
            assert ours_config[key] == value, (key, ours_config[key], value)
    ids = torch.arange(24).reshape(2, 12) * 5 % theirs.config.vocab_size
    if ours.config.model_type == "roberta":
        ids = ids.clamp(min=2)  # 1 is padding
    if type(ours) is transformers.BertForMultipleChoice:
        ids = ids[None]  # the choices of one sample
    with torch.no_grad():
        assert torch.equal(ours(ids)[0], theirs(ids)[0])
    print(f"{len(stored)} tensors, the same in every bit; the same outputs")


if __name__ == "__main__":
    main(*sys.argv[1:])
