// Fine-tunes a BERT for a task and prints the scores of every seed. It takes the flags of `teratron finetune`:
//   finetune_bert --task mnli --load FOLDER --train-data train.tsv --valid-data dev.tsv --save RUN --seeds 3
#include <teratron/base/error.h>
#include <teratron/finetune/finetuning.h>
#include <teratron/runtime/program.h>

#include <cstdio>

using namespace teratron;

void print(const char* name, const FinetuneResult& result) {
  std::printf("%s %d, best after iteration %d:", name, static_cast<int>(result.seed),
              static_cast<int>(result.iteration));
  for (const TaskScore& score : result.validation) std::printf(" %s %.2f", score.name.c_str(), score.value);
  std::printf("\n");
}

int main(int argc, char** argv) {
  return run_program([&] {
    FinetuneConfig config = read_finetune_config(std::vector<std::string>(argv + 1, argv + argc));
    config.run.output.keep_last = 2;  // flags that are not given are members: all of a run can be set from here
    const FinetuneResults results = finetune(config);
    for (const FinetuneResult& run : results.runs) print("seed", run);
    if (results.runs.size() > 1) print("the median is that of seed", results.runs[results.median]);
    if (results.signal != 0) throw EndedBySignal(results.signal);
  });
}
