// llama.cpp's side of comparisons: a program of its library, which scripts/llama-cpp builds.
//
//   llama_cpp ids FILE                     for each line of standard input, a text in hexadecimal bytes: its ids
//   llama_cpp continue FILE COUNT ID ..    COUNT greedy ids after these, and how far the likeliest stood out
//   llama_cpp logits FILE ID ..            logits after these ids, as bytes of fp32
//   llama_cpp time FILE TEXTS PROMPT NEW THREADS
//                                          seconds of the prompts and of NEW tokens of each text; a text's last id
#include <llama.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace {

[[noreturn]] void fail(const std::string& why) {
  std::cerr << "error: " << why << "\n";
  std::exit(1);
}

struct Settings {
  std::uint32_t tokens = 512, texts = 1;
  int threads = 1;
  ggml_type cache = GGML_TYPE_F32;  // llama.cpp's default is F16
};

class Loaded {
 public:
  Loaded(const char* path, const Settings& settings)
      : model_(llama_model_load_from_file(path, llama_model_default_params()), llama_model_free) {
    if (!model_) fail(std::string("llama.cpp does not load ") + path);
    llama_context_params params = llama_context_default_params();
    params.n_ctx = settings.tokens * settings.texts;
    params.n_batch = params.n_ubatch = std::max<std::uint32_t>(512, settings.texts);
    params.n_seq_max = settings.texts;
    params.n_threads = params.n_threads_batch = settings.threads;
    params.type_k = params.type_v = settings.cache;
    params.flash_attn_type =
        settings.cache == GGML_TYPE_F32 ? LLAMA_FLASH_ATTN_TYPE_DISABLED : LLAMA_FLASH_ATTN_TYPE_AUTO;
    context_.reset(llama_init_from_model(model_.get(), params));
    if (!context_) fail("llama.cpp has no context for this model");
  }

  const llama_vocab* vocab() const { return llama_model_get_vocab(model_.get()); }
  int vocab_size() const { return llama_vocab_n_tokens(vocab()); }

  struct Token {
    llama_token id;
    llama_pos position;
    llama_seq_id text;
    bool wants_logits;
  };
  void decode(const std::vector<Token>& tokens) {
    const std::size_t most = llama_n_batch(context_.get());
    for (std::size_t begin = 0; begin < tokens.size(); begin += most) {
      const std::size_t count = std::min(most, tokens.size() - begin);
      llama_batch batch = llama_batch_init(static_cast<int>(count), 0, 1);
      batch.n_tokens = static_cast<int>(count);
      for (std::size_t i = 0; i < count; ++i) {
        const Token& token = tokens[begin + i];
        batch.token[i] = token.id;
        batch.pos[i] = token.position;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = token.text;
        batch.logits[i] = token.wants_logits;
      }
      if (llama_decode(context_.get(), batch) != 0) fail("llama_decode failed");
      llama_batch_free(batch);
    }
  }
  // Logits of a token of the last batch; -1: of its last that wanted them.
  const float* logits(int index) { return llama_get_logits_ith(context_.get(), index); }

 private:
  std::unique_ptr<llama_model, decltype(&llama_model_free)> model_;
  struct Free {
    void operator()(llama_context* context) const { llama_free(context); }
  };
  std::unique_ptr<llama_context, Free> context_;
};

std::string bytes_of_hex(const std::string& line) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < line.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

int print_ids(const char* path) {
  const Loaded loaded(path, {});
  for (std::string line; std::getline(std::cin, line);) {
    const std::string text = bytes_of_hex(line);
    std::vector<llama_token> ids(text.size() + 16);
    const int count = llama_tokenize(loaded.vocab(), text.data(), static_cast<int>(text.size()), ids.data(),
                                     static_cast<int>(ids.size()), /*add_special=*/false, /*parse_special=*/true);
    for (int i = 0; i < count; ++i) std::cout << ids[static_cast<std::size_t>(i)] << ' ';
    std::cout << '\n';
  }
  return 0;
}

