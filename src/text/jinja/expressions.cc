#include <utility>

#include "jinja/functions/filters.h"
#include "jinja/functions/tests.h"
#include "jinja/renderer.h"
#include "jinja/values/access.h"
#include "jinja/values/operators.h"
#include "jinja/values/printing.h"

namespace teratron::jinja {
namespace {

Value value_or_none(const ExpressionPtr& expression, Renderer& renderer) {
  return expression == nullptr ? Value(None{}) : expression->evaluate(renderer);
}

Values values_of(const Expressions& expressions, Renderer& renderer) {
  Values values;
  values.reserve(expressions.size());
  for (const ExpressionPtr& expression : expressions) values.push_back(expression->evaluate(renderer));
  return values;
}

}  // namespace

Arguments CallArguments::evaluate(Renderer& renderer) const {
  Arguments arguments{.positional = values_of(positional, renderer), .named = {}};
  for (const auto& [name, value] : named) arguments.named.emplace_back(name, value->evaluate(renderer));
  return arguments;
}

Value Constant::evaluate(Renderer& /*renderer*/) const { return value; }

Value Name::evaluate(Renderer& renderer) const { return renderer.value_of(name); }

Value ListDisplay::evaluate(Renderer& renderer) const {
  Values values = values_of(items, renderer);
  return tuple ? Value::tuple(std::move(values)) : Value::list(std::move(values));
}

Value DictionaryDisplay::evaluate(Renderer& renderer) const {
  Dictionary dictionary;
  for (const auto& [key, value] : items) {
    Value of_key = key->evaluate(renderer);
    dictionary.set(std::move(of_key), value->evaluate(renderer));
  }
  return Value::dictionary(std::move(dictionary));
}

Value Binary::evaluate(Renderer& renderer) const {
  const Value first = left->evaluate(renderer);
  return computed(sign, first, right->evaluate(renderer));
}

Value Signed::evaluate(Renderer& renderer) const { return with_sign(of->evaluate(renderer), negative); }

Value Logical::evaluate(Renderer& renderer) const {
  Value first = left->evaluate(renderer);
  return is_true(first) == conjunction ? right->evaluate(renderer) : first;
}

Value Negation::evaluate(Renderer& renderer) const { return !is_true(of->evaluate(renderer)); }

Value Compare::evaluate(Renderer& renderer) const {
  Value left = first->evaluate(renderer);
  for (const auto& [sign, expression] : rest) {
    Value right = expression->evaluate(renderer);
    if (!compares(sign, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Concatenation::evaluate(Renderer& renderer) const {
  std::string out;
  for (const ExpressionPtr& item : items) append_text_of(item->evaluate(renderer), out);
  return Value::text(std::move(out));
}

Value Conditional::evaluate(Renderer& renderer) const {
  if (is_true(test->evaluate(renderer))) return then->evaluate(renderer);
  if (otherwise != nullptr) return otherwise->evaluate(renderer);
  return Value::undefined("an inline if-expression was false and has no else");
}

Value Attribute::evaluate(Renderer& renderer) const { return attribute_of(of->evaluate(renderer), name); }

Value Item::evaluate(Renderer& renderer) const {
  const Value value = of->evaluate(renderer);
  return item_of(value, key->evaluate(renderer));
}

Value Slice::evaluate(Renderer& renderer) const {
  const Value value = of->evaluate(renderer);
  const Value first = value_or_none(begin, renderer), last = value_or_none(end, renderer);
  return slice_of(value, first, last, value_or_none(step, renderer));
}

Value Call::evaluate(Renderer& renderer) const {
  const Value called = function->evaluate(renderer);
  const Callable& callable = require_callable(called);
  Arguments values = arguments.evaluate(renderer);
  return renderer.call(callable, values);
}

Value FilterCall::evaluate(Renderer& renderer) const { return filtered(renderer, of->evaluate(renderer)); }

Value FilterCall::filtered(Renderer& renderer, Value value) const {
  const Filter filter = find_filter(name);
  if (filter == nullptr) fail("the filter '{}' is unknown, or not supported", name);
  Arguments all = arguments.evaluate(renderer);
  all.positional.insert(all.positional.begin(), std::move(value));
  return filter(renderer, all);
}

Value TestCall::evaluate(Renderer& renderer) const {
  const Test test = find_test(name);
  if (test == nullptr) fail("the test '{}' is unknown, or not supported", name);
  if (!arguments.named.empty()) fail("the test '{}' takes no arguments by name", name);
  Values all = values_of(arguments.positional, renderer);
  all.insert(all.begin(), of->evaluate(renderer));
  return test(all);
}

}  // namespace teratron::jinja
