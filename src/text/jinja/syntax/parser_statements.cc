// Tags of a template and their bodies.
#include "jinja/syntax/parser_state.h"

namespace teratron::jinja {
namespace {

bool is_reserved(std::string_view name) {
  return name == "true" || name == "false" || name == "none" || name == "True" || name == "False" || name == "None";
}

}  // namespace

Tree Parser::parse_template() {
  Tree tree;
  tree.body = parse_body({});
  tree.has_generation = has_generation_;
  return tree;
}

Body Parser::parse_body(std::initializer_list<std::string_view> ends) {
  const Level level(*this);
  Body body;
  while (true) {
    const int line = current().line;
    parts_ = 0;
    StatementPtr statement;
    if (current().kind == Token::Kind::kData) {
      auto text = std::make_unique<TextOutput>();
      text->text = take().text;
      statement = std::move(text);
    } else if (current().kind == Token::Kind::kVariableBegin) {
      take();
      auto output = std::make_unique<Output>();
      output->line = line;
      output->value = parse_tuple(&Parser::parse_expression);
      expect(Token::Kind::kVariableEnd);
      statement = std::move(output);
    } else if (current().kind == Token::Kind::kBlockBegin) {
      take();
      if (is_one_of(current(), ends)) return body;
      statement = parse_statement();
      expect(Token::Kind::kBlockEnd);
    } else if (ends.size() == 0) {
      return body;
    } else {
      fault(fmt::format("the template ends before {{% {} %}}", *(ends.end() - 1)));
    }
    body.push_back(std::move(statement));
  }
}

// The body of a tag whose expressions have been read, to one of the names that end it, which is not read.
Body Parser::parse_block_body(std::initializer_list<std::string_view> ends) {
  skip_if(":");
  expect(Token::Kind::kBlockEnd);
  return parse_body(ends);
}

StatementPtr Parser::parse_statement() {
  const std::string tag = take_name("a tag");
  if (tag == "for") return parse_for();
  if (tag == "if") return parse_if();
  if (tag == "set") return parse_set();
  if (tag == "macro") return parse_macro();
  if (tag == "call") return parse_call_block();
  if (tag == "filter") return parse_filter_block();
  if (tag == "with") return parse_with();
  if (tag == "generation") return parse_generation();
  if (tag == "break") return parse_jump(Flow::kBreak);
  if (tag == "continue") return parse_jump(Flow::kContinue);
  fault(fmt::format("the tag '{}' is unknown, or not supported", tag));
}

Target Parser::parse_one_target(bool with_attributes) {
  Target target;
  target.name = take_name("a variable");
  if (is_reserved(target.name)) fault(fmt::format("can't assign to '{}'", target.name));
  if (with_attributes && skip_if(".")) target.attribute = take_name("an attribute");
  return target;
}

Target Parser::parse_target(bool with_attributes) {
  Target target;
  const auto one = [&] {
    if (!skip_if("(")) return parse_one_target(with_attributes);
    const Level level(*this);
    Target inside = parse_target(with_attributes);
    expect(")");
    return inside;
  };
  target = one();
  if (!current().is(",")) return target;
  Target all;
  all.several.push_back(std::move(target));
  while (skip_if(",")) {
    if (current().is_name("in") || current().is("=") || current().is(")")) break;
    all.several.push_back(one());
  }
  return all;
}

StatementPtr Parser::parse_for() {
  auto loop = std::make_unique<For>();
  loop->line = current().line;
  loop->target = parse_target(false);
  expect_name("in");
  loop->items = parse_tuple(&Parser::parse_or);
  const Frame frame(*this);
  if (skip_if_name("if")) loop->test = parse_expression();
  if (current().is_name("recursive")) fault("recursive loops are not supported");
  ++loops_;
  loop->body = parse_block_body({"else", "endfor"});
  --loops_;
  if (skip_if_name("else")) loop->otherwise = parse_block_body({"endfor"});
  expect_name("endfor");
  return loop;
}

StatementPtr Parser::parse_if() {
  auto statement = std::make_unique<If>();
  statement->line = current().line;
  const Condition condition(*this);
  do {
    ExpressionPtr test = parse_tuple(&Parser::parse_or);
    statement->branches.emplace_back(std::move(test), parse_block_body({"elif", "else", "endif"}));
  } while (skip_if_name("elif"));
  if (skip_if_name("else")) statement->branches.emplace_back(nullptr, parse_block_body({"endif"}));
  expect_name("endif");
  return statement;
}

StatementPtr Parser::parse_set() {
  auto assign = std::make_unique<Assign>();
  assign->line = current().line;
  assign->target = parse_target(true);
  if (skip_if("=")) {
    assign->value = parse_tuple(&Parser::parse_expression);
    return assign;
  }
  const Frame frame(*this);
  while (skip_if("|")) assign->filters.push_back(parse_filter());
  assign->body = parse_block_body({"endset"});
  expect_name("endset");
  return assign;
}

Parameters Parser::parse_parameters() {
  const Frame frame(*this);
  Parameters parameters;
  expect("(");
  while (!current().is(")")) {
    parameters.names.push_back(parse_one_target(false).name);
    if (skip_if("=")) {
      parameters.defaults.push_back(parse_expression());
    } else if (!parameters.defaults.empty() && parameters.defaults.back() != nullptr) {
      fault("non-default argument follows default argument");
    } else {
      parameters.defaults.push_back(nullptr);
    }
    if (!current().is(")")) expect(",");
  }
  expect(")");
  return parameters;
}

void Parser::parse_macro_body(Macro& macro, std::string_view end) {
  const Frame frame(*this);
  macros_.push_back(false);
  const int loops = std::exchange(loops_, 0);
  macro.body = parse_block_body({end});
  loops_ = loops;
  expect_name(end);
  macro.uses_caller = macros_.back();
  macros_.pop_back();
}

StatementPtr Parser::parse_macro() {
  auto macro = std::make_unique<Macro>();
  macro->line = current().line;
  macro->name = parse_one_target(false).name;
  macro->parameters = parse_parameters();
  parse_macro_body(*macro, "endmacro");
  return macro;
}

StatementPtr Parser::parse_call_block() {
  auto block = std::make_unique<CallBlock>();
  block->line = current().line;
  block->caller.name = "caller";
  if (current().is("(")) block->caller.parameters = parse_parameters();
  ExpressionPtr call = parse_expression();
  const auto* its = dynamic_cast<const Call*>(call.get());
  if (its == nullptr) fault("expected call");
  static_cast<void>(call.release());
  block->call.reset(its);
  parse_macro_body(block->caller, "endcall");
  return block;
}

StatementPtr Parser::parse_filter_block() {
  const Frame frame(*this);
  auto block = std::make_unique<FilterBlock>();
  block->line = current().line;
  do {
    block->filters.push_back(parse_filter());
  } while (skip_if("|"));
  block->body = parse_block_body({"endfilter"});
  expect_name("endfilter");
  return block;
}

StatementPtr Parser::parse_with() {
  auto with = std::make_unique<With>();
  with->line = current().line;
  while (current().kind != Token::Kind::kBlockEnd) {
    if (!with->values.empty()) expect(",");
    Target target = parse_one_target(false);
    expect("=");
    with->values.emplace_back(std::move(target), parse_expression());
  }
  const Frame frame(*this);
  with->body = parse_block_body({"endwith"});
  expect_name("endwith");
  return with;
}

StatementPtr Parser::parse_generation() {
  has_generation_ = true;
  auto block = std::make_unique<Generation>();
  block->line = current().line;
  const Frame frame(*this);
  const int loops = std::exchange(loops_, 0);  // it is a macro to Jinja
  block->body = parse_block_body({"endgeneration"});
  loops_ = loops;
  expect_name("endgeneration");
  return block;
}

StatementPtr Parser::parse_jump(Flow flow) {
  if (loops_ == 0) fault("break or continue stands in no loop");
  auto jump = std::make_unique<Jump>();
  jump->line = current().line;
  jump->flow = flow;
  return jump;
}

Tree parse(std::string_view source) { return Parser(tokens_of(source)).parse_template(); }

}  // namespace teratron::jinja
