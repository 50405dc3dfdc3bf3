#include "tasks/embed/scores.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/host/threads.h"

namespace teratron::embed {
namespace {

double product(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

std::span<const float> text_of(const std::vector<float>& example, std::int64_t texts, std::int64_t text) {
  const std::size_t hidden = example.size() / static_cast<std::size_t>(texts);
  return std::span(example).subspan(static_cast<std::size_t>(text) * hidden, hidden);
}

// Lengths of all texts' vectors; 1 stands for 0.
std::vector<double> lengths_of(const Vectors& vectors, std::int64_t texts) {
  std::vector<double> lengths;
  for (const std::vector<float>& example : vectors) {
    for (std::int64_t text = 0; text < texts; ++text) {
      const std::span<const float> vector = text_of(example, texts, text);
      const double length = std::sqrt(product(vector, vector));
      lengths.push_back(length > 0 ? length : 1);
    }
  }
  return lengths;
}

}  // namespace

std::vector<double> cosines(const Vectors& vectors, std::int64_t texts) {
  const std::vector<double> lengths = lengths_of(vectors, texts);
  std::vector<double> all;
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    const std::size_t at = i * static_cast<std::size_t>(texts);
    const double cosine =
        product(text_of(vectors[i], texts, 0), text_of(vectors[i], texts, 1)) / (lengths[at] * lengths[at + 1]);
    all.push_back(static_cast<double>(static_cast<float>(cosine)));
  }
  return all;
}

Retrieval retrieval(const Vectors& vectors, const TaskExamples& examples) {
  const std::int64_t count = std::ssize(vectors), texts = examples.sequences_each;
  check(count > 0, "examples to search");
  const std::vector<double> lengths = lengths_of(vectors, texts), own = cosines(vectors, texts);
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(count), 1);
  parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const std::span<const float> first = text_of(vectors[at], texts, 0);
      const std::int64_t from = i / kSearchedTogether * kSearchedTogether,
                         to = std::min(count, from + kSearchedTogether);
      for (std::int64_t number = from * texts; number < to * texts; ++number) {
        if (number % texts == 0 || number == i * texts + 1) continue;
        const std::vector<float>& example = vectors[static_cast<std::size_t>(number / texts)];
        const double cosine =
            product(first, text_of(example, texts, number % texts)) /
            (lengths[at * static_cast<std::size_t>(texts)] * lengths[static_cast<std::size_t>(number)]);
        if (static_cast<double>(static_cast<float>(cosine)) < own[at]) continue;
        if (!std::ranges::equal(examples.sequence(number), examples.sequence(i * texts + 1))) ++ranks[at];
      }
    }
  });
  Retrieval mean;
  for (const std::int64_t rank : ranks) {
    mean.accuracy += rank == 1 ? 1 : 0;
    mean.reciprocal_rank += 1 / static_cast<double>(rank);
  }
  mean.accuracy /= static_cast<double>(count);
  mean.reciprocal_rank /= static_cast<double>(count);
  return mean;
}

}  // namespace teratron::embed
