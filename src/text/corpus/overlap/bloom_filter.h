// An approximate set in a few bits an element that grows without bound (Almeida et al. 2007, "Scalable Bloom Filters").
#pragma once

#include <cstdint>
#include <vector>

namespace teratron {

// Filters in layers, each twice as large as the one before and with half its share of errors, so that the sum of errors
// stays below the bound. Elements are hashes of 64 bits.
class BloomFilter {
 public:
  // `false_positives`: upper bound of the probability that may_have() is true for another element; 0 to 1, exclusive.
  explicit BloomFilter(double false_positives, std::int64_t first_capacity = std::int64_t{1} << 20);

  void add(std::uint64_t element);  // by one thread
  bool may_have(std::uint64_t element) const;

  std::int64_t elements() const { return elements_; }  // added that seemed new
  std::int64_t bytes() const;

 private:
  struct Layer {
    std::int64_t capacity = 0, elements = 0;
    int probes = 0;
    std::vector<std::uint64_t> words;
  };
  static bool has(const Layer& layer, std::uint64_t element);
  void add_layer();

  double next_share_;  // of errors, for the next layer
  std::int64_t next_capacity_, elements_ = 0;
  std::vector<Layer> layers_;
};

}  // namespace teratron
