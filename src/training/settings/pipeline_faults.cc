// Faults of pipeline settings.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "base/counted.h"
#include "base/error.h"
#include "model/family.h"
#include "pipeline/token_slices.h"
#include "settings/step_settings.h"

namespace teratron {
namespace {

using pipeline::ScheduleKind;

constexpr std::int64_t kMostVirtualStages = 1000, kMostFlushes = 1'000'000;
constexpr int kMostByDocuments = 256;  // slices, whose choice takes time and memory for each pair

constexpr Flag kStages{"pipeline-model-parallel-size"}, kVirtualStages{"virtual-stages"}, kSchedule{"schedule"},
    kLayout{"pipeline-layout"}, kLayers{"num-layers"}, kTokenSlices{"token-slices"}, kSeqLength{"seq-length"},
    kSequenceParallel{"sequence-parallel"}, kMicroBatchSize{"micro-batch-size"}, kFlushes{"pipeline-flushes"},
    kVocabularyParallel{"vocabulary-parallel"}, kRecompute{"recompute-granularity"}, kGlobalBatch{"global-batch-size"};

// Multiples of `unit` next to `value`, which is none: "below and above".
std::string nearest_multiples(std::int64_t value, std::int64_t unit) {
  const std::int64_t below = value / unit * unit;
  return below > 0 ? fmt::format("{} and {}", below, below + unit) : fmt::format("{}", unit);
}

// Whether products of sizes cannot overflow. BatchSettings reports invalid sizes.
bool has_sizes(const StepSettings& s) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const auto is_size = [](std::int64_t value) { return value >= 1 && value <= kMost; };
  return is_size(s.batch.micro_batch_size) && is_size(s.layout.data_parallel) &&
         (s.batch.global_batch_size == 0 || is_size(s.batch.global_batch_size));
}

class PipelineFaults {
 public:
  explicit PipelineFaults(const StepSettings& settings) : s_(settings), kind_(schedule_kind(settings.pipeline)) {}

  Faults find() {
    faults_.need_between(kVirtualStages, s_.pipeline.virtual_stages, 1, kMostVirtualStages);
    const bool stages_make_sense =
        faults_.empty() && s_.layout.pipeline_parallel >= 1 && s_.layout.pipeline_parallel <= kMostLayers;
    faults_.need_between(kFlushes, s_.pipeline.flushes, 1, kMostFlushes);
    const std::optional<pipeline::TokenSlices> slices = parsed_slices();
    if (slices) check_slices(*slices);
    faults_.add_if(!s_.pipeline.token_slices.empty() && !s_.model.config.family().continues_text,
                   "{} needs a model whose tokens see no later ones, and BERT's see all of them: a sequence cannot be "
                   "computed in parts. Leave it out; micro-batches fill the pipeline",
                   kTokenSlices);
    faults_.add_if(
        !s_.pipeline.profile.empty() && !s_.model.config.family().continues_text,
        "{} holds measured costs of token slices, and a BERT's sequences are not cut into slices; leave it out",
        Flag{"profile"});
    if (s_.pipeline.vocabulary_parallel) check_vocabulary(slices && slices->automatic);
    if (!stages_make_sense) return std::move(faults_);
    check_flushes(slices);
    check_kind(!slices ? 1 : slices->automatic ? 2 : slices->count);  // automatic: several
    if (s_.model.config.num_layers >= 1 && s_.model.config.num_layers <= kMostLayers) check_layers();
    check_size(slices);
    check_recompute(slices);
    return std::move(faults_);
  }

 private:
  std::int64_t cells() const { return s_.layout.pipeline_parallel * s_.pipeline.virtual_stages; }

  void check_vocabulary(bool slices_are_automatic) {
    faults_.add_if(s_.layout.pipeline_parallel == 1,
                   "{} shares the vocabulary out over stages, and there is one; give {} 2 or more, or leave it out",
                   kVocabularyParallel, kStages);
    faults_.add_if(!s_.model.config.family().continues_text,
                   "{} is for models that continue text, and BERT does not; leave it out", kVocabularyParallel);
    faults_.add_if(slices_are_automatic,
                   "{} is {}, which measures stages with the whole vocabulary on the last; with {} give the slices, "
                   "such as uniform:4",
                   kTokenSlices, s_.pipeline.token_slices, kVocabularyParallel);
  }

