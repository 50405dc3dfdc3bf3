"""`teratron finetune --task classify` ends where PyTorch ends, its models say in transformers what they say here, and
`fill-mask` predicts the tokens that transformers' pipeline predicts.

    $(scripts/oracle-env | tail -n 1) tests/oracle/classify_as_transformers.py TERATRON FOLDER

Small BERTs of random weights, without dropout. Ten updates, each of all examples: names for single texts, names for pairs, and
numbers by their squared error. As in finetune_as_pytorch.py, the difference of the weights must be at most 1e-4 of their
movement, and an eps of 1e-6 keeps gradients of zero from becoming steps. tests/cli/oracles_test.cc runs this.
"""

import csv
import json
import random
import subprocess
import sys
from pathlib import Path

import torch
import transformers

from finetune_as_pytorch import norm_of

WORDS = "rain snow wind sun fog hail tree bird fish road hill lake sand stone moss leaf".split()
NAMES = ["bad, really", "good", "so-so"]  # sorted; one needs quotes
EXAMPLES, UPDATES, RATE, DECAY, CLIP, EPS, BETAS = 24, 10, 2e-3, 0.1, 0.5, 1e-6, (0.9, 0.95)
LAYOUTS = ([], ["--tp", "2", "--pp", "2"])


def config(**more):
    return transformers.BertConfig(
        num_hidden_layers=2, num_attention_heads=2, hidden_size=32, intermediate_size=64, vocab_size=5 + len(WORDS),
        max_position_embeddings=40, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **more)


def save(model, folder, std=0.2):
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "LayerNorm" not in name:
                p.normal_(std=std)
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("".join(f"{t}\n" for t in ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    return transformers.BertTokenizer(str(folder / "vocab.txt"))


def words(draw, least=1):
    return " ".join(draw.choices(WORDS, k=draw.randint(least, 9)))


def run(*arguments):
    done = subprocess.run([str(word) for word in arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def train_with_pytorch(model, batch, labels):
    groups = [dict(params=[p for p in model.parameters() if p.dim() > 1], weight_decay=DECAY),
              dict(params=[p for p in model.parameters() if p.dim() == 1], weight_decay=0.0)]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=BETAS, eps=EPS)
    norms = []
    for _ in range(UPDATES):
        optimizer.zero_grad()
        model(**batch, labels=labels).loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)))
        optimizer.step()
    assert max(norms) > CLIP, norms  # or clipping is not tested
    return model.state_dict()


def load(folder):
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation="eager").float().eval()
    return model, {name: value.detach().clone() for name, value in model.state_dict().items()}


def check_predictions(teratron, model, reading, data, batch, outputs, numbers):
    """Those of `eval classify` beside transformers'."""
    run(teratron, "eval", "classify", "--load", model, "--data", data, *reading, "--overwrite", "--predictions", data.with_suffix(".jsonl"))
    lines = [json.loads(line) for line in data.with_suffix(".jsonl").read_text().splitlines()]
    assert len(lines) == EXAMPLES
    for line, logits in zip(lines, outputs):
        if numbers:
            assert abs(line["number"] - float(logits)) <= 1e-4, (line, logits)
            continue
        probabilities = logits.softmax(-1)
        assert list(line["probabilities"]) == NAMES
        assert max(abs(p - float(q)) for p, q in zip(line["probabilities"].values(), probabilities)) <= 1e-4
        assert line["label"] == NAMES[int(logits.argmax())]


