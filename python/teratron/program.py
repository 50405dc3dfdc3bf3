"""The program of the package."""

import os
import subprocess
import sys
from pathlib import Path


class Failure(RuntimeError):
    """The program ended with an exit code other than 0.

    code: 1 a bug of Teratron, 2 wrong input, 3 the machine failed, 128 + N ended in good order after signal N.
    message: what it said, without "error: ".
    """

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
        self.message = message


def program():
    """Path of the program: TERATRON, if that is set, or the package's own."""
    path = Path(os.environ.get("TERATRON", "") or Path(__file__).with_name("bin") / "teratron")
    if not path.is_file():
        raise FileNotFoundError(f"there is no program '{path}'; install the wheel, or set TERATRON to one that was built")
    return path


def failure_of(code, errors):
    """The Failure of an exit code (negative: a signal, as subprocess has it) and of standard error's text."""
    lines = errors.strip().splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith("error: ")), max(len(lines) - 1, 0))
    message = "\n".join(lines[begin:]).replace("error: ", "", 1) if lines else ""
    return Failure(128 - code if code < 0 else code, message or f"teratron ended with exit code {code}")


def run(*words, input=None):
    """Runs `teratron WORDS...` to its end and returns what it printed. Failure: it did not succeed.

    input: text for its standard input, or bytes. Bytes that are no UTF-8 are surrogates, as in names of files.
    """
    if isinstance(input, str):
        input = input.encode("utf-8", "surrogateescape")
    done = subprocess.run([str(program()), *map(str, words)], input=input, capture_output=True, check=False)
    if done.returncode != 0:
        raise failure_of(done.returncode, done.stderr.decode("utf-8", "replace"))
    return done.stdout.decode("utf-8", "surrogateescape")


def main():
    """The command `teratron` of the package: becomes the program."""
    path = program()
    os.execv(path, [str(path), *sys.argv[1:]])
