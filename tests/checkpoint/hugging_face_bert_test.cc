// BERT to and from Hugging Face's files: against a model that transformers itself saved (tests/golden/bert_tiny), and
// against every way such a folder can differ. Results of these weights: tests/model/hugging_face_bert_test.cc.
#include <gmock/gmock.h>

#include "checkpoint/hugging_face_files.h"
#include "checkpoint/initial_weights.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/random_model.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using ChangeConfig = std::function<void(Json&)>;
using ChangeTensors = std::function<void(FileTensors&)>;

const fs::path kBert = fs::path(TERATRON_SOURCE_DIR) / "tests" / "golden" / "bert_tiny";
constexpr auto kUnchanged = [](auto&) {};
constexpr std::string_view kPrefix = "bert.";

// Tensors under other names; those that get no name are left out.
FileTensors renamed(const FileTensors& tensors, const std::function<std::string(const std::string&)>& new_name) {
  FileTensors all;
  for (const auto& [name, tensor] : tensors) {
    if (const std::string to = new_name(name); !to.empty()) all[to] = tensor;
  }
  return all;
}

// The tensors that BertModel saves.
FileTensors body_alone(const FileTensors& tensors) {
  return renamed(tensors, [](const std::string& name) {
    return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : std::string();
  });
}

FileTensors with_old_norms(const FileTensors& tensors) {
  return renamed(tensors, [](std::string name) {
    const std::size_t norm = name.find("LayerNorm.");
    if (norm != std::string::npos)
      name.replace(norm + 10, std::string::npos, name.ends_with("weight") ? "gamma" : "beta");
    return name;
  });
}

// Tensors of an import of a changed copy.
FileTensors imported(const ChangeTensors& change, const ChangeConfig& change_config = kUnchanged) {
  const TemporaryFolder folder;
  make_variant(kBert, folder / "hf", change_config, change);
  return tensors_of(import_from_hugging_face(folder / "hf", folder / "run") / "model.safetensors");
}

TEST(HuggingFaceBert, ImportAndExportGiveBackEveryBitOfBothClassesThatTransformersSaves) {
  const FileTensors whole = tensors_of(kBert / "model.safetensors");
  for (const bool has_head : {true, false}) {
    const FileTensors expected = has_head ? whole : body_alone(whole);
    const TemporaryFolder folder;
    make_variant(kBert, folder / "hf", kUnchanged, [&](FileTensors& tensors) { tensors = expected; });
    import_from_hugging_face(folder / "hf", folder / "run");
    EXPECT_TRUE(verify_checkpoint(folder / "run").intact());
    EXPECT_EQ(read_checkpoint_info(folder / "run").model.head, has_head ? ModelHead::kPretraining : ModelHead::kNone);
    export_to_hugging_face(folder / "run", folder / "back");
    EXPECT_EQ(tensors_of(folder / "back" / "model.safetensors"), expected);

    const Json ours = Json::parse(bytes_of_file(folder / "back" / "config.json"));
    const Json theirs = Json::parse(bytes_of_file(kBert / "config.json"));
    EXPECT_EQ(ours["architectures"][0], has_head ? "BertForPreTraining" : "BertModel");
    for (const auto& [key, value] : ours.items()) {
      if (key == "torch_dtype" || key == "architectures" || key == "position_embedding_type") continue;
      EXPECT_EQ(value, theirs.value(key, Json("absent"))) << key;
    }
  }
}

TEST(HuggingFaceBert, ImportAndExportGiveBackEveryBitOfTheClassesThatAreFineTuned) {
  for (const auto& [name, head] : {std::pair{"classification", ModelHead::kClassification},
                                   {"choice", ModelHead::kChoice},
                                   {"spans", ModelHead::kSpans},
                                   {"tokens", ModelHead::kTokens}}) {
    const fs::path golden = kBert.parent_path() / fmt::format("bert_{}", name);
    const TemporaryFolder folder;
    import_from_hugging_face(golden, folder / "run");
    const ModelConfig model = read_checkpoint_info(folder / "run").model;
    EXPECT_EQ(model.head, head);
    const Json theirs = Json::parse(bytes_of_file(golden / "config.json"));
    EXPECT_EQ(model.num_labels, std::ssize(theirs.value("id2label", Json({1, 2}))));
    export_to_hugging_face(folder / "run", folder / "back");
    EXPECT_EQ(tensors_of(folder / "back" / "model.safetensors"), tensors_of(golden / "model.safetensors"));
    const Json ours = Json::parse(bytes_of_file(folder / "back" / "config.json"));
    for (const auto& [key, value] : ours.items()) {
      if (key == "torch_dtype" || key == "position_embedding_type") continue;
      EXPECT_EQ(value, theirs.value(key, Json("absent"))) << key;
    }
  }
}

