// A server of a small model on a port of its own, and a client of it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/lines.h"
#include "base/temporary_folder.h"
#include "eval/generation/generation.h"
#include "serve/server.h"
#include "serve/text/text_model.h"
#include "tokenizer/bpe/bpe_trainer.h"
#include "tokenizer/stream_decoder.h"

namespace teratron::testing {

using Json = nlohmann::json;

// Answers of a request, from outside.
struct Reply {
  int status = 0;
  Json json;  // null: the body is none
  std::string body, retry_after;
  const Json& choice(std::size_t i = 0) const { return json.at("choices").at(i); }
  std::string message() const { return json.at("error").at("message"); }
};

inline Reply reply_of(const httplib::Result& result) {
  if (!result) return {.body = httplib::to_string(result.error())};
  return {.status = result->status,
          .json = Json::parse(result->body, nullptr, false),
          .body = result->body,
          .retry_after = result->get_header_value("Retry-After")};
}

// Parts of a stream, without the "data: " before them.
inline std::vector<std::string> stream_parts(const std::string& body) {
  std::vector<std::string> parts;
  for (const std::string& line : lines_of(body)) {
    if (line.starts_with("data: ")) parts.push_back(line.substr(6));
  }
  return parts;
}

// Runs a server in front of a model until it is destroyed.
class RunningServer {
 public:
  RunningServer(const ServerSettings& settings, ServedModel& model)
      : server_(settings, model), thread_([this] { server_.run([this] { return ends_.load(); }); }) {}
  ~RunningServer() { end(); }
  void end() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
  }

  int port() const { return server_.port(); }
  httplib::Client client() const {
    httplib::Client client("127.0.0.1", port());
    client.set_read_timeout(60);
    return client;
  }
  Reply post(const std::string& path, const std::string& body, const httplib::Headers& headers = {}) const {
    return reply_of(client().Post(path, headers, body, "application/json"));
  }
  Reply get(const std::string& path, const httplib::Headers& headers = {}) const {
    return reply_of(client().Get(path, headers));
  }
  Reply complete(const Json& request) const { return post("/v1/completions", request.dump()); }
  // Expects an error that says so, of the field `param`; empty: of none.
  void expect_refused(const std::string& path, const std::string& body, const std::string& param,
                      const std::string& says, int status = 400) const {
    const Reply reply = post(path, body);
    EXPECT_EQ(reply.status, status) << body.substr(0, 200);
    ASSERT_TRUE(reply.json.is_object()) << reply.body;
    EXPECT_THAT(reply.message(), ::testing::HasSubstr(says)) << body.substr(0, 200);
    EXPECT_EQ(reply.json.at("error").at("param"), param.empty() ? Json(nullptr) : Json(param)) << body.substr(0, 200);
    EXPECT_EQ(reply.json.at("error").at("type"), status == 404 ? "not_found_error" : "invalid_request_error");
  }
  // Value of a metric.
  std::int64_t metric(const std::string& name) const {
    const std::string text = "\n" + get("/metrics").body, begin = "\n" + name + " ";
    const std::size_t at = text.find(begin);
    if (at == std::string::npos) throw std::runtime_error("no metric " + name);
    return std::stoll(text.substr(at + begin.size()));
  }
  void wait_for_metric(const std::string& name, std::int64_t value) const {
    while (metric(name) != value) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }

 private:
  Server server_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

inline Tokenizer tokenizer_of_texts() {
  const std::string text = "the rank sums the gradients of the layers and waits for the other ranks, as ranks do\n";
  return Tokenizer(train_bpe(std::vector<std::string_view>{text}, {.vocab_size = 290}));
}

// A BERT's tokenizer of nine words.
inline Tokenizer tokenizer_of_words() {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\n##d\n[MASK]\n");
  return Tokenizer::load(folder.path());
}

inline ModelConfig config_of_texts(std::int64_t positions) {
  ModelConfig config{.num_layers = 2,
                     .hidden_size = 32,
                     .num_attention_heads = 4,
                     .vocab_size = tokenizer_of_texts().vocab_size(),
                     .max_position_embeddings = positions,
                     .make_vocab_size_divisible_by = 1,
                     .init_method_std = 0.3};
  return config;
}

struct TextLimits {
  std::int64_t caches = 3, positions = 64;
  std::size_t most_texts = 12;
  ServerSettings server{.port = 0, .api_key = "", .model_name = "tiny"};
  std::vector<std::int32_t> ends{};  // tokens that end a text
  ChatRules chat{};
};

// A model that continues texts, and its server.
class TextServer {
 public:
  using Limits = TextLimits;
  explicit TextServer(const Limits& limits = {})
      : model_(*backend_, config_of_texts(limits.positions),
               {.purpose = Purpose::kGeneration, .tokens = 4, .caches = limits.caches, .logits_chunk = 2}),
        served_((allocate(), "tiny"), model_, tokenizer, limits.most_texts, 8, limits.ends, limits.chat),
        server(limits.server, served_) {}

  const Tokenizer tokenizer = tokenizer_of_texts();

  // Texts as `teratron generate` makes them: [prompts][samples].
  struct Made {
    std::string text;
    std::vector<std::int32_t> tokens;
    std::vector<double> scores, prompt_scores;
    GenerationEnd end = GenerationEnd::kLength;
  };
  std::vector<Made> generate(const std::vector<std::string>& prompts, std::uint32_t samples,
                             const GenerationSettings& settings) const {
    LanguageModel model(*backend_, model_config(), {.purpose = Purpose::kGeneration, .tokens = 4, .logits_chunk = 1});
    model.allocate();
    model.initialize(5);
    std::vector<GenerationRequest> requests;
    for (std::uint32_t number = 0; number < prompts.size(); ++number) {
      for (std::uint32_t sample = 0; sample < samples; ++sample) {
        requests.push_back({prompt_tokens(tokenizer, prompts[number]), number, sample});
      }
    }
    std::vector<Made> all(requests.size());
    GenerationSettings scored = settings;
    scored.tokens = tokenizer.vocab_size();
    scored.stop = tokenizer.end_of_text();
    scored.log_probabilities = scored.prompt_log_probabilities = true;
    generate_all(
        model, requests, scored,
        {.prompt = [&](std::size_t i,
                       std::span<const double> values) { all[i].prompt_scores.assign(values.begin(), values.end()); },
         .token =
             [&](std::size_t i, std::int32_t token, double score) {
               all[i].tokens.push_back(token);
               all[i].scores.push_back(score);
               return true;
             },
         .finished = [&](std::size_t i, GenerationEnd end, std::int64_t) { all[i].end = end; }});
    for (Made& made : all) {
      StreamDecoder decoder(tokenizer);
      for (const std::int32_t token : made.tokens) made.text += decoder.push(token);
      made.text += decoder.finish();
    }
    return all;
  }

 private:
  void allocate() {
    model_.allocate();
    model_.initialize(5);
  }
  const ModelConfig& model_config() const { return config_; }

  std::unique_ptr<Backend> backend_ = make_cpu_backend();
  LanguageModel model_;
  const ModelConfig config_ = model_.config();
  TextModel served_;

 public:
  RunningServer server;
};

}  // namespace teratron::testing
