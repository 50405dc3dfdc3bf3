// Needs of train's flags on documents, and a checkpoint's record of them.
#include "runtime/recorded_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/dataset_fixture.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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
    const DocumentOptions recorded = recorded_documents(state, byte_tokenizer());
    EXPECT_EQ(recorded.reset_attention_mask, settings.reset_attention_mask);
    EXPECT_EQ(recorded.reset_position_ids, settings.reset_position_ids);
    EXPECT_FALSE(recorded.eod_mask_loss);
    EXPECT_EQ(recorded.end_token, recorded.any() ? 256 : -1);
  }
}

TEST(DocumentSettings, ATokenizerWithoutAnEndIsReportedWhereOneIsNeeded) {
  TrainingState state;
  EXPECT_FALSE(recorded_documents(state, byte_tokenizer(false)).any());
  record_documents({.reset_attention_mask = true}, state);
  EXPECT_THAT(message_of<UserError>([&] { recorded_documents(state, byte_tokenizer(false)); }),
              AllOf(HasSubstr("where documents end is unknown"), HasSubstr("--reset-attention-mask"),
                    HasSubstr("<|endoftext|>")));
}

}  // namespace
}  // namespace teratron::testing
