// Models of Hugging Face whose weights torch.save wrote, pytorch_model.bin: they make the checkpoints that the same
// tensors make as safetensors.
#include <gmock/gmock.h>

#include "checkpoint/hugging_face_files.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/pickled_tensors.h"
#include "checkpoint/tensor_differences.h"
#include "checkpoint/weights_file.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

fs::path saved(const char* model) { return fs::path(TERATRON_SOURCE_DIR) / "tests" / "golden" / model; }

// A model's folder but for its weights.
void copy_config(const char* model, const fs::path& folder) {
  make_folders(folder);
  fs::copy(saved(model) / "config.json", folder / "config.json");
}

std::string imported(const fs::path& folder) {
  const TemporaryFolder run;
  return bytes_of_file(import_from_hugging_face(folder, run / "run") / "model.safetensors");
}

TEST(PickledWeights, MakeTheCheckpointsOfSafetensors) {
  for (const char* model : {"gpt2_tiny", "bert_tiny", "llama_tiny", "qwen3_tiny", "gpt_neox_tiny", "distilbert_tiny"}) {
    const FileTensors tensors = tensors_of(saved(model) / "model.safetensors");
    const std::string expected = imported(saved(model));
    for (const bool turns : {false, true}) {
      const TemporaryFolder folder;
      copy_config(model, folder / "hf");
      put_file(folder / "hf/pytorch_model.bin", pickled(tensors, turns));
      EXPECT_EQ(imported(folder / "hf"), expected) << model << (turns ? ", turned" : "");
    }
  }
}

TEST(PickledWeights, MayLieInSeveralFilesWithAnIndex) {
  const FileTensors tensors = tensors_of(saved("llama_tiny") / "model.safetensors");
  const TemporaryFolder folder;
  copy_config("llama_tiny", folder / "hf");
  FileTensors files[2];
  Json places = Json::object();
  for (const auto& [name, tensor] : tensors) {
    const std::size_t file = places.size() % 2;
    files[file][name] = tensor;
    places[name] = fmt::format("pytorch_model-0000{}-of-00002.bin", file + 1);
  }
  for (const int file : {0, 1}) {
    put_file(folder / "hf" / fmt::format("pytorch_model-0000{}-of-00002.bin", file + 1), pickled(files[file]));
  }
  put_file(folder / "hf/pytorch_model.bin.index.json", Json({{"weight_map", places}}).dump());
  EXPECT_EQ(imported(folder / "hf"), imported(saved("llama_tiny")));
  fs::remove(folder / "hf/pytorch_model-00002-of-00002.bin");
  EXPECT_THAT(message_of<UserError>([&] { imported(folder / "hf"); }), HasSubstr("pytorch_model-00002-of-00002.bin"));
}

TEST(PickledWeights, AreComparedWithSafetensorsTensorByTensor) {
  FileTensors tensors = tensors_of(saved("gpt2_tiny") / "model.safetensors");
  const TemporaryFolder folder;
  const auto parted = [&] {
    put_file(folder / "a.bin", pickled(tensors));
    return compare(*open_tensors_of(folder / "a.bin"), *open_tensors_of(saved("gpt2_tiny") / "model.safetensors"))
        .parted;
  };
  EXPECT_TRUE(parted().empty());
  const std::string changed = std::next(tensors.begin(), 3)->first;
  tensors.at(changed).bytes[0] ^= 1;
  ASSERT_EQ(parted().size(), 1U);
  EXPECT_EQ(parted().front().name, changed);
  EXPECT_EQ(parted().front().differing, 1);
}

// A buffer of numbers that no weight has, in another order than row by row.
TEST(PickledWeights, OfTypesWithoutUseHereAreReadRowByRowToo) {
  const TemporaryFolder folder;
  for (const FileTensor& buffer :
       {FileTensor{"BOOL", {2, 3}, {0, 1, 1, 0, 0, 1}}, FileTensor{"I16", {2, 2}, {1, 0, 2, 0, 3, 0, 4, 0}}}) {
    put_file(folder / "a.bin", pickled({{"mask", buffer}}, /*turns=*/true));
    const auto file = open_weights_file(folder / "a.bin");
    ASSERT_EQ(file->tensors().size(), 1U);
    const auto bytes = file->bytes(file->tensors().front());
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), buffer.bytes) << buffer.dtype;
  }
}

TEST(PickledWeights, AreReadWhereNoSafetensorsStand) {
  const TemporaryFolder folder;
  copy_config("gpt2_tiny", folder / "hf");
  fs::copy(saved("gpt2_tiny") / "model.safetensors", folder / "hf/model.safetensors");
  put_file(folder / "hf/pytorch_model.bin", "no pickle");
  EXPECT_EQ(imported(folder / "hf"), imported(saved("gpt2_tiny")));
}

TEST(PickledWeights, ThatAreDamagedOrNoWeightsAreRefused) {
  const FileTensors tensors = tensors_of(saved("gpt2_tiny") / "model.safetensors");
  const TemporaryFolder folder;
  copy_config("gpt2_tiny", folder / "hf");
  const fs::path file = folder / "hf/pytorch_model.bin";
  const auto refusal = [&](const std::string& bytes) {
    put_file(file, bytes);
    const std::string message = message_of<UserError>([&] { import_from_hugging_face(folder / "hf", folder / "out"); });
    EXPECT_FALSE(fs::exists(folder / "out"));
    return message;
  };
  std::string damaged = pickled(tensors);
  damaged[damaged.find(tensors.begin()->second.bytes) + 5] ^= 1;
  EXPECT_THAT(refusal(damaged), AllOf(HasSubstr("pytorch_model.bin"), HasSubstr("is damaged")));
  EXPECT_THAT(refusal(torch_file_of("]")), HasSubstr("is no dictionary of tensors"));
  EXPECT_THAT(refusal(torch_file_of("}K\x01K\x02s")), HasSubstr("is no dictionary of tensors"));
  EXPECT_THAT(refusal(torch_file_of("}" + pickled_text("model") + "}s")), HasSubstr("'model' in"));
  EXPECT_THAT(refusal(torch_file_of(pickled_name("os", "system") + pickled_text("touch harm") + "\x85R")),
              HasSubstr("os.system, which is not data"));
  EXPECT_THAT(refusal(pickled({{"wte.weight", tensors.begin()->second}})),
              HasSubstr("2 layers in its config.json and 1 tensor in all"));
  FileTensors infinite = tensors;
  infinite.begin()->second.bytes.replace(0, 4, std::string("\x00\x00\x80\x7f", 4));
  EXPECT_THAT(refusal(pickled(infinite)), HasSubstr("infinite or not a number"));
}

}  // namespace
}  // namespace teratron::testing
