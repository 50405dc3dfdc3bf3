"""The PyTorch side of bench/train_cpu and bench/gpu: full GPT-2 training steps, in fp32 on the CPU, or on a GPU with
--device cuda, there also with --bf16 (autocast: fp32 weights and gradients, as ours are).

It runs beside our own program, and the two take turns (run it with the python of scripts/oracle-env). Once
built and warm it prints a line of JSON with "ready": true. For each line "step N" on standard input it then
does N training steps (forward, loss, backward, clip, AdamW) on one fixed batch of random tokens and prints
{"seconds": [one per step], "peak_rss_bytes": ..., "loss": ...}; "quit" or the end of the input ends it.

This is what a careful user writes: fused attention, fused AdamW, optionally torch.compile with its defaults,
arithmetic left in exact fp32. "--malloc keep" gains 4 to 10 % on small models and costs memory: to give PyTorch
its best in both, time it with and weigh it without. The peak is this program's own: VmHWM, which is ru_maxrss
without what a parent's memory adds to it before exec. Written for torch 2.15.0.
"""

import argparse
import json
import os
import resource
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, hidden, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1 = nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.attention_out = nn.Linear(hidden, hidden)
        self.norm2 = nn.LayerNorm(hidden)
        self.up = nn.Linear(hidden, 4 * hidden)
        self.down = nn.Linear(4 * hidden, hidden)

    def drop(self, x):
        return F.dropout(x, self.dropout, self.training)

    def attend(self, x):
        batch, seq, hidden = x.shape
        q, k, v = (part.view(batch, seq, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(hidden, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout if self.training else 0.0)
        return self.attention_out(y.transpose(1, 2).reshape(batch, seq, hidden))

    def forward(self, x):
        x = x + self.drop(self.attend(self.norm1(x)))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")))


class Gpt2(nn.Module):
    def __init__(self, layers, hidden, heads, seq, vocab, dropout):
        super().__init__()
        self.dropout = dropout
        self.tokens = nn.Embedding(vocab, hidden)
        self.positions = nn.Embedding(seq, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                into_residual = name.endswith(("attention_out.weight", "down.weight"))
                nn.init.normal_(p, std=0.02 / (2 * layers) ** 0.5 if into_residual else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        x = F.dropout(x, self.dropout, self.training)
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def peak_rss():
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description="GPT-2 training steps with PyTorch, driven over standard input")
    for name, default in dict(layers=12, hidden=768, heads=12, seq=1024, vocab=50257, batch=1, threads=2, warmup=3).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--mode", choices=["eager", "compile"], default="eager")
    parser.add_argument("--memory", action="store_true", help="tell the peak RSS after each stage of the start, too")
    parser.add_argument("--malloc", choices=["default", "keep"], default="default",
                        help="keep: freed memory stays in the process, so that big tensors fault their pages in only once")
    o = parser.parse_args()
    if o.malloc == "keep" and "MALLOC_MMAP_THRESHOLD_" not in os.environ:  # glibc reads it as a process starts
        keep = {"MALLOC_MMAP_THRESHOLD_": str(1 << 32), "MALLOC_TRIM_THRESHOLD_": str(1 << 34)}
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **keep})

    stages = {"import": peak_rss()}
    torch.set_num_threads(o.threads)
    torch.set_float32_matmul_precision("highest")
    torch.manual_seed(1)
    model = Gpt2(o.layers, o.hidden, o.heads, o.seq, o.vocab, o.dropout).to(o.device)
    parameters = list(model.parameters())
    groups = [{"params": [p for p in parameters if p.dim() >= 2], "weight_decay": 0.1},
              {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-4, betas=(0.9, 0.95), eps=1e-8, fused=True)
    text = torch.randint(o.vocab, (o.batch, o.seq + 1)).to(o.device)
    ids, targets = text[:, :-1].contiguous(), text[:, 1:].contiguous()
    run = torch.compile(model) if o.mode == "compile" else model
    stages["build"] = peak_rss()

    def step():
        start = time.perf_counter()
        with torch.autocast(o.device, torch.bfloat16, enabled=o.bf16):
            loss = run(ids, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss = loss.item()  # waits for the device
        return time.perf_counter() - start, loss

    def say(**what):
        print(json.dumps(what), flush=True)

    warm = []
    for number in range(o.warmup):
        warm.append(step()[0])
        stages[f"step {number + 1}"] = peak_rss()
    tokens, h = o.batch * o.seq, o.hidden
    flops = tokens * (6 * (12 * o.layers * h * h + o.vocab * h) + 6 * o.layers * h * o.seq)
    say(ready=True, torch=torch.__version__, mode=o.mode, malloc=o.malloc, threads=torch.get_num_threads(), dropout=o.dropout,
        parameters=sum(p.numel() for p in parameters), tokens_per_step=tokens, model_flops_per_step=flops,
        warmup_seconds=warm, peak_rss_bytes=peak_rss(), **({"memory": stages} if o.memory else {}))

    for line in sys.stdin:
        words = line.split()
        if words == ["quit"]:
            break
        if len(words) != 2 or words[0] != "step" or not words[1].isdigit() or int(words[1]) < 1:
            say(error=f'want "step N" or "quit", not {line.strip()!r}')
            continue
        results = [step() for _ in range(int(words[1]))]
        say(seconds=[seconds for seconds, _ in results], peak_rss_bytes=peak_rss(), loss=results[-1][1])


if __name__ == "__main__":
    main()