  void check_flushes(const std::optional<pipeline::TokenSlices>& slices) {
    faults_.add_if(
        s_.pipeline.flushes > 1 && !pipeline::traits_of(kind_).holds_all,
        "{} is {}, but schedule {} holds the activations of few micro-batches anyway; leave it out, or choose "
        "{} gpipe or terapipe",
        kFlushes, s_.pipeline.flushes, pipeline::name_of(kind_), kSchedule);
    if (!has_sizes(s_)) return;
    const std::int64_t most = slices && !slices->cuts.empty()
                                  ? std::ssize(slices->cuts)
                                  : (s_.largest_share() + s_.batch.micro_batch_size - 1) / s_.batch.micro_batch_size;
    faults_.add_if(s_.pipeline.flushes > most, "{} is {}, but an update has {}; the most that works is {}", kFlushes,
                   s_.pipeline.flushes, counted(most, "micro-batch", "micro-batches"), most);
  }

  void check_kind(int slices) {
    faults_.add_if(s_.pipeline.virtual_stages > 1 && s_.layout.pipeline_parallel == 1,
                   "{} is {}, but there is one stage; give {} 2 or more, or leave it out", kVirtualStages,
                   s_.pipeline.virtual_stages, kStages);
    const auto stages = static_cast<int>(s_.layout.pipeline_parallel);
    faults_.add(pipeline::size_faults(
        kind_,
        {.stages = stages,
         .micro_batches = stages,
         .slices = slices,
         .virtual_stages = static_cast<int>(s_.pipeline.virtual_stages)},
        {.stages = kStages, .slices = kTokenSlices, .kind = kSchedule, .slices_as_given = s_.pipeline.token_slices}));
  }

  void check_layers() {
    const std::int64_t layers = s_.model.config.num_layers;
    if (s_.layout.pipeline_parallel > layers) {
      faults_.add("{} is {}, but the model has {} ({}) and every stage needs one; the most that works is {}", kStages,
                  s_.layout.pipeline_parallel, counted(layers, "layer"), kLayers, layers);
    } else if (cells() > layers) {
      faults_.add(
          "{} is {}, which makes {} cells of {} {}, but the model has {} ({}) and every cell needs one; the most "
          "that works is {}",
          kVirtualStages, s_.pipeline.virtual_stages, cells(), kStages, s_.layout.pipeline_parallel,
          counted(layers, "layer"), kLayers, layers / s_.layout.pipeline_parallel);
    } else if (s_.pipeline.chooses_layers()) {
      return;
    } else if (!s_.pipeline.layout.empty()) {
      check_layout();
    } else if (layers % cells() != 0) {
      faults_.add("{} {} cannot be shared alike by the {}; nearest that can: {}; or give {} {}", kLayers, layers,
                  cells_text(), nearest_multiples(layers, cells()), kLayout, fmt::join(cell_layers(s_), ","));
    }
  }

  Fault cells_text() const {
    const Fault stages = Fault::of("{} stages of {}", s_.layout.pipeline_parallel, kStages);
    if (s_.pipeline.virtual_stages == 1) return stages;
    return Fault::of("{} cells ({} of {} on each of {})", cells(), s_.pipeline.virtual_stages, kVirtualStages, stages);
  }

  void check_layout() {
    const std::string& given = s_.pipeline.layout;
    const std::optional<std::vector<std::int64_t>> layout = comma_separated(given);
    const std::string offer = fmt::format(
        "such as {}", fmt::join(pipeline::even_slices(s_.model.config.num_layers, static_cast<int>(cells())), ","));
    if (!layout) {
      return faults_.add("{} is '{}'; it must be the layers of each cell, {}, or auto", kLayout, given, offer);
    }
    if (static_cast<std::int64_t>(layout->size()) != cells()) {
      return faults_.add("{} {} has {}; {} are needed for the {}, {}", kLayout, given,
                         counted(std::ssize(*layout), "cell"), cells(), cells_text(), offer);
    }
    std::int64_t sum = 0;
    for (std::size_t cell = 0; cell < layout->size(); ++cell) {
      const std::int64_t layers = (*layout)[cell];
      if (layers < 1 || layers > kMostLayers) {
        return faults_.add("{} {} gives cell {} {}; every cell needs 1 to {}, {}", kLayout, given, cell,
                           counted(layers, "layer"), kMostLayers, offer);
      }
      sum += layers;
    }
    faults_.add_if(sum != s_.model.config.num_layers,
                   "{} {} adds up to {}, not to the {} of {}; give one that does, {}", kLayout, given,
                   counted(sum, "layer"), s_.model.config.num_layers, kLayers, offer);
  }

