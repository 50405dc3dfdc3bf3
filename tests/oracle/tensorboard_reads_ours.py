"""TensorBoard's own reader finds in our records what metrics.jsonl says, each point once, under Megatron-LM's names.

    $(scripts/oracle-env | tail -n 1) tests/oracle/tensorboard_reads_ours.py TENSORBOARD_DIR METRICS_JSONL

tests/cli/train/tensorboard_oracle_test.cc runs this on a run that was stopped and resumed.
"""

import json
import math
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

OF_ITERATIONS = {
    "learning-rate": "learning_rate",
    "batch-size": "global_batch_size",
    "lm loss": "loss",
    "loss-scale": "loss_scale",
    "grad-norm": "gradient_norm",
}
OF_COSTS = {
    "iteration-time": "seconds",
    "tokens-per-second": "tokens_per_second",
    "mfu": "mfu",
    "mem-allocated-bytes": "memory_bytes",
    "mem-planned-bytes": "planned_memory_bytes",
}
OF_VALIDATIONS = {"lm loss validation": "validation_loss", "lm loss validation ppl": "validation_perplexity"}


def main(folder, metrics):
    reader = EventAccumulator(folder, size_guidance={"scalars": 0})
    reader.Reload()
    rows = [json.loads(line) for line in open(metrics)]
    samples = {row["iteration"]: row["consumed_samples"] for row in rows if row["kind"] == "iteration"}
    seen = {"throughput"}

    def compare(tag, key, kind, step):
        expected = [(step(row), row[key]) for row in rows if row["kind"] == kind and key in row]
        found = [(event.step, event.value) for event in reader.Scalars(tag)]
        assert [at for at, _ in found] == [at for at, _ in expected], f"{tag}: {found}, not {expected}"
        for (_, ours), (_, theirs) in zip(found, expected):
            assert math.isclose(ours, theirs, rel_tol=2**-23), f"{tag}: {ours}, not {theirs}"  # fp32
        seen.add(tag)

    for tags, kind in ((OF_ITERATIONS, "iteration"), (OF_VALIDATIONS, "validation")):
        for tag, key in tags.items():
            compare(tag, key, kind, lambda row: row["iteration"])
            compare(f"{tag} vs samples", key, kind, lambda row: samples[row["iteration"]])
    for tag, key in OF_COSTS.items():
        if any(key in row for row in rows):
            compare(tag, key, "iteration", lambda row: row["iteration"])
    assert set(reader.Tags()["scalars"]) == seen, set(reader.Tags()["scalars"]) ^ seen


if __name__ == "__main__":
    main(*sys.argv[1:])
