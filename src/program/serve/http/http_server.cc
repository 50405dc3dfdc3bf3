#include "serve/http/http_server.h"

#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <regex>
#include <thread>

#include "base/ascii.h"
#include "base/error.h"
#include "serve/http/client_stream.h"

namespace teratron {
namespace {

// Longest silence of a client between two requests. A request that comes while the connection is closed is lost, so it
// is longer than the 5 seconds after which OpenAI's client opens another connection.
constexpr std::chrono::seconds kIdle{6};
constexpr const char* kEnds = "the server ends";  // reason for refusing a request that is not whole then

// Ends the connection with the answer: what follows may be the rest of the request.
void end_connection(httplib::Response& response) { response.set_header("Connection", "close"); }
bool ends_connection(const httplib::Response& response) { return response.get_header_value("Connection") == "close"; }

class SinkStream : public HttpStream {
 public:
  explicit SinkStream(httplib::DataSink& sink) : sink_(sink) {}
  bool write(std::string_view bytes) override {
    return is_open() && (is_open_ = sink_.write(bytes.data(), bytes.size()));
  }
  bool is_open() override { return is_open_ = is_open_ && sink_.is_writable(); }

 private:
  httplib::DataSink& sink_;
  bool is_open_ = true;
};

class ConnectionServer : public httplib::Server {
 public:
  // Lengthens the queue of clients that wait to be accepted; call it after the server was bound. The library's holds
  // five, and the system drops further clients, whose requests are lost. Listening again changes the number.
  void let_clients_wait() { ::listen(svr_sock_, SOMAXCONN); }

