"""The text-dedup side of bench/near_duplicates: its MinHash command, called in this process, with its own defaults and one process.

For each line {"input": FOLDER, "work": FOLDER} on standard input a line of JSON: the seconds, and the ids of the documents it keeps.
Written for text-dedup 0.4.
"""

import contextlib
import importlib.metadata
import json
import os
import sys
import time
from pathlib import Path

import datasets
from text_dedup import minhash


def dedup(source, work):
    """A folder for the caches of its own, or a later turn would find the results of an earlier one."""
    words = ["--path", "json", "--data_files", str(source), "--split", "train", "--column", "text", "--num_proc", "1",
             "--cache_dir", f"{work}/cache", "--output", f"{work}/kept"]
    minhash.main.main(words, standalone_mode=False)


def main():
    say = lambda **what: print(json.dumps(what), flush=True)
    datasets.disable_progress_bars()
    say(ready=True, version=importlib.metadata.version("text-dedup"))
    for line in sys.stdin:
        request = json.loads(line)
        source, = Path(request["input"]).iterdir()
        start = time.perf_counter()
        with open(os.devnull, "w") as log, contextlib.redirect_stderr(log), contextlib.redirect_stdout(log):
            dedup(source, request["work"])
        seconds = time.perf_counter() - start
        say(seconds=seconds, kept=[int(number) for number in datasets.load_from_disk(f"{request['work']}/kept")["id"]])


if __name__ == "__main__":
    main()
