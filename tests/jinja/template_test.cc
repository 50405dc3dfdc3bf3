// Questions that no other Jinja answers: bounds, damaged templates, marks, and templates that hold themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/host/resources.h"
#include "base/utf8.h"
#include "jinja/rendered.h"

namespace teratron::testing {
namespace {

using namespace jinja;
using ::testing::HasSubstr;
using OrderedJson = nlohmann::ordered_json;

std::string message_of(const std::string& source) {
  try {
    return "no error: " + rendered(source, OrderedJson::object());
  } catch (const Error& error) {
    return error.what();
  }
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(JinjaBounds, NestingEndsInAnErrorAndNotInTheStack) {
  for (const auto& [open, close] : {std::pair<std::string, std::string>{"(", ")"},
                                    {"[", "]"},
                                    {"-", ""},
                                    {"not ", ""},
                                    {"f(", ")"},
                                    {"{'a':", "}"},
                                    {"a[", "]"}}) {
    EXPECT_THAT(message_of("{{ " + repeated(open, 5000) + "1" + repeated(close, 5000) + " }}"),
                HasSubstr("within each other"));
  }
  EXPECT_THAT(message_of(repeated("{% if true %}", 2000)), HasSubstr("within each other"));
  for (const std::string part : {" + 1", " and 1", " | trim", ".a", "[0]", " ** 1", " if 1"}) {
    EXPECT_THAT(message_of("{{ 1" + repeated(part, 3000) + " }}"), HasSubstr("more than 1000 parts"));
  }
  EXPECT_EQ(rendered("{{ 1" + repeated(" + 1", 900) + " }}", OrderedJson::object()), "901");
}

TEST(JinjaBounds, WorkAndMemoryEndInAnError) {
  const std::string loop = "{% for i in range(100000) %}", end = "{% endfor %}";
  const OrderedJson none = OrderedJson::object();
  const Template loops(loop + "{{ '' }}" + end), calls("{% macro m() %}{% endmacro %}" + loop + "{{ m() }}" + end);
  for (const Template* const form : {&loops, &calls}) {
    EXPECT_THROW(form->render({.variables = none, .functions = {}, .most_work = 1000}), Error);
  }
  EXPECT_NO_THROW(loops.render({.variables = none, .functions = {}, .most_work = 100'000}));
  EXPECT_THAT(message_of("{% set n = namespace(t='ab') %}" + loop + "{% set n.t = n.t ~ n.t %}" + end),
              HasSubstr("a text of more than"));
  EXPECT_THAT(message_of("{% set n = namespace(t=[1]) %}" + loop + "{% set n.t = n.t + n.t %}" + end),
              HasSubstr("a list of more than"));
  EXPECT_THAT(message_of("{{ 'ab' * 9223372036854775807 }}"), HasSubstr("a text of more than"));
  EXPECT_THAT(message_of("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), HasSubstr("100 deep"));
  OrderedJson deep;
  for (int i = 0; i < 300; ++i) deep = OrderedJson::array({deep});
  EXPECT_THROW(rendered("", {{"messages", deep}}), Error);
  EXPECT_THROW(rendered("", {{"messages", UINT64_MAX}}), Error);
}

// A result is refused before there is room for it, and not when it is made: each of these would take gigabytes.
TEST(JinjaBounds, TextsAndListsTakeNoMoreMemoryThanTheyMayHave) {
  const std::uint64_t before = peak_memory_bytes();
  const std::string large =
      "{% set k = 65536 %}{% set a = 'x' * k * 1024 %}{% set w = 'x ' * k * 512 %}{% set n = '\n' * k * 1024 %}";
  for (const std::string& result :
       {"'" + repeated("{0}", 40) + "'.format(a)", "'" + repeated("{b}", 40) + "'.format(b=a)",
        "a" + repeated(" ~ a", 40), std::string("('x\n' * 100) | indent(a)"),
        std::string("[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]] | tojson(indent=a)")}) {
    EXPECT_THAT(message_of(large + "{{ " + result + " }}"), HasSubstr("a text of more than")) << result.substr(0, 40);
  }
  for (const std::string result : {"a | list", "w.split()", "a.split('x')", "w.rsplit(' ')", "n.splitlines()"}) {
    EXPECT_THAT(message_of(large + "{{ (" + result + ") | length }}"), HasSubstr("a list of more than")) << result;
  }
  EXPECT_EQ(rendered("{% set a = 'x' * 1000000 %}{{ a.count('x') }}{{ (a | reverse) == a }}", OrderedJson::object()),
            "1000000True");
  EXPECT_LT(peak_memory_bytes() - before, std::uint64_t{1} << 30);
}

// Values are copied, compared, written and freed by recursion.
TEST(JinjaBounds, ValuesWithinOneAnotherEndInAnErrorAndNotInTheStack) {
  const std::string begin = "{% set n = namespace(t=[]) %}{% for i in range(100000) %}", end = "{% endfor %}";
  for (const std::string around : {"[n.t]", "(n.t,)", "{'a': n.t}", "[[n.t].count]", "dict(a=n.t)"}) {
    EXPECT_THAT(message_of(begin + "{% set n.t = " + around + " %}" + end), HasSubstr("within each other")) << around;
  }
  EXPECT_THAT(message_of(begin + "{% for x in [n.t] %}{% set n.t = loop %}{% endfor %}" + end),
              HasSubstr("within each other"));
  const std::string twice = "{% set n = namespace(t=[]) %}{% for i in range(60) %}{% set n.t = ";
  for (const std::string both : {"[n.t, n.t]", "{1: n.t, 2: n.t}"}) {
    EXPECT_THAT(message_of(twice + both + " %}{% endfor %}{{ n.t }}"), HasSubstr("a value of more than")) << both;
  }
  EXPECT_EQ(rendered("{% set n = namespace(t=[]) %}{% for i in range(150) %}{% set n.t = [n.t] %}" + end +
                         "{{ n.t | string | length }}",
                     OrderedJson::object()),
            "302");
}

// Every call has an expression of a thousand parts on the stack.
TEST(JinjaBounds, CallsWithinLongExpressionsEndInAnErrorAndNotInTheStack) {
  const std::string parts = repeated(" ~ '' + ''", 450), sums = repeated(" + ''", 900);
  for (const std::string& more : {parts, sums, repeated(" | trim", 900)}) {
    EXPECT_THAT(message_of("{% macro m() %}{{ m()" + more + " }}{% endmacro %}{{ m() }}"), HasSubstr(" deep"));
  }
  EXPECT_THAT(message_of("{{ ['a'] | map(" + repeated("'map', ", 5000) + "'upper') | list }}"), HasSubstr("100 deep"));
  EXPECT_THAT(message_of("{{ " + repeated("(", 140) + "''" + repeated(sums + ")", 140) + " }}"),
              HasSubstr("more than 1000 parts"));
}

TEST(JinjaBounds, DamagedTemplatesAreErrorsThatNameTheLine) {
  EXPECT_THAT(message_of("a\n\n{{ 'x }}"), HasSubstr("line 3: a string without an end"));
  EXPECT_THAT(message_of("\n{% for x in [1] %}"), HasSubstr("the template ends before {% endfor %}"));
  EXPECT_THAT(message_of("\n\n{{ 1 | trim | nosuch }}"), HasSubstr("line 3: the filter 'nosuch'"));
  EXPECT_THAT(message_of("x\n{{ nothing.x }}"), HasSubstr("line 2: 'nothing' is undefined"));
  EXPECT_THAT(message_of("\xff"), HasSubstr("not UTF-8"));
  const std::string whole =
      "{% macro m(a, b=1) %}{{ a[1:2] ~ \"\\u00e9\" }}{% endmacro %}{% for k, v in {'a': (1, [2])}.items() if k %}"
      "{{- m(k | default('x')) if v is not none else v.1 -}}{% else %}{# c #}{% endfor %}{% raw %}{{{% endraw %}";
  for (std::size_t end = 0; end <= whole.size(); ++end) {
    try {
      rendered(whole.substr(0, end), OrderedJson::object());
    } catch (const Error&) {
    }
  }
  std::mt19937 draw(5);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string damaged = whole;
    for (int i = 0; i < 3; ++i) damaged[draw() % damaged.size()] = whole[draw() % whole.size()];
    try {
      rendered(damaged, OrderedJson::object());
    } catch (const Error&) {
    }
  }
}

// The address sanitizer looks for what is lost.
TEST(JinjaMemory, MacrosAndNamespacesThatHoldThemselvesAreFreed) {
  EXPECT_EQ(
      rendered("{% for i in [1, 2] %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}", OrderedJson::object()),
      "12");
  EXPECT_EQ(
      rendered("{% set n = namespace() %}{% set n.n = n %}{% macro m() %}x{% endmacro %}{% set n.m = m %}"
               "{% for i in [1] %}{% macro k() %}{{ n.m() }}{% endmacro %}{% set n.k = k %}{% endfor %}{{ n.k() }}",
               OrderedJson::object()),
      "x");
  EXPECT_EQ(rendered("{% set n = namespace() %}{% for i in [1, 2] if n.l is undefined or n.l.index %}"
                     "{% set n.l = loop %}{% macro m() %}{{ loop.last }}{% endmacro %}{% set n.m = m %}{% endfor %}"
                     "{{ n.l.nextitem is defined }}{{ n.m() }}",
                     OrderedJson::object()),
            "FalseTrue");
  EXPECT_THAT(
      message_of("{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}{{ raise_exception('no') }}{% endcall %}"),
      HasSubstr("raised: no"));
}

TEST(JinjaMarks, StandAroundGenerationBlocks) {
  const Template form("a{% generation %}b{% set x = 1 %}{% endgeneration %}{{ x is defined }}");
  EXPECT_TRUE(form.has_generation());
  EXPECT_FALSE(Template("a").has_generation());
  const OrderedJson none = OrderedJson::object();
  EXPECT_EQ(form.render({.variables = none, .functions = {}, .marks = {"<", ">"}}), "a<b>False");
  EXPECT_EQ(form.render({.variables = none, .functions = {}}), "abFalse");
}

}  // namespace
}  // namespace teratron::testing
