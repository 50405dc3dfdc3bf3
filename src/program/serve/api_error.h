// Error of a request, in the form that clients of OpenAI's interface read.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/json_string.h"
#include "serve/http/http_server.h"

namespace teratron {

class ApiError : public std::runtime_error {
 public:
  ApiError(int status, const std::string& message, std::string param = "", std::string code = "")
      : runtime_error(message), status_(status), param_(std::move(param)), code_(std::move(code)) {}

  int status() const { return status_; }
  HttpAnswer answer() const {
    const auto or_null = [](const std::string& text) { return text.empty() ? nlohmann::json() : nlohmann::json(text); };
    const nlohmann::ordered_json body = {
        {"error", {{"message", what()}, {"type", type()}, {"param", or_null(param_)}, {"code", or_null(code_)}}}};
    HttpAnswer answer{.status = status_, .body = json_text(body)};
    if (status_ == 429 || status_ == 503) answer.headers.emplace_back("Retry-After", "1");
    return answer;
  }

 private:
  const char* type() const {
    switch (status_) {
      case 401: return "authentication_error";
      case 404: return "not_found_error";
      case 429: return "rate_limit_error";
      default: return status_ >= 500 ? "server_error" : "invalid_request_error";
    }
  }

  int status_;
  std::string param_, code_;
};

// Error of a request whose client does not wait for the answer any more.
inline ApiError client_gone() { return {400, "the client has ended the connection, or its half, before the answer"}; }

// Throws an ApiError of status 400 about a field of the request.
template <class... Args>
[[noreturn]] void refuse_field(const std::string& param, fmt::format_string<Args...> format, Args&&... args) {
  throw ApiError(400, fmt::format(format, std::forward<Args>(args)...), param);
}

}  // namespace teratron
