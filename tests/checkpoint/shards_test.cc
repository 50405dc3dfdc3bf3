// Models of Hugging Face in several files with an index: written, read, and refused where files and index contradict
// each other. Against models that transformers saved (tests/golden).
#include <gmock/gmock.h>

#include "checkpoint/hugging_face_files.h"
#include "checkpoint/native/checkpoint.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kSavedModels[] = {"gpt2_tiny",  "bert_tiny",  "llama_tiny",    "mistral_tiny",
                                        "qwen2_tiny", "qwen3_tiny", "gpt_neox_tiny", "bert_spans"};
constexpr const char* kIndexFile = "model.safetensors.index.json";

fs::path golden_model(const char* model) { return fs::path(TERATRON_SOURCE_DIR) / "tests" / "golden" / model; }

TEST(Shards, AFileOfTransformersComesBackByteForByte) {
  for (const char* model : kSavedModels) {
    const TemporaryFolder folder;
    import_from_hugging_face(golden_model(model), folder / "run");
    export_to_hugging_face(folder / "run", folder / "hf");
    EXPECT_EQ(bytes_of_file(folder / "hf" / "model.safetensors"),
              bytes_of_file(golden_model(model) / "model.safetensors"))
        << model;
  }
}

TEST(Shards, FilesOfAnySizeHoldTheModelAndComeBackByteForByte) {
  for (const char* model : kSavedModels) {
    const FileTensors tensors = tensors_of(golden_model(model) / "model.safetensors");
    const TemporaryFolder folder;
    const fs::path first = import_from_hugging_face(golden_model(model), folder / "run");
    for (const std::uint64_t size : {1, 3000, 1 << 24}) {
      const fs::path there = folder / fmt::format("hf-{}", size), back = folder / fmt::format("back-{}", size);
      export_to_hugging_face(folder / "run", there, size);
      const bool has_index = fs::exists(there / kIndexFile);
      const Json index = has_index ? Json::parse(bytes_of_file(there / kIndexFile)) : Json();
      bool places_agree = true;
      FileTensors stored;
      std::uint64_t bytes = 0, files = 0;
      for (const fs::directory_entry& entry : fs::directory_iterator(there)) {
        if (entry.path().extension() != ".safetensors") continue;
        ++files;
        std::uint64_t of_file = 0;
        const FileTensors here = tensors_of(entry.path());
        for (const auto& [name, tensor] : here) {
          of_file += tensor.bytes.size();
          const std::string file = entry.path().filename().string();
          if (has_index) places_agree = places_agree && index["weight_map"][name] == file;
        }
        EXPECT_TRUE(of_file <= size || here.size() == 1) << entry.path();
        bytes += of_file;
        stored.insert(here.begin(), here.end());
      }
      EXPECT_EQ(stored, tensors) << model << " " << size;
      EXPECT_EQ(has_index, files > 1);
      EXPECT_TRUE(places_agree);
      EXPECT_TRUE(!has_index || index["metadata"]["total_size"] == bytes);
      const fs::path imported = import_from_hugging_face(there, back);
      EXPECT_EQ(bytes_of_file(imported / "model.safetensors"), bytes_of_file(first / "model.safetensors"));
      export_to_hugging_face(back, folder / "again", size);
      EXPECT_EQ(all_files(folder / "again"), all_files(there)) << model << " " << size;
      fs::remove_all(folder / "again");
    }
  }
}

class ShardedLlama : public ::testing::Test {
 protected:
  ShardedLlama() {
    import_from_hugging_face(golden_model("llama_tiny"), folder_ / "run");
    export_to_hugging_face(folder_ / "run", hf_, 3000);
    index_ = Json::parse(bytes_of_file(hf_ / kIndexFile));
  }
  Json& places() { return index_["weight_map"]; }
  std::string refusal() {
    put_file(hf_ / kIndexFile, index_.dump());
    const std::string message = message_of<UserError>([&] { import_from_hugging_face(hf_, folder_ / "out"); });
    EXPECT_FALSE(fs::exists(folder_ / "out"));
    return message;
  }
  const TemporaryFolder folder_;
  const fs::path hf_ = folder_ / "hf";
  Json index_;
};

TEST_F(ShardedLlama, MissingAndUnsoundFilesAreNamed) {
  const std::string file = places()["model.norm.weight"];
  const std::string bytes = bytes_of_file(hf_ / file);
  put_file(hf_ / file, bytes.substr(0, bytes.size() - 1));
  EXPECT_THAT(refusal(), HasSubstr(file));
  fs::remove(hf_ / file);
  EXPECT_THAT(refusal(), HasSubstr(file));
}

TEST_F(ShardedLlama, FilesThatContradictTheIndexAreNamedWithTheTensor) {
  const Json whole = index_;
  const std::string there = places()["model.norm.weight"], first = places()["model.embed_tokens.weight"];
  ASSERT_NE(there, first);
  places()["model.norm.weight"] = first;
  EXPECT_THAT(refusal(), HasSubstr("places 'model.norm.weight' in " + first + ", and " + there + " has it"));
  index_ = whole;
  places().erase("model.norm.weight");
  EXPECT_THAT(refusal(), HasSubstr("does not list 'model.norm.weight', which " + there + " has"));
  index_ = whole;
  places()["model.extra"] = first;
  EXPECT_THAT(refusal(), HasSubstr("places 'model.extra' in " + first + ", which does not have it"));
  index_ = whole;
  places()["model.extra"] = "../elsewhere";
  EXPECT_THAT(refusal(), HasSubstr("not the name of a file beside it"));
  index_ = whole;
  FileTensors twice = tensors_of(hf_ / there);
  twice["model.embed_tokens.weight"] = tensors_of(hf_ / first).at("model.embed_tokens.weight");
  write_tensors(hf_ / there, twice);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("'model.embed_tokens.weight' a second time"), HasSubstr(there)));
}

}  // namespace
}  // namespace teratron::testing
