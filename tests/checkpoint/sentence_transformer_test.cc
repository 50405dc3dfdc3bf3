// Settings of sentence-transformers folders, in the forms that versions 0 to 6 of the library write, and refusals. That
// the vectors are the library's is tested in tests/oracle/embeds_as_transformers.py.
#include "checkpoint/hugging_face/sentence_transformer.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "checkpoint/damage.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

struct Module {
  std::string type, path;
  Json config = nullptr;
};

class SentenceTransformerFolder : public ::testing::Test {
 protected:
  const std::string kModels = "sentence_transformers.models.";

  SentenceTransformer read_modules(const std::vector<Module>& modules) {
    write(modules);
    return read_sentence_transformer(folder_.path()).value();
  }
  std::string refusal_of(const std::vector<Module>& modules) {
    write(modules);
    return message_of<UserError>([&] { read_sentence_transformer(folder_.path()); });
  }
  // With that Pooling's config.json.
  SentenceTransformer read_with(const Json& pooling) { return read_modules(usual(pooling)); }
  std::string refusal_with(const Json& pooling) { return refusal_of(usual(pooling)); }

  std::vector<Module> usual(const Json& pooling) const {
    return {{kModels + "Transformer", ""}, {kModels + "Pooling", "1_Pooling", pooling}};
  }
  void put(const fs::path& name, const Json& json) {
    make_folders((folder_.path() / name).parent_path());
    put_file(folder_.path() / name, json.dump());
  }

  const TemporaryFolder folder_;

 private:
  void write(const std::vector<Module>& modules) {
    Json list = Json::array();
    for (const Module& module : modules) {
      list.push_back({{"idx", list.size()}, {"name", "n"}, {"path", module.path}, {"type", module.type}});
      if (!module.config.is_null()) put(fs::path(module.path) / "config.json", module.config);
    }
    put("modules.json", list);
  }
};

TEST_F(SentenceTransformerFolder, AFolderWithoutModulesIsNone) {
  put("config.json", {{"model_type", "bert"}});
  EXPECT_FALSE(read_sentence_transformer(folder_.path()));
}

