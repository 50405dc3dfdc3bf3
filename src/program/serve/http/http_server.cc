#include "serve/http/http_server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/error.h"

namespace teratron {
namespace {

// Seconds that a client may take for a piece of its request, or be silent between two requests.
constexpr int kReadSeconds = 10, kIdleSeconds = 2;

class SinkStream : public HttpStream {
 public:
  explicit SinkStream(httplib::DataSink& sink) : sink_(sink) {}
  bool write(std::string_view bytes) override { return is_open_ = is_open_ && sink_.write(bytes.data(), bytes.size()); }
  bool is_open() override { return is_open_ = is_open_ && sink_.is_writable(); }

 private:
  httplib::DataSink& sink_;
  bool is_open_ = true;
};

// The library lets five connections wait to be accepted. Where more clients come at once, the system drops some, whose
// requests are lost.
class PatientServer : public httplib::Server {
 public:
  // After the server was bound: listening again changes the number that may wait.
  void let_clients_wait() { ::listen(svr_sock_, SOMAXCONN); }
};

void fill(httplib::Response& response, const HttpAnswer& answer) {
  response.status = answer.status;
  for (const auto& [name, value] : answer.headers) response.set_header(name, value);
  if (!answer.stream) return response.set_content(answer.body, answer.type);
  response.set_chunked_content_provider(answer.type, [stream = answer.stream](std::size_t, httplib::DataSink& sink) {
    SinkStream client(sink);
    stream(client);
    if (!client.is_open()) return false;
    sink.done();
    return true;
  });
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an unknown error";
  }
}

}  // namespace

struct HttpServer::Insides {
  PatientServer server;
  int port = 0;
  std::atomic<bool> is_stopped{false}, has_ended{false};
};

HttpServer::HttpServer(const HttpSettings& settings, std::function<HttpAnswer(const HttpRequest&)> handle,
                       std::function<HttpAnswer(int, const std::string&)> fail)
    : insides_(std::make_unique<Insides>()) {
  PatientServer& server = insides_->server;
  server.new_task_queue = [threads = settings.connections] { return new httplib::ThreadPool(threads); };
  server.set_payload_max_length(settings.body_bytes);
  server.set_read_timeout(kReadSeconds);
  server.set_write_timeout(kReadSeconds);
  server.set_keep_alive_timeout(kIdleSeconds);
  server.set_keep_alive_max_count(1U << 20);
  server.set_tcp_nodelay(true);  // a token is a small packet
  // The library's own options let a second server share the port.
  server.set_socket_options([](int socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  const httplib::Server::Handler handler = [handle](const httplib::Request& request, httplib::Response& response) {
    fill(response, handle({.method = request.method,
                           .path = request.path,
                           .body = request.body,
                           .authorization = request.get_header_value("Authorization")}));
  };
  for (const auto& [method, path] : settings.routes)
    method == "GET" ? server.Get(path, handler) : server.Post(path, handler);
  server.set_exception_handler([fail](const httplib::Request&, httplib::Response& response, std::exception_ptr error) {
    fill(response, fail(500, message_of(error)));
  });
  server.set_error_handler(httplib::Server::Handler([fail, body_bytes = settings.body_bytes, routes = settings.routes](
                                                        const httplib::Request& request, httplib::Response& response) {
    if (!response.body.empty()) return;  // it is an answer of ours
    const bool is_path = std::ranges::any_of(routes, [&](const auto& route) { return route.second == request.path; });
    if (response.status == 404 && is_path) {
      fill(response, fail(405, fmt::format("{} does not take {}", request.path, request.method)));
    } else if (response.status == 404) {
      fill(response, fail(404, fmt::format("there is no {}", request.path)));
    } else if (response.status == 413) {
      fill(response, fail(413, fmt::format("a request may have {} bytes at most", body_bytes)));
    } else {
      fill(response, fail(response.status, "the request is not valid HTTP"));
    }
  }));
  insides_->port = settings.port == 0 ? server.bind_to_any_port(settings.host)
                                      : (server.bind_to_port(settings.host, settings.port) ? settings.port : -1);
  if (insides_->port < 0) {
    throw_environment_error("cannot listen at {}:{}: another program does, or the address is none of this machine's",
                            settings.host, settings.port);
  }
  server.let_clients_wait();
}

HttpServer::~HttpServer() = default;

int HttpServer::port() const { return insides_->port; }

void HttpServer::listen() {
  const bool is_done = insides_->server.listen_after_bind();
  insides_->has_ended = true;
  if (!is_done && !insides_->is_stopped) {
    throw_environment_error("the server cannot accept connections any more");
  }
}

void HttpServer::stop() {
  insides_->is_stopped = true;
  // The library does nothing before it runs.
  while (!insides_->server.is_running() && !insides_->has_ended)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  insides_->server.stop();
}

}  // namespace teratron
