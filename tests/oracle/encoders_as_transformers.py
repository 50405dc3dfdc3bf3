"""RoBERTa and DistilBERT in Teratron's commands are those of transformers.

    $(scripts/oracle-env | tail -n 1) tests/oracle/encoders_as_transformers.py TERATRON FOLDER

Models of random weights, with tokenizers of their own. `embed` gives the vectors of transformers' last hidden states to
1e-4, of folders of Hugging Face's and of checkpoints converted from them, in several layouts. `eval mnli` gives every pair
transformers' label. `finetune` from the encoder runs, and transformers names the answers of what it exports as ours does.
tests/cli/oracles_test.cc runs this.
"""

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy
import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

WORDS = "rain snow wind sun fog hail tree bird fish road hill lake sand stone moss leaf naïve café".split()
LABELS = ["entailment", "neutral", "contradiction"]
TOLERANCE = 1e-4


def make_tokenizer(kind, folder, draw):
    folder.mkdir()
    if kind == "distilbert":
        vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
        (folder / "vocab.txt").write_text("".join(token + "\n" for token in vocabulary))
        tokenizer = transformers.BertTokenizer(str(folder / "vocab.txt"), do_lower_case=True)
        tokenizer.save_pretrained(folder)
        return tokenizer, len(vocabulary)
    learned = Tokenizer(models.BPE())
    learned.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    learned.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True)]
    trainer = trainers.BpeTrainer(vocab_size=340, special_tokens=special, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    learned.train_from_iterator([" ".join(draw.choices(WORDS, k=20)) for _ in range(30)], trainer)
    model = json.loads(learned.to_str())["model"]
    tokenizer = transformers.RobertaTokenizer(vocab=model["vocab"], merges=[tuple(pair) for pair in model["merges"]])
    tokenizer.save_pretrained(folder)
    return tokenizer, len(tokenizer)


def config_of(kind, vocabulary, **more):
    if kind == "roberta":
        return transformers.RobertaConfig(
            num_hidden_layers=2, num_attention_heads=4, hidden_size=32, intermediate_size=128, vocab_size=vocabulary,
            max_position_embeddings=66, type_vocab_size=1, layer_norm_eps=1e-5, **more)
    return transformers.DistilBertConfig(n_layers=2, n_heads=4, dim=32, hidden_dim=128, vocab_size=vocabulary,
                                         max_position_embeddings=64, **more)


def save(model, folder):
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" not in name.lower():
                p.normal_(std=0.2)
    model.save_pretrained(folder)
    return model.double().eval()


def compare_vectors(run, kind, folder, model, tokenizer, draw):
    texts = [" ".join(draw.choices(WORDS, k=draw.choice([0, 1, 3, 8, 20, 50]))) for _ in range(40)] + ["", "Straße 12.5 %", "a" * 300]
    (folder / "texts").write_text("".join(text + "\n" for text in texts))
    run("convert", "--from", "hf", "--to", "teratron", folder / "hf", folder / "run")
    run("convert", "--from", "teratron", "--to", "hf", folder / "run", folder / "back")
    wanted = []
    with torch.no_grad():
        for text in texts:
            tokens = tokenizer(text, truncation=True, max_length=64, return_tensors="pt")
            wanted.append(model.base_model(**tokens).last_hidden_state[0].mean(0).numpy())
    for flags in (["--load", folder / "hf"], ["--load", folder / "run", "--tp", "2", "--pp", "2"], ["--load", folder / "back"]):
        run("embed", "--overwrite", "--pooling", "mean", "--out", folder / "v.npy", folder / "texts", *flags)
        worst = numpy.abs(numpy.load(folder / "v.npy") - numpy.stack(wanted)).max()
        print(f"{kind} {' '.join(map(str, flags))}: {len(texts)} vectors differ by {worst:.2e} at most")
        assert worst <= TOLERANCE


def labels_of(model, tokenizer, pairs):
    with torch.no_grad():
        return [model.config.id2label[int(model(**tokenizer(a, b, return_tensors="pt")).logits.argmax())].lower()
                for a, b in pairs]


def main(teratron, root):
    def run(*words):
        done = subprocess.run([teratron, *map(str, words)], capture_output=True, text=True)
        assert done.returncode == 0, (words, done.stderr)

    torch.manual_seed(3)
    draw = random.Random(3)
    pairs = [tuple(" ".join(draw.choices(WORDS, k=draw.randint(1, 8))) for _ in "ab") for _ in range(60)]

    def write_pairs(path, labels):
        path.write_text("gold_label\tsentence1\tsentence2\n" + "".join(
            f"{label}\t{a}\t{b}\n" for label, (a, b) in zip(labels, pairs)))

    for kind, name in (("roberta", "Roberta"), ("distilbert", "DistilBert")):
        folder = Path(root) / kind
        folder.mkdir()
        tokenizer, size = make_tokenizer(kind, folder / "hf", draw)
        masked = save(getattr(transformers, f"{name}ForMaskedLM")(config_of(kind, size)), folder / "hf")
        compare_vectors(run, kind, folder, masked, tokenizer, draw)

        names = dict(id2label=dict(enumerate(LABELS)), label2id={label: i for i, label in enumerate(LABELS)})
        tokenizer.save_pretrained(folder / "classes")
        classes = save(getattr(transformers, f"{name}ForSequenceClassification")(config_of(kind, size, **names)),
                       folder / "classes")
        expected = labels_of(classes, tokenizer, pairs)
        write_pairs(folder / "pairs.tsv", expected)
        run("eval", "mnli", "--load", folder / "classes", "--data", folder / "pairs.tsv", "--overwrite", "--predictions",
            folder / "answers.tsv")
        answers = lambda path: [line.split("\t")[1] for line in path.read_text().splitlines()[1:]]
        assert answers(folder / "answers.tsv") == expected, kind
        print(f"{kind}: {len(pairs)} pairs have transformers' labels, {len(set(expected))} of them different")

        run("finetune", "--task", "mnli", "--load", folder / "hf", "--train-data", folder / "pairs.tsv", "--valid-data",
            folder / "pairs.tsv", "--test-data", folder / "pairs.tsv", "--epochs", "3", "--lr", "3e-3",
            "--global-batch-size", "16", "--seq-length", "40", "--save", folder / "tuned")
        run("convert", "--from", "teratron", "--to", "hf", folder / "tuned" / "best", folder / "tuned-hf")
        tuned = transformers.AutoModelForSequenceClassification.from_pretrained(folder / "tuned-hf").double().eval()
        read = transformers.AutoTokenizer.from_pretrained(folder / "tuned-hf")
        theirs = labels_of(tuned, read, pairs)
        run("eval", "mnli", "--load", folder / "tuned" / "best", "--data", folder / "pairs.tsv", "--overwrite",
            "--predictions", folder / "answers.tsv")
        assert answers(folder / "answers.tsv") == theirs, kind
        right = sum(a == b for a, b in zip(theirs, expected))
        print(f"{kind}: fine-tuned, {right} of {len(pairs)} right; transformers names its answers as we do")


if __name__ == "__main__":
    main(*sys.argv[1:])
