"""`teratron finetune --task embed` ends where PyTorch ends with sentence-transformers' losses, and what it exports gives the
same vectors there.

    $(scripts/oracle-env | tail -n 1) tests/oracle/vectors_as_sentence_transformers.py TERATRON FOLDER

Small models of random weights, without dropout. Ten updates of all examples, which are one another's negatives: pairs,
pairs with a text that does not belong to them, and similarities, of BERT, DistilBERT and RoBERTa, in several layouts. The
losses are written out here by their published definitions, MultipleNegativesRankingLoss with a scale of 20 and
CosineSimilarityLoss, and are those of the library where it is installed. As in finetune_as_pytorch.py, the difference of the
weights must be at most 1e-4 of their movement. With micro-batches that are a part of an update, the layout changes nothing:
there the order of the epoch decides the groups. tests/cli/oracles_test.cc runs this.
"""

import csv
import importlib.util
import json
import random
import sys
from pathlib import Path

import numpy
import scipy.stats
import torch
import transformers

from classify_as_transformers import BETAS, CLIP, DECAY, EPS, EXAMPLES, RATE, UPDATES, run, train_with_pytorch
from encoders_as_transformers import make_tokenizer
from finetune_as_pytorch import norm_of

SCALE = 20
LAYOUTS = ([], ["--tp", "2"], ["--pp", "2"], ["--tp", "2", "--pp", "2"])
WORDS = "rain snow wind sun fog hail tree bird fish road hill lake sand stone moss leaf".split()


def make_model(kind, folder, draw):
    tokenizer, vocabulary = make_tokenizer("roberta" if kind == "roberta" else "distilbert", folder, draw)
    none = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    shape = dict(num_hidden_layers=2, num_attention_heads=2, hidden_size=32, intermediate_size=64, vocab_size=vocabulary)
    if kind == "bert":
        model = transformers.BertModel(transformers.BertConfig(max_position_embeddings=40, **shape, **none))
    elif kind == "roberta":
        model = transformers.RobertaModel(transformers.RobertaConfig(
            max_position_embeddings=42, type_vocab_size=1, layer_norm_eps=1e-5, **shape, **none))
    else:
        model = transformers.DistilBertModel(transformers.DistilBertConfig(
            n_layers=2, n_heads=2, dim=32, hidden_dim=64, vocab_size=vocabulary, max_position_embeddings=40, dropout=0.0,
            attention_dropout=0.0))
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" not in name.lower():
                p.normal_(std=0.2)
    model.save_pretrained(folder)
    return tokenizer


def load(folder):
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").float().eval()
    return model, {name: value.detach().clone() for name, value in model.state_dict().items() if "pooler" not in name}


def without_unused_positions(weights, kind):
    """RoBERTa's first two positions, which no token has, are written as zeros."""
    return {name: value[2:] if kind == "roberta" and "position_embeddings" in name else value for name, value in weights.items()}


def pooled(model, batch, pooling):
    hidden = model(**batch).last_hidden_state
    if pooling == "cls":
        return hidden[:, 0]
    mask = batch["attention_mask"].unsqueeze(-1).float()
    return (hidden * mask).sum(1) / mask.sum(1)


class Learner(torch.nn.Module):
    """A model whose output has the loss of all examples; its pooler, which no loss reads, is left out."""

    def __init__(self, model, pooling):
        super().__init__()
        model.pooler = None
        self.model, self.pooling = model, pooling

    def forward(self, batches, labels):
        first, *others = [torch.nn.functional.normalize(pooled(self.model, batch, self.pooling), dim=-1) for batch in batches]
        if labels.dtype.is_floating_point:
            loss = ((first * others[0]).sum(-1) - labels).square().mean()
        else:
            loss = torch.nn.functional.cross_entropy(first @ torch.cat(others).T * SCALE, labels)
        return transformers.utils.ModelOutput(loss=loss)


