"""Ten updates on chats end where PyTorch's end, with the loss on the assistant's words alone.

    $(scripts/oracle-env | tail -n 1) tests/oracle/chats_finetune_as_pytorch.py TERATRON FOLDER

transformers saves a GPT-2 with random weights and a tokenizer whose template marks answers. PyTorch reads each chat by
itself, by apply_chat_template and its mask, cut to the context; a loss is the sum over all masked-in targets of all chats
by their number. `teratron data chat` and `train --finetune --sft` make the same ten updates of packed samples in several
layouts. As in finetune_as_pytorch.py, the difference of the weights must be at most 1e-4 of their movement, and `eval
loss` of the start must be PyTorch's. tests/cli/oracles_test.cc runs this.
"""

import json
import random
import subprocess
import sys
from pathlib import Path

import torch
import transformers

from chat_masks_as_transformers import CHATML
from chats_as_transformers import make_tokenizer
from finetune_as_pytorch import BETAS, CLIP, DECAY, EPS, MINIMUM, PEAK, UPDATES, WARMUP, learning_rate, load, norm_of, run

TOKENS, CHATS = 80, 24
WORDS = ["one", " two", " three", ", four", "\n", " 5", " six?", "é", " <|im_end|"]


def random_chat(draw):
    roles = ["system"] * draw.randint(0, 1) + ["user", "assistant"] * draw.randint(1, 3)
    return [{"role": role, "content": "".join(draw.choices(WORDS, k=draw.randint(0, 7)))} for role in roles]


def packs_of(sizes):
    """Samples that best fit makes of so many inputs each, the longest first."""
    rooms = []
    for size in sorted(sizes, reverse=True):
        fitting = [room for room in rooms if room >= size]
        if fitting:
            rooms.remove(min(fitting))
        rooms.append((min(fitting) if fitting else TOKENS) - size)
    return len(rooms)


def mean_loss(model, chats):
    """Shorter chats end with padding, which no token before it sees and no loss counts."""
    longest = max(len(ids) for ids, _ in chats)
    ids = torch.tensor([ids + [0] * (longest - len(ids)) for ids, _ in chats])
    mask = torch.tensor([mask + [0] * (longest - len(mask)) for _, mask in chats])[:, 1:]
    logits = model(ids[:, :-1]).logits
    losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")
    return (losses * mask).sum() / mask.sum()


def train_with_pytorch(model, chats):
    weights = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([dict(params=weights, weight_decay=DECAY), dict(params=others, weight_decay=0.0)],
                                  lr=PEAK, betas=BETAS, eps=EPS)
    for update in range(1, UPDATES + 1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(update)
        loss = mean_loss(model, chats)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
    return model


def main(teratron, folder):
    folder = Path(folder)
    torch.manual_seed(6)
    torch.set_num_threads(1)
    draw = random.Random(6)
    tokenizer = make_tokenizer(folder / "hf", "qwen3", CHATML, ["<|im_start|>", "<|im_end|>"], None, "<|im_end|>", draw)
    config = transformers.GPT2Config(
        n_layer=2, n_head=4, n_embd=64, vocab_size=len(tokenizer), n_positions=TOKENS, bos_token_id=0, eos_token_id=0,
        embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder / "hf")
    chats = []
    with open(folder / "chats.jsonl", "w") as file:
        for _ in range(CHATS):
            messages = random_chat(draw)
            file.write(json.dumps({"messages": messages}) + "\n")
            written = tokenizer.apply_chat_template(messages, return_dict=True, return_assistant_tokens_mask=True)
            ids, mask = written["input_ids"][:TOKENS + 1], written["assistant_masks"][:TOKENS + 1]
            if sum(mask[1:]) > 0:
                chats.append((ids, mask))
    assert any(len(ids) == TOKENS + 1 for ids, _ in chats)  # or cuts are not tested
    samples = packs_of([len(ids) - 1 for ids, _ in chats])
    run(teratron, "data", "chat", folder / "chats.jsonl", "--tokenizer", folder / "hf", "--out", folder / "chats")
    model, start = load(folder / "hf")
    words = [teratron, "eval", "loss", "--load", folder / "hf", "--data-path", folder / "chats", "--split", "1", "--part",
             "training", "--json", "-", "--micro-batch-size", "3"]
    loss = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)["loss"]
    with torch.no_grad():
        wanted = float(mean_loss(model, chats))
    print(f"eval loss {loss}, PyTorch {wanted}")
    assert abs(loss - wanted) < 1e-5 * wanted
    theirs = train_with_pytorch(model, chats).state_dict()
    movement = norm_of({name: theirs[name] - start[name] for name in start})
    for layout in (["--micro-batch-size", "2"], ["--micro-batch-size", "1", "--tp", "2", "--pp", "2", "--token-slices", "33,47"],
                   ["--micro-batch-size", "3", "--dp", "3", "--use-distributed-optimizer"]):
        name = "run" + "".join(layout)
        run(teratron, "train", "--finetune", folder / "hf", "--data-path", folder / "chats", "--sft", "--split", "1",
            "--seq-length", str(TOKENS), "--global-batch-size", str(samples), "--train-iters", str(UPDATES),
            "--lr", str(PEAK), "--min-lr", str(MINIMUM), "--lr-warmup-iters", str(WARMUP),
            "--adam-beta1", str(BETAS[0]), "--adam-beta2", str(BETAS[1]), "--adam-eps", str(EPS),
            "--weight-decay", str(DECAY), "--clip-grad", str(CLIP), "--save", folder / name, *layout)
        run(teratron, "convert", "--from", "teratron", "--to", "hf", folder / name, folder / (name + "-hf"))
        _, ours = load(folder / (name + "-hf"))
        difference = norm_of({name: ours[name] - theirs[name] for name in theirs})
        print(f"{' '.join(layout)}: {samples} samples, difference {difference:.3e}, movement {movement:.3e}, "
              f"ratio {difference / movement:.3e}")
        assert difference <= 1e-4 * movement


if __name__ == "__main__":
    main(*sys.argv[1:])
