"""Ten updates of DPO on pairs of answers end where TRL's end.

    $(scripts/oracle-env | tail -n 1) tests/oracle/preferences_as_trl.py TERATRON FOLDER [FAMILY ...]

transformers saves a random Llama, Qwen 2 and GPT-2 with a tokenizer and a chat template, each with pairs in another of TRL's
forms. `teratron data preferences` reads them. `train --dpo` draws adapters, which PEFT reads, and from which TRL's
DPOTrainer and `train --dpo`, in several layouts, make the same ten updates of all pairs. The difference of the adapters
must be at most 1e-4 of their movement, and losses, rewards and accuracies those that TRL logs.
tests/cli/oracles_test.cc runs this.
"""

import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import datasets
import peft
import torch
import transformers
import trl
from safetensors.torch import load_file

from chats_as_transformers import make_tokenizer
from finetune_as_pytorch import norm_of, run

TOKENS, PAIRS, UPDATES, RATE, BETA = 192, 14, 10, 3e-3, 0.3
# Adam divides by the root of the squared gradient plus this, which is far above gradients that are zero but for rounding.
EPS = 1e-6
WORDS = ["one", " two", " three", ", four", "\n", " 5", " six?", "é", "seven"]
# Nothing follows an answer, whose white space TRL would count.
TEMPLATE = """{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' }}\
{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""
LAYOUTS = (["--micro-batch-size", "2"],
           ["--micro-batch-size", "1", "--tp", "2", "--pp", "2", "--token-slices", "65,127"],
           ["--micro-batch-size", "3", "--dp", "2", "--use-distributed-optimizer", "--recompute-granularity", "full"])


def text(draw, least, most):
    return "".join(draw.choices(WORDS, k=draw.randint(least, most)))


def said(role, content):
    return {"role": role, "content": content}


def random_pair(draw, form):
    question, chosen, rejected = text(draw, 1, 6), text(draw, 0, 7), text(draw, 0, 7) + " no"
    if form == "texts":
        return {"prompt": question + ":", "chosen": chosen, "rejected": rejected}
    before = [said("system", text(draw, 1, 3))] * draw.randint(0, 1) + [said("user", question)]
    if draw.random() < 0.3:
        before += [said("assistant", text(draw, 1, 3)), said("user", text(draw, 1, 3))]
    answers = [said("assistant", chosen)], [said("assistant", rejected)]
    if form == "prompt":
        return {"prompt": before, "chosen": answers[0], "rejected": answers[1]}
    return {"chosen": before + answers[0], "rejected": before + answers[1]}


def make_model(family, vocabulary):
    size = dict(vocab_size=vocabulary, bos_token_id=None, eos_token_id=None, pad_token_id=None)
    if family == "gpt2":
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            n_layer=2, n_head=4, n_embd=32, n_positions=TOKENS, embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0, **size))
    else:
        size.update(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, num_key_value_heads=2,
                    intermediate_size=80, max_position_embeddings=TOKENS)
        model = (transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**size)) if family == "qwen2" else
                 transformers.LlamaForCausalLM(transformers.LlamaConfig(**size)))
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" not in name and "ln_" not in name:
                p.normal_(std=0.1)
    return model.float()


def train_with_trl(folder, tokenizer, pairs):
    """Adapters after the updates, and what TRL logged of each."""
    base = transformers.AutoModelForCausalLM.from_pretrained(folder / "hf", dtype=torch.float32)
    model = peft.PeftModel.from_pretrained(base, folder / "start", is_trainable=True)
    arguments = trl.DPOConfig(
        output_dir=str(folder / "trl"), beta=BETA, learning_rate=RATE, lr_scheduler_type="constant", max_steps=UPDATES,
        per_device_train_batch_size=PAIRS, optim="adamw_torch", adam_beta1=0.9, adam_beta2=0.95, adam_epsilon=EPS,
        weight_decay=0.1, max_grad_norm=1.0, max_length=None, logging_steps=1, save_strategy="no", report_to=[],
        use_cpu=True, bf16=False, fp16=False, gradient_checkpointing=False, disable_tqdm=True)
    trainer = trl.DPOTrainer(model=model, args=arguments, train_dataset=datasets.Dataset.from_list(pairs),
                             processing_class=tokenizer)
    trainer.train()
    trainer.model.save_pretrained(folder / "theirs", selected_adapters=["default"])
    return load_file(folder / "theirs" / "adapter_model.safetensors"), [log for log in trainer.state.log_history
                                                                       if "rewards/margins" in log]


def check_metrics(file, logs):
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    ours = [line for line in lines if line["kind"] == "iteration"]
    assert len(ours) == len(logs) == UPDATES
    names = {"loss": "loss", "rewards/chosen": "reward_chosen", "rewards/rejected": "reward_rejected",
             "rewards/margins": "reward_margin", "rewards/accuracies": "reward_accuracy"}
    for update, (line, log) in enumerate(zip(ours, logs)):
        for theirs, name in names.items():
            # The first rewards are zero but for rounding on one side, so one accuracy may be anything.
            if update > 0 or not name.endswith("accuracy"):
                assert abs(line[name] - float(log[theirs])) < 1e-4 + 1e-4 * abs(line[name]), (update, name, line, log)


def check(teratron, folder, family, form, draw):
    special = ["<|im_start|>", "<|im_end|>"]
    tokenizer = make_tokenizer(folder / "hf", "qwen3", TEMPLATE, special, None, "<|im_end|>", draw)
    make_model(family, len(tokenizer)).save_pretrained(folder / "hf")
    pairs = [random_pair(draw, form) for _ in range(PAIRS)]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    run(teratron, "data", "preferences", folder / "pairs.jsonl", "--tokenizer", folder / "hf", "--out", folder / "pairs")

    def train(name, *more):
        words = [teratron, "train", "--finetune", folder / "hf", "--data-path", folder / "pairs", "--dpo", "--dpo-beta", BETA,
                 "--split", "1", "--seq-length", TOKENS, "--lora-rank", "4", "--lora-targets", "all-linear",
                 "--lr-decay-style", "constant", "--min-lr", "0", "--adam-beta1", "0.9", "--adam-beta2", "0.95", "--adam-eps", EPS,
                 "--weight-decay", "0.1", "--clip-grad", "1.0", "--seed", "5", "--save", folder / name, *more]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        run(teratron, "convert", "--from", "teratron", "--to", "peft", folder / name, folder / (name + "-peft"))
        return load_file(folder / (name + "-peft") / "adapter_model.safetensors"), done.stderr

    # Adapters as they are drawn: a step of nothing.
    start, told = train("drawn", "--train-iters", "1", "--lr", "1e-30")
    samples = int(re.search(rf"{PAIRS} pairs of answers in (\d+) samples", told).group(1))
    shutil.move(folder / "drawn-peft", folder / "start")
    theirs, logs = train_with_trl(folder, tokenizer, pairs)
    movement = norm_of({name: theirs[name] - start[name] for name in start})
    assert theirs.keys() == start.keys()
    for number, layout in enumerate(LAYOUTS):
        ours, _ = train(f"run{number}", "--train-iters", UPDATES, "--lr", RATE, "--global-batch-size", samples, *layout)
        difference = norm_of({name: ours[name] - theirs[name] for name in theirs})
        print(f"{family}, {form}, {samples} samples, {' '.join(layout)}: difference {difference:.3e}, "
              f"movement {movement:.3e}, ratio {difference / movement:.3e}")
        assert difference <= 1e-4 * movement
        check_metrics(folder / f"run{number}" / "metrics.jsonl", logs)
    print(f"loss {logs[0]['loss']} to {logs[-1]['loss']}, margin {logs[-1]['rewards/margins']}")


def main(teratron, folder, *families):
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    for number, (family, form) in enumerate({"llama": "implicit", "qwen2": "prompt", "gpt2": "texts"}.items()):
        if families and family not in families:
            continue
        torch.manual_seed(number)
        (Path(folder) / family).mkdir()
        check(teratron, Path(folder) / family, family, form, random.Random(number))


if __name__ == "__main__":
    main(*sys.argv[1:])
