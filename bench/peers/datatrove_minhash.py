"""The datatrove side of bench/near_duplicates: its four steps of MinHash, one task after another in this process.

    datatrove_minhash.py spacy|spaces

Its own defaults: 5-grams of words of the simplified text, 14 buckets of 8 minima. "spacy" is how it cuts English into words by
default, "spaces" its fallback for languages without a tokenizer. For each line {"input": FOLDER, "work": FOLDER} on standard input
a line of JSON: the seconds. What it keeps lies in WORK/kept as JSON lines. Written for datatrove 0.10.
"""

import contextlib
import importlib.metadata
import json
import os
import sys
import time

os.environ["LOGURU_AUTOINIT"] = "0"  # it logs each step
from datatrove.executor.local import LocalPipelineExecutor
from datatrove.pipeline.dedup import MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter, MinhashDedupSignature
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.word_tokenizers import WhitespaceTokenizer

LANGUAGE = {"spacy": lambda: "eng", "spaces": WhitespaceTokenizer}[sys.argv[1]]


def execute(work, name, tasks, steps):
    LocalPipelineExecutor(pipeline=steps, tasks=tasks, workers=1, logging_dir=f"{work}/logs/{name}").run()


def dedup(source, work):
    config = MinhashConfig()
    execute(work, "signatures", 1, [JsonlReader(source), MinhashDedupSignature(f"{work}/signatures", config=config, language=LANGUAGE())])
    execute(work, "buckets", config.num_buckets, [MinhashDedupBuckets(f"{work}/signatures", f"{work}/buckets", config=config)])
    execute(work, "cluster", 1, [MinhashDedupCluster(f"{work}/buckets", f"{work}/remove", config=config)])
    execute(work, "filter", 1, [JsonlReader(source), MinhashDedupFilter(f"{work}/remove"), JsonlWriter(f"{work}/kept", compression=None)])


def main():
    say = lambda **what: print(json.dumps(what), flush=True)
    say(ready=True, version=importlib.metadata.version("datatrove"))
    for line in sys.stdin:
        request = json.loads(line)
        start = time.perf_counter()
        with open(os.devnull, "w") as log, contextlib.redirect_stderr(log), contextlib.redirect_stdout(log):
            dedup(request["input"], request["work"])
        say(seconds=time.perf_counter() - start)


if __name__ == "__main__":
    main()
