// Teratron's side of bench/bpe: encoding with GPT-2's vocabulary and training a new one, on one thread. Takes turns
// with bench/peers/tiktoken_bpe.py and speaks as it does: for each line "encode FILE" or "train VOCAB_SIZE FILE" on
// standard input it prints {"seconds": .., "tokens": ..}; the end of the input ends it. The argument is the
// vocabulary's folder.
#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <sstream>

#include "base/files/file.h"
#include "program.h"
#include "tokenizer/bpe/bpe_trainer.h"
#include "tokenizer/tokenizer.h"

namespace teratron {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// A new tokenizer each time, so that no word is known from the turn before.
std::string encode(const BpeModel& model, const std::string& text) {
  const Tokenizer tokenizer(model);
  const auto start = Clock::now();
  const std::vector<std::int32_t> ids = tokenizer.encode(text);
  return fmt::format(R"({{"seconds": {}, "tokens": {}}})", seconds_since(start), ids.size());
}

std::string train(std::int64_t vocab_size, std::string_view text) {
  const auto start = Clock::now();
  const BpeModel model = train_bpe({&text, 1}, {.vocab_size = vocab_size});
  return fmt::format(R"({{"seconds": {}, "tokens": {}}})", seconds_since(start), model.tokens.size());
}

void take_turns(const std::filesystem::path& vocabulary) {
  const BpeModel model = Tokenizer::load(vocabulary).model();
  std::cout << R"({"ready": true})" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string request, file;
    std::int64_t vocab_size = 0;
    words >> request;
    if (request == "train") words >> vocab_size;
    std::getline(words >> std::ws, file);
    const std::string text = read_file(file);
    std::cout << (request == "train" ? train(vocab_size, text) : encode(model, text)) << std::endl;
  }
}

int run(std::span<char*> arguments) {
  if (arguments.size() != 2) throw_user_error("usage: bench_bpe FOLDER_OF_THE_VOCABULARY; see bench/bpe");
  take_turns(arguments[1]);
  return 0;
}

}  // namespace
}  // namespace teratron

int main(int count, char** arguments) { return teratron::run_program(count, arguments, teratron::run); }
