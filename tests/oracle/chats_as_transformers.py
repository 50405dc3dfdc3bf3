"""Conversations as transformers' apply_chat_template writes them: text and token ids.

    $(scripts/oracle-env | tail -n 1) tests/oracle/chats_as_transformers.py FOLDER [--rounds N] [--seed N]

Writes FOLDER/NAME with the tokenizer and the template of each family below, and FOLDER/cases.jsonl, which
tests/serve/chat_oracle_test.cc compares with ours. The templates are written for this test, of the kinds that published
models have: their tokens, their order, and what they use of Jinja. Tokenizers are those of tests/golden/bpe_families, with
the special tokens of the templates. Conversations are random: Unicode, empty ones, line ends, words of the templates.
"""

import argparse
import json
import random
from pathlib import Path

from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerFast

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "bpe_families"

CHATML = """{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""

LLAMA2 = """{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set system = messages[0]['content'] %}\
{% else %}{% set rest = messages %}{% set system = false %}{% endif %}{% for message in rest %}\
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Turns must alternate: user, assistant, user ..') }}{% endif %}\
{% if loop.index0 == 0 and system != false %}{% set text = '<<SYS>>\n' + system + '\n<</SYS>>\n\n' + message['content'] %}\
{% else %}{% set text = message['content'] %}{% endif %}{% if message['role'] == 'user' %}\
{{ bos_token + '[INST] ' + text.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}\
{{ ' ' + text.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"""

LLAMA3 = """{{- bos_token }}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
{{- "Cutting Knowledge Date: December 2023\n" }}
{{- "Today Date: " + date_string + "\n\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\n\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
"""

