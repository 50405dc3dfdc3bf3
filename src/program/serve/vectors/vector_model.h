// VectorModel: serves a BERT that makes vectors of texts.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

#include "eval/text_vectors.h"
#include "serve/served_model.h"

namespace teratron {

struct VectorSettings {
  TextVectorSettings vectors;
  std::int64_t most_tokens = 0;    // of a text, with [CLS] and [SEP]
  std::string prompt;              // that every text begins with
  std::size_t most_requests = 64;  // in progress or waiting
};

class VectorModel : public ServedModel {
 public:
  // UserError: the tokenizer has no [CLS] or [SEP].
  VectorModel(std::string name, Encoder& encoder, Tokenizer tokenizer, VectorSettings settings);

  HttpAnswer completions(const nlohmann::json& json, const HttpRequest& request) override;
  HttpAnswer chats(const nlohmann::json& json, const HttpRequest& request) override {
    return completions(json, request);
  }
  HttpAnswer embeddings(const nlohmann::json& json, const HttpRequest& request) override;
  std::vector<Metric> metrics() const override;
  void run() override;
  void stop() override;

 private:
  struct Job {
    TokenizedTexts texts;
    std::vector<std::vector<float>> vectors;
    std::string failure;
    bool is_done = false;
  };

  // Has the job computed. ApiError: there are too many, it failed, or its client went before its turn came.
  void wait_for(Job& job, const std::function<bool()>& is_open);
  void serve();
  Job* next_job();  // of the first rank; null: the model was stopped
  void compute(Job& job);
  void end(Job& job);
  TokenizedTexts read(const nlohmann::json& input) const;
  TokenizedTexts read_ids(const nlohmann::json& lists) const;

  const std::string name_;
  Encoder& encoder_;
  Communicator& ranks_;  // of the encoder
  const Tokenizer tokenizer_;
  const VectorSettings settings_;

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable called_, done_;
  std::deque<Job*> jobs_;  // that wait for their turn
  bool is_stopped_ = false;
  std::int64_t in_flight_ = 0, finished_ = 0, cancelled_ = 0, refused_ = 0, tokens_ = 0;
};

}  // namespace teratron
