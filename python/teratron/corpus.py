"""Tokenised corpora: PREFIX.idx and PREFIX.bin, the format of Megatron-LM's MMapIndexedDataset."""

from pathlib import Path

import numpy

MAGIC = b"MMIDIDX\x00\x00"
TYPES = {1: numpy.uint8, 2: numpy.int8, 3: numpy.int16, 4: numpy.int32, 5: numpy.int64, 8: numpy.uint16}


class Corpus:
    """Sequences of token ids, read from the disk as they are asked for.

    corpus[i]            ids of sequence i, a read-only array
    corpus.document(i)   ids of document i: its sequences, one after another
    corpus.lengths       tokens of every sequence
    """

    def __init__(self, prefix):
        index = Path(f"{prefix}.idx")
        data = index.read_bytes()
        if data[:9] != MAGIC or int.from_bytes(data[9:17], "little") != 1:
            raise ValueError(f"'{index}' is no index of a corpus")
        code = data[17]
        if code not in TYPES:
            raise ValueError(f"'{index}': tokens of type {code}, which the format does not have")
        sequences = int.from_bytes(data[18:26], "little")
        borders = int.from_bytes(data[26:34], "little")
        if len(data) != 34 + 12 * sequences + 8 * borders:
            raise ValueError(f"'{index}' has {len(data)} bytes, where its header says {34 + 12 * sequences + 8 * borders}")
        self.lengths = numpy.frombuffer(data, "<i4", sequences, 34)
        self._starts = numpy.frombuffer(data, "<i8", sequences, 34 + 4 * sequences)
        self._documents = numpy.frombuffer(data, "<i8", borders, 34 + 12 * sequences)
        self._type = numpy.dtype(TYPES[code]).newbyteorder("<")
        tokens = Path(f"{prefix}.bin")
        size = tokens.stat().st_size
        if size != self.tokens * self._type.itemsize:
            raise ValueError(f"'{tokens}' has {size} bytes, where '{index}' says {self.tokens * self._type.itemsize}")
        self._bytes = numpy.memmap(tokens, numpy.uint8, "r") if size else numpy.zeros(0, numpy.uint8)

    @property
    def tokens(self):
        return int(self.lengths.sum(dtype=numpy.int64))

    @property
    def documents(self):
        return max(len(self._documents) - 1, 0)

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, sequence):
        at = range(len(self))[sequence]  # counts from the end, and refuses what is not there
        start = int(self._starts[at])
        return self._bytes[start : start + int(self.lengths[at]) * self._type.itemsize].view(self._type)

    def document(self, number):
        at = range(self.documents)[number]
        parts = [self[i] for i in range(int(self._documents[at]), int(self._documents[at + 1]))]
        return numpy.concatenate(parts) if parts else numpy.zeros(0, self._type)
