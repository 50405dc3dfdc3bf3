// The documents say of the papers' reproduction what the program prints.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "reproduction/judgement.h"
#include "reproduction/reproductions.h"

namespace teratron::testing {
namespace {

using namespace plan;

std::string document(const char* name) {
  const std::ifstream file(std::string(TERATRON_SOURCE_DIR) + "/docs/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Met and counted of all kinds together.
struct Total {
  int met = 0, cells = 0;
};
Total total_of(std::string_view paper, Counted counted) {
  Total total;
  for (const Score& score : scores_of(reproduction_of(paper).cells, counted)) {
    total.met += score.met;
    total.cells += score.cells;
  }
  return total;
}

TEST(ReproductionDocs, ThePagesOfPlansShowWhatTheCommandPrints) {
  const std::string pages = document("plan.md") + document("published-runs.md");
  for (const std::string_view paper : reproduction_names()) {
    const std::string begin = fmt::format("<!-- teratron plan --reproduce {} -->\n```\n", paper);
    const std::size_t at = pages.find(begin);
    ASSERT_NE(at, std::string::npos) << begin;
    const std::size_t from = at + begin.size(), end = pages.find("```\n<!-- end -->\n", from);
    ASSERT_NE(end, std::string::npos);
    EXPECT_EQ(pages.substr(from, end - from), text_of(reproduction_of(paper)))
        << "put what 'teratron plan --reproduce " << paper << "' prints into docs/plan.md, or docs/published-runs.md";
  }
}

TEST(ReproductionDocs, TheStatusCountsTheCellsThatAreMet) {
  const Total megatron = total_of("megatron", Counted::kAll), terapipe = total_of("terapipe", Counted::kAll),
              megatrons = total_of("megatron", Counted::kPredictions),
              terapipes = total_of("terapipe", Counted::kPredictions);
  const std::string status = std::regex_replace(document("status.md"), std::regex("\\s+"), " ");
  const std::string sentence = fmt::format(
      "{} of Megatron-LM's {} published cells and {} of TeraPipe's {} are met; of those that are predictions, {} of {} "
      "and "
      "{} of {}",
      megatron.met, megatron.cells, terapipe.met, terapipe.cells, megatrons.met, megatrons.cells, terapipes.met,
      terapipes.cells);
  EXPECT_NE(status.find(sentence), std::string::npos) << "docs/status.md does not say: " << sentence;
}

}  // namespace
}  // namespace teratron::testing
