"""Random Parquet files by pyarrow, and what their rows are as lines of JSON.

    python tests/oracle/parquet_by_pyarrow.py FOLDER SEED COUNT

FOLDER gets N.parquet with random columns, nulls, nesting, versions, encodings, codecs, pages and row groups, and N.jsonl
by the rules of src/text/parquet/README.md, for N from 0 to COUNT - 1. Values are read from the table in memory, never from
the file. tests/golden/make_parquet_golden.py uses the functions, too.
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


def string(text):
    out = ""
    for c in text:
        out += {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(c) or (
            f"\\u{ord(c):04x}" if ord(c) < 32 else c)
    return f'"{out}"'


def bytes_of(value):
    try:
        return string(value.decode())
    except UnicodeDecodeError:
        return string(base64.b64encode(value).decode())


def floating(value, kind=float):
    if not np.isfinite(value):
        return "null"
    return repr(float(str(kind(value))))  # the fewest digits that give the value of this kind back


def clock(count, unit):
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    seconds, rest = divmod(count, per_second)
    nanoseconds = rest * (10**9 // per_second)
    fraction = f"{nanoseconds:09d}"
    while fraction.endswith("000"):
        fraction = fraction[:-3]
    return seconds, "." + fraction if nanoseconds else ""


def text_of(scalar):
    kind = scalar.type
    if not scalar.is_valid:
        return "null"
    if pa.types.is_dictionary(kind):
        return text_of(scalar.value)
    if kind == pa.uuid():
        return f'"{scalar.as_py()}"'
    if pa.types.is_boolean(kind):
        return "true" if scalar.as_py() else "false"
    if pa.types.is_integer(kind):
        return str(scalar.as_py())
    if pa.types.is_float64(kind):
        return floating(scalar.as_py())
    if pa.types.is_floating(kind):
        return floating(float(scalar.as_py()), np.float32)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return string(scalar.as_py())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return bytes_of(scalar.as_py())
    if pa.types.is_decimal(kind):
        return format(scalar.as_py(), "f")
    if pa.types.is_date(kind):
        return f'"{scalar.as_py().isoformat()}"'
    if pa.types.is_duration(kind):
        return str(scalar.value)
    if pa.types.is_time(kind):
        seconds, fraction = clock(scalar.value, kind.unit)
        return f'"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"'
    if pa.types.is_timestamp(kind):
        seconds, fraction = clock(scalar.value, kind.unit)
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
        return f'"{moment.isoformat()}{fraction}{"Z" if kind.tz else ""}"'
    if pa.types.is_map(kind):
        pairs = [(text_of(pair["key"]), text_of(pair["value"])) for pair in scalar.values]
        if pa.types.is_string(kind.key_type):
            return "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
        return "[" + ", ".join(f"[{key}, {value}]" for key, value in pairs) + "]"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return "[" + ", ".join(map(text_of, scalar.values)) + "]"
    if pa.types.is_struct(kind):
        return "{" + ", ".join(f"{string(kind.field(i).name)}: {text_of(scalar[i])}" for i in range(kind.num_fields)) + "}"
    raise TypeError(kind)


def lines_of(table):
    columns = [table.column(i).combine_chunks() for i in range(table.num_columns)]
    names = [string(name) for name in table.column_names]
    return "".join(
        "{" + ", ".join(f"{name}: {text_of(column[row])}" for name, column in zip(names, columns)) + "}\n"
        for row in range(table.num_rows))


def write_with_lines(folder, name, table, **options):
    pq.write_table(table, folder / f"{name}.parquet", **options)
    (folder / f"{name}.jsonl").write_bytes(lines_of(table).encode())


WORDS = ["", "a", "tokens", "Überraschung", "日本語の文", "🙂", 'say "no"', "back\\slash", "line\nend", "tab\t", "\x01\x1f\x7f",
         "the same text again and again", "x" * 300]
LEAVES = [
    pa.string(), pa.large_string(), pa.binary(), pa.binary(5), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(),
    pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.decimal128(7, 2),
    pa.decimal128(38, 10), pa.decimal256(60, 20), pa.date32(), pa.time32("ms"), pa.time64("us"), pa.timestamp("ms"),
    pa.timestamp("us"), pa.timestamp("us", tz="UTC"), pa.timestamp("ms", tz="Europe/Berlin"), pa.duration("us"), pa.null(),
    pa.dictionary(pa.int32(), pa.string()),
]
NANOSECONDS = [pa.time64("ns"), pa.timestamp("ns"), pa.timestamp("ns", tz="UTC")]  # the last version of the format alone


def random_type(rng, leaves, depth=0):
    if depth >= 3 or rng.random() < 0.6:
        return rng.choice(leaves)
    inside = [one for one in leaves if not pa.types.is_dictionary(one) and not pa.types.is_null(one)]
    nullable = rng.random() < 0.7
    choice = rng.randrange(4)
    if choice == 0:
        return pa.list_(pa.field("element", random_type(rng, inside, depth + 1), nullable))
    if choice == 1:
        return pa.list_(pa.struct([pa.field(n, random_type(rng, inside, depth + 2), nullable) for n in ("role", "content")]))
    if choice == 2:
        return pa.struct([pa.field(n, random_type(rng, inside, depth + 1), rng.random() < 0.7) for n in ("a", "b c", 'd"')])
    return pa.map_(rng.choice([pa.string(), pa.int32()]), random_type(rng, inside, depth + 1))


def random_value(rng, kind, nullable, nulls):
    if nullable and rng.random() < nulls:
        return None
    some = lambda: range(rng.choice([0, 1, 1, 2, 5]))
    value = lambda one, may=True: random_value(rng, one, may, nulls)
    if pa.types.is_null(kind):
        return None
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return rng.choice(WORDS) if rng.random() < 0.8 else "".join(chr(rng.randrange(32, 0x2FF)) for _ in range(rng.randrange(40)))
    if pa.types.is_fixed_size_binary(kind):
        return rng.choice([b"12345", rng.randbytes(5)])
    if pa.types.is_binary(kind):
        return rng.choice([rng.choice(WORDS).encode(), rng.randbytes(rng.randrange(20))])
    if pa.types.is_boolean(kind):
        return rng.random() < 0.5
    if pa.types.is_integer(kind):
        bits, signed = kind.bit_width, pa.types.is_signed_integer(kind)
        least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        return rng.choice([least, most, min(most, rng.randrange(100)), rng.randint(least, most)])
    if pa.types.is_float16(kind):
        return np.float16(rng.choice([0.0, 1.0, -2.5, rng.uniform(-9, 9)]))
    if pa.types.is_floating(kind):
        number = rng.choice([0.0, -0.0, 1.0, 0.1, 1e20, 1e-7, 123456.0, rng.uniform(-1, 1), rng.gauss(0, 1e6), float("nan"), float("inf")])
        return float(np.float32(number)) if pa.types.is_float32(kind) else number
    if pa.types.is_decimal(kind):
        digits = rng.randrange(10 ** rng.randint(0, kind.precision)) * rng.choice([-1, 1])
        return decimal.Context(prec=100).scaleb(decimal.Decimal(digits), -kind.scale)
    if pa.types.is_date(kind):
        return datetime.date.fromordinal(rng.choice([1, 719162, 719163, 719468, 3652059, rng.randint(1, 3652059)]))
    if pa.types.is_time(kind):
        per_second = {"ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        return rng.choice([0, 86399 * per_second, rng.randrange(86400 * per_second)])
    if pa.types.is_timestamp(kind):
        per_second = {"ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        most = 2**63 // 10**9 - 1 if kind.unit == "ns" else 250_000_000_000
        seconds = rng.choice([0, -1, rng.randint(-min(most, 60_000_000_000), most)])
        return seconds * per_second + rng.choice([0, rng.randrange(per_second)])
    if pa.types.is_duration(kind):
        return rng.randrange(-(10**12), 10**12)
    if pa.types.is_map(kind):
        return [(value(kind.key_type, False), value(kind.item_type)) for _ in some()]
    if pa.types.is_list(kind):
        return [value(kind.value_type, kind.value_field.nullable) for _ in some()]
    return {field.name: value(field.type, field.nullable) for field in kind}


def encodings_of(kind):
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]
    if pa.types.is_fixed_size_binary(kind):
        return ["PLAIN", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"]
    if pa.types.is_binary(kind):
        return ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]
    if pa.types.is_floating(kind):
        return ["PLAIN", "BYTE_STREAM_SPLIT"]
    return ["RLE", "PLAIN"] if pa.types.is_boolean(kind) else ["PLAIN"]


def random_options(rng, schema, version):
    options = {
        "version": version,
        "data_page_version": rng.choice(["1.0", "2.0"]),
        "compression": rng.choice(["none", "snappy", "gzip", "zstd", "brotli", "lz4"]),
        "data_page_size": rng.choice([1, 100, 4000, 1 << 20]),
        "write_batch_size": rng.choice([1, 7, 1024]),
        "dictionary_pagesize_limit": rng.choice([20, 1 << 20]),
        "row_group_size": rng.choice([1, 10, 64, 10**6]),
        "write_page_checksum": rng.random() < 0.5,
        "use_compliant_nested_type": rng.random() < 0.5,
        "store_schema": rng.random() < 0.5,
    }
    if rng.random() < 0.5:
        options["use_dictionary"] = False
        flat = [field for field in schema if not pa.types.is_nested(field.type)]
        options["column_encoding"] = {field.name: rng.choice(encodings_of(field.type)) for field in flat}
    elif rng.random() < 0.5:
        options["use_dictionary"] = [field.name for field in schema if rng.random() < 0.5]
    return options


def random_table(rng, version):
    leaves = LEAVES + (NANOSECONDS if version == "2.6" else [])
    kinds = [random_type(rng, leaves) for _ in range(rng.randint(1, 6))]
    fields = [pa.field(f"column {i}", one, rng.random() < 0.7 or pa.types.is_null(one)) for i, one in enumerate(kinds)]
    rows = rng.choice([0, 1, 5, 100, 300])
    columns = []
    for field in fields:
        nulls = rng.choice([0, 0.1, 0.9])
        columns.append(pa.array([random_value(rng, field.type, field.nullable, nulls) for _ in range(rows)], field.type))
    return pa.table(columns, schema=pa.schema(fields))


def main(folder, seed, count):
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        version = rng.choice(["1.0", "2.4", "2.6"])
        table = random_table(rng, version)
        write_with_lines(Path(folder), str(number), table, **random_options(rng, table.schema, version))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
