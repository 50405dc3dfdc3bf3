// Text that a program writes to a stream.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/lines.h"

namespace teratron::testing {

class WrittenStream {
 public:
  WrittenStream() : file_(::open_memstream(&text_, &size_)) {}
  WrittenStream(const WrittenStream&) = delete;
  WrittenStream& operator=(const WrittenStream&) = delete;
  ~WrittenStream() {
    std::fclose(file_);
    std::free(text_);
  }
  std::FILE* file() { return file_; }
  std::string text() {   // so far
    ::flockfile(file_);  // another thread may write
    std::fflush(file_);
    std::string text(text_, size_);
    ::funlockfile(file_);
    return text;
  }
  std::vector<std::string> lines() { return lines_of(text()); }

 private:
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* file_;
};

}  // namespace teratron::testing