def check_task(teratron, folder, pairs, numbers):
    draw = random.Random(7 + pairs + 2 * numbers)
    torch.manual_seed(3)
    folder.mkdir()
    start, data = folder / "start", folder / "data.csv"
    kind = dict(num_labels=1) if numbers else dict(id2label=dict(enumerate(NAMES)), label2id={n: i for i, n in enumerate(NAMES)})
    tokenizer = save(transformers.BertForSequenceClassification(config(**kind)), start)
    rows = [(words(draw), words(draw), round(draw.uniform(-2, 5), 2) if numbers else draw.randrange(3)) for _ in range(EXAMPLES)]
    with open(data, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["first", "second", "score"])
        writer.writerows([a, b, y if numbers else NAMES[y]] for a, b, y in rows)
    batch = tokenizer([a for a, _, _ in rows], [b for _, b, _ in rows] if pairs else None, padding=True, return_tensors="pt")
    labels = torch.tensor([y for _, _, y in rows])
    model, before = load(start)
    theirs = train_with_pytorch(model.train(), batch, labels)
    movement = norm_of({name: theirs[name] - before[name] for name in before})
    reading = ["--text-column", "first", "--label-column", "score", *(["--pair-column", "second"] if pairs else [])]
    for layout in LAYOUTS:
        saved = folder / ("run" + "".join(layout))
        run(teratron, "finetune", "--task", "classify", "--load", start, "--train-data", data, "--valid-data", data, *reading,
            "--epochs", UPDATES, "--global-batch-size", EXAMPLES, "--micro-batch-size", 6, "--lr", RATE, "--lr-decay-style", "constant",
            "--lr-warmup-fraction", 0, "--weight-decay", DECAY, "--clip-grad", CLIP, "--adam-eps", EPS, "--adam-beta1", BETAS[0],
            "--adam-beta2", BETAS[1], "--seq-length", 30, "--peak-tflops", 1, "--save", saved, *layout)
        exported = folder / (saved.name + "-hf")
        run(teratron, "convert", "--from", "teratron", "--to", "hf", saved, exported)
        ours_model, ours = load(exported)
        assert ours.keys() == theirs.keys()
        difference = norm_of({name: ours[name] - theirs[name] for name in theirs})
        print(f"pairs {pairs}, numbers {numbers}, {' '.join(layout) or 'one rank'}: ratio {difference / movement:.3e}")
        assert difference <= 1e-4 * movement
        if numbers:
            assert ours_model.config.problem_type == "regression" and ours_model.config.num_labels == 1
        else:
            assert [ours_model.config.id2label[i] for i in range(3)] == NAMES
            assert ours_model.config.label2id == {name: i for i, name in enumerate(NAMES)}
    with torch.no_grad():
        outputs = ours_model(**batch).logits
    for model in (saved, exported):
        check_predictions(teratron, model, reading, data, batch, outputs, numbers)


def check_masks(teratron, folder):
    draw = random.Random(5)
    torch.manual_seed(4)
    folder.mkdir()
    tokenizer = save(transformers.BertForMaskedLM(config(tie_word_embeddings=True)), folder / "hf", std=0.4)
    model = transformers.BertForMaskedLM.from_pretrained(folder / "hf").eval()
    pipeline = transformers.pipeline("fill-mask", model=model, tokenizer=tokenizer, top_k=7)
    texts = []
    for masks in [1] * 12 + [2, 3]:
        tokens = words(draw, 4).split()
        for at in draw.sample(range(len(tokens)), masks):
            tokens[at] = "[MASK]"
        texts.append(" ".join(tokens))
    (folder / "texts").write_text("".join(text + "\n" for text in texts))
    for layout in ([], ["--tp", "2", "--pp", "2"]):
        out = run(teratron, "fill-mask", "--load", folder / "hf", "--prompts", folder / "texts", "--top-k", 7, "--batch-size", 4,
                  "--json", "-", *layout)
        lines = [json.loads(line) for line in out.splitlines()]
        assert [line["text"] for line in lines] == texts
        for line, text in zip(lines, texts):
            theirs = pipeline(text)
            theirs = theirs if isinstance(theirs[0], list) else [theirs]
            assert len(theirs) == len(line["masks"]) == text.count("[MASK]")
            for mask, candidates in zip(line["masks"], theirs):
                assert [t["token"] for t in mask["tokens"]] == [c["token"] for c in candidates], text
                assert [t["token_str"] for t in mask["tokens"]] == [c["token_str"] for c in candidates]
                assert max(abs(t["score"] - c["score"]) for t, c in zip(mask["tokens"], candidates)) <= 1e-4
    print("the same words in the places of masks")


def main(teratron, folder):
    folder = Path(folder)
    for pairs, numbers in ((False, False), (True, False), (True, True)):
        check_task(teratron, folder / f"task-{pairs}-{numbers}", pairs, numbers)
    check_masks(teratron, folder / "masks")


if __name__ == "__main__":
    main(*sys.argv[1:])
