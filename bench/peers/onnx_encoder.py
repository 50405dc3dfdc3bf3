"""The other sides of bench/encoders: the mean of a BERT's outputs over each text's tokens, by a runtime of ONNX files.

    onnx_encoder.py onnxruntime|openvino MODEL.onnx IDS THREADS    IDS: a file of JSON, the token ids of each text

For each line {"batch": N, "out": FILE} on standard input it makes the vectors of all texts, N at a time, longest first and padded to
the batch's longest, as sentence-transformers does, writes them to FILE (.npy) and prints a line of JSON: the seconds, without those of
writing. Arithmetic is fp32. Written for onnxruntime 1.32 and OpenVINO 2026.4.
"""

import json
import sys
import time

import numpy


def onnxruntime_model(path, threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return onnxruntime.__version__, lambda ids, mask: session.run(None, {"input_ids": ids, "attention_mask": mask})[0]


def openvino_model(path, threads):
    import openvino
    # Its default is bf16 where the processor has it.
    settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    compiled = openvino.Core().compile_model(path, "CPU", settings)
    version = openvino.__version__.split("-")[0]
    return version, lambda ids, mask: compiled({"input_ids": ids, "attention_mask": mask})[0]


def vectors_of(model, texts, batch):
    """[texts, hidden]"""
    order = sorted(range(len(texts)), key=lambda number: -len(texts[number]))
    vectors = None
    for begin in range(0, len(order), batch):
        numbers = order[begin:begin + batch]
        ids = numpy.zeros((len(numbers), len(texts[numbers[0]])), numpy.int64)
        mask = numpy.zeros_like(ids)
        for row, number in enumerate(numbers):
            ids[row, :len(texts[number])], mask[row, :len(texts[number])] = texts[number], 1
        outputs = model(ids, mask)
        if vectors is None:
            vectors = numpy.empty((len(texts), outputs.shape[-1]), numpy.float32)
        vectors[numbers] = numpy.einsum("btd,bt->bd", outputs, mask.astype(numpy.float32)) / mask.sum(1, keepdims=True)
    return vectors


def main():
    runtime, path, ids, threads = sys.argv[1:]
    version, model = {"onnxruntime": onnxruntime_model, "openvino": openvino_model}[runtime](path, int(threads))
    with open(ids) as file:
        texts = json.load(file)
    vectors_of(model, texts[:64], 32)
    print(json.dumps({"ready": True, "version": version}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        start = time.perf_counter()
        vectors = vectors_of(model, texts, request["batch"])
        seconds = time.perf_counter() - start
        numpy.save(request["out"], vectors)
        print(json.dumps({"seconds": seconds}), flush=True)


main()