TEST(HuggingFaceBert, ImportAndExportGiveBackEveryBitOfItsRelatives) {
  for (const char* name : {"roberta_tiny", "roberta_classification", "distilbert_tiny", "distilbert_classification"}) {
    const fs::path golden = kBert.parent_path() / name;
    const TemporaryFolder folder;
    import_from_hugging_face(golden, folder / "run");
    export_to_hugging_face(folder / "run", folder / "back");
    EXPECT_EQ(tensors_of(folder / "back" / "model.safetensors"), tensors_of(golden / "model.safetensors")) << name;
    const Json ours = Json::parse(bytes_of_file(folder / "back" / "config.json"));
    const Json theirs = Json::parse(bytes_of_file(golden / "config.json"));
    for (const auto& [key, value] : ours.items()) {
      if (key == "torch_dtype" || key == "position_embedding_type") continue;
      EXPECT_EQ(value, theirs.value(key, Json("absent"))) << name << " " << key;
    }
  }
}

TEST(HuggingFaceBert, RelativesThatComputeSomethingElseAreRefused) {
  EXPECT_THAT(refusal(
                  kBert.parent_path() / "roberta_tiny", [](Json& config) { config["pad_token_id"] = 5; }, kUnchanged),
              HasSubstr("pad_token_id 5 (it must be 1)"));
  const TemporaryFolder folder;
  ModelConfig config = small_config();
  config.set_kind(ModelKind::kDistilBert);
  config.norm_placement = NormPlacement::kPost;
  config.layernorm_epsilon = 1e-5;
  const RandomModel model(config);
  save_checkpoint(folder / "run", config, model.parameters, *model.backend, {.iteration = 9});
  EXPECT_THAT(message_of<UserError>([&] { export_to_hugging_face(folder / "run", folder / "hf"); }),
              HasSubstr("this DistilBERT's norms have the epsilon 1e-05, and Hugging Face's have 1e-12"));
  EXPECT_FALSE(fs::exists(folder / "hf"));
}

// Older versions of transformers gave the model of spans a pooler, whose weights nothing reads.
TEST(HuggingFaceBert, ThePoolerOfAModelOfSpansIsLeftOut) {
  const fs::path golden = kBert.parent_path() / "bert_spans";
  const TemporaryFolder folder;
  make_variant(golden, folder / "hf", kUnchanged, [](FileTensors& tensors) {
    tensors["bert.pooler.dense.weight"] = {"F32", {1, 1}, "abcd"};
    tensors["bert.pooler.dense.bias"] = {"F32", {1}, "abcd"};
  });
  import_from_hugging_face(golden, folder / "plain");
  import_from_hugging_face(folder / "hf", folder / "run");
  EXPECT_EQ(tensors_of(folder / "run" / "iter_0000000" / "model.safetensors"),
            tensors_of(folder / "plain" / "iter_0000000" / "model.safetensors"));
}

TEST(HuggingFaceBert, AHeadThatComputesSomethingElseIsRefused) {
  const fs::path golden = kBert.parent_path() / "bert_classification";
  const auto refusal_of = [&](const ChangeConfig& change) { return refusal(golden, change, kUnchanged); };
  EXPECT_THAT(refusal_of([](Json& config) {
                config["problem_type"] = "multi_label_classification";
                config["classifier_dropout"] = 0.3;
              }),
              AllOf(HasSubstr("problem_type is 'multi_label_classification' (there is single_label_classification)"),
                    HasSubstr("classifier_dropout is 0.3 (it must be hidden_dropout_prob = 0)")));
  EXPECT_THAT(refusal_of([](Json& config) {
                config["id2label"] = {{"0", "a"}};
                config["problem_type"] = "single_label_classification";
              }),
              HasSubstr("problem_type is 'single_label_classification' (there is regression of one label)"));
  EXPECT_THAT(refusal_of([](Json& config) { config["id2label"].erase("2"); }),
              HasSubstr("'classifier.bias' is [3] there, [2] is needed"));
  EXPECT_THAT(refusal_of([](Json& config) {
                config.erase("id2label");
                config["num_labels"] = 2147483647;  // whose names would take 64 GB
                config["label2id"] = {{"a", 0}};
              }),
              HasSubstr("a text has one of 2147483647 labels; there must be 1 at least"));
  EXPECT_THAT(refusal_of([](Json& config) {
                config["architectures"] = {"BertForTokenClassification"};
                config["id2label"] = {{"0", "O"}};
                config["classifier_dropout"] = 0.3;
              }),
              AllOf(HasSubstr("it has one label (there must be 2 at least)"),
                    HasSubstr("classifier_dropout is 0.3 (it must be hidden_dropout_prob = 0)")));
}

