"""Calculon (github.com/calculon-ai/calculon, arXiv 2310.02255) on the published runs that it can express, beside ours:
GPTs by tensor, pipeline and data parallelism, in 16 bits and, on H100, in 8. Runs of FSDP, of Llamas (their gated MLP), of
context parallelism and of tensor parallelism beyond a host it cannot express.

    git clone https://github.com/calculon-ai/calculon
    for source in selene megatron-gpt vtrain bloom nemo dgxc; do
      build/release/teratron plan --reproduce $source --json $source.json
    done
    python3 bench/calculon.py calculon .      # the folder of these files; needs numpy, which Calculon reads with

Its system files are its own: a100_80g for A100, h100_80g_nvl8 for H100, with room for all (a100_80e for memory) and the
share of the network that a run's hosts have. It has no layer of a vocabulary, so its rates are of blocks alone, as its
own validation compares them.
"""

import collections
import json
import logging
import pathlib
import sys
import tomllib

DATA = pathlib.Path(__file__).resolve().parent.parent / "data/published"
SOURCES = ["selene", "megatron-gpt", "vtrain", "bloom", "nemo", "dgxc"]
SYSTEMS = {"dgx-a100": "a100_80g.json", "dgx-h100": "h100_80g_nvl8.json"}


def is_gpt(run, model):
    return model["family"] == "gpt2" and run.get("context", 1) == 1 and run["sharding"] != "weights"


def stats_of(calculon, llm, checkout, run, model):
    recompute = "full" if "block" in run["recompute"] else "attn_only" if "scores" in run["recompute"] else "none"
    is_split = run.get("sequence_parallel", False)
    data = run["devices"] // run["tensor"] // run["stages"]
    execution = {
        "num_procs": run["devices"], "tensor_par": run["tensor"], "pipeline_par": run["stages"], "data_par": data,
        "tensor_par_net": 0, "pipeline_par_net": 1, "data_par_net": 1, "batch_size": run["batch"],
        "microbatch_size": run["micro_batch"], "datatype": "float8" if run["precision"] == "fp8" else "float16", "fused_activation": False,
        "attention_type": "multihead", "activation_recompute": recompute, "pipeline_interleaving": run.get("virtual", 1),
        "optimizer_sharding": run["sharding"] != "none" and data > 1, "tensor_par_comm_type": "rs_ag" if is_split else "ar",
        "tensor_par_overlap": "none", "seq_par_ag_redo": is_split and recompute == "attn_only",
        "data_par_overlap": False, "weight_offload": False, "activations_offload": False, "optimizer_offload": False,
        "training": True}
    shape = {"hidden": model["hidden"], "feedforward": 4 * model["hidden"], "seq_size": run["tokens"], "attn_heads": model["heads"],
             "attn_size": model["hidden"] // model["heads"], "num_blocks": model["layers"]}
    file = "a100_80e.json" if "state_gib" in run else SYSTEMS[run["cluster"]]
    description = calculon.read_json_file(str(checkout / "systems" / file))
    description["mem1"]["GiB"] = 80_000  # where it does not fit by its count, it did
    description["networks"][1]["bandwidth"] *= run.get("network", 1)
    system = calculon.System(description)
    program = llm.Llm(llm.Llm.Application(shape), logging.getLogger())
    program.compile(system, llm.Llm.Execution.from_json(execution))
    program.run(system)
    return program.get_stats_json(False)


def blocks_flops(run, model):
    """Operations of an update as the source counts them (arXiv 2104.04473), its vocabulary too."""
    h, l, s = model["hidden"], model["layers"], run["tokens"]
    layers = (96 if run.get("counts") == "2104.04473" else 72) * l * h * h * (1 + s / (6 * h))
    return run["batch"] * s * (layers + 6 * h * model["vocabulary"])


def measured_by_calculon(stats, run, model):
    gib = 1024**3
    if "step_seconds" in run:
        yield "", run["step_seconds"], stats["total_time"]
    if "tokens_per_second" in run:
        yield "", run["tokens_per_second"], run["batch"] * run["tokens"] / stats["total_time"] / run["devices"]
    if "teraflops" in run:
        yield "", run["teraflops"], blocks_flops(run, model) / stats["total_time"] / run["devices"] / 1e12
    if "state_gib" in run:
        state = stats["weight_space"] + stats["weight_grad_space"] + stats["optimizer_space"]
        yield ", state", run["state_gib"], state / gib
        yield ", activations", run["activations_gib"], stats["act_space"] / gib


def main():
    checkout = pathlib.Path(sys.argv[1])
    sys.path.insert(0, str(checkout))
    import calculon
    from calculon import llm
    errors, others = {}, collections.Counter()
    for source in SOURCES:
        cells = json.loads((pathlib.Path(sys.argv[2]) / f"{source}.json").read_text())["cells"]
        ours = {(cell["table"], cell["name"]): cell for cell in cells}
        data = tomllib.loads((DATA / f"{source}.toml").read_text())
        models = {model["name"]: model for model in data["models"]}
        for run in data["runs"]:
            model = models[run["model"]]
            if not is_gpt(run, model):
                continue
            try:
                stats = stats_of(calculon, llm, checkout, run, model)
            except Exception as error:  # what it cannot express it says so, by assertions too
                print(f"{source}: {run['name']:60} cannot be expressed: {type(error).__name__} {error}")
                others[source] += 1
                continue
            name = run["name"].removeprefix(run["table"] + ": ").removeprefix(run["table"] + ", ")
            for what, published, theirs in measured_by_calculon(stats, run, model):
                cell = ours[run["table"], name + what]
                their_error, our_error = theirs / published - 1, cell["ours"] / published - 1
                is_fitted = cell["fitted"] and not what
                for group in [source, "all"]:
                    errors.setdefault((group, "memory" if what else "speed"), []).append((their_error, our_error, is_fitted))
                print(f"{source}: {run['name'] + what:60} {published:9.4g}  Calculon {100 * their_error:+6.1f} %  "
                      f"ours {100 * our_error:+6.1f} %{'  fitted' if is_fitted else ''}")
    print("GPTs that it cannot express:", dict(others))
    for (source, kind), pairs in errors.items():
        for half, chosen in [("all", pairs), ("judging half", [p for p in pairs if not p[2]])]:
            if not chosen:
                continue
            text = [f"{who} {100 * sum(abs(p[i]) for p in chosen) / len(chosen):.1f} % in the mean, {100 * max(abs(p[i]) for p in chosen):.1f} % at worst"
                    for i, who in enumerate(["Calculon", "ours"])]
            print(f"{source}, {kind}, {half} ({len(chosen)}): {'; '.join(text)}")


main()
