#include "run/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/free_place.h"
#include "base/host/standard_streams.h"
#include "console/live_line.h"
#include "console/long_task.h"
#include "console/readable.h"
#include "console/term_list.h"
#include "profile/machine_speed.h"
#include "run/observers/tensorboard_observer.h"
#include "run/start_text.h"
#include "telemetry/checkpoint_progress.h"
#include "telemetry/trace_file.h"
#include "train/save_folder.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> missing_folders(fs::path folder) {
  std::vector<fs::path> missing;
  std::error_code error;
  for (; !folder.empty() && !fs::exists(folder, error); folder = folder.parent_path()) missing.push_back(folder);
  return missing;
}

// Peak operations per second of all ranks together, measured or by --peak-tflops.
double peak_flops_of(const TrainConfig& config, Backend& backend, const Rank& rank) {
  std::optional<LongTask> progress;
  if (rank.is_first()) progress.emplace("measuring how fast the ranks compute");
  const double given = config.output.peak_tflops;
  return given > 0 ? 1e12 * given * rank.world.size() : peak_flops(backend, rank.world);
}

std::int64_t most_planned(std::span<const RankMemory> ranks) {
  std::int64_t most = 0;
  for (const RankMemory& rank : ranks) most = std::max(most, rank.total());
  return most;
}

}  // namespace

MadeFolders::MadeFolders(const fs::path& folder) : MadeFolders(missing_folders(folder)) {
  make_folders(folder);  // where it throws, the destructor removes what it made
}

MadeFolders::~MadeFolders() {
  for (const fs::path& folder : made_) ::rmdir(folder.c_str());  // fails, as it should, if something lies there
}

HeldSaveFolder::HeldSaveFolder(const fs::path& folder)
    : folders_(folder),
      lock_(folder, SaveLockSettings{.notice = [](const std::string& text) { report_to_user(text); }}) {}

Run::Run(const RunSetup& setup, TrainingTask task)
    : setup_(setup), trainer_(setup.config, setup.backend, std::move(task), setup.rank.mesh, setup.profile) {}

std::int64_t Run::start() {
  std::optional<LongTask> progress;
  if (setup_.rank.is_first() && setup_.checkpoint != nullptr) {
    std::uint64_t bytes = 0;
    for (const CheckpointFileInfo& file : setup_.checkpoint->files) bytes += file.bytes;
    progress.emplace(fmt::format("loading '{}'", setup_.checkpoint->folder.string()), share_of_checksums(bytes));
  } else if (setup_.rank.is_first()) {
    const fs::path& weights = config().output.finetune;
    progress.emplace(weights.empty() ? "drawing weights" : fmt::format("loading '{}'", weights.string()));
  }
  return trainer_.start();
}

TrainingResult Run::run_first_rank(std::int64_t done, const RunControl& control, double peak_flops,
                                   std::int64_t planned_memory) {
  const std::string text = text_of_progress(config(), setup_.checkpoint, done, trainer_.has_work());
  if (!text.empty()) report_to_user(fitted(text, terminal_columns(stderr)));
  if (!trainer_.has_work()) {
    TrainingObserver silent;
    return trainer_.run(silent, control);
  }
  prepare_tensorboard(config());
  prepare_trace();
  if (const std::vector<fs::path> aside = begin_save_folder(config(), done); !aside.empty()) {
    report_to_user(fmt::format("{} set aside in '{}'", counted(std::ssize(aside), "later checkpoint"),
                               aside.front().parent_path().string()));
  }
  add_run_observers(observers_, config(), trainer_, done, peak_flops,
                    std::make_shared<MemoryGauge>(setup_.launch.board(), setup_.backend,
                                                  setup_.rank.ranks_in_this_process(), planned_memory));
  if (config().output.save.empty()) return trainer_.run(observers_, control);
  const LiveRun begin{.host = setup_.rank.environment.host, .iteration = done, .iterations = config().train_iters};
  auto status = std::make_unique<LiveStatus>(setup_.launch.board(), config().output.save, begin);
  LiveStatus& live = *status;
  observers_.add(std::move(status));
  const TrainingResult result = trainer_.run(observers_, control);
  live.end_in_order();
  return result;
}

// Stops the run before its first update if its trace could not be written at its end.
void Run::prepare_trace() {
  const fs::path& trace = config().output.trace;
  writes_trace_ = !trace.empty();
  if (trace.empty() || is_standard_stream(trace)) return;
  if (trace.has_parent_path()) trace_folders_.emplace(trace.parent_path());
  require_replaceable(trace, "trace of teratron", kTraceBeginning);
}

void Run::write_trace() {
  if (!trainer_.trace()) return;
  const std::string text = gather_trace(*trainer_.trace(), *setup_.rank.mesh, setup_.rank.world);
  if (!writes_trace_) return;
  try {
    write_file_atomically(config().output.trace, text);
  } catch (const EnvironmentError& error) {
    report_to_user(fmt::format("warning: {}; there is no trace of this run", error.what()));
  }
}

TrainingResult Run::run() {
  const Rank& rank = setup_.rank;
  Backend& backend = setup_.backend;
  const double peak_flops = peak_flops_of(config(), backend, rank);
  const std::vector<RankMemory> memory =
      memory_of_ranks(trainer_.executor().plan(), backend, rank.world, trainer_.bytes_of_copy());
  if (rank.is_first()) {
    const StartText start{config(), setup_.checkpoint, trainer_, setup_.launch.layout(), memory};
    report_to_user(fitted(start.text(backend), terminal_columns(stderr)));
    if (!config().output.save.empty()) save_folder_.emplace(config().output.save);
    check_save_folder(config());
  }
  const MemoryPlanContext context{.vocab_size = trainer_.task().config.vocab_size,
                                  .compute_dtype = backend.compute_dtype(),
                                  .profile = setup_.profile,
                                  .threads = computing_threads(backend),
                                  .on_gpu = backend.name() == "cuda",
                                  .captures_graphs = backend.captures_graphs()};
  require_memory(memory, backend, rank.world, rank.ranks_in_this_process(),
                 [&](const MemoryRoom& room) { return memory_advice(config(), context, room, setup_.has_flag); });
  rank.world.barrier();  // ranks allocate only after the check of all
  const std::int64_t done = start();
  rank.world.barrier();  // files change only after the start of all ranks
  const RunControl control{.signal = EndSignals::came, .began = setup_.launch.began()};
  setup_.launch.end_signals().listen();
  TrainingObserver silent;
  const TrainingResult result =
      rank.is_first() ? run_first_rank(done, control, peak_flops, most_planned(memory)) : trainer_.run(silent, control);
  write_trace();
  return result;
}

}  // namespace teratron
