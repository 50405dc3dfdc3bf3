"""Drives bench/pipeline: each schedule and slicing a process of its own, taking turns; medians."""

import argparse
import datetime
import json
import statistics
import subprocess
import sys
import tempfile

from side import Side, cpu_name

TERATRON = "build/release/teratron"
STAGES = 2
SHAPE = dict(layers=8, hidden=512, heads=8, vocab=4096, dropout=0.1, threads=2)
GPIPE, ONE_F_ONE_B, TERAPIPE, SEQ1F1B = ("gpipe", 0), ("1f1b", 1), ("terapipe", 3), ("seq1f1b", 4)


def run_json(*command, stderr=None):
    done = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, stderr=stderr)
    return json.loads(done.stdout)


def line_chart(title, x_axis, y_axis, lines):
    """What bench/chart.cc draws."""
    return {"title": title, "x_axis": x_axis, "y_axis": y_axis,
            "lines": [{"name": name, "points": points} for name, points in lines.items()]}


class Profile:
    """What `teratron profile` measured for sequences of a length, and what follows from it."""

    def __init__(self, folder, seq, repeats):
        self.file, self.seq = f"{folder}/{seq}.json", seq
        self.measured = run_json(
            TERATRON, "profile", "--repeats", repeats, *self.shape(), "--vocab-size", SHAPE["vocab"], "--output", self.file,
            "--json", "-")

    def shape(self):
        return ["--num-layers", SHAPE["layers"], "--hidden-size", SHAPE["hidden"], "--num-attention-heads", SHAPE["heads"],
                "--seq-length", self.seq, "--micro-batch-size", 1, "--pp", STAGES, "--threads", SHAPE["threads"],
                "--hidden-dropout", SHAPE["dropout"], "--attention-dropout", SHAPE["dropout"]]

    def plan(self, schedule, slices, micro_batches):
        """The slices in tokens, and the predicted milliseconds until the last pass is done."""
        answer = run_json(TERATRON, "simulate", "--profile", self.file, "--schedule", schedule[0], "--slices", slices,
                          "--stages", STAGES, "--micro-batches", micro_batches, "--json", "-", stderr=subprocess.DEVNULL)
        return answer["slice_tokens"] or [self.seq], answer["iteration_ms"]


class Variant:
    def __init__(self, profile, schedule, slices, sequences=1):
        """slices: as for simulate --slices; auto: as train --token-slices auto takes them."""
        self.is_auto, self.schedule = slices == "auto", schedule[0]
        self.flags = dict(seq=profile.seq, batch=sequences, micro=1, pp=STAGES, schedule=schedule[1])
        tokens, self.predicted = profile.plan(schedule, slices, sequences)
        self.cut, self.slice_count = ",".join(map(str, tokens)), len(tokens)
        if self.slice_count != 1:
            self.flags["slices"] = self.cut
        self.passes, self.planned_bytes = [], 0

    def run(self, steps):
        """A process of its own: two that run the same differ by a few percent for as long as they live."""
        side = Side(["build/release/bench_train_step"], SHAPE, **self.flags)
        side.steps(steps)
        side.close()
        self.passes += side.passes
        self.planned_bytes = side.ready["planned_bytes"]

    def milliseconds(self):
        return 1e3 * statistics.median(self.passes)

    def name(self):
        cut = "" if self.slice_count == 1 else f", {self.slice_count} slices"
        return self.schedule + cut + (f" (auto: {self.cut})" if self.is_auto else "")


def measure(variants, rounds):
    for _ in range(rounds):
        for variant in variants:
            variant.run(steps=2)


def table(title, variants):
    base = variants[0].milliseconds()
    lines = [f"| {title} | passes, ms | times the first | predicted, ms | error | planned MB a rank |", "|---" * 6 + "|"]
    for v in variants:
        ms = v.milliseconds()
        lines.append(f"| {v.name()} | {ms:.1f} | {base / ms:.2f} | {v.predicted:.1f} | {100 * (v.predicted / ms - 1):+.1f} % "
                     f"| {v.planned_bytes / 1e6:.0f} |")
    return "\n".join(lines) + "\n"


def sweep_of_slices(profile, rounds):
    """Figure 6: how many slices one sequence is cut into."""
    variants = [Variant(profile, GPIPE, "1")]
    variants += [Variant(profile, TERAPIPE, f"uniform:{count}") for count in (2, 4, 8, 16, 32, 64)]
    variants.append(Variant(profile, TERAPIPE, "auto"))
    measure(variants, rounds)
    uniform, best = variants[:-1], variants[-1]
    chart = line_chart(
        f"One sequence of {profile.seq} tokens through 2 stages", "slices", "milliseconds",
        {"measured": [(v.slice_count, v.milliseconds()) for v in uniform],
         "predicted": [(v.slice_count, v.predicted) for v in uniform],
         "auto": [(best.slice_count, best.milliseconds())]})
    return table(f"one sequence of {profile.seq} tokens", variants), chart


