"""Clients of others work against `teratron serve`: the openai package, and lm-eval's local-completions.

    $(scripts/oracle-env | tail -n 1) tests/oracle/serves_openai.py TERATRON FOLDER

A small GPT-2 with random weights, a tokenizer and a chat template of its own is served. The client's completions and chats
are compared with transformers' log-probabilities and greedy text; lm-eval's scores of four tasks with those of its own `hf`
model on the same weights: made-up choices, last words of LAMBADA's passages where ../shared/data has them, texts that are
continued until a stop text, and perplexities of whole texts; and chats through local-chat-completions. Exit code 77: a package is missing. tests/cli/oracles_test.cc runs this.
"""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

try:
    import lm_eval
    import lm_eval.models.huggingface
    import openai
    from lm_eval.tasks import TaskManager
except ImportError as error:
    print(error)
    sys.exit(77)
import torch
import transformers
from tokenizers import ByteLevelBPETokenizer

WORDS = "the rank ranks layer sums a gradient waits for of and other".split()


LAMBADA = Path(__file__).resolve().parents[3] / "shared/data/lambada/lambada_test.jsonl"
POSITIONS = 384
TEMPLATE = """{%- for message in messages %}
{%- if message.role == 'tool' %}{{ raise_exception('tools are unknown') }}{% endif %}
{{- message.role + ': ' + message.content | trim + (eos_token if message.role == 'assistant' else '\n') }}
{%- endfor %}
{%- if add_generation_prompt %}{{ 'assistant:' }}{% endif %}
"""


def passages():
    if not LAMBADA.exists():
        return [" ".join(random.choices(WORDS, k=random.randint(5, 60))) for _ in range(24)]
    return sorted((json.loads(line)["text"] for line in open(LAMBADA)), key=len)[:24]


def make_model(folder):
    torch.manual_seed(0)
    random.seed(0)
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator([" ".join(random.choices(WORDS, k=2000)), *passages()], vocab_size=400,
                                  special_tokens=["<|endoftext|>"])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_model(str(folder))
    # lm-eval must find the same special token as we do.
    config = {"model_max_length": POSITIONS, "tokenizer_class": "GPT2Tokenizer", "eos_token": "<|endoftext|>",
              "bos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=2, n_head=4, n_embd=32, vocab_size=tokenizer.get_vocab_size(), n_positions=POSITIONS, eos_token_id=0,
        bos_token_id=0))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.2)
    model.eval()
    model.save_pretrained(folder)
    return model, tokenizer


def log_probabilities(model, ids):
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].double()
    return torch.log_softmax(logits, -1)


def check_client(client, model, tokenizer):
    assert [one.id for one in client.models.list()] == ["gpt"]
    ids = tokenizer.encode("the rank sums a gradient").ids
    made = client.completions.create(model="gpt", prompt=ids, max_tokens=6, temperature=0, logprobs=3, echo=True,
                                     extra_body={"ignore_eos": True})
    choice = made.choices[0]
    everything = list(ids)
    for _ in range(6):
        everything.append(int(log_probabilities(model, everything)[-1].argmax()))
    assert choice.text == tokenizer.decode(everything), (choice.text, tokenizer.decode(everything))
    scores = log_probabilities(model, everything)
    assert choice.logprobs.token_logprobs[0] is None
    for at in range(1, len(everything)):
        assert abs(choice.logprobs.token_logprobs[at] - scores[at - 1, everything[at]]) < 1e-4
        best = sorted(choice.logprobs.top_logprobs[at].values(), reverse=True)[:3]
        assert all(abs(a - b) < 1e-4 for a, b in zip(best, scores[at - 1].topk(3).values.tolist()))
    assert made.usage.completion_tokens == 6 and made.usage.prompt_tokens == len(ids)

    bias, made_ids = {str(token): 2.5 - token % 5 for token in range(0, 400, 7)}, []
    for _ in range(24):
        logits = log_probabilities(model, ids + made_ids)[-1]
        for token, amount in bias.items():
            logits[int(token)] += amount
        for token in set(made_ids):
            logits[token] -= 0.4 + 0.3 * made_ids.count(token)
        made_ids.append(int(logits.argmax()))
    made = client.completions.create(model="gpt", prompt=ids, max_tokens=24, temperature=0, presence_penalty=0.4, frequency_penalty=0.3,
                                     logit_bias=bias, extra_body={"ignore_eos": True})
    expected = tokenizer.decode(made_ids, skip_special_tokens=False)
    assert made.choices[0].text == expected, (made.choices[0].text, expected)

    settings = dict(model="gpt", prompt=["the rank", "a"], max_tokens=12, n=2, seed=5, stop=["zz"])
    whole = client.completions.create(**settings)
    texts, usage = [""] * 4, None
    for part in client.completions.create(**settings, stream=True, stream_options={"include_usage": True}):
        usage = part.usage or usage
        for one in part.choices:
            texts[one.index] += one.text
    assert texts == [one.text for one in whole.choices] and usage.completion_tokens == whole.usage.completion_tokens

    for kind, call in [
        (openai.BadRequestError, lambda: client.completions.create(model="gpt", prompt="a", max_tokens=1000)),
        (openai.BadRequestError, lambda: client.completions.create(model="gpt", prompt="a", temperature=-1)),
        (openai.BadRequestError, lambda: client.embeddings.create(model="gpt", input="a")),
        (openai.BadRequestError, lambda: client.chat.completions.create(model="gpt", messages=[])),
        (openai.BadRequestError, lambda: client.chat.completions.create(model="gpt", messages=[{"role": "tool", "content": "a"}])),
        (openai.BadRequestError, lambda: client.chat.completions.create(
            model="gpt", messages=[{"role": "user", "content": "a"}], response_format={"type": "json_object"})),
        (openai.NotFoundError, lambda: client.completions.create(model="other", prompt="a")),
        (openai.AuthenticationError, lambda: client.with_options(api_key="wrong").completions.create(model="gpt", prompt="a")),
    ]:
        try:
            call()
        except kind as error:
            assert error.body["message"], error
        else:
            raise AssertionError(f"{kind} did not come")


