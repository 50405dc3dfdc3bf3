"""`teratron eval mnli|qqp` gives every pair the label that transformers gives it by name, in whatever order id2label is.

    $(scripts/oracle-env | tail -n 1) tests/oracle/labels_as_transformers.py TERATRON FOLDER

Models of random weights have their labels in every order, in small letters and in capitals. Each is read as transformers saved
it, converted, and converted back, and transformers reads what came back. A fine-tuned model of ours, exported, must name its
answers in transformers as `finetune` wrote them. tests/cli/oracles_test.cc runs this.
"""

import itertools
import random
import subprocess
import sys
from pathlib import Path

import torch
import transformers

WORDS = "rain snow wind sun fog hail tree bird fish road hill lake sand stone moss leaf".split()
TASKS = {"mnli": ["contradiction", "entailment", "neutral"], "qqp": ["not_duplicate", "duplicate"]}
HEADERS = {"mnli": "gold_label\tsentence1\tsentence2\n", "qqp": "is_duplicate\tquestion1\tquestion2\n"}


def make_model(folder, names, seed):
    torch.manual_seed(seed)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    config = transformers.BertConfig(
        num_hidden_layers=1, num_attention_heads=2, hidden_size=16, intermediate_size=64, vocab_size=len(vocabulary),
        max_position_embeddings=40, id2label=dict(enumerate(names)), label2id={name: i for i, name in enumerate(names)})
    model = transformers.BertForSequenceClassification(config).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "LayerNorm.weight" not in name:
                p.normal_(std=0.4)
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("".join(token + "\n" for token in vocabulary))


def answers_of_transformers(folder, pairs):
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = transformers.BertTokenizer(str(folder / "vocab.txt"))
    with torch.no_grad():
        return [model.config.id2label[int(model(**tokenizer(a, b, return_tensors="pt")).logits.argmax())] for a, b in pairs]


def main(teratron, folder):
    def run(*words):
        subprocess.run([teratron, *map(str, words)], check=True, capture_output=True)

    folder, draw = Path(folder), random.Random(3)
    pairs = [tuple(" ".join(draw.choices(WORDS, k=draw.randint(1, 8))) for _ in "ab") for _ in range(40)]

    def plain(name):
        return name.lower().replace(" ", "_")

    def written(task, name):
        return str(TASKS[task].index(plain(name))) if task == "qqp" else plain(name)

    def check(task, model, expected):
        (folder / "pairs.tsv").write_text(HEADERS[task] + "".join(
            f"{label}\t{a}\t{b}\n" for label, (a, b) in zip(expected, pairs)))
        run("eval", task, "--load", model, "--data", folder / "pairs.tsv", "--overwrite", "--predictions", folder / "answers.tsv")
        answers = [line.split("\t")[1] for line in (folder / "answers.tsv").read_text().splitlines()[1:]]
        assert answers == expected, (task, model, answers, expected)

    said = {task: set() for task in TASKS}
    for task, names in TASKS.items():
        for number, order in enumerate(itertools.permutations(names)):
            if number % 2 == 1:
                order = [name.upper().replace("_", " ") for name in order]
            theirs, ours, back = (folder / f"{task}-{number}-{kind}" for kind in ("theirs", "ours", "back"))
            make_model(theirs, order, number)
            expected = [written(task, name) for name in answers_of_transformers(theirs, pairs)]
            said[task] |= set(expected)
            run("convert", "--from", "hf", "--to", "teratron", theirs, ours)
            run("convert", "--from", "teratron", "--to", "hf", ours, back)
            for model in (theirs, ours, back):
                check(task, model, expected)
            assert [written(task, name) for name in answers_of_transformers(back, pairs)] == expected
    assert all(len(said[task]) == len(names) for task, names in TASKS.items()), "every label is an answer somewhere"

    start = folder / "mnli-3-theirs"  # of an order that is not ours
    data = folder / "mnli.tsv"
    data.write_text(HEADERS["mnli"] + "".join(f"{draw.choice(TASKS['mnli'])}\t{a}\t{b}\n" for a, b in pairs))
    run("finetune", "--task", "mnli", "--load", start, "--train-data", data, "--valid-data", data, "--epochs", "1",
        "--global-batch-size", "8", "--lr", "1e-3", "--save", folder / "tuned", "--peak-tflops", "1")
    run("convert", "--from", "teratron", "--to", "hf", folder / "tuned" / "best", folder / "tuned-hf")
    check("mnli", folder / "tuned" / "best", answers_of_transformers(folder / "tuned-hf", pairs))
    print("the same answers by name")


if __name__ == "__main__":
    main(*sys.argv[1:])
