// Sets and maps of values, compared by equal(), with look-up in constant time. They hold pointers; the values outlive
// them.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "jinja/values/value.h"

namespace teratron::jinja {

// Hash of a value: the same for equal values.
std::size_t hash_of(const Value& value);

struct ValueHash {
  std::size_t operator()(const Value* value) const { return hash_of(*value); }
};
struct ValueEqual {
  bool operator()(const Value* a, const Value* b) const { return equal(*a, *b); }
};
using ValueSet = std::unordered_set<const Value*, ValueHash, ValueEqual>;
using ValueMap = std::unordered_map<const Value*, const Value*, ValueHash, ValueEqual>;

}  // namespace teratron::jinja