std::vector<llama_token> ids_of(char** words, int count) {
  std::vector<llama_token> ids;
  for (int i = 0; i < count; ++i) ids.push_back(std::atoi(words[i]));
  return ids;
}

void decode_one(Loaded& loaded, const std::vector<llama_token>& ids, int first_position) {
  std::vector<Loaded::Token> tokens;
  for (const llama_token id : ids) tokens.push_back({id, first_position++, 0, false});
  tokens.back().wants_logits = true;
  loaded.decode(tokens);
}

int continue_greedily(const char* path, int count, std::vector<llama_token> ids) {
  Loaded loaded(path, {});
  float narrowest = std::numeric_limits<float>::infinity();
  int position = 0;
  for (int i = 0; i < count; ++i) {
    decode_one(loaded, ids, position);
    position += static_cast<int>(ids.size());
    const float* row = loaded.logits(-1);
    const auto best = std::max_element(row, row + loaded.vocab_size());
    for (int id = 0; id < loaded.vocab_size(); ++id) {
      if (row + id != best) narrowest = std::min(narrowest, *best - row[id]);
    }
    ids = {static_cast<llama_token>(best - row)};
    std::cout << ids[0] << ' ';
  }
  std::cout << '\n' << narrowest << '\n';
  return 0;
}

int print_logits(const char* path, const std::vector<llama_token>& ids) {
  Loaded loaded(path, {});
  decode_one(loaded, ids, 0);
  std::fwrite(loaded.logits(-1), sizeof(float), static_cast<std::size_t>(loaded.vocab_size()), stdout);
  return 0;
}

// Every text has a prompt of its own.
int time_texts(const char* path, int texts, int prompt, int new_tokens, int threads) {
  Loaded loaded(path, {.tokens = static_cast<std::uint32_t>(prompt + new_tokens + 1),
                       .texts = static_cast<std::uint32_t>(texts),
                       .threads = threads,
                       .cache = GGML_TYPE_F16});
  std::vector<llama_token> last(static_cast<std::size_t>(texts));
  const auto take_best = [&](int text, int index) {
    const float* row = loaded.logits(index);
    last[static_cast<std::size_t>(text)] =
        static_cast<llama_token>(std::max_element(row, row + loaded.vocab_size()) - row);
  };
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  for (int text = 0; text < texts; ++text) {
    std::vector<Loaded::Token> tokens;
    for (int i = 0; i < prompt; ++i) tokens.push_back({(7 * i + 13 * text + 1) % loaded.vocab_size(), i, text, false});
    tokens.back().wants_logits = true;
    loaded.decode(tokens);
    take_best(text, -1);
  }
  const auto middle = Clock::now();
  for (int i = 0; i < new_tokens; ++i) {
    std::vector<Loaded::Token> tokens;
    for (int text = 0; text < texts; ++text) {
      tokens.push_back({last[static_cast<std::size_t>(text)], prompt + i, text, true});
    }
    loaded.decode(tokens);
    for (int text = 0; text < texts; ++text) take_best(text, text);
  }
  const std::chrono::duration<double> first = middle - begin, second = Clock::now() - middle;
  std::cout << first.count() << ' ' << second.count() << ' ' << last[0] << '\n';
  return 0;
}

}  // namespace

int main(int count, char** words) {
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  const std::string what = count > 2 ? words[1] : "";
  if (what == "ids") return print_ids(words[2]);
  if (what == "continue" && count > 4)
    return continue_greedily(words[2], std::atoi(words[3]), ids_of(words + 4, count - 4));
  if (what == "logits" && count > 3) return print_logits(words[2], ids_of(words + 3, count - 3));
  if (what == "time" && count == 7) {
    return time_texts(words[2], std::atoi(words[3]), std::atoi(words[4]), std::atoi(words[5]), std::atoi(words[6]));
  }
  fail("usage: llama_cpp ids|continue|logits|time FILE ..");
}
