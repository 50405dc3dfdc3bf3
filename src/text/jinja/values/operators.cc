#include "jinja/values/operators.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "jinja/values/python_text.h"

namespace teratron::jinja {
namespace {

constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "//", "%", "**"};

[[noreturn]] void fail_operands(Operator sign, const Value& left, const Value& right) {
  fail("unsupported operand type(s) for {}: '{}' and '{}'", kSigns[static_cast<std::size_t>(sign)], type_name(left),
       type_name(right));
}

// Python's divmod(): the quotient is a whole number, and the rest has the sign of b.
std::pair<double, double> divided(double a, double b) {
  double rest = std::fmod(a, b), quotient = (a - rest) / b;
  if (rest == 0) {
    rest = std::copysign(0.0, b);
  } else if ((rest < 0) != (b < 0)) {
    rest += b;
    quotient -= 1;
  }
  if (quotient == 0) return {std::copysign(0.0, a / b), rest};
  const double floor = std::floor(quotient);
  return {quotient - floor > 0.5 ? floor + 1 : floor, rest};
}

// Python's power: an error where C has NaN or infinity, and Python an error or a complex number.
double power(double a, double b) {
  if (a == 0 && b < 0) fail("zero to a negative power");
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && std::floor(b) != b) {
    fail("a root of a negative number is complex, which is not supported");
  }
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) fail("a power is too large for a float");
  return result;
}

std::int64_t power_of_integers(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(result, base, &result)) fail("a number is above 2^63");
    if (result == 0 || base == 1) break;
    if (base == -1) return exponent % 2 == 0 ? -result : result;
  }
  return result;
}

Value of_integers(Operator sign, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflows = false;
  switch (sign) {
    case Operator::kAdd: overflows = __builtin_add_overflow(a, b, &result); break;
    case Operator::kSubtract: overflows = __builtin_sub_overflow(a, b, &result); break;
    case Operator::kMultiply: overflows = __builtin_mul_overflow(a, b, &result); break;
    case Operator::kDivide:
      if (b == 0) fail("division by zero");
      return static_cast<double>(a) / static_cast<double>(b);
    case Operator::kFloorDivide:
    case Operator::kModulo: {
      if (b == 0) fail("division by zero");
      if (b == -1) return sign == Operator::kModulo ? 0 : of_integers(Operator::kSubtract, 0, a);
      const std::int64_t rest = a % b, floor = rest != 0 && (rest < 0) != (b < 0) ? 1 : 0;
      return sign == Operator::kModulo ? rest + floor * b : a / b - floor;
    }
    case Operator::kPower:
      if (b < 0) return power(static_cast<double>(a), static_cast<double>(b));
      return power_of_integers(a, b);
  }
  if (overflows) fail("a number is above 2^63");
  return result;
}

Value of_numbers(Operator sign, double a, double b) {
  const bool divides = sign == Operator::kDivide || sign == Operator::kFloorDivide || sign == Operator::kModulo;
  if (divides && b == 0) fail("division by zero");
  switch (sign) {
    case Operator::kAdd: return a + b;
    case Operator::kSubtract: return a - b;
    case Operator::kMultiply: return a * b;
    case Operator::kDivide: return a / b;
    case Operator::kFloorDivide: return divided(a, b).first;
    case Operator::kModulo: return divided(a, b).second;
    case Operator::kPower: return power(a, b);
  }
  return None{};
}

// markupsafe's escape()
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\'': out += "&#39;"; break;
      case '"': out += "&#34;"; break;
      default: out += c;
    }
  }
  return out;
}

Value sum_of_texts(const Text& a, const Text& b) {
  const bool safe = a.safe || b.safe;
  const auto part = [&](const Text& text) { return safe && !text.safe ? escaped(text.bytes) : text.bytes; };
  return Value::text(part(a) + part(b), safe);
}

bool is_repeatable(const Value& value) {
  const Sequence* sequence = value.sequence();
  return value.text() != nullptr || (sequence != nullptr && sequence->kind <= Sequence::Kind::kTuple);
}

