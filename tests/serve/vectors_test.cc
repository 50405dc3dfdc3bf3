// Vectors over loopback are those of `embed`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>

#include "base/base64.h"
#include "base/files/file.h"
#include "serve/api_error.h"
#include "serve/served_texts.h"
#include "serve/vectors/vector_model.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;

class ServedVectors : public ::testing::Test {
 protected:
  static constexpr std::int64_t kPositions = 10;

  ServedVectors() {
    encoder_.allocate();
    encoder_.initialize(3);
  }
  static ModelConfig config() {
    ModelConfig config{.num_layers = 2,
                       .hidden_size = 12,
                       .num_attention_heads = 3,
                       .vocab_size = 9,
                       .max_position_embeddings = kPositions,
                       .make_vocab_size_divisible_by = 9,
                       .init_method_std = 0.3};
    config.set_kind(ModelKind::kBert);
    return config;
  }

  const std::unique_ptr<Backend> backend_ = make_cpu_backend();
  Encoder encoder_{
      *backend_, config(), {.purpose = Purpose::kEvaluation, .batch = 2, .tokens = kPositions, .logits_chunk = 1}};
  const Tokenizer tokenizer_ = tokenizer_of_words();
  const ServerSettings place_{.port = 0, .api_key = "", .model_name = "bert"};
};

TEST_F(ServedVectors, AreThoseOfEmbedInEitherEncoding) {
  const TextVectorSettings settings{.pooling = Pooling::kMean, .normalize = true};
  const std::vector<std::string_view> texts = {"a b", "c", "ad c a", ""};
  const auto vectors_of = [&](std::span<const std::string_view> some) {
    std::vector<std::vector<float>> vectors(some.size());
    make_text_vectors(
        encoder_, tokenize_texts(tokenizer_, some, 10), settings,
        [&](std::size_t i, std::span<const float> vector) { vectors[i].assign(vector.begin(), vector.end()); });
    return vectors;
  };
  const std::vector<std::vector<float>> expected = vectors_of(texts);
  VectorModel model("bert", encoder_, tokenizer_, {.vectors = settings, .most_tokens = 10});
  const RunningServer server(place_, model);
  const Reply reply = server.post("/v1/embeddings", Json{{"input", texts}, {"model", "bert"}}.dump());
  ASSERT_EQ(reply.status, 200) << reply.body;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Json& one = reply.json.at("data").at(i);
    EXPECT_EQ(one.at("embedding").get<std::vector<float>>(), expected[i]);
    const Reply packed = server.post("/v1/embeddings", Json{{"input", texts[i]}, {"encoding_format", "base64"}}.dump());
    ASSERT_EQ(packed.status, 200) << packed.body;
    const std::vector<float> alone = vectors_of({&texts[i], 1}).front();
    std::string bytes(alone.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), alone.data(), bytes.size());
    EXPECT_EQ(packed.json.at("data").at(0).at("embedding"), base64_of(bytes));
  }
  EXPECT_EQ(reply.json.at("usage").at("prompt_tokens"), 4 + 3 + 6 + 2);
  const auto ids = tokenize_texts(tokenizer_, texts, 10).ids;
  const Reply of_ids = server.post("/v1/embeddings", Json{{"input", ids}}.dump());
  EXPECT_EQ(of_ids.json, reply.json) << of_ids.body;
  const Reply of_one = server.post("/v1/embeddings", Json{{"input", ids[0]}}.dump());
  EXPECT_EQ(of_one.json.at("data").at(0).at("embedding").get<std::vector<float>>(),
            vectors_of({texts.data(), 1}).front());
  const auto refused = [&](const Json& request, const std::string& param, const std::string& says) {
    server.expect_refused("/v1/embeddings", request.dump(), param, says);
  };
  refused({{"input", 5}}, "input", "strings");
  refused({{"input", Json::array()}}, "input", "strings");
  refused({{"input", {"a", {1}}}}, "input", "a list of strings");
  refused({{"input", {{1}, 2}}}, "input", "a list of strings");
  refused({{"input", {1, 9}}}, "input", "from 0 to 8");
  refused({{"input", {1, "a"}}}, "input", "from 0 to 8");
  refused({{"input", {{1}, Json::array()}}}, "input", "one id at least");
  refused({{"input", std::vector<int>(11, 4)}}, "input", "1 of the texts has more than 10 tokens");
  refused(Json::object(), "input", "missing");
  refused({{"input", "a a a a a a a a a"}}, "input",
          "1 of the texts has more than 10 tokens, with [CLS] and [SEP]; shorten it");
  refused({{"input", "a"}, {"dimensions", 5}}, "dimensions", "the model's, or left out");
  refused({{"input", "a"}, {"encoding_format", "hex"}}, "encoding_format", "base64");
  EXPECT_THAT(server.complete({{"prompt", "a"}}).message(), HasSubstr("/v1/embeddings"));
}

