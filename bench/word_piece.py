"""Drives bench/word_piece: starts each side as a process of its own on the same core, lets them take turns, prints medians.

Of the processor's time, not the clock's: on one thread they are the same, but where the machine has other work.
"""

import argparse
import datetime
import os
import statistics
import sys
from pathlib import Path

from side import Program, cpu_name, publish

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
FILES = [DATA / name for name in ("wikitext103/wiki.test.tokens", "tinyshakespeare/input.txt", "race/dev.middle.jsonl",
                                  "mnli-subset/mnli_matched.tsv")]
VOCABULARY = DATA / "bert-vocab"
SCRIPTS = Path("build/bench-word-piece")


def other_scripts(folder):
    """Texts that are not ASCII: letters with accents, another alphabet, ideographs. Made of words of random letters, the
    more frequent the shorter they are."""
    import random
    rng = random.Random(1)
    kinds = {"accents": [(0x61, 0x7A)] * 4 + [(0xE0, 0xF6)], "cyrillic": [(0x430, 0x44F)], "chinese": [(0x4E00, 0x5200)]}
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, ranges in kinds.items():
        words = ["".join(chr(rng.randint(*rng.choice(ranges))) for _ in range(1 + i % 9)) for i in range(20000)]
        lines = [" ".join(words[int(len(words) ** rng.random()) - 1] for _ in range(20)) for _ in range(2000)]
        files.append(folder / f"{name} (made)")
        files[-1].write_text("\n".join(lines))
    return files


class OneCore(Program):
    def __init__(self, command, core):
        super().__init__(command, env={**os.environ, "RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
                         preexec_fn=lambda: os.sched_setaffinity(0, {core}))


def measure(sides, request, rounds):
    """The median seconds of each side."""
    answers = [[side.ask(request) for side in sides] for _ in range(rounds)]
    if len({answer["tokens"] for answer in answers[0]}) > 1:
        sys.exit(f"{request}: the sides differ: {answers[0]}")
    return [statistics.median(pair[i]["seconds"] for pair in answers) for i in range(len(sides))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--binary", default="build/release/bench_word_piece")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    files = options.files or FILES + other_scripts(SCRIPTS)
    lines = ["| text | MB | ids, MB/s: Teratron | HF tokenizers | ratio | with places: Teratron | HF tokenizers | ratio |",
             "|---" * 8 + "|"]
    core = max(os.sched_getaffinity(0))
    sides = [OneCore([options.binary, str(VOCABULARY)], core),
             OneCore([sys.executable, str(Path(__file__).parent / "peers" / "hugging_face_word_piece.py"),
                      str(VOCABULARY)], core)]
    for file in files:
        size = file.stat().st_size / 1e6
        row = f"| {file.name} | {size:.2f} |"
        for request in ("ids", "spans"):
            ours, peer = measure(sides, f"{request} {file.resolve()}", options.rounds)
            row += f" {size / ours:.1f} | {size / peer:.2f} | {peer / ours:.1f}x |"
        lines.append(row)
        print(row, file=sys.stderr, flush=True)
    for side in sides:
        side.close()
    text = (f"{datetime.date.today()}, {cpu_name()}, one core; tokenizers {sides[1].ready['tokenizers']}; BERT's uncased vocabulary, "
            f"a text a line; processor time, medians of {options.rounds} interleaved rounds, no word known beforehand; "
            f"`bench/word_piece {' '.join(sys.argv[1:])}`\n\n" + "\n".join(lines) + "\n")
    publish("word_piece", text, options.save)


main()
