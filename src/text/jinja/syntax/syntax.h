// Syntax tree of a template: what parser.h reads and renderer.h runs.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jinja/values/operators.h"
#include "jinja/values/value.h"

namespace teratron::jinja {

class Renderer;

struct Expression {
  virtual ~Expression() = default;
  virtual Value evaluate(Renderer& renderer) const = 0;
};
using ExpressionPtr = std::unique_ptr<const Expression>;
using Expressions = std::vector<ExpressionPtr>;

// How a loop's body continues after a statement.
enum class Flow { kNext, kBreak, kContinue };

struct Statement {
  int line = 0;
  virtual ~Statement() = default;
  virtual Flow run(Renderer& renderer, std::string& out) const = 0;
};
using StatementPtr = std::unique_ptr<const Statement>;
using Body = std::vector<StatementPtr>;

struct CallArguments {
  Expressions positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;

  Arguments evaluate(Renderer& renderer) const;
};

struct Constant : Expression {
  Value value;
  explicit Constant(Value constant) : value(std::move(constant)) {}
  Value evaluate(Renderer& renderer) const override;
};
struct Name : Expression {
  std::string name;
  explicit Name(std::string its) : name(std::move(its)) {}
  Value evaluate(Renderer& renderer) const override;
};
struct ListDisplay : Expression {
  Expressions items;
  bool tuple = false;
  Value evaluate(Renderer& renderer) const override;
};
struct DictionaryDisplay : Expression {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> items;
  Value evaluate(Renderer& renderer) const override;
};
struct Binary : Expression {
  Operator sign{};
  ExpressionPtr left, right;
  Value evaluate(Renderer& renderer) const override;
};
struct Signed : Expression {  // -x, +x
  bool negative = false;
  ExpressionPtr of;
  Value evaluate(Renderer& renderer) const override;
};
struct Logical : Expression {
  bool conjunction = false;  // and; else or
  ExpressionPtr left, right;
  Value evaluate(Renderer& renderer) const override;
};
struct Negation : Expression {
  ExpressionPtr of;
  Value evaluate(Renderer& renderer) const override;
};
struct Compare : Expression {
  ExpressionPtr first;
  std::vector<std::pair<Comparison, ExpressionPtr>> rest;
  Value evaluate(Renderer& renderer) const override;
};
struct Concatenation : Expression {  // a ~ b
  Expressions items;
  Value evaluate(Renderer& renderer) const override;
};
struct Conditional : Expression {
  ExpressionPtr test, then, otherwise;  // otherwise: may be null
  Value evaluate(Renderer& renderer) const override;
};
struct Attribute : Expression {
  ExpressionPtr of;
  std::string name;
  Value evaluate(Renderer& renderer) const override;
};
struct Item : Expression {
  ExpressionPtr of, key;
  Value evaluate(Renderer& renderer) const override;
};
struct Slice : Expression {
  ExpressionPtr of, begin, end, step;  // all but `of` may be null
  Value evaluate(Renderer& renderer) const override;
};
struct Call : Expression {
  ExpressionPtr function;
  CallArguments arguments;
  Value evaluate(Renderer& renderer) const override;
};
struct FilterCall : Expression {
  ExpressionPtr of;  // null: the text of a block
  std::string name;
  CallArguments arguments;
  Value evaluate(Renderer& renderer) const override;
  Value filtered(Renderer& renderer, Value value) const;
};
struct TestCall : Expression {
  ExpressionPtr of;
  std::string name;
  CallArguments arguments;
  Value evaluate(Renderer& renderer) const override;
};

// The target of an assignment: a name, an attribute of a namespace, or several of them.
struct Target {
  std::string name, attribute;
  std::vector<Target> several;
};

struct Parameters {
  std::vector<std::string> names;
  std::vector<ExpressionPtr> defaults;  // of each; null: none
};

struct TextOutput : Statement {
  std::string text;
  Flow run(Renderer& renderer, std::string& out) const override;
};
struct Output : Statement {
  ExpressionPtr value;
  Flow run(Renderer& renderer, std::string& out) const override;
};
struct If : Statement {
  std::vector<std::pair<ExpressionPtr, Body>> branches;  // null: else
  Flow run(Renderer& renderer, std::string& out) const override;
};
struct For : Statement {
  Target target;
  ExpressionPtr items, test;  // test: may be null
  Body body, otherwise;
  Flow run(Renderer& renderer, std::string& out) const override;
};
struct Jump : Statement {
  Flow flow{};
  Flow run(Renderer& renderer, std::string& out) const override;
};
struct Assign : Statement {
  Target target;
  ExpressionPtr value;  // null: the body's text, through the filters
  std::vector<std::unique_ptr<const FilterCall>> filters;
  Body body;
  Flow run(Renderer& renderer, std::string& out) const override;
};
struct Macro : Statement {
  std::string name;
  Parameters parameters;
  Body body;
  bool uses_caller = false;
  Flow run(Renderer& renderer, std::string& out) const override;
};
struct CallBlock : Statement {
  Macro caller;
  std::unique_ptr<const Call> call;
  Flow run(Renderer& renderer, std::string& out) const override;
};
struct FilterBlock : Statement {
  std::vector<std::unique_ptr<const FilterCall>> filters;
  Body body;
  Flow run(Renderer& renderer, std::string& out) const override;
};
struct With : Statement {
  std::vector<std::pair<Target, ExpressionPtr>> values;
  Body body;
  Flow run(Renderer& renderer, std::string& out) const override;
};
struct Generation : Statement {  // transformers' block around an answer
  Body body;
  Flow run(Renderer& renderer, std::string& out) const override;
};

}  // namespace teratron::jinja
