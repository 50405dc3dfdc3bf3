// data decontaminate: what it cuts, by a slow definition; documents of an evaluation set; common phrases.
#include "corpus/overlap/decontaminate_stage.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/error.h"
#include "base/philox.h"
#include "base/trials.h"
#include "corpus/stage_fixture.h"

namespace teratron::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DecontaminateStage : public StageTest {
 protected:
  // Small limits, so that small texts meet them.
  DecontaminateOptions limits(const std::vector<std::string>& evaluation) {
    write_file_atomically(folder_ / "evaluation.jsonl", as_json_lines(evaluation));
    return {.evaluation = {folder_ / "evaluation.jsonl"},
            .longest = 3,
            .shortest = 2,
            .frequent = 100,
            .surroundings = 4,
            .least_piece = 3,
            .most_pieces = 3,
            .document_share = 2};
  }
  std::vector<std::string> without(DecontaminateOptions options, const std::vector<std::string>& texts) {
    return through(stages_of(make_decontaminate_stage(std::move(options))), texts);
  }
};

TEST_F(DecontaminateStage, CutsToTheEndsOfSentencesAroundWhatBothHave) {
  EXPECT_THAT(without(limits({"red green blue"}),
                      {"One two. Three four five. Six Red, green blue! seven eight nine. Ten eleven? Twelve.",
                       "nothing of that, green blue red", "A red green. Blue moon"}),
              ElementsAre("One two. Three four five.", "Ten eleven? Twelve.", "nothing of that, green blue red"));
  EXPECT_EQ(counts_.stages[0].dropped.at("nothing left"), 1);
}

TEST_F(DecontaminateStage, PiecesAreDocumentsWithTheFieldsOfTheirOwn) {
  const std::string middle = "Cccc dddd red green blue eeee ffff.";
  without(limits({"red green blue"}), {middle + " Uncut.", "Whole.", "Aa bb. " + middle + " Gg hh."});
  const auto lines = json_lines(folder_ / "out.jsonl");
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0], (nlohmann::json{{"id", 0}, {"text", "Uncut."}}));  // the only piece
  EXPECT_EQ(lines[1], (nlohmann::json{{"id", 1}, {"text", "Whole."}}));
  EXPECT_EQ(lines[2], (nlohmann::json{{"id", 2}, {"text", "Aa bb."}, {"piece_of", 2}}));
  EXPECT_EQ(lines[3], (nlohmann::json{{"id", 2}, {"text", "Gg hh."}, {"piece_of", 2}}));
}

TEST_F(DecontaminateStage, PiecesOfAPieceAreOfTheFirstDocument) {
  const std::string text = "Aa bb. Cccc dddd red green blue eeee ffff. Gg hh.";
  DecontaminateOptions made = limits({"red green blue"});
  write_file_atomically(folder_ / "in.jsonl", nlohmann::json{{"piece_of", 7}, {"text", text}}.dump() + " \n");
  run_stages(stages_of(make_decontaminate_stage(std::move(made))), options());
  const auto lines = json_lines(folder_ / "out.jsonl");
  ASSERT_EQ(lines.size(), 2U);
  for (const auto& line : lines) EXPECT_EQ(line["piece_of"], 7);
}

TEST_F(DecontaminateStage, PiecesOfAPlainTextAreMarkedToo) {
  DecontaminateOptions made = limits({"red green blue"});
  write_file_atomically(folder_ / "in.txt", "Aa bb. Cccc dddd red green blue eeee ffff. Gg hh.");
  StreamOptions stream = options();
  stream.files = {folder_ / "in.txt"};
  run_stages(stages_of(make_decontaminate_stage(std::move(made))), stream);
  const auto lines = json_lines(folder_ / "out.jsonl");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1], (nlohmann::json{{"text", "Gg hh."}, {"piece_of", 0}}));
}

TEST_F(DecontaminateStage, ShortTextsOfAnEvaluationSetAreOneNgram) {
  EXPECT_THAT(without(limits({"red green", "x"}), {"Aaaa. Bbbb red green cccc. Dddd.", "x x x"}),
              ElementsAre("Aaaa.", "Dddd.", "x x x"));
}