  void check_recompute(const std::optional<pipeline::TokenSlices>& slices) {
    const std::string& given = s_.layout.recompute;
    const auto stages = static_cast<std::size_t>(s_.layout.pipeline_parallel);
    constexpr std::size_t kMostOffered = 8;
    std::vector<std::string> offer(stages <= kMostOffered ? stages : 1, name_of(Recompute::kNone));
    offer.front() = StageRecompute{.kind = Recompute::kFull, .layers = offer.size() > 1 ? 0 : 1}.text();
    const std::optional<std::vector<StageRecompute>> list = parse_recompute(given);
    if (!list) {
      return faults_.add(
          "{} is '{}'; it must be none, selective or full, or a list of them for every stage, such as {}; full:2 is of "
          "the first 2 layers of a cell, full@2 of the first 2 token slices",
          kRecompute, given, fmt::join(offer, ","));
    }
    if (list->size() != 1 && list->size() != stages) {
      return faults_.add("{} {} is of {}, and the pipeline has {} ({}); give one kind, or one of each stage",
                         kRecompute, given, counted(std::ssize(*list), "stage"), stages, kStages);
    }
    for (const StageRecompute& stage : *list) check_parts(stage, slices);
  }

  void check_parts(const StageRecompute& stage, const std::optional<pipeline::TokenSlices>& slices) {
    const std::int64_t layers = s_.model.config.num_layers;
    faults_.add_if(stage.layers > layers && layers >= 1, "{} {} is of {} of a cell, and the model has {} ({})",
                   kRecompute, stage.text(), counted(stage.layers, "layer"), layers, kLayers);
    if (stage.slices == 0) return;
    const bool is_chosen = slices && slices->automatic;
    faults_.add_if(is_chosen, "{} {} is of {}, but {} is {}: their number is still to be chosen; leave out @{}",
                   kRecompute, stage.text(), counted(stage.slices, "token slice"), kTokenSlices,
                   s_.pipeline.token_slices, stage.slices);
    const bool is_known = slices ? !slices->automatic : s_.pipeline.token_slices.empty();
    const std::int64_t most = slices ? slices->count : 1;
    faults_.add_if(is_known && stage.slices > most,
                   "{} {} is of {} token slices, and a sequence {}; leave out @{}, or give more slices ({})",
                   kRecompute, stage.text(), stage.slices, most > 1 ? fmt::format("has {}", most) : "runs whole",
                   stage.slices, kTokenSlices);
  }

  // Parses --token-slices; nullopt: whole sequences, or a text that is a fault.
  std::optional<pipeline::TokenSlices> parsed_slices() {
    const std::string& given = s_.pipeline.token_slices;
    if (given.empty()) return std::nullopt;
    // A single number might be meant as the length of slices.
    if (given.find_first_not_of("0123456789") == std::string::npos) {
      faults_.add("{0} is {1}; give the lengths of all slices, separated by commas, or uniform:{1} for {1} slices",
                  kTokenSlices, given);
      return std::nullopt;
    }
    try {
      return pipeline::parse_token_slices("--token-slices", given);
    } catch (const UserError& error) {
      faults_.add({.flags = {std::string(kTokenSlices.name)}, .text = error.what()});
      return std::nullopt;
    }
  }

  void check_slices(const pipeline::TokenSlices& slices) {
    const bool sequence_parallel = s_.layout.sequence_parallel && s_.layout.tensor_parallel > 1;
    const std::int64_t most = slices.cuts.empty() ? s_.batch.micro_batch_size : slices.cuts.front().sequences;
    faults_.add_if(sequence_parallel && most > 1 && (slices.automatic || slices.count > 1),
                   "{} with {} takes one sequence at a time, but {} is {}; give 1", kSequenceParallel, kTokenSlices,
                   slices.cuts.empty() ? kMicroBatchSize : kTokenSlices,
                   slices.cuts.empty() ? fmt::format("{}", most) : s_.pipeline.token_slices);
    faults_.add_if(
        sequence_parallel && slices.joint && most == 1,
        "{} is joint, but {} takes one sequence at a time, which leaves no micro-batches to choose; leave it out",
        kTokenSlices, kSequenceParallel);
    if (slices.automatic || s_.model.seq_length < 1) return;
    const std::int64_t unit = sequence_parallel ? s_.layout.tensor_parallel : 1;
    if (!slices.cuts.empty()) return check_cuts(slices.cuts, unit);
    faults_.add_if(
        slices.by_documents && slices.count > kMostByDocuments,
        "{} {} is more slices than are chosen for every micro-batch anew; the most that works is documents:{}",
        kTokenSlices, s_.pipeline.token_slices, kMostByDocuments);
    if (slices.lengths.empty()) return check_count(slices.count, unit);
    check_lengths(slices.lengths, unit);
  }

