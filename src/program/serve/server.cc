#include "serve/server.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

#include "base/ascii.h"
#include "serve/api_error.h"
#include "serve/request_fields.h"

namespace teratron {
namespace {

constexpr std::string_view kModels = "/v1/models";
constexpr auto kLook = std::chrono::milliseconds(50);  // between two calls of should_end

HttpSettings http_settings(const ServerSettings& settings) {
  return {.host = settings.host,
          .port = settings.port,
          .connections = settings.connections,
          .routes = {{"GET", "/health"},
                     {"GET", "/metrics"},
                     {"GET", std::string(kModels)},
                     {"GET", std::string(kModels) + "/(.+)"},
                     {"POST", "/v1/completions"},
                     {"POST", "/v1/chat/completions"},
                     {"POST", "/v1/embeddings"}}};
}

HttpAnswer failure(int status, const std::string& why) { return ApiError(status, why).answer(); }

// Compares in a time that does not depend on how much of a wrong key is right.
bool are_equal(std::string_view a, std::string_view b) {
  std::size_t differing = a.size() ^ b.size();
  for (std::size_t i = 0; i < a.size(); ++i) {
    differing |= static_cast<unsigned char>(a[i] ^ (b.empty() ? '\1' : b[i % b.size()]));
  }
  return differing == 0;
}

}  // namespace

Server::Server(const ServerSettings& settings, ServedModel& model)
    : settings_(settings),
      model_(model),
      http_(
          http_settings(settings), [this](const HttpRequest& request) { return handle(request); }, failure) {}

void Server::run(const std::function<bool()>& should_end) {
  std::exception_ptr error;
  std::atomic<bool> is_over{false};
  std::thread listener([&] {
    try {
      http_.listen();
    } catch (...) {
      error = std::current_exception();
    }
    is_over = true;
    model_.stop();
  });
  std::thread watcher([&] {
    while (!is_over && !should_end()) std::this_thread::sleep_for(kLook);
    model_.stop();
    http_.stop();
  });
  std::exception_ptr broken;
  try {
    model_.run();
  } catch (...) {
    broken = std::current_exception();
  }
  is_over = true;
  watcher.join();
  listener.join();
  if (broken) std::rethrow_exception(broken);
  if (error) std::rethrow_exception(error);
}

HttpAnswer Server::handle(const HttpRequest& request) {
  try {
    return answer(request);
  } catch (const ApiError& error) {
    return error.answer();
  }
}

bool Server::has_key(const HttpRequest& request) const {
  constexpr std::string_view kScheme = "Bearer ";  // in any case (RFC 9110, section 11.1)
  const std::string_view given = request.authorization;
  return settings_.api_key.empty() ||
         (begins_ignoring_case(given, kScheme) && are_equal(given.substr(kScheme.size()), settings_.api_key));
}

HttpAnswer Server::answer(const HttpRequest& request) {
  if (request.path == "/health") return {.body = R"({"status":"ok"})"};
  if (!has_key(request)) {
    throw ApiError(401, "this server wants its key: Authorization: Bearer KEY, with the KEY of --api-key", "",
                   "invalid_api_key");
  }
  if (request.path == "/metrics") return metrics();
  if (request.path == kModels) return models();
  if (request.path.starts_with(kModels)) {
    require_model(request.path.substr(kModels.size() + 1));
    return {.body = json_text(model())};
  }
  return post(request);
}

void Server::require_model(const std::string& name) const {
  if (name == settings_.model_name) return;
  throw ApiError(404,
                 fmt::format("there is no model '{}' here; the one that is served is '{}'", name, settings_.model_name),
                 "model", "model_not_found");
}

HttpAnswer Server::post(const HttpRequest& request) {
  const nlohmann::json json = parse_request(request.body);
  require_model(RequestFields(json).text("model", settings_.model_name));
  if (request.path == "/v1/embeddings") return model_.embeddings(json, request);
  return request.path == "/v1/completions" ? model_.completions(json, request) : model_.chats(json, request);
}

nlohmann::ordered_json Server::model() const {
  return {{"id", settings_.model_name}, {"object", "model"}, {"created", 0}, {"owned_by", "teratron"}};
}

HttpAnswer Server::models() const {
  const nlohmann::ordered_json body = {{"object", "list"}, {"data", nlohmann::ordered_json::array({model()})}};
  return {.body = json_text(body)};
}

// Prometheus' text format 0.0.4.
HttpAnswer Server::metrics() const {
  std::string text;
  for (const Metric& metric : model_.metrics()) {
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", metric.name, metric.help,
                        metric.is_counter ? "counter" : "gauge", metric.value);
  }
  return {.type = "text/plain; version=0.0.4", .body = text};
}

}  // namespace teratron