TEST_F(DecontaminateStage, CommonPhrasesStay) {
  DecontaminateOptions options = limits({"red green blue", "one two three"});
  options.frequent = 3;
  const std::string common = "Say red green blue now.";
  EXPECT_THAT(without(options, {common, common, common, "Say one two three now."}),
              ElementsAre(common, common, common));
  EXPECT_EQ(statistics_["stages"][0]["frequent_ngrams"], 1);
  EXPECT_EQ(statistics_["stages"][0]["evaluation_ngrams"], 2);
}

TEST_F(DecontaminateStage, DropsDocumentsOfManyPiecesAndThoseOfTheEvaluationSet) {
  std::string many;
  for (int i = 0; i < 5; ++i) many += "Free words here. Then red green blue once more. ";
  DecontaminateOptions options = limits({"red green blue", "the whole of an article that is in both sets"});
  EXPECT_THAT(without(options, {many}), IsEmpty());
  EXPECT_EQ(counts_.stages[0].dropped.at("many pieces"), 1);
  options.document_share = 0.5;
  EXPECT_THAT(without(options, {"The whole of an article, that is in both sets. And more."}), IsEmpty());
  EXPECT_EQ(counts_.stages[0].dropped.at("evaluation document"), 1);
}

TEST_F(DecontaminateStage, LimitsAreMegatrons) {
  const DecontaminateOptions usual;
  EXPECT_EQ(usual.longest, 13);
  EXPECT_EQ(usual.shortest, 8);
  EXPECT_EQ(usual.frequent, 10);
  EXPECT_EQ(usual.surroundings, 200);
  EXPECT_EQ(usual.least_piece, 200);
  EXPECT_EQ(usual.most_pieces, 10);
}

// The rule in its plainest form, one character a letter: Megatron-LM's loop over what is left of the text.
std::vector<std::string> plainly_cut(std::string text, const std::string& phrase, std::size_t around,
                                     std::size_t least) {
  std::vector<std::string> pieces;
  const auto ends = [](char c) { return c == '.' || c == '!' || c == '?'; };
  bool is_cut = false;
  while (true) {
    const std::size_t at = text.find(phrase);
    if (at == text.npos) break;
    is_cut = true;
    auto before = static_cast<std::ptrdiff_t>(at) - static_cast<std::ptrdiff_t>(around);
    while (before > 0 && !ends(text[static_cast<std::size_t>(before)])) --before;
    if (before > 0 && static_cast<std::size_t>(before) + 1 > least) {
      pieces.push_back(text.substr(0, static_cast<std::size_t>(before) + 1));
    }
    std::size_t after = at + phrase.size() + around;
    while (after < text.size() && !ends(text[after])) ++after;
    text = after + 1 < text.size() ? text.substr(after + 1) : "";
    if (text.size() <= least) break;
  }
  if (text.size() > least || !is_cut) pieces.push_back(text);
  for (std::string& piece : pieces) piece.erase(0, is_cut ? std::min(piece.find_first_not_of(' '), piece.size()) : 0);
  return pieces;
}

TEST_F(DecontaminateStage, CutsAsThePlainRuleDoes) {
  RandomSequence random(RandomStream{.seed = 41});
  int cut = 0;
  for (int trial = 0; trial < trials(300); ++trial) {
    std::string text;
    for (std::uint64_t left = 5 + random.below(40); left > 0; --left) {
      static const std::vector<std::string> pieces = {"abc ", "d ", "ef. ", "g! ", "red green blue ", "hijkl ", "m? "};
      text += pieces[random.below(pieces.size())];
    }
    text += "end";
    DecontaminateOptions options = limits({"red green blue"});
    options.surroundings = static_cast<std::int64_t>(random.below(12));
    options.least_piece = static_cast<std::int64_t>(random.below(12));
    options.most_pieces = 100;
    const auto expected = plainly_cut(text, "red green blue", static_cast<std::size_t>(options.surroundings),
                                      static_cast<std::size_t>(options.least_piece));
    EXPECT_EQ(without(options, {text}), expected) << text << options.surroundings << " " << options.least_piece;
    cut += expected.size() > 1 ? 1 : 0;
  }
  EXPECT_GT(cut, trials(300) / 3);
}

TEST_F(DecontaminateStage, AnEvaluationSetWithoutTextIsAnError) {
  EXPECT_THROW(make_decontaminate_stage(limits({"x"})), UserError);
}

}  // namespace
}  // namespace teratron::testing
