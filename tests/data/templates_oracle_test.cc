// Published chat templates, and random white space, as transformers' apply_chat_template writes them.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/temporary_folder.h"
#include "data/chats/chat_template.h"
#include "jinja/rendered.h"
#include "oracle/python.h"

namespace teratron::testing {
namespace {

struct Count {
  int alike = 0, both_refuse = 0, refused = 0;
  bool is_of_ten = false;
};

TEST(TemplatesOracle, ConversationsAreTransformersByteForByte) {
  if (const std::string reason = why_no_oracle(); !reason.empty()) GTEST_SKIP() << reason;
  if (!oracle_has("trl")) GTEST_SKIP() << "no TRL in the Python environment; scripts/oracle-env adds it";
  const TemporaryFolder folder;
  const std::filesystem::path log = folder / "log";
  ASSERT_EQ(run_oracle("templates_as_transformers.py", {folder.path().string()}, log), 0) << read_file(log);
  std::map<std::string, Count> counts;
  std::map<std::string, std::string> why_refused;
  std::ifstream cases(folder / "cases.jsonl");
  for (std::string line; std::getline(cases, line);) {
    const auto one = nlohmann::ordered_json::parse(line);
    const std::string name = one.at("name");
    Count& count = counts[name];
    count.is_of_ten = one.at("ten");
    try {
      nlohmann::ordered_json variables = one.at("variables");
      variables["messages"] = messages_for_template(variables["messages"]);
      const std::string text = rendered(one.at("source").get<std::string>(), variables);
      ASSERT_TRUE(one.contains("text")) << name << " fails in transformers: " << one.at("error") << one.at("variables");
      ASSERT_EQ(nlohmann::ordered_json(text).dump(), one.at("text").dump()) << name << one.at("variables");
      ++count.alike;
    } catch (const jinja::Error& error) {
      ++(one.contains("text") ? count.refused : count.both_refuse);
      if (one.contains("text")) why_refused[name] = error.what();
    }
  }
  int of_ten = 0;
  for (const auto& [name, count] : counts) {
    std::cout << name << ": " << count.alike << " alike, " << count.both_refuse << " refused by both\n";
    EXPECT_EQ(count.refused, 0) << name << ": " << why_refused[name];
    if (!count.is_of_ten) continue;
    ++of_ten;
    EXPECT_EQ(count.alike + count.both_refuse, 100) << name;
    EXPECT_GE(count.alike, 40) << name;
  }
  EXPECT_EQ(of_ten, 10);
  EXPECT_GE(counts["spaces"].alike, 2000);
}

}  // namespace
}  // namespace teratron::testing
