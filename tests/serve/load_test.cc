// Many clients at a time, some of which break off.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace teratron::testing
