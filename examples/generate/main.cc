// Continues a prompt with a checkpoint, or with a folder of Hugging Face's:
//   generate FOLDER "Once upon a time"
#include <teratron/base/error.h>
#include <teratron/eval/generation/generation.h>
#include <teratron/runtime/loaded_model.h>
#include <teratron/runtime/program.h>
#include <teratron/tokenizer/stream_decoder.h>

#include <cstdio>

using namespace teratron;

int main(int argc, char** argv) {
  return run_program([&] {
    if (argc != 3) throw_user_error("usage: generate FOLDER PROMPT");
    const LayoutSettings layout;  // one rank
    const BackendSettings backend;
    const WeightSource source = find_model(argv[1], layout, WeightUse::kGenerate);
    const Tokenizer tokenizer = load_tokenizer_for(source, "");
    const std::vector<std::int32_t> prompt = tokenizer.encode(argv[2]);
    RankLauncher(layout, backend.kind).run("", [&](const Rank& rank) {
      const ExecutorOptions options{.purpose = Purpose::kGeneration, .tokens = 64, .caches = 1};
      const LoadedModel loaded = load_model(source, options, backend, rank);
      StreamDecoder decoder(tokenizer);
      std::printf("%s", argv[2]);
      generate(*loaded.model, prompt, {.stop = tokenizer.end_of_text()}, [&](std::int32_t token) {
        std::fputs(decoder.push(token).c_str(), stdout);
        std::fflush(stdout);
      });
      std::printf("%s\n", decoder.finish().c_str());
    });
  });
}
