// Cuts by documents, against all cuts that there are.
#include "slicing/document_cuts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

namespace teratron::testing {
namespace {

using namespace slicing;
using Lengths = std::vector<std::int64_t>;

// First keys of sequences of documents of random lengths, up to the longest.
std::vector<std::int32_t> random_documents(std::mt19937_64& random, std::int64_t sequences, std::int64_t tokens,
                                           std::int64_t longest) {
  std::vector<std::int32_t> first_keys;
  for (std::int64_t sequence = 0; sequence < sequences; ++sequence) {
    std::int64_t first = 0, end = 0;
    for (std::int64_t token = 0; token < tokens; ++token) {
      if (token == end) {
        first = token;
        end = token + 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(longest));
      }
      first_keys.push_back(static_cast<std::int32_t>(first));
    }
  }
  return first_keys;
}

struct Judged {
  double longest = 0, carried = 0;
};

// The work of the slice that works longest, and the keys that cuts carry over, token by token.
Judged judge(const DocumentSlices& slices, const std::vector<std::int32_t>& first_keys, const Lengths& lengths) {
  Judged judged;
  std::int64_t begin = 0;
  for (const std::int64_t length : lengths) {
    double work = 0;
    for (std::size_t at = 0; at < first_keys.size(); at += static_cast<std::size_t>(slices.tokens)) {
      for (std::int64_t token = begin; token < begin + length; ++token) {
        std::int64_t first = first_keys[at + static_cast<std::size_t>(token)];
        if (slices.window > 0) first = std::max(first, token - slices.window + 1);
        work += 1 + slices.key_cost * static_cast<double>(token - first + 1);
        if (token == begin) judged.carried += static_cast<double>(token - first);
      }
    }
    judged.longest = std::max(judged.longest, work);
    begin += length;
  }
  return judged;
}

void for_each_cut(const DocumentSlices& slices, const std::function<void(const Lengths&)>& use) {
  Lengths lengths;
  const std::function<void(std::int64_t)> extend = [&](std::int64_t left) {
    if (std::ssize(lengths) == slices.count) {
      if (left == 0) use(lengths);
      return;
    }
    for (std::int64_t length = slices.unit; length <= std::min(left, slices.most_tokens()); length += slices.unit) {
      lengths.push_back(length);
      extend(left - length);
      lengths.pop_back();
    }
  };
  extend(slices.tokens);
}

TEST(DocumentCuts, AreTheBestOfAll) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    DocumentSlices slices{.unit = static_cast<std::int64_t>(1 + random() % 3)};
    slices.tokens = slices.unit * static_cast<std::int64_t>(4 + random() % 14);
    slices.count = static_cast<int>(1 + random() % std::min<std::uint64_t>(4, slices.tokens / slices.unit));
    slices.key_cost = static_cast<double>(random() % 100) / 50;
    slices.window = random() % 3 == 0 ? static_cast<std::int64_t>(1 + random() % 8) : 0;
    const auto first_keys =
        random_documents(random, static_cast<std::int64_t>(1 + random() % 3), slices.tokens, slices.tokens);
    const Lengths lengths = cut_by_documents(slices, first_keys);
    ASSERT_EQ(std::ssize(lengths), slices.count);
    ASSERT_EQ(std::reduce(lengths.begin(), lengths.end()), slices.tokens);
    for (const std::int64_t length : lengths) {
      ASSERT_TRUE(length > 0 && length % slices.unit == 0 && length <= slices.most_tokens());
    }
    Judged best{1e300, 1e300};
    for_each_cut(slices, [&](const Lengths& cut) {
      best.longest = std::min(best.longest, judge(slices, first_keys, cut).longest);
    });
    const double bound = best.longest * 1.01;
    for_each_cut(slices, [&](const Lengths& cut) {
      const Judged judged = judge(slices, first_keys, cut);
      if (judged.longest <= bound * (1 - 1e-12)) best.carried = std::min(best.carried, judged.carried);
    });
    const Judged ours = judge(slices, first_keys, lengths);
    ASSERT_LE(ours.longest, bound * (1 + 1e-12));
    ASSERT_LE(ours.carried, best.carried);
  }
}

// Long sequences are cut at some hundred places alone; no sizes leave no cut.
TEST(DocumentCuts, ExistForAllSizes) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 50; ++round) {
    DocumentSlices slices{.unit = static_cast<std::int64_t>(1 + random() % 8), .key_cost = 1e-3};
    slices.tokens = slices.unit * static_cast<std::int64_t>(1 + random() % 5000);
    slices.count = static_cast<int>(1 + random() % std::min<std::uint64_t>(60, slices.tokens / slices.unit));
    const auto first_keys = random_documents(random, 2, slices.tokens, 1 + slices.tokens / 3);
    const Lengths lengths = cut_by_documents(slices, first_keys);
    ASSERT_EQ(std::reduce(lengths.begin(), lengths.end()), slices.tokens);
    ASSERT_LE(*std::ranges::max_element(lengths), slices.most_tokens());
    const Judged ours = judge(slices, first_keys, lengths);
    Lengths even(static_cast<std::size_t>(slices.count), slices.tokens / slices.unit / slices.count * slices.unit);
    for (std::size_t i = 0; std::reduce(even.begin(), even.end()) < slices.tokens; ++i) even[i] += slices.unit;
    ASSERT_LE(ours.longest, judge(slices, first_keys, even).longest * 1.15);
  }
}

TEST(DocumentCuts, LieBetweenDocumentsThatCanBeKeptWhole) {
  std::vector<std::int32_t> first_keys(2000);
  for (std::size_t t = 1004; t < 2000; ++t) first_keys[t] = 1004;
  EXPECT_EQ(cut_by_documents({.tokens = 2000, .count = 2, .key_cost = 1e-5}, first_keys), (Lengths{1004, 996}));
}

}  // namespace
}  // namespace teratron::testing