def check_chats(client, model, folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "gpt")
    messages = [{"role": "system", "content": " the rank sums\u00a0"}, {"role": "user", "content": "a gradient \u4e16\r\n"}]
    for turn in range(3):
        ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
        made = client.chat.completions.create(model="gpt", messages=messages, max_completion_tokens=8, temperature=0,
                                              logprobs=True, top_logprobs=2, extra_body={"ignore_eos": True})
        everything = list(ids)
        for _ in range(8):
            everything.append(int(log_probabilities(model, everything)[-1].argmax()))
        choice = made.choices[0]
        assert choice.message.role == "assistant" and choice.finish_reason == "length"
        expected = tokenizer.decode(everything[len(ids):], clean_up_tokenization_spaces=False)
        assert choice.message.content == expected, (choice.message.content, expected)
        assert made.usage.prompt_tokens == len(ids) and made.usage.completion_tokens == 8
        scores = log_probabilities(model, everything)
        for at, one in enumerate(choice.logprobs.content, len(ids)):
            assert abs(one.logprob - scores[at - 1, everything[at]]) < 1e-4
            best = scores[at - 1].topk(2).values.tolist()
            assert all(abs(a.logprob - b) < 1e-4 for a, b in zip(one.top_logprobs, best, strict=True))
        messages += [choice.message.model_dump(), {"role": "user", "content": [{"type": "text", "text": f"the layer {turn}"}]}]
        if turn < 2:
            messages[-1]["content"] = f"the layer {turn}"  # transformers' template takes strings

    settings = dict(model="gpt", messages=messages, max_tokens=12, n=2, seed=5, stop=["zz"])
    whole = client.chat.completions.create(**settings)
    texts, roles, usage = [""] * 2, [None] * 2, None
    for part in client.chat.completions.create(**settings, stream=True, stream_options={"include_usage": True}):
        usage = part.usage or usage
        for one in part.choices:
            roles[one.index] = roles[one.index] or one.delta.role
            texts[one.index] += one.delta.content or ""
    assert roles == ["assistant"] * 2
    assert texts == [one.message.content for one in whole.choices]
    # The second call finds all of the prompt in a cache.
    assert (usage.prompt_tokens, usage.completion_tokens) == (whole.usage.prompt_tokens, whole.usage.completion_tokens)
    assert usage.prompt_tokens_details.cached_tokens == usage.prompt_tokens - 1 > whole.usage.prompt_tokens_details.cached_tokens
    try:
        client.chat.completions.create(model="gpt", messages=[{"role": "tool", "content": "a"}])
    except openai.BadRequestError as error:
        assert "tools are unknown" in error.body["message"], error


def write_task(folder, name, lines, settings):
    with open(folder / f"{name}.jsonl", "w") as data:
        for line in lines:
            data.write(json.dumps(line) + "\n")
    (folder / f"{name}.yaml").write_text(f"""task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder / name}.jsonl}}}}
test_split: test
target_delimiter: ""
{settings}
""")


def greedy_text(model, tokenizer, prompt, tokens):
    ids = tokenizer.encode(prompt).ids
    for _ in range(tokens):
        ids.append(int(log_probabilities(model, ids)[-1].argmax()))
    return tokenizer.decode(ids[-tokens:])