TEST(HuggingFaceBert, OneLabelIsANumber) {
  const fs::path golden = kBert.parent_path() / "bert_classification";
  const TemporaryFolder folder;
  for (const char* problem : {"", "regression"}) {
    make_variant(
        golden, folder / "hf",
        [&](Json& config) {
          config["id2label"] = {{"0", "LABEL_0"}};
          config.erase("label2id");
          if (problem[0] != '\0') config["problem_type"] = problem;
        },
        [](FileTensors& tensors) {
          tensors["classifier.weight"].shape[0] = 1;
          tensors["classifier.weight"].bytes.resize(tensors["classifier.weight"].bytes.size() / 3);
          tensors["classifier.bias"] = {"F32", {1}, "abcd"};
        });
    for (const char* made : {"run", "back"}) fs::remove_all(folder / made);
    import_from_hugging_face(folder / "hf", folder / "run");
    const ModelConfig model = read_checkpoint_info(folder / "run").model;
    EXPECT_EQ(model.head, ModelHead::kClassification);
    EXPECT_EQ(model.num_labels, 1);
    EXPECT_THAT(model.label_names, ::testing::IsEmpty());
    export_to_hugging_face(folder / "run", folder / "back");
    EXPECT_EQ(tensors_of(folder / "back" / "model.safetensors"), tensors_of(folder / "hf" / "model.safetensors"));
    const Json config = Json::parse(bytes_of_file(folder / "back" / "config.json"));
    EXPECT_EQ(config["problem_type"], "regression");
    EXPECT_EQ(config["id2label"], (Json{{"0", "LABEL_0"}}));
  }
}

TEST(HuggingFaceBert, ExportAndImportGiveBackEveryBitOfOurs) {
  constexpr ModelHead kHeads[] = {ModelHead::kPretraining, ModelHead::kNone,  ModelHead::kClassification,
                                  ModelHead::kChoice,      ModelHead::kSpans, ModelHead::kTokens};
  for (int seed = 0; seed < 15; ++seed) {
    const DType dtype = seed % 2 == 0 ? DType::kF32 : DType::kF64;
    const TemporaryFolder folder;
    ModelConfig config = small_config();
    config.set_kind(ModelKind::kBert);
    config.norm_placement = NormPlacement::kPost;
    config.head = kHeads[static_cast<std::size_t>(seed) % std::size(kHeads)];
    if (tells_labels(config.head)) config.num_labels = 2 + seed % 3;
    config.activation = seed / 4 % 2 == 0 ? Activation::kGeluErf : Activation::kGeluTanh;
    config.num_layers = 1 + seed % 3;
    config.hidden_dropout = 0.25;
    config.attention_dropout = 0.125;
    config.layernorm_epsilon = 1e-7;
    config.init_method_std = 0.0123;
    RandomModel model(config, dtype);
    model.fill(static_cast<std::uint64_t>(seed));
    put_file(folder / "vocab.txt", "a\nb\n[PAD]\nc\n");
    save_checkpoint(folder / "run", config, model.parameters, *model.backend, {.iteration = 9},
                    {.tokenizer = folder.path()});
    export_to_hugging_face(folder / "run", folder / "hf");
    EXPECT_EQ(Json::parse(bytes_of_file(folder / "hf" / "config.json"))["pad_token_id"], 2);

    const fs::path back = import_from_hugging_face(folder / "hf", folder / "again");
    EXPECT_EQ(bytes_of_file(back / "model.safetensors"),
              bytes_of_file(folder / "run" / "iter_0000009" / "model.safetensors"));
    EXPECT_EQ(bytes_of_file(back / "vocab.txt"), bytes_of_file(folder / "vocab.txt"));
    const ModelConfig read = read_checkpoint_info(folder / "again").model;
    EXPECT_EQ(read.head, config.head);
    EXPECT_EQ(read.num_labels, config.num_labels);
    EXPECT_NO_THROW(load_checkpoint(folder / "again", config, model.parameters, *model.backend, {.optimizer = false}));
    EXPECT_EQ(read.hidden_dropout, config.hidden_dropout);
    EXPECT_EQ(read.attention_dropout, config.attention_dropout);
    EXPECT_EQ(read.init_method_std, config.init_method_std);
  }
}

