// A model that several ranks hold serves what one copy of it makes, whatever comes and goes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <random>

#include "base/error.h"
#include "base/files/file.h"
#include "comm/launch.h"
#include "serve/served_texts.h"
#include "serve/vectors/vector_model.h"

namespace teratron::testing {
namespace {

// Makes the model of a rank and calls `serve` with it.
using ServeOnRank =
    std::function<void(const std::shared_ptr<Mesh>& mesh, const std::function<void(ServedModel& model)>& serve)>;

// Server whose model the ranks of a layout hold, as threads.
class ServerOfRanks {
 public:
  ServerOfRanks(const MeshShape& shape, ServeOnRank serve_on_rank)
      : thread_([this, shape, serve_on_rank] {
          try {
            run_ranks({}, shape.ranks(), [&](Communicator& world) {
              serve_on_rank(std::make_shared<Mesh>(make_mesh(world, shape)), [&](ServedModel& model) {
                if (world.rank() != 0) return model.run();
                Server server({.port = 0, .api_key = "", .model_name = "tiny"}, model);
                port_.set_value(server.port());
                server.run([&] { return ends_.load(); });
              });
            });
          } catch (const std::exception& error) {
            failure_ = error.what();
          }
        }) {}
  ~ServerOfRanks() { end(); }
  // Returns the error that ended it.
  std::string end() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
    return failure_;
  }

  Reply post(const std::string& path, const Json& request, int most_milliseconds = 60000) {
    if (port_number_ == 0) port_number_ = port_.get_future().get();
    httplib::Client client("127.0.0.1", port_number_);
    client.set_read_timeout(0, 1000 * most_milliseconds);
    return reply_of(client.Post(path, request.dump(), "application/json"));
  }
  Reply complete(const Json& request) { return post("/v1/completions", request); }

 private:
  std::promise<int> port_;
  int port_number_ = 0;
  std::atomic<bool> ends_{false};
  std::string failure_;
  std::thread thread_;
};

constexpr std::int64_t kPositions = 64;

ServeOnRank text_model(std::int64_t caches, std::int64_t prompt_tokens_a_step) {
  return [=](const std::shared_ptr<Mesh>& mesh, const std::function<void(ServedModel & model)>& serve) {
    const auto backend = make_cpu_backend();
    LanguageModel model(*backend, config_of_texts(kPositions),
                        {.purpose = Purpose::kGeneration, .tokens = 4, .caches = caches, .logits_chunk = 2}, mesh);
    model.allocate();
    model.initialize(5);
    TextModel served("tiny", model, tokenizer_of_texts(), 40, prompt_tokens_a_step, {}, {});
    serve(served);
  };
}

// The answer's text and scores as `generate` makes them of one text with the same tensor-parallel ranks.
struct Alone {
  std::string text;
  std::vector<double> scores;
};

Alone generate_alone(int tensor, const Json& request) {
  const Tokenizer tokenizer = tokenizer_of_texts();
  GenerationSettings settings{.max_new_tokens = request.at("max_tokens").get<std::int64_t>()};
  settings.sampling = {.temperature = request.at("temperature").get<double>(),
                       .top_k = request.at("top_k").get<std::int64_t>(),
                       .top_p = request.at("top_p").get<double>(),
                       .seed = request.at("seed").get<std::uint64_t>(),
                       .repetition_penalty = request.at("repetition_penalty").get<double>(),
                       .presence_penalty = request.at("presence_penalty").get<double>(),
                       .frequency_penalty = request.at("frequency_penalty").get<double>()};
  for (const auto& [id, bias] : request.at("logit_bias").items()) {
    settings.sampling.biases.push_back({.token = std::stoi(id), .bias = bias.get<double>()});
  }
  settings.tokens = tokenizer.vocab_size();
  settings.log_probabilities = true;
  settings.prompt_log_probabilities = request.at("echo").get<bool>();
  if (!request.at("ignore_eos").get<bool>()) settings.stop = tokenizer.end_of_text();
  const GenerationRequest text{.prompt = tokenizer.encode(request.at("prompt").get<std::string>())};
  Alone alone;
  run_ranks({}, tensor, [&](Communicator& world) {
    const auto backend = make_cpu_backend();
    LanguageModel model(*backend, config_of_texts(kPositions),
                        {.purpose = Purpose::kGeneration, .tokens = 4, .logits_chunk = 1},
                        std::make_shared<Mesh>(make_mesh(world, {.tensor = tensor})));
    model.allocate();
    model.initialize(5);
    Alone own;
    StreamDecoder decoder(tokenizer);
    generate_all(model, {&text, 1}, settings,
                 {.prompt =
                      [&](std::size_t, std::span<const double> values) {
                        own.scores.insert(own.scores.end(), values.begin(), values.end());
                      },
                  .token =
                      [&](std::size_t, std::int32_t token, double score) {
                        own.text += decoder.push(token);
                        own.scores.push_back(score);
                        return true;
                      },
                  .finished = {}});
    own.text += decoder.finish();
    if (world.rank() == 0) alone = own;
  });
  if (request.at("echo").get<bool>()) alone.text = request.at("prompt").get<std::string>() + alone.text;
  return alone;
}

Json random_completion(std::mt19937& random) {
  static const std::vector<std::string> kPrompts = {"the rank", "a", "the layers wait for", "the layers wait for ranks",
                                                    "gradients of ranks sum"};
  return {{"prompt", kPrompts[random() % kPrompts.size()]},
          {"max_tokens", 1 + random() % 16},
          {"temperature", static_cast<double>(random() % 3) / 2},
          {"top_k", random() % 2 == 0 ? 0 : 5},
          {"top_p", random() % 2 == 0 ? 1 : 0.8},
          {"repetition_penalty", random() % 2 == 0 ? 1 : 1.3},
          {"presence_penalty", random() % 2 == 0 ? 0 : 0.7},
          {"frequency_penalty", random() % 2 == 0 ? 0 : -0.3},
          {"logit_bias", random() % 2 == 0 ? Json::object() : Json{{"101", 3.5}, {"97", -100}}},
          {"seed", random() % 1000},
          {"echo", random() % 3 == 0},
          {"ignore_eos", random() % 2 == 0},
          {"logprobs", 1}};
}

void expect_alone(const Reply& reply, const Alone& alone, const std::string& where) {
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.choice().at("text"), alone.text) << where;
  std::vector<double> scores;
  for (const Json& score : reply.choice().at("logprobs").at("token_logprobs")) {
    if (!score.is_null()) scores.push_back(score);
  }
  EXPECT_EQ(scores, alone.scores) << where << ": to the last bit";
}