def make_tasks(folder, model, tokenizer):
    """Their names, each with what it measures."""
    def text(most):
        return " ".join(random.choices(WORDS, k=random.randint(2, most)))

    tasks = folder / "tasks"
    tasks.mkdir(exist_ok=True)
    questions = [dict(question=text(8), choices=[" " + text(4) for _ in range(3)], answer=random.randrange(3))
                 for _ in range(24)]
    write_task(tasks, "choices", questions, """output_type: multiple_choice
doc_to_text: "{{question}}"
doc_to_choice: "{{choices}}"
doc_to_target: answer
metric_list: [{metric: acc}, {metric: acc_norm}]""")
    # Some words are the model's own, or accuracy says little.
    words = [dict(before=before, word=" " + word) for before, word in (passage.rsplit(" ", 1) for passage in passages())]
    words += [dict(before=before, word=greedy_text(model, tokenizer, before, 1)) for before in [text(9) for _ in range(16)]]
    write_task(tasks, "last_words", words, """output_type: loglikelihood
doc_to_text: "{{before}}"
doc_to_target: "{{word}}"
metric_list: [{metric: perplexity}, {metric: acc}]""")
    answers = [dict(question=question, answer=greedy_text(model, tokenizer, question, 12) if i % 2 else "else")
               for i, question in enumerate(map(text, [8] * 16))]
    until = """output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["\n\n", "never"], max_gen_toks: 12, do_sample: false, temperature: 0}
metric_list: [{metric: exact_match}]"""
    write_task(tasks, "continued", answers, until)
    write_task(tasks, "chatted", answers[:6], until)
    write_task(tasks, "whole_texts", [dict(text=text(60)) for _ in range(8)], """output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{text}}"
metric_list: [{metric: word_perplexity}, {metric: byte_perplexity}, {metric: bits_per_byte}]""")
    return tasks, {"choices": ["acc", "acc_norm"], "last_words": ["perplexity", "acc"], "continued": ["exact_match"],
                   "whole_texts": ["word_perplexity", "byte_perplexity", "bits_per_byte"]}


def are_equal(a, b):
    """Of answers or scores: numbers within rounding, all else exactly."""
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(are_equal, a, b))
    try:
        return abs(float(a) - float(b)) <= 1e-4 * max(1, abs(float(b)))
    except ValueError:
        return a == b


def check_lm_eval(url, folder, model, plain):
    tasks, measured = make_tasks(folder, model, plain)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "gpt")
    settings = dict(task_manager=TaskManager(include_path=str(tasks), include_defaults=False), log_samples=True, bootstrap_iters=0)
    theirs = lm_eval.models.huggingface.HFLM(pretrained=model, tokenizer=tokenizer, max_length=POSITIONS, device="cpu")
    here = dict(model="gpt", tokenizer_backend="huggingface", tokenizer=str(folder / "gpt"), max_length=POSITIONS)

    def compare(names, measures, served, expected):
        for name in names:
            for measure in measures[name]:
                score = expected["results"][name][f"{measure},none"]
                assert are_equal(served["results"][name][f"{measure},none"], score), (name, served["results"], expected["results"])
                assert measure not in ("acc", "exact_match") or 0 < score < 1, (name, score)
            pairs = list(zip(served["samples"][name], expected["samples"][name], strict=True))
            assert len(pairs) >= 6
            for a, b in pairs:
                assert are_equal(a["filtered_resps"], b["filtered_resps"]), (name, a["filtered_resps"], b["filtered_resps"])
            print("lm-eval:", name, {key: value for key, value in served["results"][name].items() if "," in key})

    names = list(measured)
    served = lm_eval.simple_evaluate(model="local-completions", tasks=names, **settings,
                                     model_args=dict(here, base_url=f"{url}/completions", batch_size=4))
    compare(names, measured, served, lm_eval.simple_evaluate(model=theirs, tasks=names, **settings))
    chats = dict(settings, tasks=["chatted"], apply_chat_template=True)
    served = lm_eval.simple_evaluate(model="local-chat-completions", **chats,
                                     model_args=dict(here, base_url=f"{url}/chat/completions", batch_size=1))
    compare(["chatted"], {"chatted": []}, served, lm_eval.simple_evaluate(model=theirs, **chats))


def main():
    teratron, folder = sys.argv[1], Path(sys.argv[2])
    model, tokenizer = make_model(folder / "gpt")
    place = folder / "place.json"
    server = subprocess.Popen([teratron, "serve", "--load", folder / "gpt", "--port", "0", "--json", place, "--api-key", "key"])
    try:
        while not place.exists():
            assert server.poll() is None, "the server ended"
            time.sleep(0.05)
        url = f"http://127.0.0.1:{json.loads(place.read_text())['port']}/v1"
        check_client(openai.OpenAI(base_url=url, api_key="key", max_retries=0), model, tokenizer)
        check_chats(openai.OpenAI(base_url=url, api_key="key", max_retries=0), model, folder)
        os.environ["OPENAI_API_KEY"] = "key"
        check_lm_eval(url, folder, model, tokenizer)
    finally:
        server.terminate()
        assert server.wait() == 0


main()
