// Models as commands load them: what the error of too little memory advises.
#include "runtime/loaded_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/host/resources.h"
#include "base/message_of.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The error where a BERT would compute so many texts at a time that their vectors alone need twice the memory.
std::string memory_error(std::string_view batch_flag) {
  const LayoutSettings layout;
  const BackendSettings backend;
  const WeightSource source =
      find_encoder(std::filesystem::path(TERATRON_SOURCE_DIR) / "tests/golden/bert_tiny", layout, WeightUse::kEmbed);
  const std::int64_t text = 4 * source.model.max_position_embeddings * source.model.hidden_size;
  const ExecutorOptions options{
      .purpose = Purpose::kEvaluation, .batch = 2 * *available_host_memory() / text, .logits_chunk = 1};
  std::string error;
  RankLauncher(layout, backend.kind).run("", [&](const Rank& rank) {
    error = message_of<EnvironmentError>([&] { load_encoder(source, options, backend, rank, batch_flag); });
  });
  return error;
}

TEST(LoadedModels, AdviseTheFlagOfTheirCommandWhereMemoryLacks) {
  EXPECT_THAT(memory_error("--batch-size"),
              AllOf(HasSubstr("this needs"), HasSubstr("use a smaller --batch-size or --weights q8_0 or --bf16")));
  EXPECT_THAT(memory_error(""), AllOf(HasSubstr("this needs"), Not(HasSubstr("batch-size"))));
}

}  // namespace
}  // namespace teratron::testing
