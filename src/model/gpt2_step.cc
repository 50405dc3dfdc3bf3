// A training step of one stage: its list of actions, one after another. What an action works on is received while the
// action before it runs; what it makes is sent while those after it run.
#include "base/error.h"
#include "model/gpt2_passes.h"
#include "model/host_values.h"
#include "pipeline/dependencies.h"

namespace teratron {
namespace {

using pipeline::Action;
using pipeline::Pass;
using pipeline::TraceSpan;

// A span whose ends are known when the device has been waited for.
struct MarkedSpan {
  TraceSpan::Kind kind;
  Action action;
  std::shared_ptr<const Backend::Moment> start, end;
};

// Places of which each is in use until what was sent from it has arrived.
class SendRing {
 public:
  explicit SendRing(std::size_t slots) : sends_(slots) {}
  std::size_t next() { return next_++ % sends_.size(); }
  void wait_for(std::size_t slot) { sends_[slot].wait(); }
  void sent_from(std::size_t slot, Pending send) { sends_[slot] = std::move(send); }
  void wait_for_all() {
    for (Pending& send : sends_) send.wait();
  }

 private:
  std::vector<Pending> sends_;
  std::size_t next_ = 0;
};

}  // namespace

class Gpt2Runner::StepRun {
 public:
  StepRun(Gpt2Runner& runner, std::span<const MicroBatch> micro_batches, bool sums_over_copies)
      : r_(runner),
        micro_batches_(micro_batches),
        sums_over_copies_(sums_over_copies),
        schedule_(pipeline::first_micro_batches(runner.options_.schedule, static_cast<int>(micro_batches.size()))),
        actions_(schedule_.actions[static_cast<std::size_t>(runner.part_.stage())]),
        outputs_(runner.memory_.send_slots()),
        gradients_(runner.memory_.gradient_slots()),
        progress_(static_cast<std::size_t>(runner.part_.chunks())),
        complete_(runner.buckets_.size() + 1) {
    for (const Action& action : actions_) {
      if (makes_weight_gradient(action.pass)) ++progress_of(action).weight_passes;
    }
  }

  double run() {
    Incoming incoming = receive_for(0);
    for (std::size_t at = 0; at < actions_.size(); ++at) {
      Incoming own = std::move(incoming);
      incoming = receive_for(at + 1);
      traced(TraceSpan::Kind::kReceive, actions_[at], [&] { own.receive.wait(); });
      act(actions_[at], own.slot);
    }
    traced(TraceSpan::Kind::kSend, {}, [&] {
      outputs_.wait_for_all();
      gradients_.wait_for_all();
    });
    traced(TraceSpan::Kind::kGradientSums, {}, [&] { finish_gradients(); });
    tell_spans();
    r_.mesh_->pipeline->all_reduce_host({&loss_, 1});  // of the last stage alone
    return loss_;
  }

 private:
  // What an action works on, on its way; a gradient's place among r_.memory_.gradient().
  struct Incoming {
    Pending receive;
    std::size_t slot = 0;
  };
  // How many passes over a chunk are done, and how many there are.
  struct ChunkProgress {
    int input_passes_done = 0, weight_passes_done = 0, weight_passes = 0;
  };

  ChunkProgress& progress_of(const Action& action) { return progress_[static_cast<std::size_t>(action.chunk)]; }
  const MicroBatch& micro_batch_of(const Action& action) const {
    return micro_batches_[static_cast<std::size_t>(action.micro_batch)];
  }
  Call call_of(const Action& action) const {
    const bool in_one_place = r_.memory_.timeline().micro_batches() == 1;
    return r_.call_of(micro_batch_of(action), {action.chunk, in_one_place ? 0 : action.micro_batch, action.slice},
                      true);
  }

  template <class Work>
  void traced(TraceSpan::Kind kind, const Action& action, const Work& work) {
    if (r_.trace_ == nullptr) return work();
    auto start = r_.backend_.moment();  // of the device's work, not of queueing it
    work();
    spans_.push_back({kind, action, std::move(start), r_.backend_.moment()});
  }
  void tell_spans() {
    if (r_.trace_ == nullptr) return;
    r_.backend_.wait();
    for (const MarkedSpan& span : spans_) {
      r_.trace_->push_back({span.kind, span.action, span.start->seconds(), span.end->seconds()});
    }
  }

