"""Programs that take turns in a benchmark: each a process that answers a line of standard input with a line of JSON."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

SAID = set()


def give_up(why):
    print(f"error: {why}", file=sys.stderr)
    sys.exit(3)


def require(*modules):
    """Ends the program where a peer's Python modules are missing."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        give_up(f"{sys.executable} lacks {', '.join(missing)}, which we are compared with; take the python that "
                "scripts/oracle-env prints")


class Program:
    def __init__(self, command, **how):
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **how)
        except OSError as error:
            give_up(f"{command[0]} does not start: {error.strerror} (scripts/setup build release {command[0].split('/')[-1]})")
        self.ready = self.read()
        self.say_instructions()

    def say_instructions(self):
        """Once for each kind of program, what it uses of the processor."""
        line = f"{Path(next(word for word in self.process.args if word != sys.executable)).stem}: {self.ready.get('instructions')}"
        if self.ready.get("instructions") and line not in SAID:
            print(line, file=sys.stderr, flush=True)
            SAID.add(line)

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            print(f"error: {' '.join(self.process.args)} ended with {code}; why stands above", file=sys.stderr)
            sys.exit(code if 0 < code < 128 else 1)
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
        self.seconds, self.passes, self.processor_seconds, self.peak = [], [], [], 0

    def steps(self, count):
        answer = self.ask(f"step {count}")
        self.seconds += answer["seconds"]
        self.passes += answer.get("passes", [])  # forward and backward alone
        self.processor_seconds += answer.get("processor_seconds", [])
        self.peak = answer["peak_rss_bytes"]


def publish(page, text, save):
    """Prints a benchmark's result; `save`: adds it to the page's results, too."""
    print(text)
    if save:
        with open(f"bench/results/{page}.md", "a") as file:
            file.write("\n" + text)


def cpu_name():
    with open("/proc/cpuinfo") as info:
        return next(line.split(":")[1].strip() for line in info if line.startswith("model name"))
