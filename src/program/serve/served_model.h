// ServedModel: the interface between the HTTP server and a model, which continues texts or makes vectors of them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/http_server.h"

namespace teratron {

constexpr double kLookSeconds = 0.05;  // between two looks whether a client is still there

struct Metric {
  std::string name, help;
  bool is_counter = false;  // else a gauge
  std::int64_t value = 0;
};

// Connections call it on many threads of the first rank; run() computes on one, that of the model's rank.
class ServedModel {
 public:
  virtual ~ServedModel() = default;

  // Answers of /v1/completions, /v1/chat/completions and /v1/embeddings. ApiError: the request is wrong, this kind of
  // model does not answer it, or its client has gone. `json`: the request's body, whose text alone has the order of its
  // keys.
  virtual HttpAnswer completions(const nlohmann::json& json, const HttpRequest& request) = 0;
  virtual HttpAnswer chats(const nlohmann::json& json, const HttpRequest& request) = 0;
  virtual HttpAnswer embeddings(const nlohmann::json& json, const HttpRequest& request) = 0;
  virtual std::vector<Metric> metrics() const = 0;

  virtual void run() = 0;   // on every rank of the model, until stop() on the first
  virtual void stop() = 0;  // requests under way end with an error
};

}  // namespace teratron
