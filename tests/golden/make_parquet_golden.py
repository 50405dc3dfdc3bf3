"""Make tests/golden/parquet: small Parquet files by pyarrow, and NAME.jsonl with the rows of NAME-*.parquet.

    nice $(scripts/oracle-env | tail -n 1) tests/golden/make_parquet_golden.py

  fineweb-*   the columns of FineWeb
  chats-*     conversations: lists of structs, as UltraChat has them
  types-*     a column of each type, with nulls
  rare-*      what pyarrow writes when asked to: UUIDs, half floats, nanoseconds, decimals as integers, INT96 timestamps
  pages-*     bytes of web pages in several encodings, and texts that are base64
  nested-*    lists, structs and maps in one another, with nulls and empty ones at each level
"""

import base64
import datetime
import decimal
import random
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "oracle"))
from parquet_by_pyarrow import lines_of  # noqa: E402

OUT = HERE / "parquet"
TEXTS = ["The river had risen in the night, so the ferry was tied up.", "Une phrase plus élégante, n'est-ce pas ?",
         'She said: "No."\nThen she left.', "日本語の文章です。", "Tabs\tand \\ backslashes 🙂", "A short one."]


def fineweb():
    rng = random.Random(1)
    texts = [" ".join(rng.choices(TEXTS, k=rng.randint(1, 4))) for _ in range(24)]
    return pa.table({
        "text": texts,
        "id": [f"<urn:uuid:{rng.getrandbits(128):032x}>" for _ in texts],
        "dump": ["CC-MAIN-2024-10" if i < 20 else "CC-MAIN-2013-20" for i, _ in enumerate(texts)],
        "url": [f"https://example.org/{i}" for i, _ in enumerate(texts)],
        "date": [f"2024-02-{21 + i % 5}T08:18:{i:02}Z" for i, _ in enumerate(texts)],
        "file_path": ["s3://commoncrawl/crawl-data/segment.warc.gz" for _ in texts],
        "language": ["en" for _ in texts],
        "language_score": [0.65 + i / 100 for i, _ in enumerate(texts)],
        "token_count": [len(text) // 4 for text in texts],
    })


def chats():
    rng = random.Random(2)
    turn = pa.struct([("content", pa.string()), ("role", pa.string())])
    chat = lambda i: [{"role": role, "content": f"{role} {i}: {rng.choice(TEXTS)}"} for role in ["user", "assistant"] * (1 + i % 3)]
    return pa.table({"prompt_id": [f"{i:04x}" for i in range(10)], "messages": pa.array(map(chat, range(10)), pa.list_(turn))})


def types():
    day = datetime.date
    columns = {
        "boolean": pa.array([True, False, None, True, True]),
        "int8": pa.array([-128, 127, None, 0, 1], pa.int8()),
        "int32": pa.array([-(2**31), 2**31 - 1, None, 0, 1], pa.int32()),
        "int64": pa.array([-(2**63), 2**63 - 1, None, 0, 1]),
        "uint8": pa.array([0, 255, None, 0, 1], pa.uint8()),
        "uint32": pa.array([0, 2**32 - 1, None, 0, 1], pa.uint32()),
        "uint64": pa.array([0, 2**64 - 1, None, 0, 1], pa.uint64()),
        "float32": pa.array([0.1, 1.0, None, float("nan"), -1e20], pa.float32()),
        "float64": pa.array([0.1, 1.0, None, float("inf"), -1e-7]),
        "text": pa.array(TEXTS[1:3] + [None, "", TEXTS[4]]),
        "category": pa.array(["a", "b", None, "a", "a"]).dictionary_encode(),
        "bytes": pa.array([b"as text", b"\xff\x00\x01", None, b"", "日本".encode()]),
        "fixed": pa.array([b"abc", b"\xff\xfe\xfd", None, b"def", b"\0\0\0"], pa.binary(3)),
        "decimal": pa.array([decimal.Decimal("-12345.67"), decimal.Decimal("0.05"), None, decimal.Decimal(0), decimal.Decimal("99999.99")],
                            pa.decimal128(7, 2)),
        "long_decimal": pa.array([decimal.Decimal(-(10**59)), decimal.Decimal(1), None, decimal.Decimal(0), decimal.Decimal(10**59)],
                                 pa.decimal256(60, 0)),
        "date": pa.array([day(1, 1, 1), day(2000, 2, 29), None, day(1970, 1, 1), day(9999, 12, 31)]),
        "time": pa.array([0, 86_399_999, None, 1000, 1], pa.time32("ms")),
        "clock": pa.array([0, -1, None, 1_700_000_000_123_456, -62_135_596_800_000_000], pa.timestamp("us")),
        "instant": pa.array([0, -1, None, 1_700_000_000_000, 1_700_000_000_120], pa.timestamp("ms", tz="UTC")),
        "nothing": pa.nulls(5),
    }
    return pa.table(columns)


def rare():
    """Timestamps of INT96 have no time zone, so no column has one."""
    small = decimal.Decimal("0.01")
    return pa.table({
        "uuid": pa.array([bytes(range(16)), b"\xff" * 16, None, b"\0" * 16, bytes(range(240, 256))], pa.uuid()),
        "half": pa.array([np.float16(x) for x in (0.1, -65504, 2**-24)] + [None, np.float16("nan")], pa.float16()),
        "clock": pa.array([0, -1, None, 1_700_000_000_123_456_789, -(2**63) + 1], pa.timestamp("ns")),
        "time": pa.array([0, 86_399_999_999_999, None, 1, 1_000], pa.time64("ns")),
        "decimal": pa.array([-99999 * small, small, None, decimal.Decimal("0.00"), -small], pa.decimal128(7, 2)),
        "long_decimal": pa.array([decimal.Decimal(-(10**17)), decimal.Decimal(256), None, decimal.Decimal(0), decimal.Decimal(10**17)],
                                 pa.decimal128(18, 0)),
    })


def pages():
    def page(encoding, sentence):
        body = "".join(f"<p>{sentence} {sentence}</p>" for _ in range(4))
        return f'<html><head><meta charset="{encoding}"></head><body><article>{body}</article></body></html>'.encode(encoding)
    french = "Une phrase plus élégante a été écrite ici, n’est-ce pas, et le café était fermé."
    html = [page("windows-1252", french), page("utf-8", french), page("shift_jis", "日本語の文章はここにあります。" * 3)]
    return pa.table({
        "html": pa.array(html, pa.binary()),
        "url": [f"https://example.org/{i}" for i in range(3)],
        "text": [base64.b64encode(one).decode() for one in html],
    })


def nested():
    element = pa.struct([("n", pa.int32()), ("tags", pa.list_(pa.string()))])
    deep = pa.list_(pa.list_(element))
    return pa.table({
        "deep": pa.array([
            [[{"n": 1, "tags": ["a", None, "b"]}, None], [], None, [{"n": None, "tags": []}]], None, [],
            [[{"n": 2, "tags": None}]], [[], []]], deep),
        "map": pa.array([[("x", 1), ("y", None)], [], None, [("", 0)], [("z", 5)]], pa.map_(pa.string(), pa.int64())),
        "numbers": pa.array([[(1, "one"), (2, None)], [], None, [(0, "")], [(3, "three")]], pa.map_(pa.int32(), pa.string())),
        "struct": pa.array([{"a": {"b": 1.5}}, {"a": {"b": None}}, {"a": None}, None, {"a": {"b": 2.0}}],
                           pa.struct([("a", pa.struct([("b", pa.float64())]))])),
    })


def main():
    OUT.mkdir(exist_ok=True)
    deltas = {"text": "DELTA_BYTE_ARRAY", "id": "DELTA_LENGTH_BYTE_ARRAY", "url": "DELTA_BYTE_ARRAY", "token_count": "DELTA_BINARY_PACKED",
              "language_score": "BYTE_STREAM_SPLIT"}
    small = {"data_page_size": 1, "write_batch_size": 4}
    tables = {"fineweb": fineweb(), "chats": chats(), "types": types(), "nested": nested(), "rare": rare(), "pages": pages()}
    variants = {
        "fineweb": {"snappy": {}, "zstd": {"compression": "zstd", "row_group_size": 10},
                    "gzip": {"compression": "gzip", "data_page_version": "2.0", **small},
                    "deltas": {"compression": "brotli", "use_dictionary": False, "column_encoding": deltas, "write_page_checksum": True}},
        "chats": {"lz4": {"compression": "lz4", **small}, "plain": {"compression": "none", "use_dictionary": False}},
        "types": {"zstd": {"compression": "zstd"},
                  "plain": {"compression": "none", "use_dictionary": False, "data_page_version": "2.0", "store_schema": False, **small}},
        "nested": {"snappy": {"row_group_size": 2}, "plain": {"compression": "none", "data_page_version": "2.0", **small}},
        "pages": {"plain": {"compression": "none", "use_dictionary": False}},
        "rare": {"integers": {"store_decimal_as_integer": True}, "int96": {"use_deprecated_int96_timestamps": True, "use_dictionary": False},
                 "words": {"use_deprecated_int96_timestamps": True, "store_schema": False}},
    }
    for name, table in tables.items():
        (OUT / f"{name}.jsonl").write_bytes(lines_of(table).encode())
        for variant, options in variants[name].items():
            pq.write_table(table, OUT / f"{name}-{variant}.parquet", **options)


if __name__ == "__main__":
    main()