  Incoming receive_for(std::size_t at) {
    Incoming incoming;
    if (at >= actions_.size()) return incoming;
    const Action& action = actions_[at];
    const std::optional<int> from = pipeline::receives_from(schedule_, r_.part_.stage(), action);
    const Call call = call_of(action);
    if (makes_input_gradient(action.pass)) {
      incoming.slot = gradients_.next();
      traced(TraceSpan::Kind::kSend, action, [&] { gradients_.wait_for(incoming.slot); });
      if (!from) return incoming;
      incoming.receive = r_.mesh_->pipeline_back->start_receive(r_.memory_.gradient(call.step, incoming.slot), *from);
    } else if (from) {
      incoming.receive = r_.mesh_->pipeline->start_receive(r_.memory_.input(call.step, call.place, 0), *from);
    }
    return incoming;
  }

  void act(const Action& action, std::size_t slot) {
    const std::string activity =
        fmt::format("{} of iteration {}", pipeline::text_of(schedule_, action), micro_batch_of(action).iteration + 1);
    r_.mesh_->set_activity(activity);
    const BackendRange range(r_.backend_, activity);
    if (action.pass == Pass::kForward) return forward(action);
    if (makes_input_gradient(action.pass)) return backward(action, slot);
    traced(TraceSpan::Kind::kPass, action, [&] { weight_gradients(action); });
  }

  void forward(const Action& action) {
    const Call call = call_of(action);
    const std::optional<int> to = pipeline::sends_to(schedule_, r_.part_.stage(), action);
    std::size_t slot = 0;
    if (to) {
      slot = outputs_.next();
      traced(TraceSpan::Kind::kSend, action, [&] { outputs_.wait_for(slot); });
    }
    const TensorRef out = to ? r_.memory_.sent(call.step, slot) : r_.memory_.final_x(call.step, call.place);
    traced(TraceSpan::Kind::kPass, action, [&] {
      const auto nothing = [](std::string_view, TensorRef) {};
      if (r_.part_.is_first(action.chunk)) r_.run_embedding(call, uploaded_ids(call, action), nothing);
      r_.run_layers(call, out, nothing);
    });
    if (to) outputs_.sent_from(slot, r_.mesh_->pipeline->start_send(out, *to));
  }

  TensorRef uploaded_ids(const Call& call, const Action& action) const {
    const MicroBatch& micro_batch = micro_batch_of(action);
    return r_.upload_slice(call, r_.memory_.ids(call.step.batch * call.step.tokens), micro_batch, micro_batch.ids);
  }

  void backward(const Action& action, std::size_t slot) {
    Call call = call_of(action);
    call.step.accumulate = progress_of(action).input_passes_done++ > 0;
    call.step.weights_later = action.pass == Pass::kBackwardInput;
    const TensorRef dx = r_.memory_.gradient(call.step, slot);
    traced(TraceSpan::Kind::kPass, action, [&] {
      const bool is_final = makes_weight_gradient(action.pass) && is_final_weight_pass(action);
      if (r_.part_.is_last(action.chunk)) head(call, action, dx, is_final);
      backward_layers(call, action, dx, is_final);
      if (r_.part_.is_first(action.chunk)) embedding_backward(call, action, dx);
    });
    const std::optional<int> to = pipeline::sends_to(schedule_, r_.part_.stage(), action);
    if (to) gradients_.sent_from(slot, r_.mesh_->pipeline_back->start_send(dx, *to));
  }

  // Counts the pass that makes weights' gradients; tells whether it is its chunk's last.
  bool is_final_weight_pass(const Action& action) {
    ChunkProgress& progress = progress_of(action);
    return ++progress.weight_passes_done == progress.weight_passes;
  }

  void head(const Call& call, const Action& action, TensorRef dx, bool is_final) {
    const Step& step = call.step;
    const MicroBatch& micro_batch = micro_batch_of(action);
    const std::int64_t rows = step.batch * step.tokens;
    const TensorRef targets = r_.memory_.targets(rows), weights = r_.memory_.weights(rows),
                    loss = r_.memory_.loss(rows);
    const std::vector<float> host_weights = slice_of(step, micro_batch, micro_batch.weights);
    r_.upload_slice(call, targets, micro_batch, micro_batch.targets);
    upload_floats(r_.backend_, weights, host_weights, micro_batch.loss_scale);

    const TensorRef x = r_.memory_.final_x(step, call.place), dnormed = r_.memory_.workspace(step).dnormed;
    const TensorRef normed = r_.final_normed(step, x);
    r_.model_.head.forward_backward(step, r_.model_.embedding.tokens, loss, dnormed.flatten_rows(),
                                    normed.flatten_rows(), targets, weights, r_.memory_.head(rows));
    loss_ += r_.weighted_loss(loss, host_weights);
    r_.model_.final_norm.backward(step, dx, step.own_rows(dnormed), x, r_.memory_.final_statistics(step),
                                  /*accumulate_dx=*/false);
    if (is_final) complete(r_.first_bucket(action.chunk));
  }

