// Shared by the tests of tasks: sets of given texts, read with the vocabulary of synthetic_tasks.h.
#pragma once

#include <gtest/gtest.h>

#include "base/error.h"
#include "tasks/synthetic_tasks.h"

namespace teratron::testing {

inline TaskReading reading_of(std::int64_t seq_length, std::int64_t max_query_length, std::int64_t doc_stride) {
  return {.seq_length = seq_length, .max_query_length = max_query_length, .doc_stride = doc_stride};
}

class TaskFiles : public ::testing::Test {
 protected:
  std::unique_ptr<TaskSet> open(TaskKind kind, const std::vector<std::string>& texts, const TaskReading& reading,
                                bool training = false) {
    std::vector<std::filesystem::path> files;
    for (const std::string& text : texts) {
      files.push_back(folder_ / fmt::format("{}-{}", files.size(), task_file_name(kind)));
      put_file(files.back(), text);
    }
    return open_task(kind, files, tokenizer_, with_columns_of(kind, reading), training);
  }
  std::unique_ptr<TaskSet> open(TaskKind kind, const std::string& text, bool training = false) {
    TaskReading reading = default_reading(kind);
    reading.doc_stride = std::min(reading.doc_stride, reading.seq_length / 4);  // as `finetune` fills it in
    return open(kind, std::vector{text}, reading, training);
  }
  std::string refusal(TaskKind kind, const std::vector<std::string>& texts, const TaskReading& reading,
                      bool training = false) {
    return message_of<UserError>([&] { open(kind, texts, reading, training); });
  }
  std::string predictions(const TaskSet& set, const TaskOutputValues& outputs) {
    set.write_predictions(folder_ / "predictions", outputs);
    return bytes_of_file(folder_ / "predictions");
  }
  std::vector<std::int32_t> framed(const std::string& a, const std::string& b) const {
    std::vector<std::int32_t> ids = {2};
    tokenizer_.encode_to(a, ids);
    ids.push_back(3);
    tokenizer_.encode_to(b, ids);
    ids.push_back(3);
    return ids;
  }

  TemporaryFolder folder_;
  Tokenizer tokenizer_ = task_tokenizer(folder_);
};

}  // namespace teratron::testing
