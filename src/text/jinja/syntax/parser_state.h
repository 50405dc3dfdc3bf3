// The parser, by recursive descent: expressions in parser.cc, statements in parser_statements.cc.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/syntax/lexer.h"
#include "jinja/syntax/parser.h"

namespace teratron::jinja {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Tree parse_template();

 private:
  // Counts nested expressions and blocks; more than its bound would not fit the stack.
  class Level {
   public:
    explicit Level(Parser& parser, int levels = 1);
    ~Level() { parser_.depth_ -= levels_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Parser& parser_;
    const int levels_;
  };

  // An {% if %} or an inline if, while the object lives.
  class Condition {
   public:
    explicit Condition(Parser& parser) : parser_(parser) { ++parser_.conditions_, ++parser_.conditions_of_frame_; }
    ~Condition() { --parser_.conditions_, --parser_.conditions_of_frame_; }
    Condition(const Condition&) = delete;
    Condition& operator=(const Condition&) = delete;

   private:
    Parser& parser_;
  };

  // A block that Jinja compiles to a frame of its own, for which no condition around it counts, while the object lives.
  class Frame {
   public:
    explicit Frame(Parser& parser) : parser_(parser), before_(std::exchange(parser.conditions_of_frame_, 0)) {}
    ~Frame() { parser_.conditions_of_frame_ = before_; }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

   private:
    Parser& parser_;
    const int before_;
  };

  const Token& current() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take();
  bool skip_if(std::string_view sign);
  bool skip_if_name(std::string_view name);
  void expect(std::string_view sign);
  void expect_name(std::string_view name);
  std::string take_name(std::string_view of_what);
  // Reads the end of a tag. Error: it has an unknown name.
  void expect(Token::Kind kind);
  [[noreturn]] void fault(std::string_view what) const;
  [[noreturn]] void fault_of_token() const;
  static bool is_one_of(const Token& token, std::initializer_list<std::string_view> names);

  // parser.cc, from the loosest binding to the tightest
  ExpressionPtr parse_expression();
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_compare();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concatenation();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool with_filters = true);
  ExpressionPtr parse_primary();
  ExpressionPtr parse_postfix(ExpressionPtr node);
  ExpressionPtr parse_filters(ExpressionPtr node);
  ExpressionPtr parse_subscript(ExpressionPtr node);
  ExpressionPtr parse_item(ExpressionPtr node);
  std::unique_ptr<FilterCall> parse_filter();
  ExpressionPtr parse_test(ExpressionPtr node);
  CallArguments parse_arguments();
  ExpressionPtr parse_dictionary();
  // One expression, or with commas a tuple. `element` reads one.
  ExpressionPtr parse_tuple(ExpressionPtr (Parser::*element)(), bool may_be_empty = false);
  bool is_tuple_end() const;
  std::unique_ptr<Call> parse_call(ExpressionPtr function);
  ExpressionPtr grown(ExpressionPtr node);

  // parser_statements.cc
  Body parse_body(std::initializer_list<std::string_view> ends);
  StatementPtr parse_statement();
  StatementPtr parse_for();
  StatementPtr parse_if();
  StatementPtr parse_set();
  StatementPtr parse_macro();
  StatementPtr parse_call_block();
  StatementPtr parse_filter_block();
  StatementPtr parse_with();
  StatementPtr parse_generation();
  StatementPtr parse_jump(Flow flow);
  Parameters parse_parameters();
  Target parse_target(bool with_attributes);
  Target parse_one_target(bool with_attributes);
  Body parse_block_body(std::initializer_list<std::string_view> ends);
  void parse_macro_body(Macro& macro, std::string_view end);
  // Keeps a fault for the end of the tag, as an `if` may follow; within conditions there is none.
  void check_known(std::string_view kind, const std::string& name, bool known, int conditions);

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int parts_ = 0;  // of the current tag's expressions
  // Enclosing conditions. Within one a filter that only Jinja has is no fault; within one of this frame no name is.
  int conditions_ = 0, conditions_of_frame_ = 0;
  std::vector<std::string> unknown_;  // faults of unknown names in the current tag
  int loops_ = 0;
  bool has_generation_ = false;
  std::vector<bool> macros_;  // enclosing ones; whether each uses its caller
};

}  // namespace teratron::jinja
