#include "jinja/values/value_set.h"

#include "jinja/values/byte_budget.h"

namespace teratron::jinja {

std::size_t hash_of(const Value& value) {
  spend(sizeof(Value));
  if (value.is_number()) return std::hash<double>()(value.number());  // 1, 1.0 and true are equal
  if (const Text* text = value.text()) {
    spend(text->bytes.size());
    return std::hash<std::string>()(text->bytes);
  }
  const Sequence* sequence = value.sequence();
  if (sequence == nullptr || sequence->kind != Sequence::Kind::kTuple)
    return 0;  // None, a function, or what no set holds
  std::size_t hash = sequence->items.size();
  for (const Value& item : sequence->items) hash = hash * 0x9E3779B97F4A7C15 + hash_of(item);
  return hash;
}

}  // namespace teratron::jinja
