// The words of --data-path.
#include "data/data_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/dataset_fixture.h"

namespace teratron::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

Words faults_of(const Words& words) { return data_path_faults(Flag{"data-path"}, words).texts(); }

TEST(DataPath, CorporaShardsAndBlendsAreNoFaults) {
  for (const Words& words : std::vector<Words>{{},
                                               {"a"},
                                               {"a", "b", "c"},
                                               {"0.7", "a", "0.3", "b"},
                                               {"70", "a", "3e1", "b"},
                                               {"1", "a"},
                                               {"0", "a", "1", "b"},
                                               {"1", "a-*", "2", "b,c"},
                                               {"./7", "8a"},
                                               {"1", "./7"}}) {
    EXPECT_THAT(faults_of(words), IsEmpty()) << ::testing::PrintToString(words);
  }
}

TEST(DataPath, EveryFaultIsReportedOnce) {
  const std::vector<std::pair<Words, std::string>> faults = {
      {{"a", "0.3", "b"}, "has 'a' in place of a weight"},
      {{"0,7", "a", "0.3", "b"}, "has '0,7' in place of a weight"},
      {{"nan", "a", "0.3", "b"}, "has 'nan' in place of a weight"},
      {{"1e999", "a", "0.3", "b"}, "has '1e999' in place of a weight"},
      {{"0.7", "a", "b"}, "has 'b' in place of a weight"},
      {{"0.7", "a", "b", "0.3"}, "has 'b' in place of a weight"},
      {{"0.7", "a", "0.3"}, "has the weight 0.3 without a corpus"},
      {{"0.7", "0.3", "a", "b"}, "has the weight 0.7 without a corpus"},
      {{"0.7"}, "has the weight 0.7 without a corpus"},
      {{"0.7", "a", "-0.3", "b"}, "gives 'b' the weight -0.3; it must be at least 0"},
      {{"0", "a", "0.0", "b"}, "has no weight above 0"},
      {{"a", ""}, "has an empty name"},
      {{"1", ""}, "has an empty name"},
  };
  for (const auto& [words, text] : faults) {
    EXPECT_THAT(faults_of(words), ElementsAre(HasSubstr("--data-path " + text))) << ::testing::PrintToString(words);
  }
  Words many;
  for (int i = 0; i < 256; ++i) many.insert(many.end(), {"1", fmt::format("corpus-{}", i)});
  EXPECT_THAT(faults_of(many), ElementsAre(HasSubstr("names 256 corpora; a blend has at most 255")));
  EXPECT_THAT(one_corpus_faults(Flag{"data-path"}, Words{"1", "a"}).texts(), ElementsAre(HasSubstr("is a blend")));
  EXPECT_THAT(one_corpus_faults(Flag{"data-path"}, Words{"a", "b"}).texts(), IsEmpty());
}

