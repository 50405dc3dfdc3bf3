// Files of a tokenizer that checkpoints and exported models hold.
#include "checkpoint/tokenizer_files.h"

#include <gtest/gtest.h>

#include "base/files/file.h"
#include "base/temporary_folder.h"

namespace teratron::testing {
namespace {

constexpr const char *kEnds = "generation_config.json", *kConfig = "config.json";

TEST(TokenizerFiles, HaveTheTokensThatOnlyTheModelsConfigurationNames) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "vocab.txt", "[PAD]\n");
  EXPECT_FALSE(find_tokenizer_files(folder.path()).contains(kEnds));
  write_file_atomically(folder / kConfig,
                        R"({"bos_token_id": 1, "eos_token_id": [2, 3], "pad_token_id": null, "theta": Infinity})");
  EXPECT_EQ(find_tokenizer_files(folder.path()).at(kEnds), "{\"bos_token_id\":1,\"eos_token_id\":[2,3]}\n");
  write_file_atomically(folder / kConfig, R"({"bos_token_id": 1})");
  EXPECT_FALSE(find_tokenizer_files(folder.path()).contains(kEnds)) << "nothing says where texts end";
  write_file_atomically(folder / kEnds, "{}");
  EXPECT_EQ(find_tokenizer_files(folder.path()).at(kEnds), "{}");
}

TEST(TokenizerFiles, AreNoTokenizerWithoutItsTokens) {
  const TemporaryFolder folder;
  for (const char* const name : {"tokenizer.model", "tokenizer_config.json", "special_tokens_map.json"}) {
    write_file_atomically(folder / name, "{}");
    EXPECT_FALSE(holds_tokenizer(folder.path())) << name;
  }
  write_file_atomically(folder / "tokenizer.json", "{}");
  EXPECT_TRUE(holds_tokenizer(folder.path()));
}

}  // namespace
}  // namespace teratron::testing
