// Server of OpenAI's interface in front of a model: paths, keys, errors, metrics.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "serve/served_model.h"

namespace teratron {

struct ServerSettings {
  std::string host = "127.0.0.1";
  int port = 8080;      // 0: any free one
  std::string api_key;  // empty: none is asked for
  std::string model_name;
  std::size_t connections = 64;
};

class Server {
 public:
  // Binds the port. The model outlives the server. EnvironmentError: as HttpServer.
  Server(const ServerSettings& settings, ServedModel& model);

  int port() const { return http_.port(); }
  // Serves on other threads while the model computes on this one, until `should_end` returns true; it is called several
  // times a second. Requests under way then get an error. Errors of the model and of the port end it, too.
  void run(const std::function<bool()>& should_end);

 private:
  HttpAnswer handle(const HttpRequest& request);
  HttpAnswer answer(const HttpRequest& request);
  HttpAnswer post(const HttpRequest& request);
  void require_model(const std::string& name) const;  // ApiError: it is not the one that is served
  nlohmann::ordered_json model() const;
  HttpAnswer models() const;
  HttpAnswer metrics() const;
  bool has_key(const HttpRequest& request) const;

  const ServerSettings settings_;
  ServedModel& model_;
  HttpServer http_;
};

}  // namespace teratron
