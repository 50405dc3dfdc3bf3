#include "jinja/syntax/parser.h"

#include <algorithm>
#include <array>
#include <optional>

#include "jinja/functions/filters.h"
#include "jinja/functions/tests.h"
#include "jinja/syntax/parser_state.h"

namespace teratron::jinja {
namespace {

constexpr int kMostParts = 1000;  // operators, attributes, calls and filters of a tag, which nest to the left

struct OperatorSign {
  std::string_view text;
  Operator sign;
};
constexpr std::array kSums = {OperatorSign{"+", Operator::kAdd}, OperatorSign{"-", Operator::kSubtract}};
constexpr std::array kProducts = {OperatorSign{"*", Operator::kMultiply}, OperatorSign{"/", Operator::kDivide},
                                  OperatorSign{"//", Operator::kFloorDivide}, OperatorSign{"%", Operator::kModulo}};
constexpr std::array kPowers = {OperatorSign{"**", Operator::kPower}};

template <std::size_t kCount>
std::optional<Operator> operator_of(const Token& token, const std::array<OperatorSign, kCount>& signs) {
  const auto found = std::ranges::find_if(signs, [&](const OperatorSign& one) { return token.is(one.text); });
  return found == signs.end() ? std::nullopt : std::optional(found->sign);
}

ExpressionPtr binary(Operator sign, ExpressionPtr left, ExpressionPtr right) {
  auto node = std::make_unique<Binary>();
  node->sign = sign;
  node->left = std::move(left);
  node->right = std::move(right);
  return node;
}

ExpressionPtr logical(bool conjunction, ExpressionPtr left, ExpressionPtr right) {
  auto node = std::make_unique<Logical>();
  node->conjunction = conjunction;
  node->left = std::move(left);
  node->right = std::move(right);
  return node;
}

ExpressionPtr negated(ExpressionPtr of) {
  auto node = std::make_unique<Negation>();
  node->of = std::move(of);
  return node;
}

std::optional<Comparison> comparison_of(const Token& token) {
  constexpr std::array<std::pair<std::string_view, Comparison>, 6> kSigns = {{{"==", Comparison::kEqual},
                                                                              {"!=", Comparison::kNotEqual},
                                                                              {"<", Comparison::kLess},
                                                                              {"<=", Comparison::kLessEqual},
                                                                              {">", Comparison::kGreater},
                                                                              {">=", Comparison::kGreaterEqual}}};
  const auto found = std::ranges::find_if(kSigns, [&](const auto& one) { return token.is(one.first); });
  return found == kSigns.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

ExpressionPtr Parser::grown(ExpressionPtr node) {
  if (++parts_ > kMostParts) fault(fmt::format("an expression has more than {} parts", kMostParts));
  return node;
}

ExpressionPtr Parser::parse_expression() {
  const Level level(*this);
  const std::size_t unknown = unknown_.size();
  ExpressionPtr value = parse_or();
  while (skip_if_name("if")) {
    unknown_.resize(unknown);  // those of `value` are faults only where it runs
    auto node = std::make_unique<Conditional>();
    node->then = std::move(value);
    const Condition condition(*this);
    node->test = parse_or();
    if (skip_if_name("else")) node->otherwise = parse_expression();
    value = grown(std::move(node));
  }
  return value;
}

ExpressionPtr Parser::parse_or() {
  ExpressionPtr left = parse_and();
  while (skip_if_name("or")) left = grown(logical(false, std::move(left), parse_and()));
  return left;
}

ExpressionPtr Parser::parse_and() {
  ExpressionPtr left = parse_not();
  while (skip_if_name("and")) left = grown(logical(true, std::move(left), parse_not()));
  return left;
}

ExpressionPtr Parser::parse_not() {
  if (!skip_if_name("not")) return parse_compare();
  const Level level(*this);
  return negated(parse_not());
}

ExpressionPtr Parser::parse_compare() {
  ExpressionPtr first = parse_sum();
  auto node = std::make_unique<Compare>();
  while (true) {
    if (const std::optional<Comparison> sign = comparison_of(current())) {
      take();
      node->rest.emplace_back(*sign, parse_sum());
    } else if (skip_if_name("in")) {
      node->rest.emplace_back(Comparison::kIn, parse_sum());
    } else if (current().is_name("not") && next().is_name("in")) {
      take();
      take();
      node->rest.emplace_back(Comparison::kNotIn, parse_sum());
    } else {
      break;
    }
  }
  if (node->rest.empty()) return first;
  node->first = std::move(first);
  return node;
}

ExpressionPtr Parser::parse_sum() {
  ExpressionPtr left = parse_concatenation();
  while (const std::optional<Operator> sign = operator_of(current(), kSums)) {
    take();
    left = grown(binary(*sign, std::move(left), parse_concatenation()));
  }
  return left;
}

ExpressionPtr Parser::parse_concatenation() {
  ExpressionPtr first = parse_product();
  if (!current().is("~")) return first;
  auto node = std::make_unique<Concatenation>();
  node->items.push_back(std::move(first));
  while (skip_if("~")) node->items.push_back(parse_product());
  return node;
}

ExpressionPtr Parser::parse_product() {
  ExpressionPtr left = parse_power();
  while (const std::optional<Operator> sign = operator_of(current(), kProducts)) {
    take();
    left = grown(binary(*sign, std::move(left), parse_power()));
  }
  return left;
}

ExpressionPtr Parser::parse_power() {
  ExpressionPtr left = parse_unary();
  while (const std::optional<Operator> sign = operator_of(current(), kPowers)) {
    take();
    left = grown(binary(*sign, std::move(left), parse_unary()));
  }
  return left;
}

ExpressionPtr Parser::parse_unary(bool with_filters) {
  ExpressionPtr node;
  if (current().is("-") || current().is("+")) {
    const Level level(*this);
    auto with_sign = std::make_unique<Signed>();
    with_sign->negative = take().text == "-";
    with_sign->of = parse_unary(false);
    node = std::move(with_sign);
  } else {
    node = parse_primary();
  }
  node = parse_postfix(std::move(node));
  return with_filters ? parse_filters(std::move(node)) : std::move(node);
}

ExpressionPtr Parser::parse_primary() {
  const Token& token = current();
  switch (token.kind) {
    case Token::Kind::kName: {
      const std::string name = take().text;
      if (name == "true" || name == "True") return std::make_unique<Constant>(true);
      if (name == "false" || name == "False") return std::make_unique<Constant>(false);
      if (name == "none" || name == "None") return std::make_unique<Constant>(None{});
      if (!macros_.empty() && (name == "varargs" || name == "kwargs")) {
        fault(fmt::format("'{}' in a macro is not supported", name));
      }
      if (!macros_.empty() && name == "caller") macros_.back() = true;
      return std::make_unique<Name>(name);
    }
    case Token::Kind::kString: {
      std::string text;
      while (current().kind == Token::Kind::kString) text += take().text;
      return std::make_unique<Constant>(Value::text(std::move(text)));
    }
    case Token::Kind::kInteger: return std::make_unique<Constant>(take().integer);
    case Token::Kind::kFloat: return std::make_unique<Constant>(take().number);
    default: break;
  }
  if (skip_if("(")) {
    ExpressionPtr inside = parse_tuple(&Parser::parse_expression, /*may_be_empty=*/true);
    expect(")");
    return inside;
  }
  if (skip_if("[")) {
    auto list = std::make_unique<ListDisplay>();
    while (!current().is("]")) {
      list->items.push_back(parse_expression());
      if (!current().is("]")) expect(",");
    }
    expect("]");
    return list;
  }
  if (current().is("{")) return parse_dictionary();
  fault_of_token();
}

ExpressionPtr Parser::parse_dictionary() {
  expect("{");
  auto dictionary = std::make_unique<DictionaryDisplay>();
  while (!current().is("}")) {
    ExpressionPtr key = parse_expression();
    expect(":");
    dictionary->items.emplace_back(std::move(key), parse_expression());
    if (!current().is("}")) expect(",");
  }
  expect("}");
  return dictionary;
}

bool Parser::is_tuple_end() const {
  return current().kind == Token::Kind::kVariableEnd || current().kind == Token::Kind::kBlockEnd || current().is(")");
}

ExpressionPtr Parser::parse_tuple(ExpressionPtr (Parser::*element)(), bool may_be_empty) {
  if (is_tuple_end() && !may_be_empty) fault_of_token();
  auto tuple = std::make_unique<ListDisplay>();
  tuple->tuple = true;
  bool has_comma = false;
  while (!is_tuple_end()) {
    tuple->items.push_back((this->*element)());
    if (!skip_if(",")) break;
    has_comma = true;
  }
  if (tuple->items.size() == 1 && !has_comma) return std::move(tuple->items[0]);
  return tuple;
}

ExpressionPtr Parser::parse_postfix(ExpressionPtr node) {
  while (true) {
    if (current().is(".") || current().is("[")) {
      node = grown(parse_subscript(std::move(node)));
    } else if (current().is("(")) {
      node = grown(parse_call(std::move(node)));
    } else {
      return node;
    }
  }
}

ExpressionPtr Parser::parse_filters(ExpressionPtr node) {
  while (true) {
    if (skip_if("|")) {
      std::unique_ptr<FilterCall> filter = parse_filter();
      filter->of = std::move(node);
      node = grown(std::move(filter));
    } else if (current().is_name("is")) {
      node = grown(parse_test(std::move(node)));
    } else if (current().is("(")) {
      node = grown(parse_call(std::move(node)));
    } else {
      return node;
    }
  }
}

ExpressionPtr Parser::parse_subscript(ExpressionPtr node) {
  if (!skip_if(".")) return parse_item(std::move(node));
  if (current().kind == Token::Kind::kInteger) {
    auto item = std::make_unique<Item>();
    item->of = std::move(node);
    item->key = std::make_unique<Constant>(take().integer);
    return item;
  }
  auto attribute = std::make_unique<Attribute>();
  attribute->of = std::move(node);
  attribute->name = take_name("an attribute");
  return attribute;
}

ExpressionPtr Parser::parse_item(ExpressionPtr node) {
  expect("[");
  const auto part = [&]() -> ExpressionPtr {
    return current().is(":") || current().is("]") ? nullptr : parse_expression();
  };
  ExpressionPtr first = part();
  if (!current().is(":")) {
    if (current().is(",") || first == nullptr) fault("an index of several parts is not supported");
    expect("]");
    auto item = std::make_unique<Item>();
    item->of = std::move(node);
    item->key = std::move(first);
    return item;
  }
  auto slice = std::make_unique<Slice>();
  slice->of = std::move(node);
  slice->begin = std::move(first);
  expect(":");
  slice->end = part();
  if (skip_if(":")) slice->step = part();
  expect("]");
  return slice;
}

CallArguments Parser::parse_arguments() {
  const Level level(*this);
  CallArguments arguments;
  expect("(");
  while (!current().is(")")) {
    if (current().is("*") || current().is("**")) fault("arguments in a list (*) are not supported");
    if (current().kind == Token::Kind::kName && next().is("=")) {
      std::string name = take().text;
      take();
      arguments.named.emplace_back(std::move(name), parse_expression());
    } else {
      if (!arguments.named.empty()) fault("an argument without a name comes after one with a name");
      arguments.positional.push_back(parse_expression());
    }
    if (!current().is(")")) expect(",");
  }
  expect(")");
  return arguments;
}

std::unique_ptr<Call> Parser::parse_call(ExpressionPtr function) {
  auto call = std::make_unique<Call>();
  call->function = std::move(function);
  call->arguments = parse_arguments();
  return call;
}

void Parser::check_known(std::string_view kind, const std::string& name, bool known, int conditions) {
  if (known || conditions > 0) return;
  unknown_.push_back(fmt::format("line {}: the {} '{}' is unknown, or not supported", current().line, kind, name));
}

std::unique_ptr<FilterCall> Parser::parse_filter() {
  auto filter = std::make_unique<FilterCall>();
  filter->name = take_name("a filter");
  check_known("filter", filter->name, find_filter(filter->name) != nullptr,
              is_unsupported_filter(filter->name) ? conditions_ : conditions_of_frame_);
  if (current().is("(")) filter->arguments = parse_arguments();
  return filter;
}

ExpressionPtr Parser::parse_test(ExpressionPtr node) {
  expect_name("is");
  const bool is_negated = skip_if_name("not");
  auto test = std::make_unique<TestCall>();
  test->of = std::move(node);
  test->name = take_name("a test");
  check_known("test", test->name, find_test(test->name) != nullptr, conditions_of_frame_);
  using Kind = Token::Kind;
  const Kind kind = current().kind;
  if (current().is("(")) {
    test->arguments = parse_arguments();
  } else if ((kind == Kind::kName && !is_one_of(current(), {"else", "or", "and"})) || kind == Kind::kString ||
             kind == Kind::kInteger || kind == Kind::kFloat || current().is("[") || current().is("{")) {
    if (current().is_name("is")) fault("You cannot chain multiple tests with is");
    test->arguments.positional.push_back(parse_postfix(parse_primary()));
  }
  if (is_negated) return negated(std::move(test));
  return test;
}

}  // namespace teratron::jinja
