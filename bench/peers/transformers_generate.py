"""The transformers side of bench/generation: a GPT-2 or Llama with random weights, of the sizes that ours said: a prompt at once, and one token after another of another text,
with the library's own cache; greedy. For each line "run" of standard input a line of JSON.
"""

import json
import sys
import time

import torch
import transformers

dtype, sizes, prompt, context, tokens = sys.argv[1], json.loads(sys.argv[2]), *map(int, sys.argv[3:])
torch.set_num_threads(2)
torch.manual_seed(1)
if sizes["family"] == "gpt2":
    config = transformers.GPT2Config(n_layer=sizes["layers"], n_embd=sizes["hidden"], n_head=sizes["heads"],
                                     vocab_size=sizes["vocabulary"])
else:
    config = transformers.LlamaConfig(num_hidden_layers=sizes["layers"], hidden_size=sizes["hidden"],
                                      num_attention_heads=sizes["heads"], num_key_value_heads=sizes["key_heads"],
                                      intermediate_size=sizes["ffn"], vocab_size=sizes["vocabulary"], tie_word_embeddings=True)
model = transformers.AutoModelForCausalLM.from_config(config).to(getattr(torch, dtype)).eval()


@torch.inference_mode()
def seconds_of_calls(text, calls):
    """The first computes `text` tokens, the others one each."""
    ids, cache, times = torch.full((1, text), 7), None, []
    for _ in range(calls):
        start = time.perf_counter()
        out = model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        ids, cache = out.logits[:, -1:].argmax(-1), out.past_key_values
        times.append(time.perf_counter() - start)
    return times


def run():
    return {"prompt_s": seconds_of_calls(prompt, 1)[0], "token_s": sum(seconds_of_calls(context, 1 + tokens)[1:]) / tokens}


run()
print(json.dumps({"ready": True, "version": transformers.__version__, "torch": torch.__version__}), flush=True)
for line in sys.stdin:
    print(json.dumps(run()), flush=True)
