// data dedup: found where a planted corpus has duplicates, and nowhere else; datasketch as a second opinion.
#include "corpus/dedup/dedup_stage.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/host/threads.h"
#include "base/philox.h"
#include "corpus/dedup/minhash.h"
#include "corpus/stage_fixture.h"
#include "corpus/words.h"

namespace teratron::testing {
namespace {

using ::testing::ElementsAre;

std::string text_of_words(const std::vector<std::uint64_t>& words) {
  std::string text;
  for (const std::uint64_t word : words) text += fmt::format("w{} ", word);
  return text;
}

std::set<std::uint64_t> set_of(const std::vector<std::uint64_t>& words) {
  const auto ngrams = ngrams_of(words_of(text_of_words(words)), 5);
  return {ngrams.begin(), ngrams.end()};
}

// By its definition, beside minhash.h's.
double plain_jaccard(const std::set<std::uint64_t>& a, const std::set<std::uint64_t>& b) {
  const auto both = std::ranges::count_if(a, [&](std::uint64_t element) { return b.contains(element); });
  return static_cast<double>(both) / static_cast<double>(a.size() + b.size() - static_cast<std::size_t>(both));
}

class DedupStage : public StageTest {
 protected:
  std::vector<std::unique_ptr<Stage>> dedup(double threshold = 0.7) const {
    return stages_of(make_dedup_stage({.jaccard = threshold, .folder = folder_.path()}));
  }
  std::vector<std::size_t> kept_of(const std::vector<std::string>& texts, double threshold = 0.7) {
    through(dedup(threshold), texts);
    std::vector<std::size_t> kept;
    for (const auto& line : json_lines(folder_ / "out.jsonl")) kept.push_back(line["id"]);
    return kept;
  }
};

TEST(BandShape, LetsAlikeSetsMeet) {
  const BandShape shape = band_shape(0.7);
  EXPECT_EQ(shape.rows, 5);
  EXPECT_EQ(shape.bands, 26);
  EXPECT_NEAR(shape.meeting_probability(0.8), 1 - std::pow(1 - std::pow(0.8, 5), 26), 1e-12);
  for (double threshold = 0.3; threshold <= 1; threshold += 0.05) {
    EXPECT_GE(band_shape(threshold).meeting_probability(threshold), 0.99) << threshold;
  }
}

TEST(MinHash, AgreesAsOftenAsSetsAreAlike) {
  RandomSequence random(RandomStream{.seed = 21});
  double squares = 0;
  int pairs = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<std::uint64_t> a(1 + random.below(300)), b;
    for (std::uint64_t& element : a) element = random.below(~std::uint64_t{0});
    b = a;
    for (std::uint64_t changes = random.below(a.size() + 1); changes > 0; --changes) {
      b[random.below(b.size())] = random.below(~std::uint64_t{0});
    }
    const auto first = min_hashes(a, kMinHashes), second = min_hashes(b, kMinHashes);
    double same = 0;
    for (std::size_t i = 0; i < first.size(); ++i) same += first[i] == second[i] ? 1 : 0;
    const double share = plain_jaccard({a.begin(), a.end()}, {b.begin(), b.end()});
    const double deviation = std::sqrt(share * (1 - share) / kMinHashes);
    if (deviation == 0) {
      EXPECT_EQ(same / kMinHashes, share);
      continue;
    }
    const double z = (same / kMinHashes - share) / deviation;
    EXPECT_LT(std::abs(z), 5) << share;
    squares += z * z;
    ++pairs;
  }
  // Of independent functions z^2 is 1 on average, with a deviation of sqrt(2 / pairs) = 0.075; functions that depend on
  // one another, or do not mix, are far off.
  EXPECT_NEAR(squares / pairs, 1, 0.35);
}

TEST(MinHash, EstimatesAreThoseOfDatasketchWithinItsError) {
  const auto golden =
      nlohmann::json::parse(read_file(std::string(TERATRON_SOURCE_DIR) + "/tests/golden/corpus/minhash.json"));
  std::vector<std::vector<std::uint64_t>> documents;
  int compared = 0;
  for (const auto& row : golden["documents"]) {
    documents.push_back(row["words"]);
    for (const auto& pair : row["alike"]) {
      const auto a = set_of(documents[pair[0].get<std::size_t>()]), b = set_of(documents.back());
      const double exact = plain_jaccard(a, b);
      EXPECT_NEAR(exact, pair[2].get<double>(), 1e-6);
      // Five deviations of a mean of 256 draws.
      EXPECT_NEAR(exact, pair[1].get<double>(), 5 * std::sqrt(exact * (1 - exact) / 256) + 1e-4);
      ++compared;
    }
  }
  EXPECT_GT(compared, 100);
}

// The documents of a planted corpus: numbers of words, copies with changes.
std::vector<std::vector<std::uint64_t>> planted(int documents, std::uint64_t seed) {
  RandomSequence random(RandomStream{.seed = seed});
  std::vector<std::vector<std::uint64_t>> all;
  for (int number = 0; number < documents; ++number) {
    if (number % 3 == 0 || number < 3) {
      all.emplace_back(30 + random.below(120));
      for (std::uint64_t& word : all.back()) word = random.below(50'000);
      continue;
    }
    std::vector<std::uint64_t> copy = all[random.below(all.size())];
    for (std::uint64_t changes = random.below(1 + copy.size() / 12); changes > 0; --changes) {
      copy[random.below(copy.size())] = random.below(50'000);
    }
    all.push_back(std::move(copy));
  }
  return all;
}

TEST_F(DedupStage, FindsPlantedDuplicatesAndNothingElse) {
  std::int64_t alike = 0, found = 0, some = 0;
  for (const std::uint64_t seed : {31, 32, 33, 34}) {
    const auto documents = planted(150, seed);
    std::vector<std::string> texts;
    std::vector<std::set<std::uint64_t>> sets;
    for (const auto& words : documents) {
      texts.push_back(text_of_words(words));
      sets.push_back(set_of(words));
    }
    const auto kept_numbers = kept_of(texts);
    const std::set<std::size_t> kept(kept_numbers.begin(), kept_numbers.end());
    std::vector<double> most(sets.size()), most_before(sets.size());  // similarity to any other, to one before it
    for (std::size_t j = 0; j < sets.size(); ++j) {
      for (std::size_t i = 0; i < j; ++i) {
        const double similarity = plain_jaccard(sets[i], sets[j]);
        most_before[j] = std::max(most_before[j], similarity);
        most[i] = std::max(most[i], similarity);
        most[j] = std::max(most[j], similarity);
      }
    }
    for (std::size_t j = 0; j < sets.size(); ++j) {
      EXPECT_TRUE(kept.contains(j) || most[j] > 0.7) << j;  // no document is dropped that is like no other
      alike += most_before[j] > 0.8 ? 1 : 0;
      found += most_before[j] > 0.8 && !kept.contains(j) ? 1 : 0;
      some += most_before[j] > 0.5 && most[j] <= 0.7 ? 1 : 0;
    }
  }
  EXPECT_GT(alike, 100);
  EXPECT_GT(some, 10);  // near misses there were
  EXPECT_GE(static_cast<double>(found), 0.99 * static_cast<double>(alike));
}

TEST_F(DedupStage, KeepsTheFirstOfAGroupThatAChainConnects) {
  // Neighbours share 48 of 52 4-word-shifts; the ends are unlike each other.
  std::vector<std::string> texts;
  for (std::uint64_t shift = 0; shift < 40; shift += 4) {
    std::vector<std::uint64_t> words;
    for (std::uint64_t i = 0; i < 54; ++i) words.push_back(1000 + shift + i);
    texts.push_back(text_of_words(words));
  }
  texts.insert(texts.begin() + 3, "something else that is like nothing here at all");
  EXPECT_THAT(kept_of(texts), ElementsAre(0, 3));
  EXPECT_EQ(counts_.stages[0].dropped.at("duplicate"), 9);
  EXPECT_EQ(statistics_["stages"][0]["groups"], 1);
  EXPECT_THAT(json_lines(folder_ / "dropped.jsonl")[4]["detail"].get<std::string>(), ::testing::EndsWith("in.jsonl:1"));
}

TEST_F(DedupStage, NamesElementsOfArraysAsElements) {
  StreamOptions given = options();
  given.files = {folder_ / "in.json"};
  write_file_atomically(given.files[0],
                        R"([{"text": "one"}, {"text": "some other text"}, {"text": "one"}, {"text": "one"}])");
  counts_ = run_stages(dedup(), given);
  const auto lines = json_lines(given.dropped);
  ASSERT_EQ(lines.size(), 2U);
  for (const auto& line : lines) EXPECT_EQ(line["detail"], "of " + given.files[0].string() + ", element 1");
}

TEST_F(DedupStage, ComparesWordsWhateverTheirCaseAndPunctuation) {
  EXPECT_THAT(
      kept_of({"One two, three four five six.", "one TWO three; four-five 'six'", "one two three four five seven"}),
      ElementsAre(0, 2));
  EXPECT_THAT(kept_of({"short", "Short!", "", "", "...", "other"}), ElementsAre(0, 2, 4, 5));
}

TEST_F(DedupStage, FindsCopiesOfTextsWithoutWords) {
  EXPECT_THAT(kept_of({"!!!", "!!!", "🙂", "🙂", "", " ", "!!!\n", "...", "🙂🙂", "\u0301", "a", "---", "...",
                       "\u0301"}),
              ElementsAre(0, 2, 4, 7, 8, 9, 10, 11));
  EXPECT_EQ(statistics_["stages"][0]["groups"], 5);
  EXPECT_THAT(kept_of(std::vector<std::string>(3000, "***")), ElementsAre(0));
}

// A sentence three times, and the same with a syllable more; another sentence of the same script.
TEST_F(DedupStage, FindsNearDuplicatesInScriptsWithoutSpaces) {
  const auto thrice = [](const std::string& sentence) { return sentence + " " + sentence + " " + sentence; };
  for (const auto& [sentence, syllable, other] : std::vector<std::array<std::string, 3>>{
           {"ภาษาไทยเป็นภาษาที่มีระดับเสียงของคำแน่นอน", "มาก", "เมื่อวานนี้ฝนตกหนักทั้งวันในกรุงเทพมหานคร"},
           {"ພາສາລາວເປັນພາສາທາງການຂອງປະເທດລາວ", "ດີ", "ມື້ວານນີ້ຝົນຕົກໜັກຢູ່ນະຄອນຫຼວງວຽງຈັນ"},
           {"ភាសាខ្មែរជាភាសាផ្លូវការរបស់ប្រទេសកម្ពុជា", "ណា", "ម្សិលមិញមានភ្លៀងធ្លាក់ខ្លាំងនៅភ្នំពេញ"},
           {"မြန်မာဘာသာစကားသည်မြန်မာနိုင်ငံ၏ရုံးသုံးဘာသာစကားဖြစ်သည်", "ပါ", "မနေ့ကရန်ကုန်မြို့တွင်မိုးသည်းထန်စွာရွာသွန်းခဲ့သည်"},
           {"བོད་ཡིག་ནི་བོད་རིགས་ཀྱི་ཡི་གེ་ཡིན་པ་རེད་", "ཡང་", "ཁ་སང་ལྷ་སར་ཆར་པ་ཆེན་པོ་བབས་སོང་"},
           {"ꦧꦱꦗꦮꦥꦸꦤꦶꦏꦧꦱꦲꦶꦁꦏꦁꦢꦶꦥꦸꦤ꧀ꦒꦸꦤꦏꦏꦺ", "ꦩ", "ꦮꦶꦁꦲꦶꦈꦢꦤ꧀ꦢꦼꦉꦱ꧀ꦲꦶꦁꦔꦪꦺꦴꦒꦾꦏꦂꦠ"},
           {"中文是世界上使用人数最多的语言之一", "吧", "昨天北京下了一整天的大雨夹雪"}}) {
    EXPECT_THAT(kept_of({thrice(sentence), thrice(sentence) + syllable, thrice(other)}), ElementsAre(0, 2)) << sentence;
  }
}

TEST_F(DedupStage, ThousandsOfEqualDocumentsAreOneGroup) {
  std::vector<std::string> texts(5000, "the same words in every one of these documents, again and again");
  EXPECT_THAT(kept_of(texts), ElementsAre(0));
}

TEST_F(DedupStage, DoesNotDependOnThreads) {
  std::vector<std::string> texts;
  for (const auto& words : planted(400, 77)) texts.push_back(text_of_words(words));
  const int threads_before = thread_count();
  set_thread_count(1);
  const auto alone = kept_of(texts);
  set_thread_count(7);
  EXPECT_EQ(kept_of(texts), alone);
  set_thread_count(threads_before);
}

}  // namespace
}  // namespace teratron::testing
