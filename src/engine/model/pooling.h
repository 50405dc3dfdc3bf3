// Pooling of the vectors of a text's tokens, [CLS] and [SEP] among them, into one, as in sentence-transformers.
#pragma once

#include <algorithm>
#include <string_view>
#include <utility>

namespace teratron {

enum class Pooling {
  kMean,
  kCls,             // the first token's
  kMax,             // the largest of all, value by value
  kMeanSqrtLength,  // their sum, over the square root of their number
  kWeightedMean,    // the n-th token counts n times
  kLastToken,       // [SEP]'s
};
// Names in sentence-transformers.
inline constexpr std::pair<std::string_view, Pooling> kPoolingNames[] = {
    {"mean", Pooling::kMean},
    {"cls", Pooling::kCls},
    {"max", Pooling::kMax},
    {"mean_sqrt_len_tokens", Pooling::kMeanSqrtLength},
    {"weightedmean", Pooling::kWeightedMean},
    {"lasttoken", Pooling::kLastToken}};
inline std::string_view name_of(Pooling pooling) {
  return std::ranges::find(kPoolingNames, pooling, &std::pair<std::string_view, Pooling>::second)->first;
}
// Whether texts can be trained with it: all tokens that it reads count alike.
constexpr bool can_be_trained(Pooling pooling) { return pooling != Pooling::kMax && pooling != Pooling::kWeightedMean; }

}  // namespace teratron
