"""The Python module beside the program: python tests/python/package_test.py, with TERATRON set to a program that was built."""

import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy

if os.environ.get("TERATRON"):  # else the module that is installed
    sys.path.insert(0, str(Path(__file__).parents[2] / "python"))
import teratron  # noqa: E402
from teratron.runs import _NewLines, toml_of  # noqa: E402

TEXT = "".join(f"The rank {i} sends its slice of the gradient to rank {i * 7 % 13}.\n" for i in range(400))


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.temporary.name)
        (cls.folder / "text.txt").write_text(TEXT)
        teratron.run("tokenizer", "train", "--vocab-size", 300, "--out", cls.folder / "tok", cls.folder / "text.txt")
        teratron.run("data", "tokenize", "--tokenizer", cls.folder / "tok", "--out", cls.folder / "corpus", cls.folder / "text.txt")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def settings(self, name, updates, **more):
        return dict(model="tiny", num_layers=1, hidden_size=32, num_attention_heads=2, seq_length=16, micro_batch_size=2,
                    data_path=[self.folder / "corpus"], tokenizer=self.folder / "tok", train_iters=updates,
                    save=self.folder / name, threads=1, **more)

    def test_a_corpus_has_the_ids_that_the_program_writes(self):
        corpus = teratron.Corpus(self.folder / "corpus")
        info = json.loads(teratron.run("data", "info", "--json", "-", self.folder / "corpus"))
        self.assertEqual(corpus.tokens, info["tokens"])
        self.assertEqual(len(corpus), info["sequences"])
        teratron.run("tokenizer", "encode", "--tokenizer", self.folder / "tok", self.folder / "text.txt", self.folder / "ids")
        ids = numpy.fromfile(self.folder / "ids", "<i4")
        numpy.testing.assert_array_equal(corpus.document(0)[: len(ids)], ids)
        numpy.testing.assert_array_equal(corpus[-1], corpus[len(corpus) - 1])
        with self.assertRaises(IndexError):
            corpus[len(corpus)]

    def test_corpora_of_random_shapes_and_types(self):
        generator = random.Random(1)
        for code, kind in ((4, "<i4"), (8, "<u2"), (1, "u1")):
            lengths = [generator.randrange(0, 9) for _ in range(20)]
            values = [numpy.array([generator.randrange(0, 200) for _ in range(n)], kind) for n in lengths]
            borders = sorted([0, 20] + [generator.randrange(0, 21) for _ in range(3)])
            starts = numpy.cumsum([0] + [v.nbytes for v in values])[:-1]
            prefix = self.folder / f"made{code}"
            prefix.with_suffix(".bin").write_bytes(b"".join(v.tobytes() for v in values))
            index = b"MMIDIDX\0\0" + (1).to_bytes(8, "little") + bytes([code]) + (20).to_bytes(8, "little") + len(borders).to_bytes(8, "little")
            index += numpy.array(lengths, "<i4").tobytes() + starts.astype("<i8").tobytes() + numpy.array(borders, "<i8").tobytes()
            prefix.with_suffix(".idx").write_bytes(index)
            corpus = teratron.Corpus(prefix)
            for i in range(20):
                numpy.testing.assert_array_equal(corpus[i], values[i])
            joined = [corpus.document(d) for d in range(corpus.documents)]
            numpy.testing.assert_array_equal(numpy.concatenate(joined), numpy.concatenate(values))
            prefix.with_suffix(".idx").write_bytes(index[:-1])
            with self.assertRaises(ValueError):
                teratron.Corpus(prefix)

    def test_training_calls_back_and_leaves_a_run(self):
        lines = []
        run = teratron.train(self.settings("run", 20, eval_interval=10), lines.append)
        self.assertEqual(lines, run.metrics())
        self.assertEqual([line["iteration"] for line in run.metrics("iteration")], list(range(1, 21)))
        self.assertEqual(run.checkpoints, [20])
        tensors = run.tensors()
        self.assertEqual(tensors["embedding.positions.weight"].shape, (16, 32))
        self.assertTrue(all(numpy.isfinite(tensor).all() for tensor in tensors.values()))
        again = []
        teratron.train(dict(load=run.folder, train_iters=25, save=run.folder), again.append)
        self.assertEqual([line["iteration"] for line in again if line["kind"] == "iteration"], [21, 22, 23, 24, 25])

    def test_a_resumed_run_reports_the_updates_that_it_makes_again(self):
        run = teratron.train(self.settings("redone", 10, save_interval=5))
        lines = []
        teratron.train(dict(load=run.folder, iteration=5, train_iters=8, save=run.folder), lines.append)
        self.assertEqual([line["iteration"] for line in lines if line["kind"] == "iteration"], [6, 7, 8])

    def test_lines_of_a_run_that_starts_again_are_read_once_each(self):
        log = self.folder / "log.jsonl"

        def line(update, loss=1):
            return json.dumps({"iteration": update, "loss": loss}) + "\n"

        log.write_text("".join(map(line, range(5))))
        lines = _NewLines(log)
        self.assertEqual(list(lines.read()), [])
        with log.open("a") as file:
            file.write(line(5) + line(6) + '{"iter')
        self.assertEqual([one["iteration"] for one in lines.read()], [5, 6])
        (self.folder / "trimmed").write_text("".join(map(line, range(4))))  # by a start from update 3
        os.replace(self.folder / "trimmed", log)
        self.assertEqual(list(lines.read()), [])
        with log.open("a") as file:
            file.write(line(4, 2))
        self.assertEqual([one["loss"] for one in lines.read()], [2])

    def test_a_callback_ends_a_run_in_good_order(self):
        run = teratron.train(self.settings("stopped", 100000), lambda line: line["iteration"] < 5)
        self.assertEqual(len(run.checkpoints), 1)
        self.assertLess(run.checkpoints[0], 100000)

    def test_failures_have_the_programs_code_and_words(self):
        with self.assertRaises(teratron.Failure) as caught:
            teratron.train(self.settings("none", 0))
        self.assertEqual(caught.exception.code, 2)
        self.assertIn("--train-iters is 0", caught.exception.message)
        with self.assertRaises(teratron.Failure) as caught:
            teratron.run("no-such-command")
        self.assertEqual(caught.exception.code, 2)
        with self.assertRaises(ValueError):
            teratron.train({"train_iters": 1})
        with self.assertRaises(FileNotFoundError):
            teratron.Run(self.folder)

    def test_settings_of_any_text_are_read_as_they_are(self):
        odd = 'a "b"\\c\td é \u2028 \x7f'
        done = subprocess.run([teratron.program(), "train", "--config", "-"], input=toml_of({"data_path": [odd], "train_iters": 1}),
                              capture_output=True, text=True, check=False)
        self.assertNotIn("toml", done.stderr.lower())
        self.assertEqual(toml_of({"a": None, "b": True, "c": [1.5, "x"]}), 'b = true\nc = [1.5, "x"]\n')

    def test_bf16_is_widened(self):
        from teratron.tensors import tensors_of, widened

        values = numpy.array([1.5, -2.0, 0.0078125], numpy.float32)
        bits = (values.view(numpy.uint32) >> 16).astype("<u2")
        numpy.testing.assert_array_equal(widened(bits), values)
        header = json.dumps({"a": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]}}).encode()
        file = self.folder / "a.safetensors"
        file.write_bytes(len(header).to_bytes(8, "little") + header + bits.tobytes())
        numpy.testing.assert_array_equal(tensors_of(file)["a"], values)
        file.write_bytes(file.read_bytes()[:-1])
        with self.assertRaises(ValueError):
            tensors_of(file)


if __name__ == "__main__":
    unittest.main()
