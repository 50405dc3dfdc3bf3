// Runs of stages that end at random points, and go on.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>

#include "base/compressed.h"
#include "base/error.h"
#include "base/files/decompression.h"
#include "base/host/threads.h"
#include "base/philox.h"
#include "base/trials.h"
#include "corpus/pages.h"
#include "corpus/remembering_stages.h"
#include "corpus/stream/journal.h"

namespace teratron::testing {

class CorpusJournal : public ::testing::Test {
 protected:
  struct Killed {};  // what no part of the stream catches
  struct Ends {
    std::int64_t points = 0;  // of the journal, before
    bool by_signal = false;   // else as if it was killed
  };
  // By the letters of kinds_: extract, seen, often.
  std::vector<std::unique_ptr<Stage>> stages() {
    std::vector<std::unique_ptr<Stage>> made;
    for (const char kind : kinds_) {
      if (kind == 'e') made.push_back(make_extract_stage({.least_characters = 20}));
      if (kind == 's') made.push_back(std::make_unique<SeenStage>(&processed_));
      if (kind == 'o') made.push_back(std::make_unique<OftenStage>(&measured_));
    }
    return made;
  }

  void write_inputs(std::uint64_t documents) {
    options_.files.clear();
    for (const std::string name : {"a.jsonl", "b.jsonl.gz", "c.txt", "d.jsonl.zst"}) {
      std::string lines;
      for (std::uint64_t left = name == "c.txt" ? 1 : random_.below(documents); left > 0; --left) {
        if (random_.below(9) == 0) lines += "\n";
        const std::string text(random_.below(90), static_cast<char>('a' + random_.below(2)));
        lines += random_.below(40) == 0 ? "bad\n" : "{\"text\": \"" + text + "\"}\n";
      }
      options_.files.push_back(folder_ / name);
      write_file_atomically(options_.files.back(), name == "b.jsonl.gz"    ? gzip(lines)
                                                   : name == "d.jsonl.zst" ? zstd(lines)
                                                                           : lines);
    }
  }

  // Every kind of file that pages come in, and of record.
  void write_pages() {
    const auto page = [&] { return page_of(random_paragraphs(random_, random_.below(5))); };
    const auto warc = [&] {
      std::string records;
      for (std::uint64_t left = random_.below(40); left > 0; --left) {
        const std::uint64_t kind = random_.below(5);
        if (kind == 0) records += warc_record("about", {.type = "request"});
        if (kind == 1) records += warc_record("", {.type = "metadata"});
        if (kind == 2) records += warc_record(http_response("gone", "", 404));
        if (kind > 2) records += warc_record(http_response(page()));
      }
      return records + warc_record("", {.type = "metadata"});
    };
    std::string lines;
    for (std::uint64_t left = 1 + random_.below(40); left > 0; --left) {
      lines += random_.below(9) == 0 ? "bad\n" : nlohmann::json{{"html", page()}}.dump() + "\n";
    }
    const std::map<std::string, std::string> contents = {{"a.html", page()},
                                                         {"b.warc.gz", gzip(warc())},
                                                         {"c.jsonl.zst", zstd(lines)},
                                                         {"d.htm", page()},
                                                         {"e.warc", warc()}};
    options_.files.clear();
    for (const auto& [name, content] : contents) {
      options_.files.push_back(folder_ / name);
      write_file_atomically(options_.files.back(), content);
    }
  }

  // Ends runs at random, and later and later, until one comes to its own end. What it leaves is what one run does that
  // nothing ends.
  void expect_same_bytes(std::int64_t most_batch_bytes, std::uint64_t most_points) {
    const auto any_size = [&] {
      return static_cast<std::int64_t>(1 + random_.below(static_cast<std::uint64_t>(most_batch_bytes)));
    };
    options_.batch_bytes = any_size();
    const std::vector<std::string> expected = undisturbed();
    bool is_done = false;
    for (std::uint64_t ended = 0; !is_done; ++ended) {
      ASSERT_LT(ended, 500);
      set_thread_count(1 + static_cast<int>(random_.below(3)));
      options_.batch_bytes = any_size();
      options_.journal_seconds = random_.below(2) == 0 ? 0 : 0.001;  // a point after each batch, or after some
      const Ends ends{.points = static_cast<std::int64_t>(random_.below(most_points + ended)) + 1,
                      .by_signal = random_.below(2) == 0};
      is_done = run(&ends);
      EXPECT_EQ(is_done, std::filesystem::exists(options_.out));
    }
    EXPECT_TRUE(results() == expected) << kinds_ << "\n" << told_;
    EXPECT_EQ(names_there().size(), options_.files.size() + 2);  // and the results
    std::filesystem::remove(options_.out);
    std::filesystem::remove(options_.dropped);
  }

  // Runs to its end, or to the one that is given. Returns whether it came to its own.
  bool run(const Ends* ends = nullptr) {
    std::int64_t asked = 0;
    options_.end_signal = [&] {
      if (ends == nullptr || asked++ < ends->points) return 0;
      if (!ends->by_signal) throw Killed();
      return SIGTERM;
    };
    options_.report = [&](std::string_view line) { told_ += std::string(line) + "\n"; };
    const auto made = stages();
    try {
      statistics_ = json_of(run_stages(made, options_), made).dump();
      return true;
    } catch (const Killed&) {
      return false;
    } catch (const EndedBySignal& end) {
      EXPECT_EQ(end.exit_code(), 128 + SIGTERM);
      return false;
    }
  }
  std::vector<std::string> results() const {
    return {read_file(options_.out), read_file(options_.dropped), statistics_};
  }
  std::vector<std::string> names_there() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }
  // The result of one run over the inputs; its files are removed.
  std::vector<std::string> undisturbed() {
    EXPECT_TRUE(run());
    const std::vector<std::string> expected = results();
    std::filesystem::remove(options_.out);
    std::filesystem::remove(options_.dropped);
    processed_ = measured_ = 0;
    told_.clear();
    return expected;
  }

  TemporaryFolder folder_;
  RandomSequence random_{RandomStream{.seed = 51}};
  StreamOptions options_{.out = folder_ / "out.jsonl",
                         .dropped = folder_ / "dropped.jsonl",
                         .max_bad_share = 1,
                         .batch_bytes = 300,
                         .journal_seconds = 0};
  std::string kinds_ = "ss";
  std::atomic<std::int64_t> processed_{0}, measured_{0};
  std::string statistics_, told_;
};

}  // namespace teratron::testing
