"""Ways to run one training, each a process of its own, taking turns; the seconds of their updates."""

import json
import re
import shutil
import statistics
import subprocess

TERATRON = "build/release/teratron"


def teratron(*words):
    return subprocess.run([TERATRON, *map(str, words)], check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True).stdout


class Way:
    def __init__(self, name, flags, folder):
        self.name, self.flags, self.folder, self.seconds = name, flags, folder / re.sub(r"\W+", "-", name), []

    def run(self, shape, number):
        """Returns what the run printed."""
        save = self.folder / str(number)
        printed = teratron("train", *shape, *self.flags, "--save", save)
        lines = [json.loads(line) for line in (save / "metrics.jsonl").read_text().splitlines()]
        shutil.rmtree(save)
        self.seconds += [line["seconds"] for line in lines if "loss" in line][1:]  # the first takes memory
        return printed

    def median(self):
        return statistics.median(self.seconds)


def take_turns(ways, shape, rounds):
    """Returns what the last run printed."""
    for number in range(rounds):
        for way in ways:
            printed = way.run(shape, number)
    return printed
