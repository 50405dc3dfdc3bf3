"""Writes small datasets in Megatron-LM's indexed format, from the format's description and nothing else.

tests/data/indexed_dataset_test.cc reads them and writes the same files again. Run: python3 make_indexed_golden.py
They hold, in every type of token, documents of one sequence (and `sentences_*`: of several, as BERT has them) whose
lengths and tokens follow the two formulas below; the test repeats the formulas.
"""

import os
import struct

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "indexed")
TYPES = {  # name: (code in the format, struct letter, ids below)
    "u8": (1, "B", 251),
    "i8": (2, "b", 127),
    "i16": (3, "h", 30011),
    "i32": (4, "i", 100003),
    "i64": (5, "q", 100003),
    "u16": (8, "H", 50257),
}


def sequence_length(number):
    return (number * number * 7 + 3) % 11  # some are empty


def token(position, vocab_size):
    return (position * 7919 + 13) % vocab_size


def write(name, type_name, documents, sequences_per_document):
    code, letter, vocab_size = TYPES[type_name]
    lengths, offsets, first_sequences = [], [], [0]
    data = b""
    position = 0
    for document in range(documents):
        for _ in range(sequences_per_document(document)):
            length = sequence_length(len(lengths))
            lengths.append(length)
            offsets.append(len(data))
            tokens = [token(position + i, vocab_size) for i in range(length)]
            data += struct.pack("<%d%s" % (length, letter), *tokens)
            position += length
        first_sequences.append(len(lengths))
    with open(os.path.join(FOLDER, name + ".bin"), "wb") as file:
        file.write(data)
    with open(os.path.join(FOLDER, name + ".idx"), "wb") as file:
        file.write(b"MMIDIDX\x00\x00")
        file.write(struct.pack("<Q", 1))
        file.write(struct.pack("<B", code))
        file.write(struct.pack("<Q", len(lengths)))
        file.write(struct.pack("<Q", len(first_sequences)))
        file.write(struct.pack("<%di" % len(lengths), *lengths))
        file.write(struct.pack("<%dq" % len(offsets), *offsets))
        file.write(struct.pack("<%dq" % len(first_sequences), *first_sequences))


if __name__ == "__main__":
    os.makedirs(FOLDER, exist_ok=True)
    for type_name in TYPES:
        write("documents_" + type_name, type_name, 12, lambda document: 1)
        write("sentences_" + type_name, type_name, 5, lambda document: document % 4)
