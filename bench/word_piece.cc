// Our side of bench/word_piece: encodes with BERT's vocabulary. Answers each line "ids FILE" or "spans FILE" of
// standard input with {"seconds": .., "tokens": ..} for the lines of the file, which one thread encodes. Seconds are
// the processor's.
#include <algorithm>
#include <ctime>
#include <iostream>
#include <sstream>

#include "base/files/file.h"
#include "program.h"
#include "tokenizer/tokenizer.h"

namespace teratron {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// A new tokenizer each time, so that no word is known from the turn before.
std::string answer(const WordPieceModel& model, const std::string& request, const std::string& text) {
  const Tokenizer tokenizer(model);
  const std::vector<std::string_view> lines = lines_of(text);
  std::vector<std::vector<std::int32_t>> ids(lines.size());
  std::vector<std::vector<TokenSpan>> spans(lines.size());
  const std::clock_t start = std::clock();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (request == "ids") {
      ids[i] = tokenizer.encode(lines[i]);
    } else {
      spans[i] = tokenizer.encode_with_offsets(lines[i]);
    }
  }
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::size_t tokens = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) tokens += ids[i].size() + spans[i].size();
  return fmt::format(R"({{"seconds": {}, "tokens": {}}})", seconds, tokens);
}

void take_turns(const std::filesystem::path& vocabulary) {
  const WordPieceModel model = Tokenizer::load(vocabulary).word_piece();
  std::cout << R"({"ready": true})" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string request, file;
    words >> request;
    std::getline(words >> std::ws, file);
    std::cout << answer(model, request, read_file(file)) << std::endl;
  }
}

int run(std::span<char*> arguments) {
  if (arguments.size() != 2) throw_user_error("usage: bench_word_piece FOLDER_OF_THE_VOCABULARY");
  take_turns(arguments[1]);
  return 0;
}

}  // namespace
}  // namespace teratron

int main(int count, char** arguments) { return teratron::run_program(count, arguments, teratron::run); }