def check_losses_of_library():
    """The definitions above beside the library's own, on random vectors."""
    if importlib.util.find_spec("sentence_transformers") is None:
        return print("sentence-transformers is not installed: its losses and its reading of our folders are not compared")
    from sentence_transformers import losses

    class Same(torch.nn.Module):
        def forward(self, features):
            return features

    torch.manual_seed(1)
    vectors = [{"sentence_embedding": torch.randn(7, 5)} for _ in range(3)]
    unit = [torch.nn.functional.normalize(v["sentence_embedding"], dim=-1) for v in vectors]
    ours = torch.nn.functional.cross_entropy(unit[0] @ torch.cat(unit[1:]).T * SCALE, torch.arange(7))
    theirs = losses.MultipleNegativesRankingLoss(Same())(vectors, None)
    assert abs(float(ours - theirs)) <= 1e-5, (ours, theirs)
    labels = torch.rand(7)
    ours = ((unit[0] * unit[1]).sum(-1) - labels).square().mean()
    theirs = losses.CosineSimilarityLoss(Same())(vectors[:2], labels)
    assert abs(float(ours - theirs)) <= 1e-5, (ours, theirs)
    print("losses are those of sentence-transformers")


def words(draw):
    return " ".join(draw.choices(WORDS, k=draw.randint(1, 9)))


def check_vectors(teratron, folder, model, exported, texts, pooling, tokenizer):
    """Vectors that `embed` makes with the run, and the library with its export."""
    (folder / "texts").write_text("".join(text + "\n" for text in texts))
    with torch.no_grad():
        theirs = torch.nn.functional.normalize(
            pooled(model, tokenizer(texts, padding=True, return_tensors="pt"), pooling), dim=-1).numpy()
    for load_from in (folder / "run", exported):
        out = folder / "vectors.npy"
        run(teratron, "embed", folder / "texts", "--load", load_from, "--out", out, "--overwrite")
        assert numpy.abs(numpy.load(out) - theirs).max() <= 1e-5
    if importlib.util.find_spec("sentence_transformers") is not None:
        import sentence_transformers
        library = sentence_transformers.SentenceTransformer(str(exported), device="cpu")
        assert library.max_seq_length == 30
        assert numpy.abs(library.encode(texts) - theirs).max() <= 1e-5
    return theirs


def finetune(teratron, saved, start, data, reading, *more):
    run(teratron, "finetune", "--task", "embed", "--load", start, "--train-data", data, "--valid-data", data, *reading,
        "--epochs", UPDATES, "--global-batch-size", EXAMPLES, "--lr", RATE, "--lr-decay-style", "constant",
        "--lr-warmup-fraction", 0, "--weight-decay", DECAY, "--clip-grad", CLIP, "--adam-eps", EPS, "--adam-beta1", BETAS[0],
        "--adam-beta2", BETAS[1], "--seq-length", 30, "--peak-tflops", 1, "--save", saved, *more)


def exported_weights(teratron, saved):
    exported = saved.with_name(saved.name + "-hf")
    run(teratron, "convert", "--from", "teratron", "--to", "hf", saved, exported)
    return exported, *load(exported)


def check_task(teratron, folder, kind, texts, numbers, pooling, layouts):
    draw = random.Random(7 + texts + 3 * numbers)
    torch.manual_seed(3)
    folder.mkdir()
    start, data = folder / "start", folder / "data.csv"
    tokenizer = make_model(kind, start, draw)
    rows = [[*(words(draw) for _ in range(texts)), round(draw.uniform(-1, 1), 2)] for _ in range(EXAMPLES)]
    with open(data, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["first", "second", "third"][:texts] + ["score"])
        writer.writerows(rows)
    batches = [tokenizer([row[text] for row in rows], padding=True, return_tensors="pt") for text in range(texts)]
    labels = torch.tensor([row[-1] for row in rows]) if numbers else torch.arange(EXAMPLES)
    model, before = load(start)
    learner = Learner(model, pooling).train()
    theirs = {name.removeprefix("model."): value
              for name, value in train_with_pytorch(learner, dict(batches=batches), labels).items()}
    theirs, before = without_unused_positions(theirs, kind), without_unused_positions(before, kind)
    movement = norm_of({name: theirs[name] - before[name] for name in before})
    reading = ["--text-column", "first", "--pair-column", "second", f"--label-column={'score' if numbers else ''}",
               "--pooling", pooling, *(["--negative-column", "third"] if texts == 3 else [])]
    for layout in layouts:
        saved = folder / ("run" + "".join(layout))
        finetune(teratron, saved, start, data, reading, *layout)
        exported, ours_model, ours = exported_weights(teratron, saved)
        ours = without_unused_positions(ours, kind)
        assert ours.keys() == theirs.keys(), (ours.keys() ^ theirs.keys())
        difference = norm_of({name: ours[name] - theirs[name] for name in theirs})
        print(f"{kind}, {texts} texts, numbers {numbers}, {pooling}, {' '.join(layout) or 'one rank'}: "
              f"ratio {difference / movement:.3e}", flush=True)
        assert difference <= 1e-4 * movement
        if not layout:
            check_vectors(teratron, folder, ours_model, exported, [row[0] for row in rows], pooling, tokenizer)
            check_scores(teratron, folder, ours_model, batches, rows, data, reading, pooling, exported)
    return start, data, reading