TEST(HuggingFaceBert, QueriesKeysAndValuesLieBelowEachOther) {
  const FileTensors there = tensors_of(kBert / "model.safetensors");
  const FileTensors here = imported(kUnchanged);
  for (const char* kind : {"weight", "bias"}) {
    std::string stacked;
    for (const char* part : {"query", "key", "value"}) {
      stacked += there.at(fmt::format("bert.encoder.layer.1.attention.self.{}.{}", part, kind)).bytes;
    }
    EXPECT_EQ(here.at(fmt::format("layers.1.attention.qkv.{}", kind)).bytes, stacked);
  }
}

TEST(HuggingFaceBert, OldNamesOfNormsPositionIdsCopiesAndALackingPrefixMakeNoDifference) {
  const FileTensors plain = imported(kUnchanged);
  EXPECT_EQ(imported([](FileTensors& tensors) { tensors = with_old_norms(tensors); }), plain);
  EXPECT_EQ(imported([](FileTensors& tensors) {
              tensors["bert.embeddings.position_ids"] = {"F32", {1, 2}, std::string(8, 'p')};
              tensors["cls.predictions.decoder.weight"] = tensors.at("bert.embeddings.word_embeddings.weight");
              tensors["cls.predictions.decoder.bias"] = tensors.at("cls.predictions.bias");
            }),
            plain);
  EXPECT_EQ(imported([](FileTensors& tensors) {
              tensors = renamed(tensors, [](const std::string& name) {
                if (name == "cls.predictions.bias") return std::string("cls.predictions.decoder.bias");
                return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
              });
            }),
            plain);
}

TEST(HuggingFaceBert, ShardsAreOneModelWhereverTheyAreCut) {
  const FileTensors plain = imported(kUnchanged);
  for (std::size_t seed = 0; seed < 5; ++seed) {
    const TemporaryFolder folder;
    make_folders(folder / "hf");
    fs::copy(kBert / "config.json", folder / "hf" / "config.json");
    FileTensors parts[3];
    Json map = Json::object();
    for (const auto& [name, tensor] : with_old_norms(tensors_of(kBert / "model.safetensors"))) {
      const std::size_t part = std::hash<std::string>()(name + std::to_string(seed)) % 3;
      parts[part][name] = tensor;
      map[name] = fmt::format("model-{}.safetensors", part);
    }
    for (const int part : {0, 1, 2}) {
      write_tensors(folder / "hf" / fmt::format("model-{}.safetensors", part), parts[part]);
    }
    put_file(folder / "hf" / "model.safetensors.index.json", Json{{"weight_map", map}}.dump());
    EXPECT_EQ(tensors_of(import_from_hugging_face(folder / "hf", folder / "run") / "model.safetensors"), plain);
  }
}