TEST_F(SentenceTransformerFolder, EveryPoolingIsReadInBothForms) {
  const std::vector<std::tuple<std::string, std::string, Pooling>> all = {
      {"pooling_mode_cls_token", "cls", Pooling::kCls},
      {"pooling_mode_mean_tokens", "mean", Pooling::kMean},
      {"pooling_mode_max_tokens", "max", Pooling::kMax},
      {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", Pooling::kMeanSqrtLength},
      {"pooling_mode_weightedmean_tokens", "weightedmean", Pooling::kWeightedMean},
      {"pooling_mode_lasttoken", "lasttoken", Pooling::kLastToken}};
  for (const auto& [flag, name, pooling] : all) {
    Json flags = {{"word_embedding_dimension", 8}};
    for (const auto& one : all) flags[std::get<0>(one)] = std::get<0>(one) == flag;
    EXPECT_EQ(read_with(flags).pooling, pooling);
    EXPECT_EQ(read_with({{"embedding_dimension", 8}, {"pooling_mode", name}, {flag, false}}).pooling, pooling);
    EXPECT_EQ(read_with({{"pooling_mode", {name}}}).pooling, pooling);
    EXPECT_EQ(name_of(pooling), name);
  }
  EXPECT_EQ(read_with(Json::object()).pooling, Pooling::kMean);
}

TEST_F(SentenceTransformerFolder, ItsEncoderMayLieBelowAndItsLengthComesFromTheModuleOrTheTokenizer) {
  const auto bert = [&](const std::string& folder) {
    return read_modules({{kModels + "Transformer", folder},
                         {kModels + "Pooling", "1_Pooling", Json::object()},
                         {kModels + "Dropout", "2_Dropout"},
                         {"sentence_transformers.base.modules.normalize.Normalize", "3_Normalize"}});
  };
  const SentenceTransformer plain = bert("");
  EXPECT_EQ(plain.encoder, folder_.path());
  EXPECT_EQ(plain.max_tokens, 0);
  EXPECT_TRUE(plain.normalize);
  EXPECT_FALSE(plain.lower_case);
  EXPECT_FALSE(read_with(Json::object()).normalize);
  put("0_BERT/tokenizer_config.json", {{"model_max_length", 1e30}});
  EXPECT_EQ(bert("0_BERT").max_tokens, 0) << "no limit";
  put("0_BERT/tokenizer_config.json", {{"model_max_length", 384}});
  EXPECT_EQ(bert("0_BERT").max_tokens, 384);
  put("0_BERT/sentence_bert_config.json", {{"max_seq_length", nullptr}, {"do_lower_case", true}});
  EXPECT_EQ(bert("0_BERT").max_tokens, 384);
  EXPECT_TRUE(bert("0_BERT").lower_case);
  put("0_BERT/sentence_bert_config.json", {{"max_seq_length", 128}});
  EXPECT_EQ(bert("0_BERT").max_tokens, 128);
  EXPECT_EQ(bert("0_BERT").encoder, folder_.path() / "0_BERT");
  put("0_Old/sentence_distilbert_config.json", {{"max_seq_length", 64}, {"do_lower_case", true}});
  EXPECT_EQ(bert("0_Old").max_tokens, 64);
  EXPECT_TRUE(bert("0_Old").lower_case);
}

TEST_F(SentenceTransformerFolder, ItsDefaultPromptAloneIsPutBeforeTexts) {
  put("config_sentence_transformers.json", {{"prompts", {{"query", "query: "}}}, {"default_prompt_name", nullptr}});
  EXPECT_EQ(read_with(Json::object()).prompt, "");
  put("config_sentence_transformers.json", {{"prompts", {{"query", "query: "}}}, {"default_prompt_name", "query"}});
  EXPECT_EQ(read_with(Json::object()).prompt, "query: ");
  EXPECT_THAT(refusal_with({{"include_prompt", false}}), HasSubstr("include_prompt false"));
}

TEST_F(SentenceTransformerFolder, RefusesOtherComputationsByName) {
  EXPECT_THAT(refusal_with({{"pooling_mode", "attention"}}),
              AllOf(HasSubstr("pooling 'attention'"), HasSubstr("mean, cls, max, mean_sqrt_len_tokens")));
  EXPECT_THAT(refusal_with({{"pooling_mode_cls_token", true}, {"pooling_mode_max_tokens", true}}),
              HasSubstr("poolings side by side (cls, max"));
  EXPECT_THAT(refusal_with({{"pooling_mode", {"mean", "cls"}}}), HasSubstr("(mean, cls"));
  EXPECT_THAT(refusal_with({{"pooling_mode_cls_token", true}}), HasSubstr("(cls, mean")) << "the mean unless it is off";
  const auto with_module = [&](const std::string& type) {
    std::vector<Module> modules = usual(Json::object());
    modules.push_back({type, "2_More"});
    return refusal_of(modules);
  };
  for (const char* type : {"Dense", "LayerNorm", "WordWeights", "Pooling", "Transformer", "LSTM"}) {
    EXPECT_THAT(with_module(kModels + type), HasSubstr(fmt::format("module 2, {}{}", kModels, type)));
  }
  EXPECT_THAT(refusal_of({{kModels + "Transformer", ""}}), HasSubstr("there is no Pooling module"));
  EXPECT_THAT(refusal_of({{kModels + "WordEmbeddings", ""}, {kModels + "Pooling", "1_Pooling", Json::object()}}),
              HasSubstr("module 0, sentence_transformers.models.WordEmbeddings"));
  EXPECT_THAT(refusal_of({{kModels + "Transformer", "../other"}}), HasSubstr("a folder below"));
  put("sentence_bert_config.json", {{"tokenizer_args", {{"model_max_length", 7}}}});
  EXPECT_THAT(refusal_with(Json::object()), HasSubstr("tokenizer_args {\"model_max_length\":7}"));
  put("sentence_bert_config.json", {{"processing_kwargs", {{"text", {{"max_length", 7}}}}}});
  EXPECT_THAT(refusal_with(Json::object()), HasSubstr("processing_kwargs {\"text\":{\"max_length\":7}}"));
  put("sentence_bert_config.json", {{"modality_config", {{"text", {{"method_output_name", "pooler_output"}}}}}});
  EXPECT_THAT(refusal_with(Json::object()), HasSubstr("the encoder's output \"pooler_output\""));
  put("sentence_bert_config.json", {{"transformer_task", "fill-mask"}});
  EXPECT_THAT(refusal_with(Json::object()), HasSubstr("transformer_task fill-mask"));
  put("sentence_bert_config.json", Json::object());
  put("config_sentence_transformers.json", {{"truncate_dim", 8}});
  EXPECT_THAT(refusal_with(Json::object()), HasSubstr("truncate_dim 8"));
  put("modules.json", Json::object());
  EXPECT_THAT(message_of<UserError>([&] { read_sentence_transformer(folder_.path()); }),
              HasSubstr("no JSON list of modules"));
}

TEST_F(SentenceTransformerFolder, OfVectorsThatWereLearnedIsReadAsItWasMeant) {
  ModelConfig model;
  EXPECT_TRUE(sentence_transformer_files(model).empty());
  EXPECT_FALSE(learned_vectors(folder_.path(), model));
  model.set_kind(ModelKind::kBert);
  model.head = ModelHead::kVectors;
  for (const auto& [name, pooling] : kPoolingNames) {
    model.vectors = {.pooling = pooling, .tokens = 77};
    const SentenceTransformer learned = learned_vectors(folder_.path(), model).value();
    for (const auto& [file, content] : sentence_transformer_files(model)) put(file, Json::parse(content));
    const SentenceTransformer read = read_sentence_transformer(folder_.path()).value();
    for (const SentenceTransformer& one : {learned, read}) {
      EXPECT_EQ(one.encoder, folder_.path());
      EXPECT_EQ(one.pooling, pooling) << name;
      EXPECT_TRUE(one.normalize);
      EXPECT_EQ(one.max_tokens, 77);
      EXPECT_FALSE(one.lower_case);
    }
  }
}

}  // namespace
}  // namespace teratron::testing
