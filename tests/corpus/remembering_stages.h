// Stages that depend on all documents before, or on all of them, and count their work.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "corpus/stream/stage.h"

namespace teratron::testing {

// Drops a text that was there before, which it has to remember, and changes one in three of the others.
class SeenStage final : public Stage {
 public:
  explicit SeenStage(std::atomic<std::int64_t>* processed) : processed_(processed) {}
  std::string_view name() const override { return "seen"; }
  StageOutput process(Document document) const override {
    ++*processed_;
    if (document.text.size() % 7 == 0) return dropped("seven", document.text.substr(0, 2));
    document.changed = document.text.size() % 3 == 0;
    if (document.changed) document.text += "+";
    return kept(std::move(document));
  }
  std::optional<Drop> admit(const Document& document) override {
    if (!seen_.insert(document.text).second) return Drop{"seen", document.text.substr(0, 2)};
    state_delta_ += document.text + "\n";
    return std::nullopt;
  }
  std::string take_state_delta() override { return std::exchange(state_delta_, {}); }
  void restore_state(std::string_view delta) override {
    for (std::size_t end; !delta.empty(); delta.remove_prefix(end + 1)) {
      end = delta.find('\n');
      seen_.emplace(delta.substr(0, end));
    }
  }

 private:
  std::atomic<std::int64_t>* processed_;
  std::set<std::string> seen_;
  std::string state_delta_;
};

// Drops a text that comes three times or more, which it knows when it has seen all.
class OftenStage final : public Stage {
 public:
  explicit OftenStage(std::atomic<std::int64_t>* measured) : measured_(measured) {}
  std::string_view name() const override { return "often"; }
  bool needs_survey() const override { return true; }
  std::vector<std::uint64_t> measure(const Document& document) const override {
    ++*measured_;
    return std::vector<std::uint64_t>(document.text.size() % 3, key_of(document));  // none, too
  }
  void note(std::int64_t number, const std::vector<std::uint64_t>& measures) override {
    EXPECT_EQ(number, noted_++);
    for (const std::uint64_t key : measures) ++times_[key];
  }
  void settle(const Spool& spool) override { EXPECT_EQ(spool.size(), noted_); }
  StageOutput process(Document document) const override {
    const auto found = times_.find(key_of(document));
    if (found != times_.end() && found->second >= 3) return dropped("often", std::to_string(found->second));
    document.changed = document.text.size() % 5 == 0;
    if (document.changed) document.text += "-";
    return kept(std::move(document));
  }

 private:
  static std::uint64_t key_of(const Document& document) { return std::hash<std::string>()(document.text); }
  std::atomic<std::int64_t>* measured_;
  std::int64_t noted_ = 0;
  std::map<std::uint64_t, std::int64_t> times_;
};

}  // namespace teratron::testing