Value repeated(const Value& value, std::int64_t times) {
  times = std::max<std::int64_t>(times, 0);
  if (const Text* text = value.text()) {
    if (!text->bytes.empty() && static_cast<std::size_t>(times) > kMostBytes / text->bytes.size()) {
      fail("it makes a text of more than {} bytes", kMostBytes);
    }
    std::string out;
    for (; times > 0 && !text->bytes.empty(); --times) out += text->bytes;
    return Value::text(std::move(out), text->safe);
  }
  const Sequence& sequence = *value.sequence();
  if (!sequence.items.empty() && static_cast<std::size_t>(times) > kMostElements / sequence.items.size()) {
    fail("it makes a list of more than {} elements", kMostElements);
  }
  Values items;
  for (; times > 0 && !sequence.items.empty(); --times) {
    items.insert(items.end(), sequence.items.begin(), sequence.items.end());
  }
  return Value::list(std::move(items), sequence.kind, sequence.name);
}

}  // namespace

Value computed(Operator sign, const Value& left, const Value& right) {
  require_defined(left);
  require_defined(right);
  if (left.is_number() && right.is_number()) {
    return left.is_integer() && right.is_integer() ? of_integers(sign, left.integer(), right.integer())
                                                   : of_numbers(sign, left.number(), right.number());
  }
  if (sign == Operator::kMultiply) {
    if (is_repeatable(left) && right.is_integer()) return repeated(left, right.integer());
    if (is_repeatable(right) && left.is_integer()) return repeated(right, left.integer());
  }
  if (sign == Operator::kModulo && left.text() != nullptr) fail("formatting by % is not supported");
  if (sign != Operator::kAdd) fail_operands(sign, left, right);
  if (const Text* a = left.text(), *b = right.text(); a != nullptr || b != nullptr) {
    if (a != nullptr && b != nullptr) return sum_of_texts(*a, *b);
    if (a != nullptr) fail("can only concatenate str (not \"{}\") to str", type_name(right));
    fail_operands(sign, left, right);
  }
  const Sequence *a = left.sequence(), *b = right.sequence();
  if (a == nullptr || b == nullptr || a->kind != b->kind || !is_repeatable(left)) fail_operands(sign, left, right);
  Values items = a->items;
  items.insert(items.end(), b->items.begin(), b->items.end());
  return Value::list(std::move(items), a->kind, a->name);
}

Value with_sign(const Value& value, bool negative) {
  require_defined(value);
  if (!value.is_number()) fail("bad operand type for unary {}: '{}'", negative ? "-" : "+", type_name(value));
  if (value.is_integer()) return of_integers(negative ? Operator::kSubtract : Operator::kAdd, 0, value.integer());
  return negative ? -value.number() : value.number();
}

bool contains(const Value& container, const Value& value) {
  if (const Text* text = container.text()) {
    require_defined(value);
    if (value.text() == nullptr) fail("'in <string>' requires string as left operand, not {}", type_name(value));
    return find_first(text->bytes, value.text()->bytes) != std::string_view::npos;
  }
  if (const Dictionary* dictionary = container.dictionary()) {
    require_hashable(value);
    return dictionary->find(value) != nullptr;
  }
  if (container.sequence() == nullptr && !container.is_undefined()) {
    fail("argument of type '{}' is not iterable", type_name(container));
  }
  if (container.is_undefined()) return false;
  LoopItems items{.source = iterator_of(container)};  // of an iterator, up to the one that is equal
  for (std::size_t i = 0; items.has(i); ++i) {
    if (equal(items.found[i], value)) return true;
  }
  return false;
}

bool compares(Comparison sign, const Value& left, const Value& right) {
  switch (sign) {
    case Comparison::kEqual: return equal(left, right);
    case Comparison::kNotEqual: return !equal(left, right);
    case Comparison::kLess: return less(left, right);
    case Comparison::kGreater: return less(right, left);
    case Comparison::kLessEqual: return less(left, right) || equal(left, right);
    case Comparison::kGreaterEqual: return less(right, left) || equal(left, right);
    case Comparison::kIn: return contains(right, left);
    case Comparison::kNotIn: return !contains(right, left);
  }
  return false;
}

}  // namespace teratron::jinja
