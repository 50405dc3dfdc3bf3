#include "corpus/stream/line_parts.h"

#include <memory>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/free_place.h"
#include "base/files/output_lock.h"
#include "base/utf8.h"
#include "corpus/stream/line_writer.h"
#include "data/text/content.h"
#include "data/text/document_reader.h"
#include "data/text/input_files.h"
#include "data/text/json_members.h"
#include "data/text/json_scanner.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLineBatch = std::int64_t{8} << 20;

void require_lines(std::span<const fs::path> files) {
  for (const fs::path& file : files) {
    if (is_standard_stream(file) || (fs::exists(file) && !fs::is_regular_file(file))) {
      throw_user_error("{} cannot be read twice; name files of JSON lines, compressed or not, or corpora by PREFIX",
                       name_of_input(file));
    }
    const Content content = content_of_file(file);
    require_readable(content, file, "");
    if (content.kind != ContentKind::kText) continue;
    throw_user_error(
        "{} is plain text, which is one document; name files of JSON lines, or tokenised corpora by PREFIX",
        name_of_input(file));
  }
}

// Why other commands refuse the line; empty: they read it.
std::string fault_of_line(std::string_view line) {
  if (!is_utf8(line)) return "it is not UTF-8";
  if (!is_json(line)) return json_fault(line);
  return line[line.find_first_not_of(" \t\r\n")] == '{' ? "" : "it is not a JSON object";
}

[[noreturn]] void throw_changed(std::span<const fs::path> files) {
  throw_user_error("{} changed while it was read; nothing was written. Run again when nobody writes to it",
                   files.size() == 1 ? name_of_input(files[0]) : "one of the files");
}

}  // namespace

std::int64_t count_lines(std::span<const fs::path> files) {
  const std::vector<fs::path> found = find_input_files(files);
  require_lines(found);
  DocumentReader reader(found, kLineBatch);
  reader.advise_flag("");
  std::int64_t lines = 0;
  for (DocumentBatch batch; reader.next(batch);) lines += std::ssize(batch.documents);
  return lines;
}

CopiedLines copy_lines(std::span<const fs::path> files, std::span<const fs::path> outs,
                       std::span<const std::uint8_t> parts, const std::function<void(double)>& progress) {
  const std::vector<fs::path> found = find_input_files(files);
  require_lines(found);
  require_separate(found, outs);
  DocumentReader reader(found, kLineBatch);
  reader.advise_flag("");
  reader.stay_silent();
  std::vector<OutputLock> locks;
  std::vector<std::unique_ptr<LineWriter>> writers;
  for (const fs::path& out : outs) {
    if (out.has_parent_path()) make_folders(out.parent_path());
    locks.emplace_back(out);
    writers.push_back(std::make_unique<LineWriter>(out));
  }
  CopiedLines copied;
  copied.lines.resize(outs.size());
  std::size_t line = 0;
  for (DocumentBatch batch; reader.next(batch);) {
    for (const RawDocument& one : batch.documents) {
      if (line == parts.size()) throw_changed(files);
      const std::size_t part = parts[line++];
      if (part >= outs.size()) continue;
      writers[part]->write(one.bytes);
      ++copied.lines[part];
      if (const std::string fault = fault_of_line(one.bytes); !fault.empty() && copied.faulty++ == 0) {
        copied.first_fault = fmt::format("{}: {}", place_of(*one.file, one.line, one.unit), fault);
      }
    }
    if (progress) progress(static_cast<double>(line) / static_cast<double>(parts.size()));
  }
  if (line != parts.size()) throw_changed(files);
  for (const auto& writer : writers) writer->finish();
  for (const auto& writer : writers) writer->commit();
  return copied;
}

}  // namespace teratron
