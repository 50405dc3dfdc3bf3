"""Training runs: starting one, and reading what it left."""

import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from .program import failure_of, program
from .tensors import tensors_of


class Run:
    """What a run left in its folder of --save."""

    def __init__(self, folder):
        self.folder = Path(folder)
        if not (self.folder / "metrics.jsonl").is_file():
            raise FileNotFoundError(f"'{folder}' holds no metrics.jsonl, so no run was saved there")

    def metrics(self, kind=None):
        """Lines of metrics.jsonl as dicts; of one kind ("iteration", "validation", "score", "sample"), or all."""
        lines = [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text(encoding="utf-8").split("\n")[:-1]]
        return [line for line in lines if kind is None or line["kind"] == kind]

    def frame(self, kind="iteration"):
        """metrics() as a pandas.DataFrame with the iteration as its index."""
        import pandas

        lines = self.metrics(kind)
        return pandas.DataFrame(lines).set_index("iteration") if lines else pandas.DataFrame()

    @property
    def checkpoints(self):
        """Iterations of the checkpoints, ascending."""
        return sorted(int(path.name[5:]) for path in self.folder.glob("iter_*") if path.name[5:].isdigit())

    def tensors(self, iteration=None):
        """Weights of a checkpoint, the last one by default: numpy arrays by the names in its files."""
        if not self.checkpoints:
            raise FileNotFoundError(f"'{self.folder}' holds no checkpoint")
        folder = self.folder / f"iter_{self.checkpoints[-1] if iteration is None else iteration:07d}"
        tensors = {}
        for file in sorted(folder.glob("model*.safetensors")):
            tensors.update(tensors_of(file))
        return tensors


def toml_of(settings):
    """A settings file: keys are flags with underscores; values are texts, numbers, booleans, or lists of them."""

    def value_of(value):
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(map(value_of, value)) + "]"
        if isinstance(value, Path):
            value = str(value)
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

    return "".join(f"{key} = {value_of(value)}\n" for key, value in settings.items() if value is not None)


def _common_lines(a, b):
    """Bytes of the lines that both begin with."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[:middle] == b[:middle] else (low, middle - 1)
    return a.rfind(b"\n", 0, low) + 1


class _NewLines:
    """Lines that a run adds to metrics.jsonl.

    One that resumes, at its start or after a failure, replaces the file by one without the lines that it will write
    again.
    """

    def __init__(self, path):
        self.path = path
        self.known = bytearray(path.read_bytes() if path.is_file() else b"")
        self.file = path.stat().st_ino if path.is_file() else None

    def read(self):
        if not self.path.is_file():
            return
        with self.path.open("rb") as file:
            inode = os.fstat(file.fileno()).st_ino
            if inode != self.file:
                self.file, self.known = inode, self.known[: _common_lines(self.known, file.read())]
            file.seek(len(self.known))
            new = file.read()
        new = new[: new.rfind(b"\n") + 1]
        self.known += new
        yield from map(json.loads, new.split(b"\n")[:-1])


def train(settings, on_line=None):
    """Runs `teratron train` with a dict of settings ("train_iters": 200), "save" among them, and returns its Run.

    on_line: called with each line of metrics.jsonl, soon after it is written; where it returns False, the run ends in
    good order after a checkpoint. Failure: the run did not succeed.
    """
    settings = dict(settings)
    if not settings.get("save"):
        raise ValueError("settings need \"save\", the folder of the run")
    lines = _NewLines(Path(settings["save"]) / "metrics.jsonl")
    stopped = False
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "settings.toml"
        config.write_text(toml_of(settings), encoding="utf-8")
        with (Path(folder) / "errors").open("w+", encoding="utf-8", errors="replace") as errors:
            process = subprocess.Popen([str(program()), "train", "--config", str(config)], stdout=subprocess.DEVNULL, stderr=errors)
            try:
                while True:
                    ended = process.poll() is not None
                    for line in lines.read():
                        if on_line is not None and on_line(line) is False and not stopped:
                            stopped = True
                            process.send_signal(signal.SIGTERM)
                    if ended:
                        break
                    time.sleep(0.1)
            except BaseException:
                process.send_signal(signal.SIGTERM)
                process.wait()
                raise
            errors.seek(0)
            if process.returncode != 0 and not (stopped and process.returncode == 128 + signal.SIGTERM):
                raise failure_of(process.returncode, errors.read())
    return Run(settings["save"])
