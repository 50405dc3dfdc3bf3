// A set that answers "perhaps" or "no" in a few bits an element, of any number of elements (Almeida et al. 2007,
// "Scalable Bloom Filters").
#pragma once

#include <cstdint>
#include <vector>

namespace teratron {

// A row of filters, each twice as large as the one before and with half its share of errors, so that the errors of all
// stay below the bound, however many elements come. Elements are hashes of 64 bits.
class BloomFilter {
 public:
  // `false_positives`: the probability of "perhaps" for an element that is not in the set, at most; 0 to 1, exclusive.
  explicit BloomFilter(double false_positives, std::int64_t first_capacity = std::int64_t{1} << 20);

  void add(std::uint64_t element);  // of one thread
  bool may_have(std::uint64_t element) const;

  std::int64_t elements() const { return elements_; }  // added that were not in it, or seemed to be
  std::int64_t bytes() const;

 private:
  struct Layer {
    std::int64_t capacity = 0, elements = 0;
    int probes = 0;
    std::vector<std::uint64_t> words;
  };
  static bool has(const Layer& layer, std::uint64_t element);
  void add_layer();

  double next_share_;  // of errors, of the next layer
  std::int64_t next_capacity_, elements_ = 0;
  std::vector<Layer> layers_;
};

}  // namespace teratron
