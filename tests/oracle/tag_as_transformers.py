"""`teratron finetune --task tag` ends where PyTorch ends, and its models label words as transformers' do.

    $(scripts/oracle-env | tail -n 1) tests/oracle/tag_as_transformers.py TERATRON FOLDER

Small BERTs, RoBERTas and DistilBERTs of random weights, without dropout, and words of several tokens. Ten updates, each of all
sentences, the longest of which are cut. Labels are on words' first tokens, as transformers' run_ner.py aligns them. As in
classify_as_transformers.py, the difference of the weights must be at most 1e-4 of their movement. `eval tag` then gives every
word the label of transformers' largest logit, and the scores are seqeval's. tests/cli/oracles_test.cc runs this.
"""

import importlib.util
import json
import random
import sys
from pathlib import Path

import torch
import transformers

from classify_as_transformers import BETAS, CLIP, DECAY, EPS, EXAMPLES, RATE, UPDATES, run, train_with_pytorch
from encoders_as_transformers import make_tokenizer
from finetune_as_pytorch import norm_of
from vectors_as_sentence_transformers import without_unused_positions

WORDS = "rain snow wind sun fog hail tree bird fish road hill lake sand stone moss leaf".split()
ENDINGS = ["", "", "s", "ing", "sing", "."]
NAMES = ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"]  # sorted
TOKENS = 30
CLASSES = {"bert": "Bert", "roberta": "Roberta", "distilbert": "DistilBert"}


def make_model(kind, folder, draw):
    if kind == "roberta":
        _, vocabulary = make_tokenizer(kind, folder, draw)
    else:
        folder.mkdir()
        pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *WORDS, "##s", "##ing"]
        (folder / "vocab.txt").write_text("".join(piece + "\n" for piece in pieces))
        transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
        vocabulary = len(pieces)
    labels = dict(id2label=dict(enumerate(NAMES)), label2id={name: i for i, name in enumerate(NAMES)})
    shape = dict(num_hidden_layers=2, num_attention_heads=2, hidden_size=32, intermediate_size=64, vocab_size=vocabulary,
                 hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    if kind == "bert":
        config = transformers.BertConfig(max_position_embeddings=40, **shape, **labels)
    elif kind == "roberta":
        config = transformers.RobertaConfig(max_position_embeddings=42, type_vocab_size=1, layer_norm_eps=1e-5, **shape, **labels)
    else:
        config = transformers.DistilBertConfig(
            n_layers=2, n_heads=2, dim=32, hidden_dim=64, vocab_size=vocabulary, max_position_embeddings=40, dropout=0.0,
            attention_dropout=0.0, **labels)
    model = getattr(transformers, CLASSES[kind] + "ForTokenClassification")(config)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" not in name.lower():
                p.normal_(std=0.2)
    model.save_pretrained(folder)
    more = dict(add_prefix_space=True) if kind == "roberta" else {}
    return transformers.AutoTokenizer.from_pretrained(folder, **more)


def load(folder):
    model = transformers.AutoModelForTokenClassification.from_pretrained(folder, attn_implementation="eager").float().eval()
    return model, {name: value.detach().clone() for name, value in model.state_dict().items()}


def sentence(draw, most):
    return [draw.choice(WORDS) + draw.choice(ENDINGS) for _ in range(draw.randint(1, most))]


def batch_of(tokenizer, sentences):
    """Padded sequences, and of each word the index of its first token; None where it was cut off."""
    batch = tokenizer(sentences, is_split_into_words=True, truncation=True, max_length=TOKENS, padding=True, return_tensors="pt")
    firsts = []
    for i, words in enumerate(sentences):
        ids = batch.word_ids(i)
        firsts.append([ids.index(word) if word in ids else None for word in range(len(words))])
    return batch, firsts


def labels_of(batch, firsts, tags):
    labels = torch.full_like(batch["input_ids"], -100)
    for row, (places, names) in enumerate(zip(firsts, tags)):
        for place, name in zip(places, names):
            if place is not None:
                labels[row, place] = NAMES.index(name)
    return labels


def write_conll(path, sentences, tags):
    path.write_text("-DOCSTART- -X- O\n\n" + "\n".join(
        "".join(f"{word} -X- {tag}\n" for word, tag in zip(words, names)) for words, names in zip(sentences, tags)))


def write_json(path, sentences, tags):
    path.write_text("".join(json.dumps(dict(tokens=words, ner_tags=[NAMES.index(name) for name in names])) + "\n"
                            for words, names in zip(sentences, tags)))


def seqeval_scores(tags, said):
    from seqeval.metrics import accuracy_score, f1_score, precision_score, recall_score

    return {name: 100 * score(tags, said) for name, score in (("f1", f1_score), ("precision", precision_score),
                                                              ("recall", recall_score), ("accuracy", accuracy_score))}


def check_predictions(teratron, folder, model, ours_model, tokenizer, draw):
    """Those of sentences that fit, which are read whole."""
    sentences = [sentence(draw, 6) for _ in range(40)]
    tags = [draw.choices(NAMES, k=len(words)) for words in sentences]
    data, out = folder / "held-out.conll", folder / "said.jsonl"
    write_conll(data, sentences, tags)
    shown = json.loads(run(teratron, "eval", "tag", "--load", model, "--data", data, "--overwrite", "--predictions", out, "--json", "-"))
    said = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["tokens"] for line in said] == sentences
    batch, firsts = batch_of(tokenizer, sentences)
    with torch.no_grad():
        logits = ours_model(**batch).logits
    for row, places in enumerate(firsts):
        for word, place in enumerate(places):
            best = logits[row, place].topk(2)
            if best.values[0] - best.values[1] > 1e-4:
                assert said[row]["ner_tags"][word] == NAMES[int(best.indices[0])], (row, word)
    if importlib.util.find_spec("seqeval"):
        for name, value in seqeval_scores(tags, [line["ner_tags"] for line in said]).items():
            assert abs(shown[name] - value) <= 1e-9, (name, shown[name], value)


