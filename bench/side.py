"""One side of a benchmark in which several programs take turns."""

import json
import subprocess
import sys


class Side:
    """One program that waits for "step N" between its turns."""

    def __init__(self, command, shape, **more):
        words = command + [word for name, value in {**shape, **more}.items() for word in (f"--{name}", str(value))]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ready = self.read()
        self.seconds, self.peak = [], 0

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.process.args} ended with {self.process.wait()}")
        return json.loads(line)

    def ask(self, request):
        print(request, file=self.process.stdin, flush=True)
        return self.read()

    def steps(self, count):
        answer = self.ask(f"step {count}")
        self.seconds += answer["seconds"]
        self.peak = answer["peak_rss_bytes"]

    def close(self):
        print("quit", file=self.process.stdin, flush=True)
        self.process.wait()


def cpu_name():
    with open("/proc/cpuinfo") as info:
        return next(line.split(":")[1].strip() for line in info if line.startswith("model name"))
