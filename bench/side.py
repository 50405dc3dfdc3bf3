"""Programs that take turns in a benchmark: each a process that answers a line of standard input with a line of JSON."""

import json
import subprocess
import sys


class Program:
    def __init__(self, command, **how):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **how)
        self.ready = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            print(f"{self.process.args} ended with {code}", file=sys.stderr)
            sys.exit(code if 0 < code < 128 else 1)  # it has said why
        return json.loads(line)

    def ask(self, request):
        print(request, file=self.process.stdin, flush=True)
        return self.read()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Side(Program):
    """Trains a model of some shape, for "step N" at a time."""

    def __init__(self, command, shape, **more):
        super().__init__(command + [word for name, value in {**shape, **more}.items() for word in (f"--{name}", str(value))])
        self.seconds, self.passes, self.peak = [], [], 0

    def steps(self, count):
        answer = self.ask(f"step {count}")
        self.seconds += answer["seconds"]
        self.passes += answer.get("passes", [])  # forward and backward alone
        self.peak = answer["peak_rss_bytes"]


def cpu_name():
    with open("/proc/cpuinfo") as info:
        return next(line.split(":")[1].strip() for line in info if line.startswith("model name"))
