"""Published chat templates and random ones as transformers' apply_chat_template writes them: FOLDER/cases.jsonl.

A case is a template, its variables, and text or error. Published templates are others' texts, so none is kept here: they
are those of the installed trl package (trl/chat_templates/*.jinja), and of folders that TERATRON_CHAT_TEMPLATES names,
apart by a colon, such as llama.cpp's models/templates. A hundred conversations for each of ten much used models' and
for those of the folders, ten for each other.
"""
import argparse
import copy
import json
import os
import random
from datetime import datetime
from pathlib import Path

import trl
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

TEN = ["llama3_1", "llama3_2", "qwen2_5", "qwen3", "gemma", "gemma3", "phi3_5", "deepseekv3", "deepseek_r1_distill", "gptoss"]

PIECES = ["a word", " ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "é", "世界", "🙂", '"quoted"', "'", "\\", "{{ 1 }}", "<|im_end|>", "</s>",
          "<think>\nhm\n</think>\n\n", "</think>", "<tool_response>", "</tool_response>", "<b>&amp;</b>", "0", "None", "\u2028"]

WEATHER = {"name": "get_weather", "description": 'Weather "now" & later.',
           "parameters": {"type": "object", "required": ["city"],
                          "properties": {"city": {"type": "string", "description": "The city"},
                                         "unit": {"type": "string", "enum": ["c", "f"]}, "days": {"type": "integer", "default": 3},
                                         "where": {"type": "array", "items": {"type": "number"}}}}}
ADD = {"name": "add", "description": "Adds.",
       "parameters": {"type": "object", "required": ["a"],
                      "properties": {"a": {"type": "number"},
                                     "o": {"type": "object", "properties": {"x": {"type": ["string", "null"]}}}}},
       "return": {"type": "number", "description": "é"}}
TOOLS = [{"type": "function", "function": WEATHER}, {"type": "function", "function": ADD}]

BLOCKS = [("{%- if true %}", "{% endif %}"), ("{% if true -%}", "{%- endif -%}"), ("{%+ if 1 %}", "{% endif +%}"),
          ("{% if true %}", "{%+ endif %}"), ("{% for i in [1, 2] %}", "{% endfor %}"), ("{%- for i in 'ab' -%}", "{%- endfor %}"),
          ("{% raw %}", "{% endraw %}"), ("{% raw -%}", "{%- endraw -%}"), ("{%- raw %}", "{% endraw +%}"),
          ("{% set b %}", "{% endset %}{{ b }}"), ("{% filter upper %}", "{% endfilter %}")]
PARTS = ["{{ 'v' }}", "{{- 'v' }}", "{{ 'v' -}}", "{# c #}", "{#- c #}", "{# c -#}", "{# c +#}", "{#+ c #}", " ", "  ", "\n", "\n\n", "\t", "a",
         "b ", "\x0b", "\u00a0", "{% set x = 1 %}", "{", "}", "\r\n", "{{ '\n' }}", "\r", " \n "]


def text(draw):
    return "".join(draw.choices(PIECES, k=draw.choice([0, 1, 3, 8])))


def calls(draw):
    arguments = [{"city": text(draw)}, {"a": 1.5, "o": {"x": None}, "l": [1, True, 1e20]}]
    return [{"id": f"call{draw.randint(0, 99999):05}", "type": "function",
             "function": {"name": draw.choice(["get_weather", "add"]), "arguments": draw.choice(arguments)}}
            for _ in range(draw.choice([1, 1, 2]))]


def conversation(draw):
    messages = [{"role": "system", "content": text(draw)}] if draw.random() < 0.4 else []
    tools = draw.random() < 0.35
    for turn in range(draw.randint(1, 6)):
        role = ["user", "assistant"][turn % 2] if draw.random() < 0.97 else draw.choice(["user", "assistant", "system", "tool"])
        message = {"role": role, "content": text(draw)}
        messages.append(message)
        if role == "user" and draw.random() < 0.1:
            message["content"] = [{"type": "text", "text": text(draw)}, {"type": "text", "text": "b"}]
        if role != "assistant":
            continue
        if draw.random() < 0.15:
            message["reasoning_content"] = text(draw)
        if tools and draw.random() < 0.5:
            message["content"] = draw.choice(["", None, text(draw), message["content"]])
            message["tool_calls"] = calls(draw)
            for call in message["tool_calls"]:
                answer = draw.choice([text(draw), '{"t": 1}'])
                messages.append({"role": "tool", "tool_call_id": call["id"], "name": call["function"]["name"], "content": answer})
    variables = {"messages": messages, "tools": TOOLS if tools else None, "add_generation_prompt": draw.random() < 0.6}
    if draw.random() < 0.2:
        variables["enable_thinking"] = draw.random() < 0.5
    return variables


def spaces(draw, depth):
    """A template of tags in all their forms, and white space between them."""
    parts = []
    for _ in range(draw.randint(1, 5)):
        if depth > 0 and draw.random() < 0.3:
            begin, end = draw.choice(BLOCKS)
            parts += [begin, spaces(draw, depth - 1), end]
        else:
            parts.append(draw.choice(PARTS))
    return "".join(parts)


class Date:
    """A clock that stands where the test's does."""

    @staticmethod
    def now():
        return datetime(2024, 7, 26, 12)


def sources(rounds):
    folders = [Path(trl.__file__).parent / "chat_templates"]
    more = [Path(folder) for folder in os.environ.get("TERATRON_CHAT_TEMPLATES", "").split(":") if folder]
    for folder in folders + more:
        for path in sorted(folder.glob("*.jinja")):
            with open(path, newline="") as file:
                yield path.stem, file.read(), rounds if folder in more or path.stem in TEN else max(1, rounds // 10)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    chat_template_utils.datetime = Date
    specials = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"<unk>": 0}, "<unk>")), **specials)
    jobs = [(name, source, conversation(draw)) for name, source, count in sources(options.rounds) for _ in range(count)]
    jobs += [("spaces", spaces(draw, 2), {"messages": [{"role": "user", "content": ""}]}) for _ in range(30 * options.rounds)]
    with open(options.folder / "cases.jsonl", "w") as cases:
        for name, source, variables in jobs:
            case = {"name": name, "source": source, "ten": name in TEN}
            case["variables"] = {**variables, "tools": variables.get("tools"), "documents": None, **specials}
            case["variables"].setdefault("add_generation_prompt", False)
            try:
                case["text"] = tokenizer.apply_chat_template(
                    variables["messages"], chat_template=source, tokenize=False,
                    **copy.deepcopy({key: value for key, value in variables.items() if key != "messages"}))
            except Exception as error:
                case["error"] = f"{type(error).__name__}: {error}"
            cases.write(json.dumps(case) + "\n")


if __name__ == "__main__":
    main()
