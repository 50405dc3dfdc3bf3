// Many clients at a time, some of which break off, and the end of a server.
#include <gtest/gtest.h>

#include "base/error.h"
#include "serve/api_error.h"
#include "serve/served_texts.h"

namespace teratron::testing {
namespace {

TEST(ServeLoad, ClientsThatComeStreamAndBreakOffLoseNothing) {
  constexpr int kClients = 32, kTimes = 2;
  TextServer texts({.caches = 4, .most_texts = 2 * kClients});
  const auto request = [](int client) {
    return Json{{"prompt", "the rank sums the gradients" + std::string(static_cast<std::size_t>(client % 5), 's')},
                {"max_tokens", 5 + client % 8},
                {"seed", client % 3},
                {"stream", client % 4 != 0}};
  };
  std::map<std::string, std::string> alone;  // by the request
  for (int client = 0; client < kClients; ++client) {
    Json whole = request(client);
    whole["stream"] = false;
    alone[request(client).dump()] = texts.server.complete(whole).choice().at("text");
  }
  texts.server.wait_for_metric("teratron_texts_in_flight", 0);
  const std::int64_t before = texts.server.metric("teratron_texts_finished_total");
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      for (int time = 0; time < kTimes; ++time) {
        const bool breaks_off = client % 4 == 1;
        std::string body;
        httplib::Request call;
        call.method = "POST";
        call.path = "/v1/completions";
        call.body = request(client).dump();
        call.content_receiver = [&](const char* bytes, std::size_t count, std::uint64_t, std::uint64_t) {
          body.append(bytes, count);
          return !breaks_off;
        };
        const httplib::Result result = texts.server.client().send(call);
        if (breaks_off) continue;
        ASSERT_TRUE(result) << httplib::to_string(result.error());
        std::string text;
        const bool streams = client % 4 != 0;
        for (const std::string& part : streams ? stream_parts(body) : std::vector<std::string>{body}) {
          if (part != "[DONE]") text += Json::parse(part).at("choices").at(0).at("text").get<std::string>();
        }
        EXPECT_EQ(text, alone.at(request(client).dump()));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  texts.server.wait_for_metric("teratron_texts_in_flight", 0);
  const std::int64_t finished = texts.server.metric("teratron_texts_finished_total") - before;
  EXPECT_EQ(finished + texts.server.metric("teratron_texts_cancelled_total"), kClients * kTimes);
  EXPECT_GE(finished, kClients * kTimes * 3 / 4);
  EXPECT_EQ(texts.server.metric("teratron_requests_refused_total"), 0);
}

constexpr std::int64_t kEndless = 4000;  // tokens, which no test waits for

TEST(ServeLoad, AFullQueueIsReportedAndAClientThatGoesIsForgotten) {
  TextServer texts({.caches = 1, .positions = kEndless, .most_texts = 2});
  const Json endless = {
      {"prompt", "the"}, {"max_tokens", kEndless - 10}, {"ignore_eos", true}, {"n", 1}, {"stream", true}};
  for (const bool streams : {true, false}) {
    std::atomic<bool> goes{false};
    std::vector<std::thread> clients;
    for (int i = 0; i < 2; ++i) {
      clients.emplace_back([&] {
        httplib::Client client = texts.server.client();
        Json request = endless;
        request["stream"] = streams;
        if (!streams) client.set_read_timeout(0, 300000);  // then it hangs up
        httplib::Request call;
        call.method = "POST";
        call.path = "/v1/completions";
        call.body = request.dump();
        call.content_receiver = [&](const char*, std::size_t, std::uint64_t, std::uint64_t) { return !goes.load(); };
        (void)client.send(call);
      });
    }
    texts.server.wait_for_metric("teratron_texts_in_flight", 2);
    const Reply refused = texts.server.complete({{"prompt", "a"}});
    if (streams) {  // the others may have gone
      EXPECT_EQ(refused.status, 429) << refused.body;
      EXPECT_EQ(refused.retry_after, "1");
      EXPECT_EQ(refused.json.at("error").at("type"), "rate_limit_error");
    }
    goes = true;
    texts.server.wait_for_metric("teratron_texts_in_flight", 0);
    for (std::thread& client : clients) client.join();
    EXPECT_EQ(texts.server.complete({{"prompt", "a"}, {"max_tokens", 2}}).status, 200);
  }
  EXPECT_EQ(texts.server.metric("teratron_texts_cancelled_total"), 4);
}

TEST(ServeLoad, APortIsServedOnce) {
  const TextServer texts;
  TextServer::Limits limits;
  limits.server.port = texts.server.port();
  EXPECT_THROW(TextServer{limits}, EnvironmentError);
}

TEST(ServeLoad, AnEndUnderWayIsReportedToItsClients) {
  for (const bool streams : {true, false}) {
    TextServer texts({.caches = 1, .positions = kEndless});
    Reply reply;
    std::thread client([&] {
      reply = texts.server.complete(
          {{"prompt", "the"}, {"max_tokens", kEndless - 10}, {"ignore_eos", true}, {"stream", streams}});
    });
    texts.server.wait_for_metric("teratron_texts_in_flight", 1);
    texts.server.end();
    client.join();
    EXPECT_EQ(reply.status, streams ? 200 : 503) << reply.body;
    const Json error = streams ? Json::parse(stream_parts(reply.body).back()) : reply.json;
    EXPECT_EQ(error.at("error").at("message"), "the server ends");
    EXPECT_EQ(error.at("error").at("type"), "server_error");
  }
}

// Connections outlive the model by a moment.
TEST(ServeLoad, ARequestAfterTheEndIsRefusedForThatReason) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  LanguageModel model(*backend, config_of_texts(64),
                      {.purpose = Purpose::kGeneration, .tokens = 4, .caches = 1, .logits_chunk = 2});
  TextModel served("tiny", model, tokenizer_of_texts(), 2, 8, {}, {});
  served.stop();
  try {
    served.completions({{"prompt", "a"}}, {});
    FAIL() << "it was taken";
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 503);
    EXPECT_STREQ(error.what(), "the server ends");
  }
}

TEST(ServeLoad, BytesThatAreNoRequestEndTheirConnectionAlone) {
  TextServer texts;
  const int port = texts.server.port();
  for (const std::string& bytes :
       {std::string("\x16\x03\x01\x02\x00\x01", 6), std::string("GET\r\n\r\n"), std::string(20000, 'a'),
        std::string("POST /v1/completions HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n{}"),
        std::string("POST /v1/completions HTTP/1.1\r\nContent-Length: -5\r\n\r\n{}"),
        std::string("GET /health HTTP/1.1\r\n") + std::string(300000, 'x') + "\r\n\r\n"}) {
    const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    (void)!::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ::shutdown(descriptor, SHUT_WR);
    ::close(descriptor);
    EXPECT_EQ(texts.server.get("/health").status, 200);
  }
  EXPECT_EQ(texts.server.complete({{"prompt", "a"}}).status, 200);
}

}  // namespace
}  // namespace teratron::testing
