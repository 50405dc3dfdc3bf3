// A rendering's bytes have a bound, and no operation of values is quadratic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/utf8.h"
#include "jinja/rendered.h"

namespace teratron::testing {
namespace {

using namespace jinja;
using ::testing::HasSubstr;
using ::testing::Not;
using OrderedJson = nlohmann::ordered_json;

std::string outcome(const std::string& source, std::size_t most_bytes,
                    const OrderedJson& variables = OrderedJson::object()) {
  try {
    return Template(source).render({.variables = variables, .functions = {}, .most_bytes = most_bytes});
  } catch (const Error& error) {
    return error.what();
  }
}

// 200 turns, each of which reads or makes 10 kB: few turns, and many bytes.
TEST(JinjaWork, BytesThatAreMadeOrReadEndInAnError) {
  const std::string begin =
      "{% set a = 'x' * 10000 %}{% set b = 'x' * 10000 %}{% set n = namespace(l=[], t='', d={}) %}"
      "{% for i in range(200) %}";
  for (const std::string work : {"{% set c = a ~ i %}",
                                 "{% set c = a + 'y' %}",
                                 "{% set n.l = n.l + [a ~ i] %}",
                                 "{% set n.t = n.t + 'x' * 500 %}",
                                 "{% set c %}{{ a }}{% endset %}",
                                 "{{ a == b }}",
                                 "{{ a < b }}",
                                 "{{ [a] == [b] }}",
                                 "{{ {'k': a} == {'k': b} }}",
                                 "{{ 'y' in a }}",
                                 "{{ a.find('y') }}",
                                 "{{ a.rfind('y') }}",
                                 "{{ a.count('y') }}",
                                 "{{ a.split('y') | length }}",
                                 "{{ a.strip('x') }}",
                                 "{{ (' ' * 10000) | trim }}",
                                 "{{ a.replace('x', '') }}",
                                 "{{ a | upper | length }}",
                                 "{{ a[1:] | length }}",
                                 "{{ a[::-1] | length }}",
                                 "{{ a | list | length }}",
                                 "{{ a | tojson | length }}",
                                 "{{ range(1000) | list | length }}",
                                 "{{ range(1000) | sum }}",
                                 "{{ [a] | map('upper') | list | length }}",
                                 "{% macro m() %}{{ a }}{% endmacro %}{% set c = m() %}"}) {
    EXPECT_THAT(outcome(begin + work + "{% endfor %}", 400'000), HasSubstr("more than 400000 bytes")) << work;
    EXPECT_THAT(outcome(begin + work + "{% endfor %}", std::size_t{1} << 30), Not(HasSubstr("bytes"))) << work;
  }
  EXPECT_EQ(outcome(begin + "{{ a | length }}{{ a[i] }}{{ a.startswith('x') }}{% endfor %}", 400'000).size(),
            200U * 10);
}

// A template has the whole bound again at its next rendering, also after an error.
TEST(JinjaWork, EveryRenderingHasItsOwnBound) {
  const OrderedJson none = OrderedJson::object();
  const Template form("{{ 'x' * 1000 }}");
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(form.render({.variables = none, .functions = {}, .most_bytes = 4000}).size(), 1000U);
    EXPECT_THROW(form.render({.variables = none, .functions = {}, .most_bytes = 900}), Error);
  }
}

// Each would take over 100 MB of work if every element were compared with every other.
TEST(JinjaWork, DictionariesViewsAndUniqueElementsAreFoundByTheirHash) {
  constexpr int kKeys = 3000;
  OrderedJson forward = OrderedJson::object(), backward = OrderedJson::object(), list = OrderedJson::array();
  for (int i = 0; i < kKeys; ++i) {
    forward["key " + std::to_string(i)] = i;
    backward["key " + std::to_string(kKeys - 1 - i)] = kKeys - 1 - i;
    list.push_back("Item " + std::to_string(i));
  }
  OrderedJson other = backward;
  other["key 7"] = "seven";
  const OrderedJson variables = {{"a", forward}, {"b", backward}, {"c", other}, {"l", list}};
  for (const auto& [source, result] : {std::pair<std::string, std::string>{"a == b", "True"},
                                       {"a == c", "False"},
                                       {"a.keys() == c.keys()", "True"},
                                       {"a.items() == b.items()", "True"},
                                       {"a.items() == c.items()", "False"},
                                       {"l | unique | list | length", "3000"},
                                       {"(l + l) | unique | list == l", "True"}}) {
    EXPECT_EQ(outcome("{{ " + source + " }}", 10'000'000, variables), result) << source;
  }
  EXPECT_EQ(
      outcome("{{ [1, 1.0, true, 'a', 'A', (1, 'b'), (true, 'b'), none, none, 0, -0.0] | unique | list }}", 10'000'000),
      "[1, 'a', (1, 'b'), None, 0]");
}

// The search of std::string would compare half a megabyte at each of half a million offsets.
TEST(JinjaWork, ATextIsFoundInLinearTime) {
  const std::string half = "{% set a = 'a' * 1048576 %}{% set h = 'a' * 524288 %}";
  EXPECT_EQ(outcome(half + "{{ a.find(h ~ 'b') }} {{ a.rfind('b' ~ h) }} {{ (h ~ 'b') in a }} {{ a.count('b' ~ h) }}",
                    std::size_t{1} << 30),
            "-1 -1 False 0");
  EXPECT_EQ(outcome(half + "{{ a.find(h) }} {{ a.rfind(h) }} {{ ('é' ~ h ~ 'b' ~ h).rfind(h) }}", std::size_t{1} << 30),
            "0 524288 524290");
  EXPECT_EQ(outcome(half + "{{ a.rsplit(h, 1) == ['a' * 524288, ''] }}", std::size_t{1} << 30), "True");
}

// Texts whose characters have one to four bytes, around the 64 characters between which offsets are known.
TEST(JinjaWork, CharactersAndSlicesOfTextsArePythons) {
  std::mt19937 draw(3);
  const std::vector<std::string> alphabet = {"a", "é", "→", "😀"};
  for (const int size : {0, 1, 63, 64, 65, 127, 128, 200}) {
    for (const std::size_t kinds : {1U, 2U, 4U}) {
      std::vector<std::string> characters;
      std::string text;
      for (int i = 0; i < size; ++i) text += characters.emplace_back(alphabet[draw() % kinds]);
      OrderedJson variables = {{"t", text}};
      const Template at("{{ t[i] }}"), slice("{{ t[b:e:s] }}"), length("{{ t | length }}");
      EXPECT_EQ(rendered(length, variables), std::to_string(size));
      for (int i = -size; i < size; ++i) {
        variables["i"] = i;
        EXPECT_EQ(rendered(at, variables), characters[static_cast<std::size_t>(i < 0 ? i + size : i)]);
      }
      for (int trial = 0; trial < 100; ++trial) {
        const auto draw_bound = [&] { return static_cast<int>(draw() % static_cast<unsigned>(size + 3)); };
        const int begin = draw_bound(), end = draw_bound();
        const int step = static_cast<int>(draw() % 5) + 1, sign = draw() % 2 == 0 ? 1 : -1;
        variables["b"] = begin, variables["e"] = end, variables["s"] = sign * step;
        std::string expected;
        for (int i = sign > 0 ? begin : std::min(begin, size - 1); sign > 0 ? i < std::min(end, size) : i > end;
             i += sign * step) {
          expected += characters[static_cast<std::size_t>(i)];
        }
        EXPECT_EQ(rendered(slice, variables), expected) << size << " " << begin << ":" << end << ":" << sign * step;
      }
    }
  }
  EXPECT_EQ(rendered("{{ 'aé'[2] is undefined }}{{ 'aé'[-3] is undefined }}{{ 'aéb'[-2:] }}{{ 'aéb'[:-1] }}",
                     OrderedJson::object()),
            "TrueTrueébaé");
}

}  // namespace
}  // namespace teratron::testing
