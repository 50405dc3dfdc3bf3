"""Ways to run one training, each a process of its own, taking turns; the seconds of their updates."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

TERATRON = "build/release/teratron"
ARTICLES = pathlib.Path("../shared/data/wikitext103")


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


class ResidentWay(Way):
    """A way whose process stays, stopped by a signal while others have their turns: turns are then as short as an update or two,
    and a machine that becomes slower for a minute does so for all ways."""

    @contextlib.contextmanager
    def running(self, shape):
        self.save = self.folder / "resident"
        with open(f"{self.folder}.log", "w") as self.log:
            self.process = subprocess.Popen([TERATRON, "train", *map(str, [*shape, *self.flags]), "--save", self.save],
                                            stdout=self.log, stderr=subprocess.STDOUT,
                                            env={**os.environ, "XDG_CACHE_HOME": f"{self.folder}.cache"})
            try:
                self.seen = 0
                self.wait_for(2)
                yield
            finally:
                self.process.kill()
                self.process.wait()
                shutil.rmtree(self.save, ignore_errors=True)

    def updates(self):
        file = self.save / "metrics.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        return [json.loads(line) for line in lines if '"loss"' in line]

    def wait_for(self, count):
        """Lets it go on for so many updates. The signal comes within the next one, so that one's time means nothing."""
        self.process.send_signal(signal.SIGCONT)
        while len(self.updates()) < self.seen + count:
            if self.process.poll() is not None:
                sys.exit(f"{self.name} ended with {self.process.returncode}:\n{self.printed()}")
            time.sleep(0.02)
        self.process.send_signal(signal.SIGSTOP)
        self.seen = len(self.updates())

    def turn(self):
        self.wait_for(2)
        self.seconds.append(self.updates()[self.seen - 1]["seconds"])

    def share_of(self, other):
        """The median, over turns, of its time as a share of another's."""
        return statistics.median(mine / its for mine, its in zip(self.seconds, other.seconds))

    def printed(self):
        return pathlib.Path(self.log.name).read_text()


def write_articles(file):
    """An article a line of JSON. A title stands between single equals signs."""
    text = "".join((ARTICLES / f"wiki.{part}.tokens").read_text() for part in ("valid", "test"))
    articles = re.split(r"(?m)^(?= = [^=].* = $)", text)
    file.write_text("".join(json.dumps({"text": one}) + "\n" for one in articles if one.strip()))