TEST_F(ServedVectors, OfAModelThatMakesNoNumbersAreRefusedWithTheReasonAndCounted) {
  VectorModel model("bert", encoder_, tokenizer_, {.most_tokens = kPositions});
  const RunningServer server(place_, model);
  const auto ask = [&](const char* text) { return server.post("/v1/embeddings", Json{{"input", text}}.dump()); };
  // A position that the longer text alone reaches.
  const TensorRef row = encoder_.model().embedding.positions->value.slice(0, 4, 5);
  backend_->fill(row, std::numeric_limits<double>::infinity());
  const Reply broken = ask("a b c");
  EXPECT_EQ(broken.status, 500) << broken.body;
  EXPECT_THAT(broken.message(), HasSubstr("the vector of text 1 is not finite"));
  EXPECT_EQ(ask("a").status, 200) << "the server goes on";
  EXPECT_EQ(server.metric("teratron_requests_in_flight"), 0);
  EXPECT_EQ(server.metric("teratron_requests_finished_total"), 2);
  EXPECT_EQ(server.metric("teratron_requests_refused_total"), 0);
  EXPECT_EQ(server.metric("teratron_prompt_tokens_total"), 5 + 3);
}

TEST_F(ServedVectors, AreRefusedWhereMoreRequestsWaitThanMay) {
  VectorModel model("bert", encoder_, tokenizer_, {.most_tokens = kPositions, .most_requests = 0});
  const RunningServer server(place_, model);
  const Reply refused = server.post("/v1/embeddings", Json{{"input", "a"}}.dump());
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.message(), HasSubstr("try again soon"));
  EXPECT_EQ(refused.json.at("error").at("code"), "rate_limit_exceeded");
  EXPECT_NE(refused.retry_after, "");
  EXPECT_EQ(server.metric("teratron_requests_refused_total"), 1);
  EXPECT_EQ(server.metric("teratron_requests_finished_total"), 0);
}

TEST_F(ServedVectors, OfAClientThatWentBeforeItsTurnAreNotComputed) {
  VectorModel model("bert", encoder_, tokenizer_, {.most_tokens = kPositions});
  const auto metric = [&](std::string_view name) {
    const std::vector<Metric> all = model.metrics();
    return std::ranges::find(all, name, &Metric::name)->value;
  };
  int looks = 0;
  HttpRequest gone, there;
  gone.is_open = [&] { return ++looks < 2; };
  there.is_open = [] { return true; };
  EXPECT_THROW(model.embeddings({{"input", "a b"}}, gone), ApiError) << "nothing computes yet";
  EXPECT_EQ(looks, 2);
  EXPECT_EQ(metric("teratron_requests_cancelled_total"), 1);
  EXPECT_EQ(metric("teratron_requests_in_flight"), 0);
  std::thread computing([&] { model.run(); });
  const Json answer = Json::parse(model.embeddings({{"input", "a"}}, there).body);
  model.stop();
  computing.join();
  EXPECT_EQ(answer.at("usage").at("prompt_tokens"), 3);
  EXPECT_EQ(metric("teratron_requests_finished_total"), 1);
  EXPECT_EQ(metric("teratron_prompt_tokens_total"), 3) << "those of the second request alone";
}

TEST(Base64, IsThatOfItsStandard) {  // RFC 4648, section 10
  EXPECT_EQ(base64_of(""), "");
  EXPECT_EQ(base64_of("f"), "Zg==");
  EXPECT_EQ(base64_of("fo"), "Zm8=");
  EXPECT_EQ(base64_of("foo"), "Zm9v");
  EXPECT_EQ(base64_of("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64_of("\xff\xfe\xfd"), "//79");
  for (const std::string bytes : {"", "f", "fo", "foo", "foobar", "\xff\xfe\xfd"}) {
    EXPECT_EQ(bytes_of_base64(base64_of(bytes)), bytes);
  }
  for (const char* text : {"Zg=", "Zg", "Z===", "====", "Zm9v Zm8=", "Zm=v", "Zm9\n", "<p>a"}) {
    EXPECT_EQ(bytes_of_base64(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace teratron::testing
