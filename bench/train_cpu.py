"""Drives bench/train_cpu: starts each side as a process of its own, lets them take turns, prints medians as ratios.

Model FLOPs a token: 6 for each weight that is multiplied (12 L h^2 + V h of a GPT-2), and 6 L h s for attention: forward and
backward; causal attention counted as the half it is.
"""

import argparse
import datetime
import platform
import statistics
import sys

from side import Program, Side, cpu_name, require

CONFIGURATIONS = {
    "a": ("L 6, h 384, 6 heads, s 256, V 4096, batch 8", dict(layers=6, hidden=384, heads=6, seq=256, vocab=4096, batch=8)),
    "b": ("L 4, h 256, 4 heads, s 256, V 8192, batch 8", dict(layers=4, hidden=256, heads=4, seq=256, vocab=8192, batch=8)),
    "c": ("GPT-2 124M, s 1024, batch 1", dict(layers=12, hidden=768, heads=12, seq=1024, vocab=50257, batch=1)),
}
LLAMAS = {
    "a": ("L 6, h 384, 6 heads, 2 of keys, ffn 1024, s 256, V 4096, batch 8",
          dict(layers=6, hidden=384, heads=6, key_heads=2, ffn=1024, seq=256, vocab=4096, batch=8, llama=1)),
    "b": ("L 4, h 256, 4 heads, 2 of keys, ffn 688, s 256, V 8192, batch 8",
          dict(layers=4, hidden=256, heads=4, key_heads=2, ffn=688, seq=256, vocab=8192, batch=8, llama=1)),
    "c": ("SmolLM2 135M, s 1024, batch 1",
          dict(layers=30, hidden=576, heads=9, key_heads=3, ffn=1536, seq=1024, vocab=49152, batch=1, llama=1)),
}


def measure(shape, options):
    ours = Side(["build/release/bench_train_step"], shape, threads=2, dropout=options.dropout, bf16=int(options.bf16))
    words = ["bf16"] if options.bf16 else []
    products = Program(["build/release/bench_gemm", "2", str(shape["batch"] * shape["seq"]), str(shape["hidden"]), *words])
    # "eager keep" lets glibc keep freed memory in the process: often PyTorch's fastest, at the price of a higher peak.
    flags = ["--bf16"] if options.bf16 else []
    torch = {name: Side([sys.executable, f"bench/peers/pytorch_{options.family}.py", *flags], shape, threads=2, dropout=options.dropout,
                        mode=name.split()[0], malloc="keep" if name.endswith("keep") else "default")
             for name in ("eager", "eager keep", "compile")}
    flops, count = ours.ready["model_flops_per_step"], 1 if shape["seq"] == 1024 else 2
    gemm = []
    for _ in range(options.rounds):
        for side in (ours, *torch.values()):
            side.steps(count)
        gemm.append(products.ask(f"gemm {sum(ours.seconds[-count:])}")["gflops"])
    rate = {name: flops / statistics.median(side.seconds) * 1e-9 for name, side in dict(ours=ours, **torch).items()}
    best = max(torch, key=lambda mode: rate[mode])
    row = dict(gemm=statistics.median(gemm), rate=rate, best=best, ratio=rate["ours"] / rate[best],
               share=rate["ours"] / statistics.median(gemm), planned=ours.ready["planned_bytes"],
               peak={name: side.peak for name, side in dict(ours=ours, **torch).items()},
               torch=torch["eager"].ready["torch"])
    for side in (ours, products, *torch.values()):
        side.close()
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--bf16", action="store_true", help="bf16 with fp32 weights: ours against PyTorch's autocast")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--only", choices=CONFIGURATIONS)
    parser.add_argument("--family", choices=("gpt2", "llama"), default="gpt2")
    options = parser.parse_args()
    require("torch")
    lines = ["| configuration | GEMM GFLOP/s | Teratron | PyTorch eager / eager keep / compile | against the fastest "
             "| of the GEMM rate | peak MB: Teratron (planned) | eager / eager keep / compile | of the fastest's peak |",
             "|---" * 9 + "|"]
    for key, (title, shape) in (LLAMAS if options.family == "llama" else CONFIGURATIONS).items():
        if options.only not in (None, key):
            continue
        r = measure(shape, options)
        names = ("eager", "eager keep", "compile")
        rates = " / ".join(f"{r['rate'][name]:.1f}" for name in names)
        peaks = " / ".join(f"{r['peak'][name] / 1e6:.0f}" for name in names)
        lines.append(f"| {title} | {r['gemm']:.1f} | {r['rate']['ours']:.1f} | {rates} | {r['ratio']:.2f}x "
                     f"| {100 * r['share']:.1f} % | {r['peak']['ours'] / 1e6:.0f} ({r['planned'] / 1e6:.0f}) | {peaks} "
                     f"| {100 * r['peak']['ours'] / r['peak'][r['best']]:.0f} % |")
        print(lines[-1], file=sys.stderr, flush=True)
    precision = "bf16" if options.bf16 else "fp32"
    heading = (f"{datetime.date.today()}, {cpu_name()}, {platform.machine()}, 2 threads, {precision}, "
               f"dropout {options.dropout}; torch {r['torch']}; medians of {options.rounds} interleaved rounds; `bench/train_cpu {' '.join(sys.argv[1:])}`")
    text = heading + "\n\n" + "\n".join(lines) + "\n"
    print(text)
    if options.save:
        with open(f"bench/results/train_cpu{'_llama' if options.family == 'llama' else ''}{'_bf16' if options.bf16 else ''}.md", "a") as file:
            file.write("\n" + text)


main()