def check_kind(teratron, folder, kind, layouts):
    draw = random.Random(kind)
    torch.manual_seed(3)
    folder.mkdir()
    start = folder / "start"
    tokenizer = make_model(kind, start, draw)
    sentences = [sentence(draw, 20) for _ in range(EXAMPLES)]
    tags = [draw.choices(NAMES, k=len(words)) for words in sentences]
    batch, firsts = batch_of(tokenizer, sentences)
    assert any(None in places for places in firsts)  # or cutting is not tested
    assert sum(map(len, sentences)) < int(batch["attention_mask"].sum())  # nor words of several tokens
    data = folder / ("data.jsonl" if kind == "roberta" else "data.conll")
    (write_json if kind == "roberta" else write_conll)(data, sentences, tags)
    reading = ["--label-names", *NAMES] if kind == "roberta" else []
    model, before = load(start)
    theirs = train_with_pytorch(model.train(), batch, labels_of(batch, firsts, tags))
    theirs, before = without_unused_positions(theirs, kind), without_unused_positions(before, kind)
    movement = norm_of({name: theirs[name] - before[name] for name in before})
    for layout in layouts:
        saved = folder / ("run" + "".join(layout))
        run(teratron, "finetune", "--task", "tag", "--load", start, "--train-data", data, "--valid-data", data, *reading,
            "--epochs", UPDATES, "--global-batch-size", EXAMPLES, "--micro-batch-size", 6, "--lr", RATE, "--lr-decay-style", "constant",
            "--lr-warmup-fraction", 0, "--weight-decay", DECAY, "--clip-grad", CLIP, "--adam-eps", EPS, "--adam-beta1", BETAS[0],
            "--adam-beta2", BETAS[1], "--seq-length", TOKENS, "--peak-tflops", 1, "--save", saved, *layout)
        exported = folder / (saved.name + "-hf")
        run(teratron, "convert", "--from", "teratron", "--to", "hf", saved, exported)
        ours_model, ours = load(exported)
        ours = without_unused_positions(ours, kind)
        assert ours.keys() == theirs.keys(), ours.keys() ^ theirs.keys()
        difference = norm_of({name: ours[name] - theirs[name] for name in theirs})
        print(f"{kind}, {' '.join(layout) or 'one rank'}: ratio {difference / movement:.3e}", flush=True)
        assert difference <= 1e-4 * movement
        assert type(ours_model).__name__ == CLASSES[kind] + "ForTokenClassification"
        assert [ours_model.config.id2label[i] for i in range(len(NAMES))] == NAMES
    for model in (saved, exported):
        check_predictions(teratron, folder, model, ours_model, tokenizer, draw)


def main(teratron, folder):
    for kind, layouts in (("bert", ([], ["--tp", "2", "--pp", "2"])), ("roberta", (["--tp", "2"],)), ("distilbert", (["--dp", "2"],))):
        check_kind(teratron, Path(folder) / kind, kind, layouts)


if __name__ == "__main__":
    main(*sys.argv[1:])
