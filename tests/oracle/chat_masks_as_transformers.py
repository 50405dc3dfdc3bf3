"""The assistant's tokens in conversations as transformers finds them (return_assistant_tokens_mask).

    $(scripts/oracle-env | tail -n 1) tests/oracle/chat_masks_as_transformers.py FOLDER [--rounds N] [--seed N]

Writes FOLDER/NAME with a tokenizer and a template with {% generation %} blocks, FOLDER/NAME.plain.jinja, the same
template without them, and FOLDER/cases.jsonl, which tests/data/chat_masks_oracle_test.cc compares with ours. In the
first two families the blocks hold just what follows the beginning of an answer, so that comparing texts with and
without the answer must find the same words.
"""

import argparse
import json
import random
import re
from pathlib import Path

from chats_as_transformers import conversation, make_tokenizer

CHATML = """{% for message in messages %}{% if message['role'] == 'assistant' %}{{ '<|im_start|>assistant\n' }}\
{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}{{ '\n' }}{% else %}\
{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endif %}{% endfor %}\
{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""

LLAMA3 = """{{- bos_token }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' }}
    {%- if message['role'] == 'assistant' %}
        {%- generation -%}
            {{- message['content'] | trim -}}
            {{- '<|eot_id|>' -}}
        {%- endgeneration -%}
    {%- else %}
        {{- message['content'] | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
"""

# White space of the template itself around and within blocks, a loop variable, and a name set within a block. The block
# begins with a special token: of a token that a template and an answer share, transformers' offsets lack white space.
LINES = """{% for message in messages %}
{% if message['role'] == 'assistant' %}
  {% generation %}
<|assistant|>
  {% set said = message['content'] %}
{{ said }}   {{ loop.index }}

{{ eos_token }}
  {% endgeneration %}

{% else %}
<|{{ message['role'] }}|> {{ message['content'] }}
{% endif %}
{% endfor %}
{% if add_generation_prompt %}
<|assistant|>
{% endif %}"""

FAMILIES = {  # name: tokenizer, template, its special tokens, bos, eos
    "chatml": ("qwen3", CHATML, ["<|im_start|>", "<|im_end|>"], None, "<|im_end|>"),
    "llama3": ("llama3", LLAMA3, ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"], "<|begin_of_text|>", "<|eot_id|>"),
    "lines": ("neox", LINES, ["<|assistant|>"], None, "<|endoftext|>"),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=80)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    with open(options.folder / "cases.jsonl", "w") as cases:
        for name, (golden, template, specials, bos, eos) in FAMILIES.items():
            tokenizer = make_tokenizer(options.folder / name, golden, template, specials, bos, eos, draw)
            plain = re.sub(r"\{%(-?) (?:end)?generation (-?)%\}", r"{%\1 if true \2%}{%\1 endif \2%}", template)
            (options.folder / f"{name}.plain.jinja").write_text(plain)
            for _ in range(options.rounds):
                messages = conversation(draw)
                written = tokenizer.apply_chat_template(messages, return_dict=True, return_assistant_tokens_mask=True)
                case = {"name": name, "messages": messages, "ids": written["input_ids"], "mask": written["assistant_masks"]}
                cases.write(json.dumps(case) + "\n")


if __name__ == "__main__":
    main()
