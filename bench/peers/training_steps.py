"""What the PyTorch sides of the training benchmarks share: options, AdamW, and steps on request.

Such a program runs beside our own, and the two take turns (run it with the python of scripts/oracle-env). Once
built and warm it prints a line of JSON with "ready": true. For each line "step N" on standard input it then
does N training steps (forward, loss, backward, clip, AdamW) and prints
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


def peak_rss():
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def parser_of(description, **defaults):
    parser = argparse.ArgumentParser(description=description)
    for name, default in {**defaults, "batch": 1, "threads": 2, "warmup": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--mode", choices=["eager", "compile"], default="eager")
    parser.add_argument("--memory", action="store_true", help="tell the peak RSS after each stage of the start, too")
    parser.add_argument("--malloc", choices=["default", "keep"], default="default",
                        help="keep: freed memory stays in the process, so that big tensors fault their pages in only once")
    return parser


def begin(o):
    """To be called first: glibc reads its settings as a process starts."""
    if o.malloc == "keep" and "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        keep = {"MALLOC_MMAP_THRESHOLD_": str(1 << 32), "MALLOC_TRIM_THRESHOLD_": str(1 << 34)}
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **keep})
    torch.set_num_threads(o.threads)
    torch.set_float32_matmul_precision("highest")
    torch.manual_seed(1)


def say(**what):
    print(json.dumps(what), flush=True)


def instructions(o):
    """What PyTorch's own kernels use, and what oneDNN, which has kernels of its own, may use beyond that."""
    if o.device != "cpu":
        return f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}"
    with open("/proc/cpuinfo") as info:
        flags = next((line.split() for line in info if line.startswith("flags")), [])
    more = [flag for flag in ("avx512_bf16", "amx_bf16", "avx512_fp16") if flag in flags]
    return f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}" + (
        f"; the processor also has {', '.join(more)}" if more else "")


def serve_language_model(o, model, stages, model_flops_per_token):
    """serve() for a model of (ids, targets) that returns its loss, on one fixed batch of random tokens."""
    model = model.to(o.device)
    text = torch.randint(o.vocab, (o.batch, o.seq + 1)).to(o.device)
    ids, targets = text[:, :-1].contiguous(), text[:, 1:].contiguous()

    def backward(run):
        with torch.autocast(o.device, torch.bfloat16, enabled=o.bf16):
            loss = run(ids, targets)
        loss.backward()
        return loss

    tokens = o.batch * o.seq
    serve(o, model, backward, stages, tokens_per_step=tokens, model_flops_per_step=tokens * model_flops_per_token)


def serve(o, model, backward, stages, **about):
    """backward(run) computes the gradients of a step with `run`, the model as the mode has it, and returns the loss."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [{"params": [p for p in parameters if p.dim() >= 2], "weight_decay": 0.1},
              {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-4, betas=(0.9, 0.95), eps=1e-8, fused=True)
    run = torch.compile(model) if o.mode == "compile" else model
    stages["build"] = peak_rss()

    def step():
        start = time.perf_counter()
        loss = backward(run)
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss = loss.item()  # waits for the device
        return time.perf_counter() - start, loss

    warm = []
    for number in range(o.warmup):
        try:
            warm.append(step()[0])
        except RuntimeError as error:  # an instruction, a compiler or memory is missing
            precision = "bf16" if o.bf16 else "fp32"
            print(f"error: PyTorch cannot train this here in {precision}, mode {o.mode}: {error}", file=sys.stderr)
            sys.exit(3)
        stages[f"step {number + 1}"] = peak_rss()
    say(ready=True, torch=torch.__version__, instructions=instructions(o), mode=o.mode, malloc=o.malloc, threads=torch.get_num_threads(), dropout=o.dropout,
        parameters=sum(p.numel() for p in parameters), warmup_seconds=warm, peak_rss_bytes=peak_rss(), **about,
        **({"memory": stages} if o.memory else {}))

    for line in sys.stdin:
        words = line.split()
        if words == ["quit"]:
            break
        if len(words) != 2 or words[0] != "step" or not words[1].isdigit() or int(words[1]) < 1:
            say(error=f'want "step N" or "quit", not {line.strip()!r}')
            continue
        results = [step() for _ in range(int(words[1]))]
        say(seconds=[seconds for seconds, _ in results], peak_rss_bytes=peak_rss(), loss=results[-1][1])
