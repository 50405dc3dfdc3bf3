"""The CTranslate2 side of bench/greedy: greedy continuations by a model that its converter made of a folder of transformers.

    ctranslate2_generate.py FOLDER float32|int8 THREADS

For each line {"prompts": [[id, ..], ..], "new": N} on standard input, the prompts at a time, a line of JSON: the seconds and the
new ids. Written for CTranslate2 4.8.
"""

import json
import sys
import tempfile
import time

import ctranslate2
import transformers
from ctranslate2.converters import TransformersConverter

folder, kind, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
transformers.utils.logging.disable_progress_bar()
with tempfile.TemporaryDirectory() as name:
    TransformersConverter(folder).convert(name, quantization=kind, force=True)
    generator = ctranslate2.Generator(name, device="cpu", compute_type=kind, inter_threads=1, intra_threads=threads)
vocabulary = transformers.AutoTokenizer.from_pretrained(folder)


def run(prompts, new):
    texts = [vocabulary.convert_ids_to_tokens(prompt) for prompt in prompts]
    start = time.perf_counter()
    # Each token is the likeliest by default (sampling_topk 1); min_length rules an end of text out.
    results = generator.generate_batch(texts, max_length=new, min_length=new, include_prompt_in_result=False)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "tokens": [result.sequences_ids[0] for result in results]}


print(json.dumps({"ready": True, "version": ctranslate2.__version__, "type": generator.compute_type}), flush=True)
for line in sys.stdin:
    print(json.dumps(run(**json.loads(line))), flush=True)
