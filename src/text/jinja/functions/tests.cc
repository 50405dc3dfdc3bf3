#include "jinja/functions/tests.h"

#include <algorithm>
#include <array>

#include "jinja/functions/filters.h"
#include "jinja/values/operators.h"
#include "jinja/values/printing.h"
#include "jinja/values/python_text.h"

namespace teratron::jinja {
namespace {

void require_count(const Values& values, std::size_t count) {
  if (values.size() != count) fail("a test takes {} argument(s), and has {}", count - 1, values.size() - 1);
}

template <bool (*kAnswer)(const Value&)>
bool one(const Values& values) {
  require_count(values, 1);
  return kAnswer(values[0]);
}

template <Comparison kSign>
bool two(const Values& values) {
  require_count(values, 2);
  return compares(kSign, values[0], values[1]);
}

bool is_string(const Value& value) { return value.text() != nullptr; }
bool is_mapping(const Value& value) { return value.dictionary() != nullptr; }
bool is_number(const Value& value) { return value.is_number(); }
bool is_boolean(const Value& value) { return value.get<bool>() != nullptr; }
bool is_true_itself(const Value& value) { return is_boolean(value) && *value.get<bool>(); }
bool is_false_itself(const Value& value) { return is_boolean(value) && !*value.get<bool>(); }
bool is_integer(const Value& value) { return value.get<std::int64_t>() != nullptr; }
bool is_float(const Value& value) { return value.get<double>() != nullptr; }
bool is_none(const Value& value) { return value.is_none(); }
bool is_undefined(const Value& value) { return value.is_undefined(); }
bool is_defined(const Value& value) { return !value.is_undefined(); }
bool is_callable(const Value& value) { return value.callable() != nullptr || value.is_undefined(); }
bool is_escaped(const Value& value) { return value.text() != nullptr && value.text()->safe; }

bool is_iterable(const Value& value) {
  return value.is_undefined() || is_string(value) || is_mapping(value) || value.sequence() != nullptr ||
         value.loop() != nullptr;
}

// Whether it has a length and items.
bool is_sequence(const Value& value) {
  const Sequence* sequence = value.sequence();
  return value.is_undefined() || is_string(value) || is_mapping(value) ||
         (sequence != nullptr && sequence->kind <= Sequence::Kind::kRange);
}

template <std::string (*kChange)(std::string_view)>
bool has_case(const Value& value) {  // and at least one letter
  const std::string text = text_of(value);
  return text == kChange(text) && upper(text) != lower(text);
}

bool divides(const Value& value, const Value& by) {
  const Value rest = computed(Operator::kModulo, value, by);
  return equal(rest, std::int64_t{0});
}
bool is_odd(const Value& value) { return equal(computed(Operator::kModulo, value, std::int64_t{2}), std::int64_t{1}); }
bool is_even(const Value& value) { return divides(value, std::int64_t{2}); }

bool divisible_by(const Values& values) {
  require_count(values, 2);
  return divides(values[0], values[1]);
}

bool same_as(const Values& values) {
  require_count(values, 2);
  if (is_string(values[0]) || values[0].is_number() != is_boolean(values[0])) {
    fail("sameas of a {} is not supported", type_name(values[0]));
  }
  return values[0].is_same(values[1]);
}

bool is_filter(const Values& values) {
  require_count(values, 1);
  return find_filter(text_of(values[0])) != nullptr;
}

bool is_test(const Values& values) {
  require_count(values, 1);
  return find_test(text_of(values[0])) != nullptr;
}

struct NamedTest {
  std::string_view name;
  Test test;
};
constexpr std::array kTests = {NamedTest{"defined", one<is_defined>},
                               NamedTest{"undefined", one<is_undefined>},
                               NamedTest{"none", one<is_none>},
                               NamedTest{"string", one<is_string>},
                               NamedTest{"mapping", one<is_mapping>},
                               NamedTest{"iterable", one<is_iterable>},
                               NamedTest{"sequence", one<is_sequence>},
                               NamedTest{"number", one<is_number>},
                               NamedTest{"integer", one<is_integer>},
                               NamedTest{"float", one<is_float>},
                               NamedTest{"boolean", one<is_boolean>},
                               NamedTest{"true", one<is_true_itself>},
                               NamedTest{"false", one<is_false_itself>},
                               NamedTest{"callable", one<is_callable>},
                               NamedTest{"escaped", one<is_escaped>},
                               NamedTest{"lower", one<has_case<lower>>},
                               NamedTest{"upper", one<has_case<upper>>},
                               NamedTest{"odd", one<is_odd>},
                               NamedTest{"even", one<is_even>},
                               NamedTest{"divisibleby", divisible_by},
                               NamedTest{"sameas", same_as},
                               NamedTest{"filter", is_filter},
                               NamedTest{"test", is_test},
                               NamedTest{"in", two<Comparison::kIn>},
                               NamedTest{"eq", two<Comparison::kEqual>},
                               NamedTest{"equalto", two<Comparison::kEqual>},
                               NamedTest{"==", two<Comparison::kEqual>},
                               NamedTest{"ne", two<Comparison::kNotEqual>},
                               NamedTest{"!=", two<Comparison::kNotEqual>},
                               NamedTest{"gt", two<Comparison::kGreater>},
                               NamedTest{"greaterthan", two<Comparison::kGreater>},
                               NamedTest{">", two<Comparison::kGreater>},
                               NamedTest{"ge", two<Comparison::kGreaterEqual>},
                               NamedTest{">=", two<Comparison::kGreaterEqual>},
                               NamedTest{"lt", two<Comparison::kLess>},
                               NamedTest{"lessthan", two<Comparison::kLess>},
                               NamedTest{"<", two<Comparison::kLess>},
                               NamedTest{"le", two<Comparison::kLessEqual>},
                               NamedTest{"<=", two<Comparison::kLessEqual>}};

}  // namespace

Test find_test(std::string_view name) {
  const auto found = std::ranges::find(kTests, name, &NamedTest::name);
  return found == kTests.end() ? nullptr : found->test;
}

}  // namespace teratron::jinja
