// HTTP by itself, over a bare socket: requests that no library sends.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <thread>

#include "serve/http/client_stream.h"
#include "serve/served_texts.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A client's end of a connection.
class BareClient {
 public:
  explicit BareClient(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~BareClient() { ::close(socket_); }
  BareClient(const BareClient&) = delete;
  BareClient& operator=(const BareClient&) = delete;

  // False: the server has ended the connection.
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void end_sending() const { ::shutdown(socket_, SHUT_WR); }
  // Bytes that came, until the server ended the connection or so many answers stand in it.
  std::string receive(std::size_t answers = std::string::npos) const {
    std::string all;
    while (count(all) < answers) {
      const std::string more = receive_some();
      if (more.empty()) break;
      all += more;
    }
    return all;
  }
  std::string receive_some() const {
    std::array<char, 4096> bytes{};
    const ssize_t received = ::recv(socket_, bytes.data(), bytes.size(), 0);
    EXPECT_GE(received, 0) << "the server reset the connection";
    return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(0, received))};
  }

 private:
  // Whole answers: those that say a length, and those of chunks.
  static std::size_t count(std::string_view all) {
    std::size_t answers = 0;
    for (;; ++answers) {
      const std::size_t head = all.find("\r\n\r\n");
      if (!all.starts_with("HTTP/1.1 ") || head == std::string_view::npos) return answers;
      const std::size_t length = all.substr(0, head).find("Content-Length: ");
      const std::size_t body = head + 4;
      std::size_t end = all.find("0\r\n\r\n", body);
      if (length != std::string_view::npos) {
        end = body + static_cast<std::size_t>(std::atoi(all.data() + length + 16));
      } else if (end != std::string_view::npos) {
        end += 5;
      }
      if (end > all.size()) return answers;
      all.remove_prefix(end);
    }
  }

  int socket_;
};

std::string post(const std::string& body, const std::string& head = "", const std::string& path = "/v1/completions") {
  return fmt::format("POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n{}\r\n{}", path, body.size(), head, body);
}

class Http : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { texts_ = new TextServer; }
  static void TearDownTestSuite() { delete texts_; }
  static std::string answer_to(const std::string& bytes, std::size_t answers = std::string::npos) {
    const BareClient client(texts_->server.port());
    client.send(bytes);
    return client.receive(answers);
  }

  static TextServer* texts_;
};

TextServer* Http::texts_ = nullptr;

TEST_F(Http, RequestsSentAtOnceAreAnsweredInTheirOrder) {
  std::string requests, expected;
  for (const char* prompt : {"the rank", "sums", "layers wait for"}) {
    const Json request = {{"prompt", prompt}, {"max_tokens", 4}, {"seed", 1}};
    requests += post(request.dump()) + "\r\n\r\nGET /health HTTP/1.1\r\nHost: a\r\n\r\n";
    expected += texts_->server.complete(request).choice().at("text").get<std::string>() + ";";
  }
  std::string answers = answer_to(requests, 6), texts;
  for (std::size_t at = 0; (at = answers.find("{\"id\"", at)) != std::string::npos; ++at) {
    texts += Json::parse(answers.substr(at, answers.find("HTTP/1.1 ", at) - at))
                 .at("choices")
                 .at(0)
                 .at("text")
                 .get<std::string>() +
             ";";
    EXPECT_EQ(answers.find(R"({"status":"ok"})", at) < answers.find("{\"id\"", at + 1), true);
  }
  EXPECT_EQ(texts, expected);
}

