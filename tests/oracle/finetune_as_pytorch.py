"""Ten updates from a Hugging Face folder end where PyTorch's end.

    $(scripts/oracle-env | tail -n 1) tests/oracle/finetune_as_pytorch.py TERATRON FOLDER

transformers saves a GPT-2 with random weights. `teratron train --finetune` and PyTorch (loss of transformers, AdamW,
clipping, the same learning rates) each make ten updates on the same corpus; then `teratron convert` gives our model
back to transformers. The difference between the two models' weights must be at most 1e-4 of what the ten updates moved
them by. tests/cli/oracles_test.cc runs this.

Every update reads the whole corpus of N chunks, so the order of the samples does not matter: it has one token more than
N chunks' inputs, so that none is left over. Adam divides by the root of the squared gradient plus eps: gradients that
are zero but for rounding, such as those of the key biases, would move weights by the sign of the rounding. An eps of
1e-6 is far above such gradients and far below the others.
"""

import math
import struct
import subprocess
import sys
from pathlib import Path

import torch
import transformers

CHUNKS, TOKENS, VOCABULARY, UPDATES = 12, 24, 211, 10
PEAK, MINIMUM, WARMUP = 2e-3, 1e-4, 3
BETAS, EPS, DECAY, CLIP = (0.9, 0.95), 1e-6, 0.1, 0.5


def write_corpus(prefix, ids):
    """One document in Megatron-LM's format, of 16-bit tokens."""
    prefix.with_suffix(".bin").write_bytes(struct.pack(f"<{len(ids)}H", *ids))
    header = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 1, 2)
    prefix.with_suffix(".idx").write_bytes(header + struct.pack("<iqqq", len(ids), 0, 0, 1))


def learning_rate(update):
    if update < WARMUP:
        return PEAK * update / WARMUP
    progress = (update - WARMUP) / (UPDATES - WARMUP)
    return MINIMUM + (PEAK - MINIMUM) * 0.5 * (1 + math.cos(math.pi * progress))


def train_with_pytorch(model, ids):
    chunks = torch.stack([torch.tensor(ids[i * TOKENS:(i + 1) * TOKENS + 1]) for i in range(CHUNKS)])
    weights = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([dict(params=weights, weight_decay=DECAY), dict(params=others, weight_decay=0.0)],
                                  lr=PEAK, betas=BETAS, eps=EPS)
    norms = []
    for update in range(1, UPDATES + 1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(update)
        logits = model(chunks[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), chunks[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)))
        optimizer.step()
    assert max(norms) > CLIP, norms  # or clipping is not tested
    return model


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def norm_of(state):
    return math.sqrt(sum(float(value.double().pow(2).sum()) for value in state.values()))


def load(folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").float()
    return model, {name: value.detach().clone() for name, value in model.state_dict().items()}


def main(teratron, folder):
    folder = Path(folder)
    torch.manual_seed(5)
    config = transformers.GPT2Config(
        n_layer=2, n_head=4, n_embd=64, vocab_size=VOCABULARY, n_positions=32, bos_token_id=0, eos_token_id=0,
        embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder / "hf")
    ids = torch.randint(VOCABULARY, (CHUNKS * TOKENS + 1,)).tolist()
    write_corpus(folder / "corpus", ids)
    model, start = load(folder / "hf")
    theirs = train_with_pytorch(model, ids).state_dict()
    movement = norm_of({name: theirs[name] - start[name] for name in start})
    for layout in ([], ["--tp", "2", "--pp", "2"], ["--tp", "4", "--dp", "2", "--use-distributed-optimizer"]):
        name = "run" + "".join(layout)
        run(teratron, "train", "--finetune", folder / "hf", "--data-path", folder / "corpus", "--split", "1",
            "--seq-length", str(TOKENS), "--micro-batch-size", "3", "--global-batch-size", str(CHUNKS),
            "--train-iters", str(UPDATES), "--lr", str(PEAK), "--min-lr", str(MINIMUM), "--lr-warmup-iters", str(WARMUP),
            "--adam-beta1", str(BETAS[0]), "--adam-beta2", str(BETAS[1]), "--adam-eps", str(EPS),
            "--weight-decay", str(DECAY), "--clip-grad", str(CLIP), "--save", folder / name, *layout)
        run(teratron, "convert", "--from", "teratron", "--to", "hf", folder / name, folder / (name + "-hf"))
        _, ours = load(folder / (name + "-hf"))
        assert ours.keys() == theirs.keys()
        difference = norm_of({name: ours[name] - theirs[name] for name in theirs})
        print(f"{' '.join(layout) or 'one rank'}: difference {difference:.3e}, movement {movement:.3e}, "
              f"ratio {difference / movement:.3e}")
        assert difference <= 1e-4 * movement


if __name__ == "__main__":
    main(*sys.argv[1:])
