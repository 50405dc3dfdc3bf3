#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace teratron {
namespace {

using Clock = std::chrono::steady_clock;

// Names in a checkpoint's training state.
constexpr const char *kSkipped = "skipped_iterations", *kLossScale = "loss_scale";
constexpr const char *kGoodUpdates = "updates_since_overflow", *kOverflowsLeft = "overflows_left";

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::optional<GptSamples> validation_samples(const std::shared_ptr<const IndexedDataset>& dataset,
                                             std::span<const CorpusPart> parts, std::int64_t seq_length) {
  if (parts.size() < 2 || parts[1].tokens() == 0) return std::nullopt;
  return std::optional<GptSamples>(std::in_place, dataset, parts[1], seq_length, SampleOrder::kSequential);
}

BatchSampler sampler_of(const TrainConfig& config, std::int64_t global_batch, const Mesh* mesh) {
  return {global_batch, config.micro_batch_size, mesh ? mesh->data->rank() : 0, mesh ? mesh->data->size() : 1};
}

// Every rank plans for the largest share of the largest batch.
RunnerOptions options_of(const TrainConfig& config, const PipelinePlan& pipeline, const Mesh* mesh) {
  const BatchSampler largest = sampler_of(config, config.largest_batch(), mesh);
  return {.purpose = Purpose::kTraining,
          .batch = largest.largest_micro_batch(),
          .tokens = config.seq_length,
          .logits_chunk = config.logits_chunk,
          .schedule = pipeline.schedule,
          .slice_tokens = pipeline.slice_tokens,
          .recompute = config.recompute,
          .sequence_parallel = config.sequence_parallel,
          .shard_optimizer = config.distributed_optimizer,
          .cell_layers = pipeline.cell_layers};
}

}  // namespace

Trainer::Trainer(const TrainConfig& config, Backend& backend, std::shared_ptr<const IndexedDataset> dataset,
                 std::int64_t vocab_size, std::shared_ptr<Mesh> mesh, const plan::Profile* profile)
    : config_(config),
      dataset_(std::move(dataset)),
      split_rule_(training_split(config, config.load)),
      parts_(split_corpus(*dataset_, parse_split(config.split), split_rule_)),
      training_(dataset_, parts_.front(), config.seq_length, SampleOrder::kShuffled,
                static_cast<std::uint64_t>(config.seed)),
      validation_(validation_samples(dataset_, parts_, config.seq_length)),
      batches_(config.batches()),
      sampler_(sampler_of(config, batches_.batch_size(0), mesh.get())),
      pipeline_(plan_pipeline(config, profile)),
      runner_(backend, config.model_for(vocab_size), options_of(config, pipeline_, mesh.get()), mesh),
      parameters_(runner_.parameters()),
      schedule_(config.schedule()),
      scaler_(config.fp16 ? std::optional<LossScaler>(config.loss_scaling) : std::nullopt),
      weights_(static_cast<std::size_t>(runner_.options().batch * runner_.options().schedule.micro_batches *
                                        config.seq_length)) {
  dataset_->check_vocabulary(runner_.config().vocab_size);
  if (!config.trace.empty()) trace_.emplace();
  ids_.resize(weights_.size());
  targets_.resize(weights_.size());
}

std::int64_t Trainer::start() {
  runner_.allocate();
  runner_.initialize(static_cast<std::uint64_t>(config_.seed));
  if (config_.load.empty()) return 0;
  // Every rank reads its own parts; one is enough to compare the checksums.
  const bool verifies = runner_.mesh().data->rank() == 0 && runner_.mesh().model->rank() == 0;
  const TrainingState state = load_checkpoint(config_.load, runner_.config(), runner_.all_parameters(),
                                              runner_.backend(), {.verify = verifies});
  restore(state);
  if (const std::int64_t expected = batches_.consumed_after(iteration_); state.consumed_samples != expected) {
    throw_user_error(
        "'{}' had consumed {} samples after {} updates; by the --global-batch-size {}{} given now they would be {}, "
        "and other samples would be read from here on. Resume with the batch sizes it was trained with",
        config_.load.string(), state.consumed_samples, iteration_, batches_.largest(),
        batches_.is_constant() ? "" : " and the --rampup-batch-size", expected);
  }
  return iteration_;
}

