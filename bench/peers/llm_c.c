// llm.c's side of bench/llm_c, which scripts/llm-c builds: its train_gpt2.c, included as its own tests include it,
// trains a GPT-2 on one batch by the calls and the settings of its main().
//
//   llm_c MODEL TOKENS BATCH LENGTH    MODEL in llm.c's format; TOKENS: BATCH * LENGTH + 1 ids of 32 bits
//
// For each line "step N" on standard input it makes N updates and prints {"seconds": [..], "losses": [..]}.
#define TESTING
#include "train_gpt2.c"

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void print_list(FILE* out, const char* name, const double* values, int count) {
  fprintf(out, "\"%s\": [", name);
  for (int i = 0; i < count; ++i) fprintf(out, "%s%.9g", i > 0 ? ", " : "", values[i]);
  fprintf(out, "]");
}

int main(int count, char** words) {
  if (count != 5) {
    fprintf(stderr, "usage: llm_c MODEL TOKENS BATCH LENGTH\n");
    return 2;
  }
  // llm.c prints to standard output, where the driver wants answers alone.
  FILE* const answers = fdopen(dup(1), "w");
  dup2(2, 1);
  const int batch = atoi(words[3]), length = atoi(words[4]);
  const size_t tokens = (size_t)batch * (size_t)length;
  int* const ids = (int*)mallocCheck((tokens + 1) * sizeof(int));
  FILE* const file = fopenCheck(words[2], "rb");
  freadCheck(ids, sizeof(int), tokens + 1, file);
  fcloseCheck(file);
  GPT2 model;
  gpt2_build_from_checkpoint(&model, words[1]);
  fprintf(answers, "{\"ready\": true}\n");
  fflush(answers);
  enum { kMostSteps = 100 };
  double seconds[kMostSteps], losses[kMostSteps];
  for (int update = 0, steps; scanf(" step %d", &steps) == 1 && 0 < steps && steps <= kMostSteps;) {
    for (int step = 0; step < steps; ++step) {
      const double start = now();
      gpt2_forward(&model, ids, ids + 1, batch, length);
      gpt2_zero_grad(&model);
      gpt2_backward(&model);
      gpt2_update(&model, 1e-4f, 0.9f, 0.999f, 1e-8f, 0.0f, ++update);
      seconds[step] = now() - start;
      losses[step] = model.mean_loss;
    }
    fprintf(answers, "{");
    print_list(answers, "seconds", seconds, steps);
    fprintf(answers, ", ");
    print_list(answers, "losses", losses, steps);
    fprintf(answers, "}\n");
    fflush(answers);
  }
  return 0;
}
