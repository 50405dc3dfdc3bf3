"""Drives bench/serve: both servers under the same load in turns, and what each client saw; medians of rounds."""

import argparse
import datetime
import http.client
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from llama_cpp import LLAMA_CPP, SMOLLM2_135M, TERATRON, run, write_model
from side import cpu_name

CLIENTS, REQUESTS, POSITIONS = 32, 2, 512  # clients; requests of each a round; tokens of a text
SYSTEM = ("You answer questions about ranks that train a model together. A rank computes its layers, sums gradients with "
          "the others, and waits for them. Say what is known, in short sentences, and say where nothing is known. ") * 2
WORDS = "the rank waits for gradients of all layers and then sums what others sent before it goes on".split()
ENDS = ("streams", "whole", "streams", "breaks off", "whole", "streams", "hangs up", "streams")


class Request:
    """Text that a client asks for, and how the client behaves."""

    def __init__(self, source, number):
        self.prompt = SYSTEM + " ".join(source.choices(WORDS, k=source.randint(4, 40)))
        self.tokens, self.end = source.choice((16, 32, 48)), ENDS[number % len(ENDS)]
        self.wait = source.random() / 2

    @property
    def finishes(self):
        return self.end in ("streams", "whole")

    def body(self):
        return json.dumps({"prompt": self.prompt, "max_tokens": self.tokens, "temperature": 0, "ignore_eos": True,
                           "stream": self.end != "whole"})


class Answer:
    def __init__(self):
        self.text, self.times, self.usage, self.reason = "", [], None, None


def ask(port, request):
    """Sends a request and reads as much of its answer as the client wants."""
    answer, begin = Answer(), time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("POST", "/v1/completions", request.body(), {"Content-Type": "application/json"})
    if request.end == "hangs up":
        time.sleep(request.wait / 5)
        connection.close()
        return answer
    response = connection.getresponse()
    assert response.status == 200, (response.status, response.read())
    if request.end == "whole":
        choice = json.loads(response.read())["choices"][0]
        answer.text, answer.reason = choice["text"], choice["finish_reason"]
        return answer
    for line in response:
        if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
            continue
        part = json.loads(line[6:])
        for choice in part.get("choices", []):
            answer.times.append(time.monotonic() - begin)
            answer.text += choice["text"]
            answer.reason = choice["finish_reason"] or answer.reason
        if request.end == "breaks off" and len(answer.times) == 4:
            break
    connection.close()
    return answer


class Server:
    """A server on a port of its own; what its rounds measured."""

    def __init__(self, name, command, port):
        self.name, self.port, self.rounds, self.rss = name, port, [], []
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([str(word) for word in command], stdout=self.log, stderr=self.log)
        while not self.is_up():
            if self.process.poll() is not None:
                self.log.seek(0)
                sys.exit(f"{name} ended: {self.log.read().decode(errors='replace')[-2000:]}")
            time.sleep(0.1)

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read().decode()
        connection.close()
        return response.status, body

    def is_up(self):
        try:
            return self.get("/health")[0] == 200
        except OSError:
            return False

    def metric(self, name):
        return int(re.search(rf"^{name} (\d+)$", self.get("/metrics")[1], re.M)[1])

    def round(self, requests):
        """All clients at once. Returns their answers, in the order of `requests`."""
        answers, errors = [None] * len(requests), []

        def client(first):
            try:
                for at in range(first, len(requests), CLIENTS):
                    time.sleep(requests[at].wait)
                    answers[at] = ask(self.port, requests[at])
            except Exception as error:  # noqa: BLE001, reported by the main thread
                errors.append(error)

        threads = [threading.Thread(target=client, args=(i,)) for i in range(CLIENTS)]
        begin = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - begin
        if errors:
            sys.exit(f"{self.name}: {len(errors)} requests were lost: {errors[0]!r}")
        for request, answer in zip(requests, answers):
            if request.finishes and answer.reason != "length":
                sys.exit(f"{self.name}: a text of {request.tokens} tokens ended by {answer.reason}: {answer.text!r}")
        done = [(request, answer) for request, answer in zip(requests, answers) if request.finishes]
        streams = [answer.times for request, answer in done if request.end == "streams"]
        gaps = sorted(b - a for times in streams for a, b in zip(times, times[1:]))
        firsts = sorted(times[0] for times in streams)
        quantile = lambda values, share: values[min(len(values) - 1, int(share * len(values)))]  # noqa: E731
        self.rounds.append({"first_p50": quantile(firsts, 0.5), "first_p99": quantile(firsts, 0.99),
                            "gap_p50": quantile(gaps, 0.5), "gap_p99": quantile(gaps, 0.99),
                            "rate": sum(request.tokens for request, _ in done) / seconds})
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        self.rss.append(int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024)
        return answers

    def median(self, of):
        return statistics.median(measured[of] for measured in self.rounds)

    def close(self):
        self.process.terminate()
        return self.process.wait()


def texts_of_generate(folder, requests, threads):
    """The texts of finished requests, by the request."""
    texts = {}
    for tokens in {request.tokens for request in requests}:
        some = [request for request in requests if request.tokens == tokens and request.finishes]
        prompts, out = folder / "prompts.jsonl", folder / "texts.jsonl"
        prompts.write_text("".join(json.dumps({"prompt": request.prompt}) + "\n" for request in some))
        run(TERATRON, "generate", "--load", folder, "--prompts", prompts, "--temperature", "0", "--ignore-end-of-text",
            "--max-new-tokens", tokens, "--json", out, "--threads", threads)
        for request, line in zip(some, out.read_text().splitlines()):
            texts[request] = json.loads(line)["text"]
        out.unlink()
    return texts


