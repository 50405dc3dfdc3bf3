"""Teratron from Python: the program, and what it writes.

    import teratron

    run = teratron.train({"data_path": ["corpus"], "model": "tiny", "train_iters": 200, "save": "run"},
                         on_line=lambda line: print(line.get("loss")))
    run.frame()                      # metrics as a pandas.DataFrame
    run.tensors()                    # weights as numpy arrays, by name
    teratron.Corpus("corpus")[0]     # token ids of the first sequence

Nothing here computes: training, evaluation and generation are the program's, which ``run()`` starts.
"""

from .corpus import Corpus
from .program import Failure, program, run
from .runs import Run, train

__all__ = ["Corpus", "Failure", "Run", "program", "run", "train"]