void Trainer::read_batch(const GptSamples& samples, SampleRange range, std::int64_t sample) {
  const auto length = static_cast<std::size_t>(samples.seq_length());
  std::vector<std::int32_t> tokens(length + 1);
  for (std::int64_t i = 0; i < range.count; ++i) {
    samples.sample(range.first + i, tokens);
    const auto at = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(sample + i) * length);
    std::copy(tokens.begin(), tokens.end() - 1, ids_.begin() + at);
    std::copy(tokens.begin() + 1, tokens.end(), targets_.begin() + at);
  }
}

std::vector<MicroBatch> Trainer::read_share() {
  const std::int64_t consumed = batches_.consumed_after(iteration_);
  // Every target of the global batch weighs the same, however the batch is cut.
  const auto tokens = static_cast<double>(sampler_.global_batch() * config_.seq_length);
  std::fill(weights_.begin(), weights_.end(), static_cast<float>(1.0 / tokens));
  std::vector<MicroBatch> share;
  std::int64_t done = 0;
  for (std::int64_t micro_batch = 0; micro_batch < sampler_.micro_batches(); ++micro_batch) {
    const SampleRange range = sampler_.samples(consumed, micro_batch);
    read_batch(training_, range, done);
    const auto begin = static_cast<std::size_t>(done * config_.seq_length);
    const auto length = static_cast<std::size_t>(range.count * config_.seq_length);
    share.push_back({.ids = std::span(ids_).subspan(begin, length),
                     .targets = std::span(targets_).subspan(begin, length),
                     .weights = std::span(weights_).subspan(begin, length),
                     .batch = range.count,
                     .tokens = config_.seq_length,
                     .first_sample = range.first - consumed,
                     .seed = static_cast<std::uint64_t>(config_.seed),
                     .iteration = static_cast<std::uint32_t>(iteration_),
                     .loss_scale = scaler_ ? scaler_->scale() : 1.0});
    done += range.count;
  }
  return share;
}

IterationReport Trainer::update() {
  const Clock::time_point start = Clock::now();
  sampler_ = sampler_of(config_, batches_.batch_size(iteration_), &runner_.mesh());
  IterationReport report{.global_batch_size = sampler_.global_batch(),
                         .learning_rate = schedule_.at(applied_updates() + 1),
                         .loss_scale = scaler_ ? scaler_->scale() : 1.0};
  if (trace_) runner_.record(trace_->begin(iteration_ + 1));
  report.loss = runner_.forward_backward(read_share());
  runner_.mesh().set_activity(fmt::format("update of iteration {}", iteration_ + 1));
  runner_.mesh().data->all_reduce_host({&report.loss, 1});
  const double norm = gradient_norm(runner_.backend(), parameters_, runner_.mesh());
  report.skipped = !apply(norm, report.learning_rate);
  report.gradient_norm = norm / report.loss_scale;
  report.iteration = ++iteration_;
  report.consumed_samples = batches_.consumed_after(iteration_);
  report.consumed_tokens = report.consumed_samples * config_.seq_length;
  report.seconds = seconds_since(start);
  return report;
}

bool Trainer::apply(double gradient_norm, double learning_rate) {
  const bool finite = std::isfinite(gradient_norm);
  if (!finite && (!scaler_ || scaler_->exhausted())) throw_diverged();
  const double scale = scaler_ ? scaler_->scale() : 1.0;
  if (scaler_) scaler_->update(!finite);
  if (!finite) {
    ++skipped_;
    return false;
  }
  adamw_update(runner_.backend(), parameters_, config_.optimizer,
               {.learning_rate = learning_rate,
                .update = applied_updates() + 1,
                .gradient_norm = gradient_norm,
                .gradient_scale = 1.0 / scale});
  runner_.gather_weights();
  return true;
}

