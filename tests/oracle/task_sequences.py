"""The Hugging Face side of tests/tasks/sequences_oracle_test.cc.

    $(scripts/oracle-env | tail -n 1) tests/oracle/task_sequences.py REQUEST.json

The request names `vocabulary` (vocab.txt), `task`, `files`, `seq_length` and `out`, a folder. OUT/sequences has each
sequence of Hugging Face's BertTokenizer in order, as little-endian int32: its example (question, pair or question and
option), its length, the place of B, two labels, its ids. Texts are read from the files by Python alone.

mnli and race: truncation "longest_first" of (sentence 1, sentence 2) and of (article, question with option), where the
latter was cut to `max_query_length` tokens before; labels are -1.

squad: truncation "only_second" of (question, context) with `stride` = `doc_stride`, where questions were cut to
`max_query_length`; labels are the places of the tokens that the answer's first and last characters lie in, 0 where the
window lacks one. For each n with a file OUT/logits-n (float32: of each window its beginnings, then its ends) and
`rules`[n], OUT/answers-n.json has the answers that transformers' run_qa makes of them. That post-processing is written
here from its documentation: per window the `n_best` largest beginnings and ends (stable order, so that equal logits have
one too), valid pairs of them in the context of at most `max_answer_length` tokens, all windows' pairs sorted by float32
score, the `n_best` first of them kept; with `may_be_none` the least score at [CLS] is one more candidate, and wins over
the best other one by more than `threshold`. Where run_qa makes up the answer "empty", for want of any, this says "".
"""

import json
import sys
from pathlib import Path

import numpy
import transformers


class Writer:
    def __init__(self, tokenizer, path):
        self.separate, self.file = tokenizer.sep_token_id, open(path, "wb")

    def add(self, example, ids, types, labels=(-1, -1)):
        second = ids.index(self.separate) + 1
        assert types == [0] * second + [1] * (len(ids) - second), types
        self.file.write(numpy.array([example, len(ids), second, *labels, *ids], dtype="<i4").tobytes())


def cut_text(tokenizer, text, most):
    """Without the tokens behind the first `most`: WordPiece takes the longest token first, so the others stay."""
    offsets = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    return text if len(offsets) <= most else text[:offsets[most - 1][1]]


def mnli_pairs(files):
    for file in files:
        for line in Path(file).read_text().split("\n"):
            if line:
                yield line.split("\t")[1:]


def race_pairs(files):
    for file in files:
        for line in Path(file).read_text().split("\n"):
            article = json.loads(line) if line else {"questions": []}
            for question, options in zip(article["questions"], article.get("options", [])):
                for option in options:
                    filled = question.replace("_", option) if "_" in question else question + " " + option
                    yield article["article"], filled


def write_pairs(tokenizer, pairs, request, writer):
    first, second = zip(*pairs)
    if "max_query_length" in request:
        second = [cut_text(tokenizer, text, request["max_query_length"]) for text in second]
    encoded = tokenizer(list(first), list(second), truncation="longest_first", max_length=request["seq_length"])
    for i, (ids, types) in enumerate(zip(encoded["input_ids"], encoded["token_type_ids"])):
        writer.add(i, ids, types)


def squad_questions(files):
    for file in files:
        for article in json.loads(Path(file).read_text())["data"]:
            for paragraph in article["paragraphs"]:
                for question in paragraph["qas"]:
                    answers = [a["text"] for a in question["answers"]]
                    yield question["id"], question["question"], paragraph["context"], answers


def labels_of(offsets, context, answers):
    """`offsets` are None outside of the context. Found token by token, as run_qa does."""
    places = [i for i, offset in enumerate(offsets) if offset is not None]
    if not answers or not places:
        return 0, 0
    begin = context.index(answers[0])
    end = begin + len(answers[0])
    if offsets[places[0]][0] > begin or offsets[places[-1]][1] < end:
        return 0, 0
    return (max(place for place in places if offsets[place][0] <= begin),
            min(place for place in places if offsets[place][1] >= end))


def largest(values, count):
    return numpy.argsort(values, kind="stable")[::-1][:count].tolist()


def answer_of(context, windows, rules):
    """`windows`: (offsets, logits of beginnings, of ends)."""
    candidates, null = [], None
    for offsets, begins, ends in windows:
        if null is None or begins[0] + ends[0] < null:
            null = begins[0] + ends[0]
        last = largest(ends, rules["n_best"])
        for begin in largest(begins, rules["n_best"]):
            for end in last:
                if offsets[begin] is not None and offsets[end] is not None:
                    if 0 <= end - begin < rules["max_answer_length"]:
                        candidates.append((begins[begin] + ends[end], begins[begin], ends[end],
                                           context[offsets[begin][0]:offsets[end][1]]))
    if rules["may_be_none"]:
        candidates.append((null, None, None, ""))
    candidates = sorted(candidates, key=lambda each: each[0], reverse=True)[:rules["n_best"]]
    others = [each for each in candidates if each[3] != ""]
    if not others:
        return ""
    _, begin, end, text = others[0]
    return "" if rules["may_be_none"] and null - begin - end > rules["threshold"] else text


def write_squad(tokenizer, request, writer, out):
    ids, questions, contexts, answers = zip(*squad_questions(request["files"]))
    questions = [cut_text(tokenizer, text, request["max_query_length"]) for text in questions]
    encoded = tokenizer(questions, list(contexts), truncation="only_second", max_length=request["seq_length"],
                        stride=request["doc_stride"], return_overflowing_tokens=True, return_offsets_mapping=True)
    windows = [[] for _ in ids]
    for i, question in enumerate(encoded["overflow_to_sample_mapping"]):
        sides = encoded.sequence_ids(i)
        offsets = [o if side == 1 else None for o, side in zip(encoded["offset_mapping"][i], sides)]
        writer.add(question, encoded["input_ids"][i], encoded["token_type_ids"][i],
                   labels_of(offsets, contexts[question], answers[question]))
        windows[question].append(offsets)
    writer.file.flush()
    for n, rules in enumerate(request["rules"]):
        logits, at, found = numpy.fromfile(out / f"logits-{n}", dtype="<f4"), 0, {}
        for question, id in enumerate(ids):
            with_logits = []
            for offsets in windows[question]:
                size = len(offsets)
                with_logits.append((offsets, logits[at:at + size], logits[at + size:at + 2 * size]))
                at += 2 * size
            found[id] = answer_of(contexts[question], with_logits, rules)
        assert at == len(logits), (at, len(logits))
        (out / f"answers-{n}.json").write_text(json.dumps(found))


def main():
    request = json.loads(Path(sys.argv[1]).read_text())
    tokenizer = transformers.BertTokenizerFast(request["vocabulary"])
    out = Path(request["out"])
    writer = Writer(tokenizer, out / "sequences")
    if request["task"] == "squad":
        write_squad(tokenizer, request, writer, out)
    else:
        pairs = mnli_pairs if request["task"] == "mnli" else race_pairs
        write_pairs(tokenizer, pairs(request["files"]), request, writer)
    writer.file.close()


if __name__ == "__main__":
    main()
