// HTTP by cpp-httplib. This header has no type of the library; only files of http/ include the library's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace teratron {

struct HttpRequest {
  std::string method, path, body, authorization;
  std::function<bool()> is_open;  // whether the client is still there
};

// Body of an answer that is written while it is made.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  virtual bool write(std::string_view bytes) = 0;  // false: the client has ended the connection
  virtual bool is_open() = 0;
};

struct HttpAnswer {
  int status = 200;
  std::string type = "application/json", body;
  std::vector<std::pair<std::string, std::string>> headers;
  std::function<void(HttpStream&)> stream;  // if set, it writes the body
};

using HttpRoute = std::pair<std::string, std::string>;  // method, and the path as a regular expression

struct HttpSettings {
  std::string host = "127.0.0.1";
  int port = 8080;                                // 0: any free one
  std::size_t connections = 64;                   // served at a time; others wait
  std::size_t body_bytes = std::size_t{8} << 20;  // of a request at most
  std::vector<HttpRoute> routes{};                // that `handle` answers
};

class HttpServer {
 public:
  // Binds the port. `handle` is called on many threads at once. `fail` makes the answer where `handle` makes none: to
  // an unknown path, a body that is too large, an exception. EnvironmentError: the port is taken, or the host has no
  // such address.
  using Fail = std::function<HttpAnswer(int status, const std::string& why)>;
  HttpServer(const HttpSettings& settings, const std::function<HttpAnswer(const HttpRequest&)>& handle,
             const Fail& fail);
  ~HttpServer();

  int port() const;
  void listen();  // until stop(); then it waits for the answers under way
  void stop();    // call it once, from another thread; waits until listen() was called

 private:
  void add_routes(const HttpSettings& settings, const std::function<HttpAnswer(const HttpRequest&)>& handle,
                  const Fail& fail);
  void add_refusals(const HttpSettings& settings, const Fail& fail);

  struct Insides;
  std::unique_ptr<Insides> insides_;
};

}  // namespace teratron