class DataPathFiles : public ::testing::Test {
 protected:
  // Corpus NAME has as many tokens as NAME has letters behind the folder.
  std::string make(const std::string& name) const {
    write_dataset(folder_ / name, {Document(name.size(), 1)}, 100);
    return path(name);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  const TemporaryFolder folder_;
};

TEST_F(DataPathFiles, AreOpenedAsCorporaWithTheirWeights) {
  const std::string a = make("a"), bb = make("bb"), ccc = make("ccc");
  auto corpora = open_corpora(Words{a, bb, ccc});
  ASSERT_EQ(corpora.size(), 1U);
  EXPECT_EQ(corpora[0].dataset->tokens(), 6);
  EXPECT_EQ(open_corpus(Words{a, bb})->tokens(), 3);
  corpora = open_corpora(Words{"0.5", a + "," + ccc, "0", path("none"), "2e1", bb});
  ASSERT_EQ(corpora.size(), 2U);  // a weight of zero leaves a corpus out
  EXPECT_EQ(corpora[0].weight, 0.5);
  EXPECT_EQ(corpora[0].dataset->tokens(), 4);
  EXPECT_EQ(corpora[1].weight, 20);
  EXPECT_EQ(corpora[1].dataset->tokens(), 2);
}

TEST_F(DataPathFiles, AreFoundByPatternsInTheOrderOfTheirBytes) {
  for (const std::string name : {"s-2", "s-10", "s-1", "S-3", "other"}) make(name);
  const Words shards = {path("s-1"), path("s-10"), path("s-2")};
  EXPECT_EQ(without_patterns(Words{path("s-*")}), shards);
  EXPECT_EQ(without_patterns(Words{path("other"), path("s-1?")}), (Words{path("other"), path("s-10")}));
  EXPECT_EQ(without_patterns(Words{"1", path("s-[12]"), "2", path("other")}),
            (Words{"1", path("s-1") + "," + path("s-2"), "2", path("other")}));
  EXPECT_EQ(open_corpora(Words{path("s-*")}).front().dataset->documents(), 3);
  EXPECT_EQ(without_patterns(Words{path("t-*")}), Words{path("t-*")});
  EXPECT_THAT(message_of<UserError>([&] { open_corpora(Words{path("t-*")}); }), HasSubstr("t-*.idx' is missing"));
  // A name that is there as it is written is no pattern and no list.
  make("s-*");
  make("a,b");
  EXPECT_EQ(without_patterns(Words{path("s-*")}), Words{path("s-*")});
  EXPECT_EQ(without_patterns(Words{"1", path("a,b")}), (Words{"1", path("a,b")}));
}

TEST_F(DataPathFiles, WithAbsoluteNamesAreTheSameFromAnyWorkingDirectory) {
  for (const std::string name : {"a", "b-1", "b-2", "7", "c,d"}) make(name);
  const std::filesystem::path before = std::filesystem::current_path();
  const auto tokens_in = [](const Words& words) {
    std::vector<std::int64_t> tokens;
    for (const WeightedCorpus& corpus : open_corpora(words)) tokens.push_back(corpus.dataset->tokens());
    return tokens;
  };
  for (const Words& words : {Words{"a"}, Words{"./7", "b-1"}, Words{"0.5", "b-1,b-2", "2", "./7", "1", "c,d"},
                             Words{path("a"), "b-2"}, Words{"1", "b-*"}}) {
    std::filesystem::current_path(folder_.path());
    const std::vector<std::int64_t> tokens = tokens_in(words);
    const Words absolute = with_absolute_names(words);
    std::filesystem::current_path(before);
    EXPECT_EQ(tokens_in(absolute), tokens);
    EXPECT_EQ(weights_of(absolute), weights_of(words));
    EXPECT_EQ(with_absolute_names(absolute), absolute);
  }
  EXPECT_EQ(with_absolute_names(Words{}), Words{});
  EXPECT_EQ(absolute_name(folder_ / "x" / ".." / "a"), folder_ / "x" / ".." / "a");  // there is no x
  std::filesystem::create_directories(folder_ / "x" / "y");
  EXPECT_EQ(absolute_name(folder_ / "x" / ".." / "a"), folder_ / "a");
  std::filesystem::create_directory_symlink(folder_ / "x" / "y", folder_ / "link");
  EXPECT_EQ(absolute_name(folder_ / "link" / ".." / "a"), folder_ / "link" / ".." / "a");
}

TEST_F(DataPathFiles, AreReadOnceEach) {
  const std::string a = make("a"), b = make("b");
  std::filesystem::create_symlink(folder_ / "a.idx", folder_ / "link.idx");
  std::filesystem::create_symlink(folder_ / "a.bin", folder_ / "link.bin");
  for (const Words& words : std::vector<Words>{{a, b, a},
                                               {"1", a, "2", a},
                                               {"1", a, "2", b + "," + a},
                                               {a, path("b/../a")},
                                               {a, path("*")},
                                               {a, path("link")}}) {
    EXPECT_THAT(message_of<UserError>([&] { open_corpora(words); }), HasSubstr("is named twice"))
        << ::testing::PrintToString(words);
  }
}

}  // namespace
}  // namespace teratron::testing