TEST_F(Http, ARequestMayComeByteByByteAndInChunks) {
  const BareClient client(texts_->server.port());
  const std::string body = R"({"prompt": "a", "max_tokens": 1})";
  std::string request = "POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char byte : body) request += fmt::format("1\r\n{}\r\n", byte);
  request += "0\r\n\r\n";
  for (const char byte : request) ASSERT_TRUE(client.send(std::string(1, byte)));
  EXPECT_THAT(client.receive(1), AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("text_completion")));
  EXPECT_TRUE(client.send("GET /health HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(client.receive(1), HasSubstr("ok")) << "the connection goes on";
}

// The rest of such a request would be read as another one.
TEST_F(Http, ARequestThatIsRefusedByItsHeadEndsTheConnection) {
  const std::string next = "GET /metrics HTTP/1.1\r\n\r\n";
  const auto refused = [&](const std::string& head, const std::string& says) {
    const std::string answer = answer_to(head + "\r\n" + next);
    EXPECT_THAT(answer, AllOf(HasSubstr("Connection: close\r\n"), HasSubstr(says), Not(HasSubstr("teratron_"))))
        << head;
    EXPECT_THAT(answer, HasSubstr("\"type\":\"")) << head;
    return answer.substr(0, std::min<std::size_t>(answer.size(), 13));
  };
  const std::string begin = "POST /v1/completions HTTP/1.1\r\n";
  for (const char* encoding : {"gzip", "deflate", "br", "zstd"}) {
    EXPECT_EQ(refused(begin + "Content-Length: 3\r\nContent-Encoding: " + encoding + "\r\n", encoding),
              "HTTP/1.1 415 ");
  }
  EXPECT_EQ(refused(begin + "Content-Length: 3\r\nContent-Type: multipart/form-data; boundary=a\r\n", "JSON"),
            "HTTP/1.1 415 ");
  EXPECT_EQ(refused(begin, "Content-Length"), "HTTP/1.1 411 ");
  EXPECT_EQ(refused(begin + "Content-Length: 99999999999999999999\r\n", "8388608 bytes"), "HTTP/1.1 413 ");
  EXPECT_EQ(refused(begin + "Content-Length: 9999999\r\nExpect: 100-continue\r\n", "8388608 bytes"), "HTTP/1.1 413 ");
  EXPECT_EQ(refused(begin + "Content-Length: -1\r\n", "no number"), "HTTP/1.1 400 ");
  EXPECT_EQ(refused(begin + "Content-Length: 3\r\nContent-Length: 4\r\n", "several"), "HTTP/1.1 400 ");
  EXPECT_EQ(refused(begin + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "several"), "HTTP/1.1 400 ");
  EXPECT_EQ(refused(begin + "Transfer-Encoding: gzip, chunked\r\n", "gzip"), "HTTP/1.1 501 ");
  EXPECT_EQ(refused("GET /health HTTP/1.1\r\nContent-Length: 30\r\n", "no body"), "HTTP/1.1 400 ");
  EXPECT_EQ(refused("DELETE /v1/models/tiny HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", "no body"), "HTTP/1.1 400 ");
  EXPECT_EQ(refused("nonsense\r\n", "not valid HTTP"), "HTTP/1.1 400 ");
  EXPECT_EQ(refused(begin + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", "not valid HTTP"), "HTTP/1.1 400 ");
}

TEST_F(Http, ABodyOfTooManyChunksIsRefused) {
  std::string request = "POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int mebibytes = 0; mebibytes < 9; ++mebibytes) {
    request += "100000\r\n" + std::string(std::size_t{1} << 20, ' ') + "\r\n";
  }
  EXPECT_THAT(answer_to(request + "0\r\n\r\n"), AllOf(StartsWith("HTTP/1.1 413 "), HasSubstr("8388608 bytes at most")));
}

TEST_F(Http, RequestsWithoutEndAreCutOff) {
  const auto sends = [&](const std::string& head, const std::string& piece) {
    const BareClient client(texts_->server.port());
    if (!client.send(head)) return std::string();
    for (std::size_t sent = 0; sent < (std::size_t{128} << 20); sent += piece.size()) {
      if (!client.send(piece)) return std::string("ended");
    }
    return std::string("went on");
  };
  const std::string much(std::size_t{1} << 16, 'a');
  EXPECT_EQ(sends("GET /", much), "ended");
  EXPECT_EQ(sends("GET / HTTP/1.1\r\nName: ", much), "ended");
  const std::string begin = "POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(sends(begin, "10000\r\n" + much + "\r\n"), "ended");
  EXPECT_EQ(sends(begin + "1;", much), "ended") << "a chunk's size with an endless comment";
}

TEST_F(Http, ABodyMayBeAnnouncedAndNeedsNoType) {
  const BareClient client(texts_->server.port());
  const std::string body = Json{{"prompt", "a"}, {"max_tokens", 1}, {"user", std::string(20000, 'u')}}.dump();
  const std::string request = post(body,
                                   "Expect: 100-continue\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                                   "Content-Encoding: Identity\r\n");
  const std::size_t head = request.find("\r\n\r\n") + 4;
  ASSERT_TRUE(client.send(request.substr(0, head)));
  std::string answer;
  while (!answer.ends_with("\r\n\r\n")) answer += client.receive_some();
  EXPECT_EQ(answer, "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_TRUE(client.send(request.substr(head)));
  EXPECT_THAT(client.receive(1), StartsWith("HTTP/1.1 200 "));
}

// A client of HTTP/1.0 knows no chunks.
TEST_F(Http, AnAnswerToTheOldVersionEndsWithTheConnection) {
  const auto answer = [](const std::string& body) {
    return answer_to(fmt::format("POST /v1/completions HTTP/1.0\r\nContent-Length: {}\r\n\r\n{}", body.size(), body));
  };
  const std::string whole = answer(R"({"prompt": "a", "max_tokens": 1})");
  EXPECT_THAT(whole, AllOf(StartsWith("HTTP/1.1 200 "), Not(HasSubstr("chunked")), HasSubstr("Content-Length: ")));
  EXPECT_TRUE(Json::accept(whole.substr(whole.find("\r\n\r\n"))));
  const std::string stream = answer(R"({"prompt": "a", "max_tokens": 1, "stream": true})");
  EXPECT_THAT(stream, AllOf(StartsWith("HTTP/1.1 200 "), Not(HasSubstr("chunked")), HasSubstr("Connection: close")));
  EXPECT_TRUE(stream.ends_with("data: [DONE]\n\n"));
}

TEST_F(Http, OtherMethodsAreToldWhichThereAre) {
  EXPECT_THAT(answer_to("OPTIONS /v1/completions HTTP/1.1\r\nConnection: close\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("Allow: POST\r\n"), Not(HasSubstr("Access-Control"))));
  EXPECT_THAT(answer_to("DELETE /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n"), HasSubstr("Allow: GET, HEAD\r\n"));
  EXPECT_THAT(answer_to("DELETE /v1/models/tiny HTTP/1.1\r\nConnection: close\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("Allow: GET, HEAD\r\n")));
  const std::string head = answer_to("HEAD /health HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 "));
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
  EXPECT_THAT(answer_to("GET /health HTTP/1.1\r\nRange: bytes=0-2\r\nConnection: close\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("\"ok\"}")));
}

TEST(HttpClients, ThatGoAreNoticedWhateverTheySentBefore) {
  constexpr std::int64_t kTokens = 4000;  // more than the test waits for
  const TextServer texts({.caches = 1, .positions = kTokens});
  const std::string request = post(Json{{"prompt", "a"}, {"max_tokens", kTokens - 10}, {"ignore_eos", true}}.dump());
  std::int64_t gone = 0;
  for (const std::string at_once : {"", "G"}) {
    for (const std::string later : {"", "GET /health HTTP/1.1\r\n\r\n"}) {
      for (const bool closes : {true, false}) {
        auto client = std::make_unique<BareClient>(texts.server.port());
        ASSERT_TRUE(client->send(request + at_once));
        texts.server.wait_for_metric("teratron_texts_in_flight", 1);
        ASSERT_TRUE(client->send(later));
        client->end_sending();
        if (closes) client.reset();
        texts.server.wait_for_metric("teratron_texts_in_flight", 0);
        EXPECT_EQ(texts.server.metric("teratron_texts_cancelled_total"), ++gone) << at_once << later << closes;
      }
    }
  }
}

TEST(HttpClients, ThatWithholdTheirBodyDoNotKeepTheServerThatEnds) {
  TextServer texts;
  auto client = std::make_unique<BareClient>(texts.server.port());
  ASSERT_TRUE(client->send("POST /v1/completions HTTP/1.1\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n"));
  std::string answer;
  while (!answer.ends_with("\r\n\r\n")) answer += client->receive_some();
  EXPECT_EQ(answer, "HTTP/1.1 100 Continue\r\n\r\n");
  std::thread end([&] { texts.server.end(); });
  EXPECT_THAT(client->receive(), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("the server ends")));
  client.reset();
  end.join();
}

// A connection's two ends.
struct SocketPair {
  std::array<int, 2> ends{};
  SocketPair() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0); }
  ~SocketPair() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;
};

TEST(ClientStreams, WriteForABoundedTimeToAClientThatTakesLittleAtATime) {
  using std::chrono::milliseconds;
  const SocketPair pair;
  ClientStream stream(pair.ends[0], {.answer_time = milliseconds(40)}, [] { return false; });
  std::thread client([&] {
    std::array<char, 4096> bytes{};
    while (::recv(pair.ends[1], bytes.data(), bytes.size(), 0) > 0) std::this_thread::sleep_for(milliseconds(1));
  });
  const std::string piece(std::size_t{1} << 16, 'a');
  constexpr int kMost = 1000;
  int pieces = 0;
  stream.begin_head();
  while (pieces < kMost && stream.write(piece.data(), piece.size()) >= 0) ++pieces;
  EXPECT_LT(pieces, kMost);
  ::shutdown(pair.ends[0], SHUT_RDWR);
  client.join();
}

TEST(ClientStreams, WaitForNoClientOnceTheServerEnds) {
  const SocketPair pair;
  bool ends = false;
  ClientStream stream(pair.ends[0], {.body_bytes = 10, .end_time = {}}, [&] { return ends; });
  const std::string piece(std::size_t{1} << 16, 'a');
  std::array<char, 10> bytes{};
  stream.begin_head();
  stream.begin_body();
  ends = true;
  EXPECT_LT(stream.read(bytes.data(), bytes.size()), 0);
  EXPECT_GT(stream.write(piece.data(), piece.size()), 0) << "the client has room for the reason";
  while (::send(pair.ends[0], piece.data(), piece.size(), MSG_DONTWAIT) > 0) {
  }
  EXPECT_LT(stream.write(piece.data(), piece.size()), 0);
}

}  // namespace
}  // namespace teratron::testing
