#include "jinja/syntax/parser_state.h"

#include <algorithm>

namespace teratron::jinja {
namespace {

constexpr int kMostLevels = 150;

}  // namespace

Parser::Level::Level(Parser& parser, int levels) : parser_(parser), levels_(levels) {
  parser_.depth_ += levels_;
  if (parser_.depth_ > kMostLevels) {
    parser_.fault(fmt::format("expressions or blocks are more than {} within each other", kMostLevels));
  }
}

Token Parser::take() {
  Token token = current();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::skip_if(std::string_view sign) {
  const bool is_there = current().is(sign);
  if (is_there) take();
  return is_there;
}

bool Parser::skip_if_name(std::string_view name) {
  const bool is_there = current().is_name(name);
  if (is_there) take();
  return is_there;
}

void Parser::expect(std::string_view sign) {
  if (!skip_if(sign)) fault_of_token();
}

void Parser::expect_name(std::string_view name) {
  if (!skip_if_name(name)) fault_of_token();
}

void Parser::expect(Token::Kind kind) {
  if (current().kind != kind) fault_of_token();
  if (!unknown_.empty()) fail("{}", unknown_.front());
  take();
}

std::string Parser::take_name(std::string_view of_what) {
  if (current().kind != Token::Kind::kName) fault(fmt::format("the name of {} is missing", of_what));
  return take().text;
}

void Parser::fault(std::string_view what) const { fail("line {}: {}", current().line, what); }

void Parser::fault_of_token() const {
  switch (current().kind) {
    case Token::Kind::kEnd: fault("the template ends too early");
    case Token::Kind::kBlockEnd: fault("unexpected end of a tag");
    case Token::Kind::kVariableEnd: fault("unexpected end of an expression");
    default: fault(fmt::format("unexpected '{}'", current().text));
  }
}

bool Parser::is_one_of(const Token& token, std::initializer_list<std::string_view> names) {
  return token.kind == Token::Kind::kName && std::ranges::find(names, token.text) != names.end();
}

}  // namespace teratron::jinja