MISTRAL = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("After an optional system message, user and assistant take turns") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\n\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- else %}
        {{- raise_exception("There are user and assistant, and a system message first") }}
    {%- endif %}
{%- endfor %}
"""

ZEPHYR = """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}
"""

SMOLLM2 = """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are a helpful AI assistant<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}"""

QWEN25 = """{%- if tools %}
    {{- '<|im_start|>system\n' }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}
    {%- else %}
        {{- '<|im_start|>system\nYou are an assistant.<|im_end|>\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\n<tool_response>\n' }}
        {{- message.content }}
        {{- '\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
"""

QWEN3 = """{%- if messages[0].role == 'system' %}
    {{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {%- if loop.last or (not loop.last and reasoning_content) %}
                {{- '<|im_start|>' + message.role + '\n<think>\n' + reasoning_content.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
            {%- else %}
                {{- '<|im_start|>' + message.role + '\n' + content }}
            {%- endif %}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}"""

TINYLLAMA = """{% for message in messages %}\n{% if message['role'] == 'user' %}\n{{ '<|user|>\n' + message['content'] + eos_token }}\n\
{% elif message['role'] == 'system' %}\n{{ '<|system|>\n' + message['content'] + eos_token }}\n{% else %}\n\
{{ '<|assistant|>\n' + message['content'].strip() + eos_token }}\n{% endif %}\n\
{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}"""

PHI = """{% for message in messages %}{% if message['role'] == 'system' and message['content'] %}{{'<|system|>\n' + message['content'] + '<|end|>\n'}}\
{% elif message['role'] == 'user' %}{{'<|user|>\n' + message['content'] + '<|end|>\n'}}\
{% elif message['role'] == 'assistant' %}{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}{% endif %}{% endfor %}\
{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}"""

GEMMA = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('There is no system role') }}{% endif %}\
{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate') }}{% endif %}\
{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}\
{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}\
{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"""

# A macro, a comment, the date, a dictionary's method, counting, and the neighbours in a loop.
MANY_THINGS = """{#- Writes a turn. -#}
{%- macro turn(role, text) -%}
<|im_start|>{{ role }}
{{ text }}<|im_end|>
{% endmacro -%}
{{ strftime_now('%Y') | length }} {{ messages | length }}
{% for message in messages if message.role != 'system' -%}
{{ turn(message.role ~ ('+' if loop.previtem is defined and loop.previtem.role == message.role else ''), message.get('content', '') or 'nothing') }}
{%- if not loop.last %}--{{ loop.index }}/{{ loop.length }}{% endif %}
{%- endfor %}
{{ messages | map(attribute='role') | join(', ') }}
{{ messages[-1]['content'] | tojson }}
"""

FAMILIES = {  # name: tokenizer, template, its special tokens, bos, eos
    "chatml": ("qwen3", CHATML, ["<|im_start|>", "<|im_end|>"], None, "<|im_end|>"),
    "llama2": ("llama2", LLAMA2, [], "<s>", "</s>"),
    "llama3": ("llama3", LLAMA3, ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"], "<|begin_of_text|>", "<|eot_id|>"),
    "mistral": ("mistral", MISTRAL, ["[INST]", "[/INST]"], "<s>", "</s>"),
    "zephyr": ("metaspace", ZEPHYR, [], "<s>", "</s>"),
    "smollm2": ("smollm", SMOLLM2, ["<|im_start|>", "<|im_end|>"], "<|im_start|>", "<|im_end|>"),
    "qwen25": ("qwen3", QWEN25, ["<|im_start|>", "<|im_end|>"], None, "<|im_end|>"),
    "qwen3": ("qwen3", QWEN3, ["<|im_start|>", "<|im_end|>", "<think>", "</think>"], None, "<|im_end|>"),
    "tinyllama": ("llama2", TINYLLAMA, [], "<s>", "</s>"),
    "phi": ("neox", PHI, ["<|system|>", "<|user|>", "<|assistant|>", "<|end|>"], None, "<|endoftext|>"),
    "gemma": ("llama2", GEMMA, ["<start_of_turn>", "<end_of_turn>"], "<s>", "</s>"),
    "many_things": ("qwen3", MANY_THINGS, ["<|im_start|>", "<|im_end|>"], None, "<|im_end|>"),
}

PIECES = ["a word", " ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\x0b", "\x1f", "é", "e\u0301", "世界", "🙂", "‮", "\"quoted\"", "'", "\\",
          "{{ 1 + 1 }}", "{% if %}", "{# no #}", "<|im_end|>", "</s>", "<s>", "[INST]", "<|eot_id|>", "<think>\nhm\n</think>\n\n", "</think>",
          "<tool_response>", "</tool_response>", "<b>&amp;</b>", "0", "None", "\x7f", "\u2028"]


def make_tokenizer(folder, golden, template, specials, bos, eos, draw):
    tokenizer = Tokenizer.from_file(str(GOLDEN / f"{golden}.json"))
    wanted = [token for token in [*specials, bos, eos] if token]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in wanted])
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=bos, eos_token=eos)
    made.chat_template = template
    made.save_pretrained(folder)
    if draw.random() < 0.5:  # in the older place
        (folder / "chat_template.jinja").unlink()
        config = json.loads((folder / "tokenizer_config.json").read_text())
        kinds = [{"name": "other", "template": "no"}, {"name": "default", "template": template}]
        config["chat_template"] = template if draw.random() < 0.5 else kinds
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return PreTrainedTokenizerFast.from_pretrained(folder)


def conversation(draw):
    messages = [{"role": "system"}] if draw.random() < 0.3 else []
    alternates = draw.random() < 0.8
    for turn in range(draw.randint(1, 5)):
        role = ["user", "assistant"][turn % 2] if alternates else draw.choice(["user", "assistant", "system", "tool"])
        messages.append({"role": role})
    for message in messages:
        message["content"] = "".join(draw.choices(PIECES, k=draw.choice([0, 1, 3, 8])))
    return messages


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    with open(options.folder / "cases.jsonl", "w") as cases:
        for name, (golden, template, specials, bos, eos) in FAMILIES.items():
            tokenizer = make_tokenizer(options.folder / name, golden, template, specials, bos, eos, draw)
            for _ in range(options.rounds):
                messages, begins = conversation(draw), draw.random() < 0.7
                case = {"name": name, "messages": messages, "begins": begins}
                try:
                    case["text"] = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=begins)
                    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=begins)
                    case["ids"] = ids["input_ids"] if hasattr(ids, "keys") else ids
                except Exception as error:  # of the template, or of Python within it
                    case["error"] = str(error)
                cases.write(json.dumps(case) + "\n")


if __name__ == "__main__":
    main()