  void check_cuts(const std::vector<pipeline::MicroBatchCut>& cuts, std::int64_t unit) {
    std::int64_t sequences = 0;
    for (const pipeline::MicroBatchCut& cut : cuts) {
      sequences += cut.sequences;
      if (!check_lengths(cut.slice_tokens, unit)) return;
    }
    if (!has_sizes(s_)) return;
    const std::int64_t share = s_.largest_share();
    faults_.add_if(
        sequences != share,
        "{} {} is of {} sequences, but an update has {} on each copy of the model; give {} {}, or micro-batches "
        "of {} sequences",
        kTokenSlices, s_.pipeline.token_slices, sequences, share, kGlobalBatch, sequences * s_.layout.data_parallel,
        share);
  }

  // Checks the slices of one sequence; returns whether they are valid.
  bool check_lengths(const std::vector<std::int64_t>& lengths, std::int64_t unit) {
    const std::int64_t sum = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    faults_.add_if(sum != s_.model.seq_length, "{} {} adds up to {} tokens, {} {} than {} {}; change one of them",
                   kTokenSlices, s_.pipeline.token_slices, sum, std::abs(sum - s_.model.seq_length),
                   sum > s_.model.seq_length ? "more" : "fewer", kSeqLength, s_.model.seq_length);
    for (const std::int64_t length : lengths) {
      if (length % unit == 0) continue;
      faults_.add(
          "{} {} has a slice of {} tokens, which {} cannot share out over the {} ranks of {}; nearest that it can: {}",
          kTokenSlices, s_.pipeline.token_slices, length, kSequenceParallel, unit, Flag{"tensor-model-parallel-size"},
          nearest_multiples(length, unit));
      return false;
    }
    return sum == s_.model.seq_length;
  }

  void check_count(std::int64_t count, std::int64_t unit) {
    const std::int64_t most = s_.model.seq_length / unit;
    if (count <= most || most == 0) return;
    const Fault parts = unit > 1 ? Fault::of("runs of {} tokens, one for each rank of {}", unit, kSequenceParallel)
                                 : Fault::of("tokens");
    faults_.add("{} {} is more slices than {} {} has {}; the most that works is uniform:{}", kTokenSlices,
                s_.pipeline.token_slices, kSeqLength, s_.model.seq_length, parts, most);
  }

  // Refuses a schedule that is too long to hold, be it of whole sequences.
  void check_size(const std::optional<pipeline::TokenSlices>& given) {
    if (s_.batch.micro_batch_size < 1 || s_.batch.global_batch_size < 0 || s_.layout.data_parallel < 1) return;
    const std::int64_t slices = given && !given->automatic ? given->count : 1;
    const double samples =
        static_cast<double>(s_.batch.global_batch_size) / static_cast<double>(s_.layout.data_parallel);
    const double micro_batches = given && !given->cuts.empty()
                                     ? static_cast<double>(given->cuts.size())
                                     : std::max(1.0, samples / static_cast<double>(s_.batch.micro_batch_size));
    const double actions = 3 * micro_batches * static_cast<double>(cells() * slices);
    if (actions <= static_cast<double>(pipeline::kMostActions)) return;
    const Fault batch = slices > 1 ? Fault::of("{} {}", kTokenSlices, s_.pipeline.token_slices)
                                   : Fault::of("{} {}", kGlobalBatch, s_.batch.global_batch_size);
    const Fault advice = slices > 1 ? Fault::of("fewer slices") : Fault::of("a smaller {}", kGlobalBatch);
    faults_.add(
        "{} in {:.0f} micro-batches on {} makes a schedule of {:.0f} actions, and {} are the most; use {} or a "
        "larger {}",
        batch, std::ceil(micro_batches), counted(cells(), "cell"), actions, pipeline::kMostActions, advice,
        kMicroBatchSize);
  }

  const StepSettings& s_;
  const ScheduleKind kind_;
  Faults faults_;
};

}  // namespace

Faults pipeline_faults(const StepSettings& settings) { return PipelineFaults(settings).find(); }

}  // namespace teratron