def sweep_of_lengths(profiles, rounds):
    """Figure 7: what slices gain, by the length of the sequence."""
    rows, points = [], []
    for profile in profiles:
        variants = [Variant(profile, GPIPE, "1"), Variant(profile, TERAPIPE, "auto")]
        measure(variants, rounds)
        rows.append(table(f"one sequence of {profile.seq} tokens", variants))
        points.append((profile.seq, variants[0].milliseconds() / variants[1].milliseconds()))
    chart = line_chart("TeraPipe over GPipe, one sequence through 2 stages", "tokens", "times as fast",
                       {"measured": points})
    return "\n".join(rows), chart


def several_sequences(profile, rounds, sequences):
    """What stays in memory when there are several micro-batches. The first schedule comes again at the end: the noise."""
    variants = [Variant(profile, GPIPE, "1", sequences), Variant(profile, ONE_F_ONE_B, "1", sequences)]
    for schedule in (TERAPIPE, SEQ1F1B):
        variants.append(Variant(profile, schedule, "auto", sequences))
        variants += [Variant(profile, schedule, f"uniform:{count}", sequences) for count in (2, 3, 4)]
    variants.append(Variant(profile, GPIPE, "1", sequences))
    measure(variants, rounds)
    return table(f"{sequences} sequences of {profile.seq} tokens", variants)


def profile_errors(profile):
    """Of the cost model and of iterations, on slicings left out of the fits."""
    measured = profile.measured
    off = [abs(one["predicted_ms"] / one["measured_ms"] - 1) for one in measured["iterations"] if one["held_out"]]
    return (f"| {profile.seq} | {100 * measured['held_out_mean_error']:.1f} % | {100 * measured['held_out_worst_error']:.1f} % "
            f"| {100 * statistics.mean(off):.1f} % | {100 * max(off):.1f} % |")


def table_of_profiles(profiles):
    lines = ["| profile of tokens | passes held out, mean error | worst | iterations held out, mean error | worst |",
             "|---" * 5 + "|"]
    return "\n".join(lines + [profile_errors(profile) for profile in profiles]) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--repeats", type=int, default=3, help="of the profiles")
    parser.add_argument("--sequences", type=int, nargs="+", default=[4, 8], help="an update, where there are several")
    parser.add_argument("--several-only", action="store_true", help="leave one sequence, cut finer and longer, out; print alone")
    for name in ("layers", "hidden", "heads", "vocab"):
        parser.add_argument(f"--{name}", type=int, default=SHAPE[name])
    options = parser.parse_args()
    SHAPE.update((name, value) for name, value in vars(options).items() if name in SHAPE)
    if options.several_only and options.save:
        parser.error("--save keeps all tables")
    with tempfile.TemporaryDirectory() as folder:
        lengths = (1024,) if options.several_only else (512, 1024, 2048)
        profiles = {seq: Profile(folder, seq, options.repeats) for seq in lengths}
        tables = []

        def add(text):
            print(text, file=sys.stderr, flush=True)
            tables.append(text)

        if not options.several_only:
            text, slices_chart = sweep_of_slices(profiles[2048], options.rounds)
            add(text)
        for sequences in options.sequences:
            add(several_sequences(profiles[1024], options.rounds, sequences))
        if not options.several_only:
            text, lengths_chart = sweep_of_lengths(profiles.values(), options.rounds)
            add(text)
        add(table_of_profiles(profiles.values()))
    shape = " ".join(f"{name} {value}" for name, value in SHAPE.items())
    text = (f"{datetime.date.today()}, {cpu_name()}, 2 stages as threads of one core each, fp32; {shape}; medians of "
            f"{options.rounds} interleaved rounds of two steps; `bench/pipeline {' '.join(sys.argv[1:])}`\n\n" + "\n".join(tables))
    print(text)
    if options.save:
        with open("bench/results/pipeline.md", "w") as file:
            file.write("# bench/pipeline\n\n" + text + "\n![slices](pipeline_slices.svg) ![lengths](pipeline_lengths.svg)\n")
        for name, chart in (("slices", slices_chart), ("lengths", lengths_chart)):
            path = f"bench/results/pipeline_{name}"
            with open(f"{path}.json", "w") as file:
                json.dump(chart, file, indent=1)
                file.write("\n")
            with open(f"{path}.json") as source, open(f"{path}.svg", "w") as picture:
                subprocess.run(["build/release/bench_chart"], check=True, stdin=source, stdout=picture)


main()
