"""Clients of others work against `teratron serve`: the openai package, and lm-eval's local-completions.

    $(scripts/oracle-env | tail -n 1) tests/oracle/serves_openai.py TERATRON FOLDER

A small GPT-2 with random weights and a tokenizer of its own is served. The client's completions are compared with
transformers' log-probabilities and greedy text; lm-eval's scores of a made-up task of choices with those of its own `hf`
model on the same weights. Exit code 77: a package is missing. tests/cli/eval/serve_oracle_test.cc runs this.
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


def make_model(folder):
    torch.manual_seed(0)
    random.seed(0)
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator([" ".join(random.choices(WORDS, k=2000))], vocab_size=300, special_tokens=["<|endoftext|>"])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_model(str(folder))
    # lm-eval must find the same special token as we do.
    config = {"model_max_length": 64, "tokenizer_class": "GPT2Tokenizer", "eos_token": "<|endoftext|>",
              "bos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=2, n_head=4, n_embd=32, vocab_size=tokenizer.get_vocab_size(), n_positions=64, eos_token_id=0, bos_token_id=0))
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
        (openai.BadRequestError, lambda: client.chat.completions.create(model="gpt", messages=[{"role": "user", "content": "a"}])),
        (openai.NotFoundError, lambda: client.completions.create(model="other", prompt="a")),
        (openai.AuthenticationError, lambda: client.with_options(api_key="wrong").completions.create(model="gpt", prompt="a")),
    ]:
        try:
            call()
        except kind as error:
            assert error.body["message"], error
        else:
            raise AssertionError(f"{kind} did not come")


def make_task(folder):
    tasks = folder / "tasks"
    tasks.mkdir(exist_ok=True)
    with open(tasks / "data.jsonl", "w") as data:
        for _ in range(24):
            choices = [" " + " ".join(random.choices(WORDS, k=random.randint(1, 4))) for _ in range(3)]
            question = " ".join(random.choices(WORDS, k=random.randint(2, 8)))
            data.write(json.dumps({"question": question, "choices": choices, "answer": random.randrange(3)}) + "\n")
    (tasks / "made_up.yaml").write_text(f"""task: made_up
dataset_path: json
dataset_kwargs: {{data_files: {{test: {tasks / 'data.jsonl'}}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: answer
target_delimiter: ""
metric_list: [{{metric: acc}}, {{metric: acc_norm}}]
""")
    return tasks


def check_lm_eval(url, folder, model):
    tasks = TaskManager(include_path=str(make_task(folder)), include_defaults=False)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "gpt")
    served = lm_eval.simple_evaluate(
        model="local-completions", tasks=["made_up"], task_manager=tasks, log_samples=True, bootstrap_iters=0,
        model_args=dict(model="gpt", base_url=f"{url}/completions", tokenizer_backend="huggingface",
                        tokenizer=str(folder / "gpt"), max_length=64, batch_size=4))
    theirs = lm_eval.simple_evaluate(
        model=lm_eval.models.huggingface.HFLM(pretrained=model, tokenizer=tokenizer, max_length=64, device="cpu"),
        tasks=["made_up"], task_manager=tasks, log_samples=True, bootstrap_iters=0)
    for name in ("acc,none", "acc_norm,none"):
        assert served["results"]["made_up"][name] == theirs["results"]["made_up"][name], (served["results"], theirs["results"])
    count = 0
    for a, b in zip(served["samples"]["made_up"], theirs["samples"]["made_up"]):
        for (x, x_greedy), (y, y_greedy) in zip(a["filtered_resps"], b["filtered_resps"]):
            assert abs(float(x) - float(y)) < 1e-4 and x_greedy == y_greedy, (a, b)
            count += 1
    assert count == 72, count
    print("lm-eval:", served["results"]["made_up"])


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
        os.environ["OPENAI_API_KEY"] = "key"
        check_lm_eval(url, folder, model)
    finally:
        server.terminate()
        assert server.wait() == 0


main()