 private:
  // Serves the requests of a connection in their order.
  bool process_and_close_socket(socket_t socket) override {
    // A body of small chunks takes a few times its bytes.
    ClientStream client(socket, {.body_bytes = 4 * payload_max_length_},
                        [this] { return svr_sock_ == INVALID_SOCKET; });
    bool is_last = false, is_answered = true;
    while (!is_last && is_answered && client.wait_for_request(kIdle)) {
      client.begin_head();
      bool is_asked_to_end = false;
      is_last = true;  // unless the answer says otherwise: a head that is not HTTP has no end
      const auto begin_body = [&](httplib::Request& request) {
        request.ranges.clear();  // an answer comes whole
        // The library calls these two only in clients; here a request's handlers do.
        request.progress = [&client](std::uint64_t, std::uint64_t) { return client.is_writable(); };
        request.response_handler = [&](const httplib::Response& response) {
          is_last = ends_connection(response);
          return true;
        };
        client.begin_body();
      };
      is_answered = process_request(client, false, is_asked_to_end, begin_body);
      is_last = is_last || is_asked_to_end;
    }
    if (is_last && is_answered) client.drain();
    ::close(socket);
    return true;
  }
};

void fill(httplib::Response& response, const HttpAnswer& answer, bool may_have_chunks = true) {
  response.status = answer.status;
  for (const auto& [name, value] : answer.headers) response.set_header(name, value);
  if (!answer.stream) return response.set_content(answer.body, answer.type);
  const auto provider = [stream = answer.stream](std::size_t, httplib::DataSink& sink) {
    SinkStream client(sink);
    stream(client);
    if (!client.is_open()) return false;
    sink.done();
    return true;
  };
  if (may_have_chunks) return response.set_chunked_content_provider(answer.type, provider);
  end_connection(response);  // which is the end of the body
  response.set_content_provider(answer.type, provider);
}

// Refusal of a request by its head, before its body is read. Status 0: none.
struct HeadRefusal {
  int status = 0;
  std::string why;
};

bool is_number(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

HeadRefusal refuse_head(const httplib::Request& request, std::size_t most_bytes) {
  const std::string length = request.get_header_value("Content-Length"),
                    transfer = request.get_header_value("Transfer-Encoding"),
                    encoding = request.get_header_value("Content-Encoding");
  const bool has_length = request.has_header("Content-Length"), has_transfer = request.has_header("Transfer-Encoding");
  const bool sends = request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
  if (has_transfer && !equals_ignoring_case(transfer, "chunked")) {
    return {501, fmt::format("Transfer-Encoding '{}' is not read; send chunked, or a Content-Length", transfer)};
  }
  if ((has_length && (has_transfer || !is_number(length))) || request.get_header_value_count("Content-Length") > 1) {
    return {400, "the request has several lengths, or one that is no number; send a single Content-Length"};
  }
  if (sends && !has_length && !has_transfer) return {411, "the request says no length; send a Content-Length"};
  constexpr std::size_t kMostDigits = 18;
  if (length.size() > kMostDigits || (has_length && std::stoull(length) > most_bytes)) {
    return {413, fmt::format("a request may have {} bytes at most", most_bytes)};
  }
  if (!sends && (has_transfer || (has_length && std::stoull(length) > 0))) {
    return {400, fmt::format("{} has no body; leave it out", request.method)};
  }
  if (!encoding.empty() && !equals_ignoring_case(encoding, "identity")) {
    return {415, fmt::format("a body in Content-Encoding '{}' is not read; send it as it is (identity)", encoding)};
  }
  if (request.is_multipart_form_data()) return {415, "a form is not read; send JSON"};
  return {};
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
  ConnectionServer server;
  int port = 0;
  std::atomic<bool> is_stopped{false}, has_ended{false};
};

HttpServer::HttpServer(const HttpSettings& settings, const std::function<HttpAnswer(const HttpRequest&)>& handle,
                       const Fail& fail)
    : insides_(std::make_unique<Insides>()) {
  ConnectionServer& server = insides_->server;
  server.new_task_queue = [threads = settings.connections] { return new httplib::ThreadPool(threads); };
  server.set_payload_max_length(settings.body_bytes);
  server.set_keep_alive_timeout(kIdle.count());
  server.set_keep_alive_max_count(1U << 20);
  server.set_tcp_nodelay(true);  // a token is a small packet
  // The library's default options would let a second server share the port.
  server.set_socket_options([](int socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  add_routes(settings, handle, fail);
  add_refusals(settings, fail);
  insides_->port = settings.port == 0 ? server.bind_to_any_port(settings.host)
                                      : (server.bind_to_port(settings.host, settings.port) ? settings.port : -1);
  if (insides_->port < 0) {
    throw_environment_error("cannot listen at {}:{}: another program does, or the address is none of this machine's",
                            settings.host, settings.port);
  }
  server.let_clients_wait();
}

HttpServer::~HttpServer() = default;

void HttpServer::add_routes(const HttpSettings& settings, const std::function<HttpAnswer(const HttpRequest&)>& handle,
                            const Fail& fail) {
  const auto answer = [handle](const httplib::Request& request, std::string body, httplib::Response& response) {
    const HttpRequest asked{.method = request.method,
                            .path = request.path,
                            .body = std::move(body),
                            .authorization = request.get_header_value("Authorization"),
                            .is_open = [&request] { return request.progress(0, 0); }};
    fill(response, handle(asked), request.version != "HTTP/1.0");
  };
  const auto get = [answer](const httplib::Request& request, httplib::Response& response) {
    answer(request, "", response);
  };
  // Reads the body here: the library has no bound for chunks, and takes a body without a type for a form.
  const auto post = [answer, fail, most = settings.body_bytes, &is_stopped = insides_->is_stopped](
                        const httplib::Request& request, httplib::Response& response,
                        const httplib::ContentReader& read) {
    std::string body;
    bool fits = true;
    const bool is_whole = read([&](const char* bytes, std::size_t count) {
      fits = count <= most - body.size();
      if (fits) body.append(bytes, count);
      return fits;
    });
    if (is_whole) return answer(request, std::move(body), response);
    end_connection(response);
    if (!fits) return fill(response, fail(413, fmt::format("a request may have {} bytes at most", most)));
    fill(response,
         is_stopped ? fail(503, kEnds) : fail(400, "the request's body is cut off, too slow or not valid HTTP"));
  };
  for (const auto& [method, path] : settings.routes) {
    if (method == "GET") {
      insides_->server.Get(path, get);
    } else {
      insides_->server.Post(path, httplib::Server::HandlerWithContentReader(post));
    }
  }
}

void HttpServer::add_refusals(const HttpSettings& settings, const Fail& fail) {
  ConnectionServer& server = insides_->server;
  const auto refuses = [fail, most = settings.body_bytes](const httplib::Request& request,
                                                          httplib::Response& response) {
    const HeadRefusal refusal = refuse_head(request, most);
    if (refusal.status == 0) return false;
    end_connection(response);
    fill(response, fail(refusal.status, refusal.why));
    if (refusal.status == 415) response.set_header("Accept-Encoding", "identity");
    return true;
  };
  server.set_pre_routing_handler([refuses](const httplib::Request& request, httplib::Response& response) {
    return refuses(request, response) ? httplib::Server::HandlerResponse::Handled
                                      : httplib::Server::HandlerResponse::Unhandled;
  });
  server.set_expect_100_continue_handler([refuses](const httplib::Request& request, httplib::Response& response) {
    return refuses(request, response) ? response.status : 100;
  });
  server.set_exception_handler(
      [fail](const httplib::Request&, httplib::Response& response, const std::exception_ptr& error) {
        fill(response, fail(500, message_of(error)));
      });
  server.set_error_handler(
      httplib::Server::Handler([fail, routes = settings.routes, &is_stopped = insides_->is_stopped](
                                   const httplib::Request& request, httplib::Response& response) {
        if (!response.body.empty()) return;  // it is an answer of ours
        const auto route = std::ranges::find_if(
            routes, [&](const HttpRoute& one) { return std::regex_match(request.path, std::regex(one.second)); });
        if (response.status == 404 && route != routes.end()) {
          fill(response, fail(405, fmt::format("{} does not take {}", request.path, request.method)));
          response.set_header("Allow", route->first == "GET" ? "GET, HEAD" : route->first);
        } else if (response.status == 404) {
          fill(response, fail(404, fmt::format("there is no {}", request.path)));
        } else {
          end_connection(response);
          fill(response, is_stopped ? fail(503, kEnds) : fail(response.status, "the request is not valid HTTP"));
        }
      }));
  server.set_post_routing_handler([](const httplib::Request& request, httplib::Response& response) {
    if (ends_connection(response)) {  // the library has added its own headers
      response.headers.erase("Keep-Alive");
      response.headers.erase("Connection");
      end_connection(response);
    }
    if (request.response_handler) request.response_handler(response);
  });
}

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
  // Before it runs, the library ignores stop().
  while (!insides_->server.is_running() && !insides_->has_ended)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  insides_->server.stop();
}

}  // namespace teratron