std::optional<double> Trainer::validation_loss(std::int64_t batches) {
  if (!validation_) return std::nullopt;
  runner_.mesh().set_activity(fmt::format("validation after iteration {}", iteration_));
  Communicator& replicas = *runner_.mesh().data;
  const std::int64_t size = runner_.options().batch;
  const std::int64_t samples = std::min(validation_->samples_per_epoch(), batches * batches_.largest());
  double sum = 0;
  for (std::int64_t first = replicas.rank() * size; first < samples; first += replicas.size() * size) {
    const SampleRange range{first, std::min(size, samples - first)};
    read_batch(*validation_, range);
    std::vector<float> losses(static_cast<std::size_t>(range.count * config_.seq_length));
    runner_.losses({.ids = ids_, .targets = targets_, .batch = range.count, .tokens = config_.seq_length}, 0, losses);
    sum = std::accumulate(losses.begin(), losses.end(), sum);
  }
  replicas.all_reduce_host({&sum, 1});
  return sum / static_cast<double>(samples * config_.seq_length);
}

TrainingState Trainer::state() const {
  const std::int64_t samples = batches_.consumed_after(iteration_);
  TrainingState state{.iteration = iteration_,
                      .consumed_samples = samples,
                      .consumed_tokens = samples * config_.seq_length,
                      .seed = static_cast<std::uint64_t>(config_.seed),
                      .learning_rate = applied_updates() > 0 ? schedule_.at(applied_updates()) : 0,
                      .counters = {{kSkipped, skipped_}}};
  record_split(split_rule_, state);
  if (!scaler_) return state;
  state.values[kLossScale] = scaler_->state().scale;
  state.counters[kGoodUpdates] = scaler_->state().good_updates;
  state.counters[kOverflowsLeft] = scaler_->state().overflows_left;
  return state;
}

void Trainer::restore(const TrainingState& state) {
  const auto counter = [&](const char* name, std::int64_t otherwise) {
    const auto found = state.counters.find(name);
    return found == state.counters.end() ? otherwise : found->second;
  };
  iteration_ = state.iteration;
  skipped_ = counter(kSkipped, 0);
  // A run that was not scaled before begins with the scale it is told.
  const auto scale = state.values.find(kLossScale);
  if (!scaler_ || scale == state.values.end()) return;
  scaler_->restore({.scale = scale->second,
                    .good_updates = counter(kGoodUpdates, 0),
                    .overflows_left = counter(kOverflowsLeft, config_.loss_scaling.hysteresis)});
}

std::filesystem::path Trainer::save() {
  runner_.mesh().set_activity(fmt::format("checkpoint of iteration {}", iteration_));
  const std::filesystem::path folder =
      save_checkpoint(config_.save, runner_.config(), runner_.all_parameters(), runner_.backend(), state(),
                      {.tokenizer = config_.tokenizer, .keep_last = config_.keep_last}, &runner_.mesh());
  return runner_.mesh().data->rank() == 0 ? folder : std::filesystem::path();
}

TrainingResult Trainer::run(TrainingObserver& observer) {
  TrainingResult result{.iterations = iteration_};
  double seconds = 0;
  std::int64_t tokens = 0;
  while (iteration_ < config_.train_iters) {
    const IterationReport report = update();
    observer.iteration(report);
    seconds += report.seconds;
    tokens += report.global_batch_size * config_.seq_length;
    result.iterations = iteration_;
    result.final_loss = report.loss;
    if (validates_after(iteration_)) {
      result.validation_loss = validation_loss(config_.eval_iters);
      if (result.validation_loss) observer.validation(iteration_, *result.validation_loss);
    }
    if (!config_.save.empty() && is_due(config_.save_interval, iteration_)) observer.saved(iteration_, save());
  }
  if (seconds > 0) result.tokens_per_second = static_cast<double>(tokens) / seconds;
  return result;
}

}  // namespace teratron
