"""The scaling studies of the Megatron-LM paper (arXiv 1909.08053, section 5.1 and Appendix D; Tables 1, 7 and 8), row by row
beside the paper's figures. Driven by bench/scaling.

Unless a flag says otherwise, every dimension is divided: heads of 24 instead of 96, a twentieth of the layers, a tenth of the
vocabulary, fp32, on CPU threads. That compares shapes of curves, not speeds. --paper is the paper's own size and way:
nothing divided, 64 copies, fp16 on GPUs, everything recomputed, a micro-batch of 8; configs/scaling has the same as recipes.

Efficiency is speed a core (or GPU) against one rank on one. Each row is a process of its own (bench_train_step; on GPUs a
process a rank), so its peak memory is its own; measured on CPUs is the process's peak over its ranks.
"""

import argparse
import datetime
import json
import os
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

from side import Side, cpu_name

# Of Table 1: heads, layers, tensor-parallel ranks, and efficiency on so many GPUs and on 64 times as many.
TABLE1 = {"1.2B": (16, 40, 1, 1.00, 0.96), "2.5B": (20, 54, 2, 0.95, 0.83), "4.2B": (24, 64, 4, 0.82, 0.79), "8.3B": (32, 72, 8, 0.77, 0.74)}
TABLE7 = {16: 0.82, 24: 0.80, 32: 0.77}  # heads of the 8.3B model on 8 GPUs: efficiency
TABLE8 = {1: 1.00, 2: 1.64, 4: 2.34, 8: 2.98}  # GPUs of the 1.2B model: speed-up
HEAD, VOCABULARY, TOKENS = 96, 51200, 1024
RECOMPUTE = {"none": 0, "selective": 1, "full": 2}