TEST(HuggingFaceBert, EndsThatAModelWasSavedWithoutAreDrawnAndNamed) {
  const auto lose_ends = [](FileTensors& tensors) {  // as BertForMaskedLM
    tensors = renamed(tensors, [](const std::string& name) {
      return name.starts_with("bert.pooler") || name.starts_with("cls.seq_relationship") ? std::string() : name;
    });
  };
  const TemporaryFolder folder;
  make_variant(kBert, folder / "hf", kUnchanged, lose_ends);
  const WeightSource source = find_weights(folder / "hf");
  EXPECT_THAT(source.drawn, ElementsAre("bert.pooler.dense.weight", "bert.pooler.dense.bias",
                                        "cls.seq_relationship.weight", "cls.seq_relationship.bias"));
  EXPECT_THAT(text_of_drawn(folder / "hf", source.drawn), HasSubstr("without bert.pooler.dense.weight, "));
  EXPECT_EQ(text_of_drawn(folder / "hf", {}), "");

  const FileTensors plain = imported(kUnchanged), partial = imported(lose_ends);
  EXPECT_EQ(partial, imported(lose_ends)) << "drawn the same each time";
  ASSERT_EQ(partial.size(), plain.size());
  for (const auto& [name, tensor] : partial) {
    const bool is_drawn = name.starts_with("pooler.") || name.starts_with("order.");
    EXPECT_EQ(tensor == plain.at(name), !is_drawn) << name;
    if (!is_drawn) continue;
    double squares = 0;
    for (std::size_t i = 0; i < tensor.bytes.size(); i += sizeof(float)) {
      float value = 0;
      std::memcpy(&value, tensor.bytes.data() + i, sizeof(value));
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    const double deviation = std::sqrt(squares / static_cast<double>(tensor.bytes.size() / sizeof(float)));
    const bool is_bias = name.ends_with("bias");
    EXPECT_NEAR(deviation, is_bias ? 0 : 0.02, is_bias ? 0 : 0.008) << name;  // initializer_range; 32 values at least
  }
}

TEST(HuggingFaceBert, AModelThatComputesSomethingElseIsRefusedWithAllReasons) {
  const std::string message = refusal(
      kBert,
      [](Json& config) {
        config["is_decoder"] = true;
        config["add_cross_attention"] = true;
        config["hidden_act"] = "relu";
        config["type_vocab_size"] = 3;
        config["position_embedding_type"] = "relative_key";
        config["num_attention_heads"] = 5;
      },
      kUnchanged);
  EXPECT_THAT(message, AllOf(HasSubstr("a BERT that Teratron does not have"), HasSubstr("is_decoder true"),
                             HasSubstr("add_cross_attention true"), HasSubstr("hidden_act 'relu'"),
                             HasSubstr("type_vocab_size 3 (it must be 2)"), HasSubstr("'relative_key'"),
                             HasSubstr("16 is not divisible")));
  EXPECT_THAT(refusal(
                  kBert, [](Json& config) { config["model_type"] = "electra"; }, kUnchanged),
              HasSubstr("of type 'electra'; those that can be converted: gpt2, bert"));
  EXPECT_THAT(refusal(
                  kBert, [](Json& config) { config["tie_word_embeddings"] = false; }, kUnchanged),
              HasSubstr("unties the output projection"));
}

TEST(HuggingFaceBert, WeightsThatAreNotTheConfigsAreRefused) {
  const auto weights_refusal = [](const ChangeTensors& change) { return refusal(kBert, kUnchanged, change); };
  EXPECT_THAT(
      weights_refusal([](FileTensors& tensors) { tensors.erase("bert.encoder.layer.1.attention.self.key.bias"); }),
      HasSubstr("'bert.encoder.layer.1.attention.self.key.bias' is missing"));
  EXPECT_THAT(weights_refusal([](FileTensors& tensors) {
                tensors["classifier.weight"] = {"F32", {1}, "abcd"};
              }),
              HasSubstr("\"architectures\" in config.json names none of BertForSequenceClassification, "));
  EXPECT_THAT(weights_refusal([](FileTensors& tensors) {
                tensors["bert.embeddings.LayerNorm.gamma"] = tensors.at("bert.embeddings.LayerNorm.weight");
              }),
              HasSubstr("a second time"));
  EXPECT_THAT(weights_refusal([](FileTensors& tensors) {
                tensors["cls.predictions.transform.dense.bias"].shape = {4, 4};
              }),
              HasSubstr("'cls.predictions.transform.dense.bias' is [4, 4] there, [16] is needed"));
  for (const auto& [copy, of] : {std::pair{"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
                                 std::pair{"cls.predictions.decoder.bias", "cls.predictions.bias"}}) {
    EXPECT_THAT(weights_refusal([&, name = copy, original = of](FileTensors& tensors) {
                  tensors[name] = tensors.at(original);
                  tensors[name].bytes[5] ^= 1;
                }),
                HasSubstr(fmt::format("{} differs from {}", copy, of)));
  }
}

TEST(HuggingFaceBert, ThatHasItsNormsFirstIsNotHuggingFaces) {
  const TemporaryFolder folder;
  ModelConfig config = small_config();
  config.set_kind(ModelKind::kBert);
  const RandomModel model(config);
  save_checkpoint(folder / "run", config, model.parameters, *model.backend, {.iteration = 9});
  EXPECT_THAT(message_of<UserError>([&] { export_to_hugging_face(folder / "run", folder / "hf"); }),
              HasSubstr("--layernorm-placement"));
  EXPECT_FALSE(fs::exists(folder / "hf"));
}

}  // namespace
}  // namespace teratron::testing