def check_scores(teratron, folder, model, batches, rows, data, reading, pooling, exported):
    """`eval embed` beside SciPy, or a search over all second texts."""
    with torch.no_grad():
        first, second = [torch.nn.functional.normalize(pooled(model, batch, pooling), dim=-1) for batch in batches[:2]]
    cosines = (first * second).sum(-1).tolist()
    for model_folder in (folder / "run", exported):
        said = folder / "said.jsonl"
        report = json.loads(run(teratron, "eval", "embed", "--load", model_folder, "--data", data, *reading, "--overwrite",
                                "--predictions", said, "--json", "-"))
        lines = [json.loads(line) for line in said.read_text().splitlines()]
        assert max(abs(line["number"] - cosine) for line, cosine in zip(lines, cosines)) <= 1e-5
        if "--label-column=score" in reading:
            labels = [row[-1] for row in rows]
            assert abs(report["spearman"] - 100 * scipy.stats.spearmanr(labels, cosines).statistic) <= 1e-3
            assert abs(report["pearson"] - 100 * scipy.stats.pearsonr(labels, cosines).statistic) <= 1e-3
        elif len(batches) == 2:
            nearest = (first @ second.T).argmax(-1).tolist()  # perhaps another row with the same text
            found = sum(rows[near][1] == row[1] for near, row in zip(nearest, rows))
            assert abs(report["retrieval_accuracy"] - 100 * found / len(rows)) <= 1e-3, (report, found)


def check_groups(teratron, folder, start, data, reading):
    """Micro-batches are the same groups of negatives in every layout."""
    weights = {}
    for name, layout in (("one", []), ("dp", ["--dp", "2"]), ("tp", ["--tp", "2"]), ("dp-tp", ["--dp", "2", "--tp", "2"])):
        finetune(teratron, folder / f"group-{name}", start, data, reading, "--micro-batch-size", 6, *layout)
        _, _, weights[name] = exported_weights(teratron, folder / f"group-{name}")
    _, before = load(start)
    movement = norm_of({name: weights["one"][name] - before[name] for name in before})
    for name in ("dp", "tp", "dp-tp"):
        difference = norm_of({key: weights[name][key] - weights["one"][key] for key in before})
        print(f"groups of 6, {name}: ratio {difference / movement:.3e}", flush=True)
        assert difference <= 1e-4 * movement


def main(teratron, folder):
    folder = Path(folder)
    check_losses_of_library()
    start, data, reading = check_task(teratron, folder / "pairs", "bert", 2, False, "mean", LAYOUTS)
    check_groups(teratron, folder / "pairs", start, data, reading)
    check_task(teratron, folder / "triples", "bert", 3, False, "cls", LAYOUTS[::3])
    check_task(teratron, folder / "similarities", "bert", 2, True, "mean", LAYOUTS[::3])
    check_task(teratron, folder / "distilbert", "distilbert", 2, False, "mean", LAYOUTS[:1])
    check_task(teratron, folder / "roberta", "roberta", 2, False, "mean", LAYOUTS[:1])


if __name__ == "__main__":
    main(*sys.argv[1:])