def model_of(name, o):
    heads, layers = TABLE1[name][:2]
    return dict(layers=max(1, layers // o.layers_divisor), hidden=heads * (HEAD // o.head_size_divisor), heads=heads,
                vocab=VOCABULARY // o.vocab_divisor, seq=TOKENS // o.sequence_divisor)


def rows_of(o):
    """In the paper's order, without those of more tensor-parallel ranks than asked for. The first is the one rank that all are
    compared with."""
    rows = []

    def add(study, paper_row, paper, model, tensor, copies=1):
        if tensor <= o.max_tensor_ranks:
            rows.append(dict(study=study, paper_row=paper_row, paper=paper, model=model, tp=tensor, dp=copies, batch=o.batch_size * copies))

    for name, (_, _, tensor, weak, _) in TABLE1.items():
        add("weak", f"{name} on {tensor}", weak, model_of(name, o), tensor)
    for name, (_, _, tensor, _, weak) in TABLE1.items():
        add("weak with data parallelism", f"{name} on {64 * tensor}", weak, model_of(name, o), tensor, o.copies)
    # The largest model that the ranks asked for are meant for, its hidden size kept.
    largest = [name for name, (_, _, tensor, *_) in TABLE1.items() if tensor <= o.max_tensor_ranks][-1]
    for heads, paper in TABLE7.items():
        model = dict(model_of(largest, o), heads=heads)
        if model["hidden"] % heads == 0 and heads % TABLE1[largest][2] == 0:
            add("heads", f"8.3B with {heads} heads on 8", paper, model, TABLE1[largest][2])
    for tensor, paper in TABLE8.items():
        add("strong", f"1.2B on {tensor}", paper, model_of("1.2B", o), tensor)
    return rows


def units_of(row, o):
    """Cores or GPUs at work."""
    ranks = row["tp"] * row["dp"]
    return ranks if o.cuda else min(ranks, o.cores)


def measure(row, o):
    ranks = row["tp"] * row["dp"]
    command = [o.program]
    if o.launcher:
        command = shlex.split(o.launcher.format(ranks=ranks)) + command
    side = Side(command, row["model"], batch=row["batch"], tp=row["tp"], dp=row["dp"], sp=int(o.sequence_parallel),
                micro=o.micro_batch_size, recompute=RECOMPUTE[o.recompute], dropout=0.1, threads=min(ranks, o.cores), cuda=int(o.cuda),
                **({} if o.dtype == "fp32" else {o.dtype: 1}))
    side.steps(o.updates)
    side.close()
    row.setdefault("seconds", []).extend(side.seconds)
    row.update(flops=side.ready["model_flops_per_step"], planned=side.ready["planned_bytes"],
               measured=side.peak / (1 if o.launcher else ranks))


def fill_in(rows, o):
    for row in rows:
        row["rate"] = row["flops"] / statistics.median(row["seconds"])
        row["figure"] = row["rate"] / rows[0]["rate"] / (1 if row["study"] == "strong" else units_of(row, o))


def table_of(rows, o):
    unit = "GPU" if o.cuda else "core"
    lines = [f"| layers / hidden / heads | ranks (tp x dp) | {unit}s | GFLOP/s a {unit} | here | paper | the paper's row, GPUs | planned MB a rank "
             "| measured MB a rank |", "|---" * 9 + "|"]
    study = None
    for row in rows:
        if row["study"] != study:
            study = row["study"]
            what = "speed-up over one rank" if study == "strong" else f"a {unit} against one rank on one"
            lines.append(f"| **{study}**: {what} | | | | | | | | |")
        model = row["model"]
        measured = "" if o.cuda else f"{row['measured'] / 1e6:.0f}"
        lines.append(f"| {model['layers']} / {model['hidden']} / {model['heads']} | {row['tp']} x {row['dp']} | {units_of(row, o)} "
                     f"| {row['rate'] / 1e9 / units_of(row, o):.1f} | {row['figure']:.2f} | {row['paper']:.2f} | {row['paper_row']} "
                     f"| {row['planned'] / 1e6:.0f} | {measured} |")
    return "\n".join(lines) + "\n"


def charts_of(rows, o):
    series = [f"here, in small, on {'GPUs' if o.cuda else f'{o.cores} cores'}", "paper, on so many GPUs"]
    charts = {}
    for row in rows:
        axis = "speed-up over one rank" if row["study"] == "strong" else "efficiency a core"
        chart = charts.setdefault(row["study"], dict(title=row["study"], axis=axis, series=series, groups=[]))
        chart["groups"].append(dict(label=row["paper_row"], values=[row["figure"], row["paper"]]))
    return list(charts.values())


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--paper", action="store_true", help="the paper's own size and way; later flags change parts of it")
    parser.add_argument("--max-tensor-ranks", type=int, default=8)
    parser.add_argument("--copies", type=int, default=2, help="of the model, where the paper has 64")
    parser.add_argument("--batch-size", type=int, default=4, help="sequences an update of each copy; the paper's is 8")
    parser.add_argument("--micro-batch-size", type=int, default=0, help="sequences computed at a time; 0: the batch")
    for part, divisor in (("head-size", 4), ("layers", 20), ("vocab", 10), ("sequence", 4)):
        parser.add_argument(f"--{part}-divisor", type=int, default=divisor)
    parser.add_argument("--dtype", choices=["fp32", "bf16", "fp16"], default="fp32")
    parser.add_argument("--recompute", choices=RECOMPUTE, default="none")
    parser.add_argument("--sequence-parallel", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--launcher", default="", help="starts {ranks} processes: 'mpirun -n {ranks}'; GPUs need it for more than one rank")
    parser.add_argument("--program", default="build/release/bench_train_step")
    parser.add_argument("--updates", type=int, default=2, help="timed of each row in a round")
    parser.add_argument("--rounds", type=int, default=2, help="how often the rows take turns")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="the rows as JSON; nothing is measured")
    parser.add_argument("--save", action="store_true")
    if "--paper" in sys.argv:
        parser.set_defaults(copies=64, batch_size=8, micro_batch_size=8, head_size_divisor=1, layers_divisor=1, vocab_divisor=1, sequence_divisor=1,
                            dtype="fp16", recompute="full", cuda=True, launcher="mpirun -n {ranks}")
    return parser.parse_args()


def main():
    o = parse()
    rows = rows_of(o)
    if o.list:
        return print(json.dumps(rows))
    for turn in range(o.rounds):
        for i, row in enumerate(rows):
            print(f"round {turn + 1} of {o.rounds}, row {i + 1} of {len(rows)}", file=sys.stderr, flush=True)
            measure(row, o)
    fill_in(rows, o)
    model = rows[0]["model"]
    text = (f"{datetime.date.today()}, {cpu_name()}, {'GPUs' if o.cuda else f'{o.cores} cores'}, {o.dtype}, recompute {o.recompute}; heads of "
            f"{HEAD // o.head_size_divisor}, 1/{o.layers_divisor} of the layers, vocabulary {model['vocab']}, sequences of {model['seq']}, {o.batch_size} a "
            f"copy; medians of {o.rounds} rounds of {o.updates} updates; `bench/scaling {shlex.join(sys.argv[1:])}`\n\n{table_of(rows, o)}")
    print(text)
    if o.save:
        with open("bench/results/scaling.md", "a") as file:
            file.write("\n" + text)
        Path("bench/results/scaling.svg").write_text(
            subprocess.run(["build/release/bench_chart"], check=True, input=json.dumps(charts_of(rows, o)), stdout=subprocess.PIPE, text=True).stdout)


main()