  void backward_layers(const Call& call, const Action& action, TensorRef dx, bool is_final) {
    const auto& [step, place] = call;
    const LayerWorkspace w = r_.memory_.workspace(step);
    for (int index = r_.part_.layers(place.chunk); index-- > 0;) {
      const TransformerLayer& layer = r_.layer(place.chunk, index);
      const TransformerLayer::Saved there = r_.memory_.saved(step, place, index, true);
      const bool later = action.pass == Pass::kBackwardInput;
      layer.recompute(step, r_.options_.recompute, there, w);
      layer.backward(step, dx, there, w, later ? r_.memory_.deferred(step, place, index) : layer.in_workspace(step, w));
      if (is_final) complete(r_.layer_bucket(place.chunk, index));
    }
  }

  void weight_gradients(const Action& action) {
    Call call = call_of(action);
    const auto& [step, place] = call;
    call.step.accumulate = progress_of(action).weight_passes_done > 0;
    const bool is_final = is_final_weight_pass(action);
    if (is_final && r_.part_.is_last(action.chunk)) complete(r_.first_bucket(action.chunk));  // the final norm's
    for (int index = r_.part_.layers(place.chunk); index-- > 0;) {
      r_.layer(place.chunk, index)
          .weight_gradients(step, r_.memory_.saved(step, place, index, true), r_.memory_.workspace(step),
                            r_.memory_.deferred(step, place, index));
      if (is_final) complete(r_.layer_bucket(place.chunk, index));
    }
  }

  void embedding_backward(const Call& call, const Action& action, TensorRef dx) {
    const Step& step = call.step;
    const bool has_head_share = r_.part_.has_head();
    r_.model_.embedding.backward(step, dx, r_.memory_.workspace(step).branch, uploaded_ids(call, action),
                                 has_head_share || step.accumulate);
  }

  // This bucket's gradients are complete. Sums are started in the order of the buckets, which is the same on all copies
  // of the model, whatever the number of their micro-batches.
  void complete(std::size_t bucket) {
    if (!sums_over_copies_) return;
    complete_[bucket] = true;
    while (complete_[sums_.size()]) {
      if (r_.options_.sequence_parallel) r_.buckets_.sum_over_rows(sums_.size(), *r_.mesh_->tensor);
      sums_.push_back(r_.buckets_.start_gradient_sum(sums_.size(), *r_.mesh_->data));
    }
  }

  // Both ends have their share of the tied embedding's gradient; it comes last, as backward ends with the embedding.
  void finish_gradients() {
    if (!sums_over_copies_) return;
    if (r_.part_.has_embedding()) complete(r_.buckets_.size() - 2);
    if (r_.part_.has_embedding() || r_.part_.has_head()) {
      r_.mesh_->ends->all_reduce(r_.buckets_.gradients(r_.buckets_.size() - 1));
      complete(r_.buckets_.size() - 1);
    }
    check_equal(static_cast<std::int64_t>(sums_.size()), static_cast<std::int64_t>(r_.buckets_.size()),
                "buckets of gradients that are complete");
    for (Pending& sum : sums_) sum.wait();
  }

  Gpt2Runner& r_;
  const std::span<const MicroBatch> micro_batches_;
  const bool sums_over_copies_;
  const pipeline::Schedule schedule_;
  const std::vector<Action>& actions_;
  SendRing outputs_, gradients_;
  std::vector<ChunkProgress> progress_;
  std::vector<bool> complete_;  // by bucket; one more, which never is
  std::vector<Pending> sums_;   // of the first buckets
  std::vector<MarkedSpan> spans_;
  double loss_ = 0;
};

double Gpt2Runner::forward_backward(std::span<const MicroBatch> micro_batches) {
  return StepRun(*this, micro_batches, true).run();
}

double Gpt2Runner::forward_backward_alone(const MicroBatch& only) { return StepRun(*this, {&only, 1}, false).run(); }

std::size_t Gpt2Runner::first_bucket(int chunk) const {
  std::size_t bucket = 0;
  for (int above = part_.chunks(); --above > chunk;) {
    bucket += static_cast<std::size_t>(part_.layers(above)) + (part_.is_last(above) ? 1 : 0);
  }
  return bucket;
}

std::size_t Gpt2Runner::layer_bucket(int chunk, int layer) const {
  const int below_the_top = part_.layers(chunk) - 1 - layer;
  return first_bucket(chunk) + (part_.is_last(chunk) ? 1 : 0) + static_cast<std::size_t>(below_the_top);
}

double Gpt2Runner::weighted_loss(TensorRef loss, std::span<const float> weights) {
  std::vector<double> values(weights.size());
  download_floats(backend_, loss, values);
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * static_cast<double>(weights[i]);
  return sum;
}

}  // namespace teratron