def check_ours(ours, requests, answers, expected):
    for request, answer in zip(requests, answers):
        if request.finishes and answer.text != expected[request]:
            sys.exit(f"not the text of generate: {answer.text!r}, not {expected[request]!r}")
    while ours.metric("teratron_texts_in_flight") > 0:  # texts of clients that have gone
        time.sleep(0.05)


def check_all(ours, requests):
    finished, cancelled = (ours.metric(f"teratron_texts_{end}_total") for end in ("finished", "cancelled"))
    finishing = sum(request.finishes for request in requests)
    # A client that hangs up at once may be gone before its request is read.
    assert finishing <= finished and finished + cancelled <= len(requests), (finished, cancelled, len(requests))
    assert ours.metric("teratron_requests_refused_total") == 0
    if ours.rss[-1] > 1.02 * ours.rss[0] + 8:
        sys.exit(f"memory grew from {ours.rss[0]:.0f} to {ours.rss[-1]:.0f} MiB")
    print(f"all {finishing} texts are those of generate; {cancelled} were cancelled; "
          f"{ours.metric('teratron_prompt_tokens_reused_total')} of "
          f"{ours.metric('teratron_prompt_tokens_total')} prompt tokens came from other texts' caches", file=sys.stderr)


def table(servers):
    lines = ["| server | tokens/s | first token p50, s | p99, s | between tokens p50, ms | p99, ms | memory after the first round, "
             "the last, MiB |", "|---" * 7 + "|"]
    for server in servers:
        lines.append(f"| {server.name} | {server.median('rate'):.1f} | {server.median('first_p50'):.2f} | "
                     f"{server.median('first_p99'):.2f} | {1e3 * server.median('gap_p50'):.0f} | "
                     f"{1e3 * server.median('gap_p99'):.0f} | {server.rss[0]:.0f}, {server.rss[-1]:.0f} |")
    if len(servers) == 2:
        ratios = sorted(a["rate"] / b["rate"] for a, b in zip(servers[0].rounds, servers[1].rounds))
        lines.append(f"\nTokens a second, Teratron's over llama-server's: median {statistics.median(ratios):.2f} "
                     f"(rounds from {ratios[0]:.2f} to {ratios[-1]:.2f}).")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", type=int, nargs=6, default=SMOLLM2_135M,
                        metavar=("LAYERS", "HIDDEN", "HEADS", "KEY_HEADS", "FFN", "VOCABULARY"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--alone", action="store_true", help="without llama-server")
    parser.add_argument("--port", type=int, default=18080, help="this one and the next")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_model(folder, options.model)
        rounds = [[Request(random.Random(1000 * number + at), at) for at in range(CLIENTS * REQUESTS)]
                  for number in range(options.rounds)]
        every = [request for requests in rounds for request in requests]
        expected = texts_of_generate(folder, every, options.threads)
        servers = [Server("Teratron", [TERATRON, "serve", "--load", folder, "--port", options.port, "--batch-size", CLIENTS,
                                       "--context", POSITIONS, "--threads", options.threads], options.port)]
        if not options.alone:
            run(TERATRON, "convert", "--from", "hf", "--to", "gguf", "--type", "f32", folder, folder / "f32.gguf")
            servers.append(Server("llama-server", [LLAMA_CPP / "build/bin/llama-server", "-m", folder / "f32.gguf",
                                                   "--port", options.port + 1, "-np", CLIENTS, "-c", CLIENTS * POSITIONS,
                                                   "-t", options.threads, "-tb", options.threads], options.port + 1))
        for number, requests in enumerate(rounds):
            for server in servers:
                answers = server.round(requests)
                print(f"round {number + 1}, {server.name}: {server.rounds[-1]}", file=sys.stderr, flush=True)
                if server is servers[0]:
                    check_ours(server, requests, answers, expected)
        check_all(servers[0], every)
        for server in servers:
            server.close()
    layers, hidden, heads, key_heads, ffn, vocabulary = options.model
    source = (LLAMA_CPP / ".ready").read_text().strip() if not options.alone else ""
    version = next((part for part in Path(source).parts if part.startswith("llama_cpp_python")), source)
    text = (f"{datetime.date.today()}, {cpu_name()}, {options.threads} thread(s); Llama of {layers} layers, hidden {hidden}, "
            f"{heads} heads, {key_heads} key heads, FFN {ffn}, vocabulary {vocabulary}, f32; llama-server of {version or 'nowhere'}; "
            f"built for this machine; {CLIENTS} clients with {REQUESTS} requests each a round, of which a quarter breaks off or "
            f"hangs up; prompts begin "
            f"with the same {len(SYSTEM)} bytes; medians of {options.rounds} rounds in turns, load average "
            f"{os.getloadavg()[0]:.1f} at the end; `bench/serve {' '.join(sys.argv[1:])}`\n\n" + table(servers) + "\n")
    print(text)
    if options.save:
        Path("bench/results/serve.md").write_text("# bench/serve\n\n" + text)


if __name__ == "__main__":
    main()