TEST(ServedLayouts, TextsAreThoseOfOneCopyWithTheSameTensorParallelRanks) {
  std::mt19937 random(2);
  for (const MeshShape& shape : {MeshShape{.tensor = 2}, MeshShape{.pipeline = 2},
                                 MeshShape{.tensor = 2, .pipeline = 2}, MeshShape{.tensor = 4}}) {
    ServerOfRanks server(
        shape, text_model(static_cast<std::int64_t>(1 + random() % 4), static_cast<std::int64_t>(random() % 9)));
    std::vector<Json> requests(6);
    for (Json& request : requests) request = random_completion(random);
    server.complete(requests.front());  // tells the port to the threads below
    std::vector<Reply> replies(requests.size());
    std::vector<std::thread> clients;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      clients.emplace_back([&, i] {
        if (i % 3 == 2) {  // hangs up
          Json endless = requests[i];
          endless["max_tokens"] = kPositions - 30;
          server.post("/v1/completions", endless, 1);
        }
        replies[i] = server.complete(requests[i]);
      });
    }
    for (std::thread& client : clients) client.join();
    const std::string where = fmt::format("tp {} pp {}", shape.tensor, shape.pipeline);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      expect_alone(replies[i], generate_alone(shape.tensor, requests[i]), where + requests[i].dump());
    }
    Json stopped = requests.front();  // every rank looks for it
    stopped.update({{"stop", {"a", "e", " "}}, {"max_tokens", 30}, {"echo", false}});
    EXPECT_EQ(server.complete(stopped).status, 200);
    EXPECT_EQ(server.end(), "") << where;
  }
}

ServeOnRank vector_model() {
  ModelConfig config{.num_layers = 2,
                     .hidden_size = 12,
                     .num_attention_heads = 4,
                     .vocab_size = 9,
                     .max_position_embeddings = 10,
                     .make_vocab_size_divisible_by = 3,
                     .init_method_std = 0.3};
  config.set_kind(ModelKind::kBert);
  return [=](const std::shared_ptr<Mesh>& mesh, const std::function<void(ServedModel & model)>& serve) {
    const auto backend = make_cpu_backend();
    Encoder encoder(*backend, config, {.purpose = Purpose::kEvaluation, .batch = 2, .tokens = 10, .logits_chunk = 1},
                    mesh);
    encoder.allocate();
    encoder.initialize(3);
    VectorModel model("tiny", encoder, tokenizer_of_words(), {.most_tokens = 10});
    serve(model);
  };
}

TEST(ServedLayouts, ARankThatFailsEndsTheServerAndItsClientsHearWhy) {
  const auto expect_heard = [](const ServeOnRank& serves, const std::string& path, const Json& request) {
    ServerOfRanks server({.tensor = 2},
                         [&](const std::shared_ptr<Mesh>& mesh, const std::function<void(ServedModel & model)>& serve) {
                           serves(mesh, [&](ServedModel& model) {
                             if (mesh->model->rank() != 0) throw_environment_error("this rank's memory fails");
                             serve(model);
                           });
                         });
    const Reply reply = server.post(path, request);
    EXPECT_EQ(reply.status, 503) << path;
    EXPECT_THAT(reply.message(), ::testing::HasSubstr("this rank's memory fails"));
    EXPECT_THAT(server.end(), ::testing::HasSubstr("this rank's memory fails"));
  };
  for (int time = 0; time < 5; ++time) {  // connections and ranks are threads, which race
    expect_heard(text_model(2, 0), "/v1/completions", {{"prompt", "the"}, {"max_tokens", 5}});
    expect_heard(vector_model(), "/v1/embeddings", {{"input", "a"}});
  }
}

TEST(ServedLayouts, VectorsAreThoseOfOneCopy) {
  const auto vectors = [](const MeshShape& shape) {
    ServerOfRanks server(shape, vector_model());
    std::vector<Json> data;
    for (const Json& input : {Json("a b c"), Json({"c", "a b ad a", ""})}) {
      const Reply reply = server.post("/v1/embeddings", {{"input", input}});
      EXPECT_EQ(reply.status, 200) << reply.body;
      data.push_back(reply.json.at("data"));
    }
    EXPECT_EQ(server.end(), "");
    return data;
  };
  EXPECT_EQ(vectors({.pipeline = 2}), vectors({}));
  EXPECT_EQ(vectors({.tensor = 2, .pipeline = 2}), vectors({.tensor = 2}));
}

}  // namespace
}  // namespace teratron::testing
