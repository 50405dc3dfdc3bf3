// Needs of train's flags on documents, and a checkpoint's record of them.
#include "runtime/recorded_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace teratron {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Token b is the byte b; where it has one, 256 is <|endoftext|>.
Tokenizer bytes_only(bool with_end_of_text) {
  BpeModel model;
  for (int byte = 0; byte < 256; ++byte) model.tokens.emplace_back(1, static_cast<char>(byte));
  if (with_end_of_text) {
    model.tokens.emplace_back("<|endoftext|>");
    model.special = {256};
  }
  return Tokenizer(std::move(model));
}

TEST(DocumentSettings, EachNeedsATokenizer) {
  EXPECT_THAT(DocumentSettings().faults("").texts(), IsEmpty());
  EXPECT_THAT((DocumentSettings{true, true, true}.faults("folder").texts()), IsEmpty());
  EXPECT_THAT((DocumentSettings{true, true, true}.faults("").texts()), AllOf(SizeIs(3), Each(HasSubstr("tokenizer"))));
  EXPECT_THAT((DocumentSettings{false, true, false}.faults("").texts().front()), HasSubstr("reset-position-ids"));
}

// Attention and positions change what the model computes; a masked loss does not.
TEST(DocumentSettings, AStateRemembersWhatEvaluationNeeds) {
  for (int bits = 0; bits < 8; ++bits) {
    const DocumentSettings settings{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
    TrainingState state;
    record_documents(settings, state);
    const DocumentOptions recorded = recorded_documents(state, bytes_only(true));
    EXPECT_EQ(recorded.reset_attention_mask, settings.reset_attention_mask);
    EXPECT_EQ(recorded.reset_position_ids, settings.reset_position_ids);
    EXPECT_FALSE(recorded.eod_mask_loss);
    EXPECT_EQ(recorded.end_token, recorded.any() ? 256 : -1);
  }
}

TEST(DocumentSettings, ATokenizerWithoutAnEndIsReportedWhereOneIsNeeded) {
  TrainingState state;
  EXPECT_FALSE(recorded_documents(state, bytes_only(false)).any());
  record_documents({.reset_attention_mask = true}, state);
  try {
    recorded_documents(state, bytes_only(false));
    FAIL() << "nothing was thrown";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("where documents end is unknown"), HasSubstr("--reset-attention-mask"),
                                    HasSubstr("<|endoftext|>")));
  }
}

}  // namespace
}  // namespace teratron
