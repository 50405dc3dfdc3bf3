// Short runs of `teratron finetune` with a tiny BERT on synthetic sets.
#pragma once

#include <string>

#include "cli/binary.h"
#include "tasks/synthetic_tasks.h"
#include "tasks/task_entry.h"

namespace teratron::testing {

inline const Words kTinyBert =
    words_of("--model bert-tiny --num-layers 2 --hidden-size 24 --num-attention-heads 3 --seq-length 24");

class FinetuneCommands : public FolderTest {
 protected:
  void SetUp() override {
    fs::create_directories(path("words"));
    put_file(path("words") + "/vocab.txt", task_vocabulary());
  }

  // A short run of a tiny model on synthetic sets.
  Words finetune(TaskKind task, const Words& more = {}) {
    put_file(path("train.jsonl"), task_file(task, 24, 3));
    put_file(path("valid.jsonl"), task_file(task, 12, 4));
    put_file(path("test.jsonl"), task_file(task, 9, 5));
    const Words files = {"--train-data", path("train.jsonl"), "--valid-data", path("valid.jsonl"),
                         "--test-data",  path("test.jsonl"),  "--tokenizer",  path("words")};
    const Words run = with(words_of("finetune --lr 3e-3 --epochs 2 --global-batch-size 8 --peak-tflops 1"), kTinyBert);
    return with(with(run, files), with({"--task", std::string(name_of(task)), "--save", path("run")}, more));
  }
};

}  // namespace teratron::testing
