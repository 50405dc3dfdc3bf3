// StepRun: a training step of one stage, which is its list of actions. An action's inputs are received while the action
// before it runs; its outputs are sent while later ones run.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "executor/stage/stage_passes.h"
#include "executor/step_tallies.h"
#include "executor/stream_messages.h"
#include "pipeline/timing/trace.h"

namespace teratron {

class StepRun {
 public:
  struct Options {
    bool sums_over_copies = true;      // false: no gradients are summed between ranks, of whatever group
    Communicator* replicas = nullptr;  // ParameterBuckets::sum_over_ranks
    std::vector<pipeline::TraceSpan>* trace = nullptr;
    StepTallies* tallies = nullptr;
    // Those of each micro-batch's targets without adapters, where ExecutorOptions has preferences.
    std::span<const std::vector<double>> reference_losses = {};
  };
  // The arguments must outlive it.
  StepRun(Backend& backend, Mesh& mesh, const StagePlan& plan, StagePasses& passes,
          std::span<const MicroBatch> micro_batches, const Options& options);
  StepRun(const StepRun&) = delete;
  StepRun& operator=(const StepRun&) = delete;
  ~StepRun() { plan_.packed_weights().forget(); }

  LossSums run();  // returns the losses of this copy of the model

 private:
  using Action = pipeline::Action;
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
  // Input of an action that is being received, and the slot of its gradient in StageMemory::gradient().
  struct Incoming {
    StreamMessages::Arriving receive;
    std::size_t slot = 0;
  };
  // Numbers of passes over a cell: done, and of each kind.
  struct ChunkProgress {
    int input_gradients_done = 0, weight_gradients_done = 0, passes = 0;
  };
  // A span whose ends are known when the device has been waited for.
  struct MarkedSpan {
    pipeline::TraceSpan::Kind kind;
    Action action;
    std::shared_ptr<const Backend::Timestamp> start, end;
  };

  ChunkProgress& progress_of(const Action& action) { return progress_[static_cast<std::size_t>(action.chunk)]; }
  const MicroBatch& micro_batch_of(const Action& action) const {
    return micro_batches_[static_cast<std::size_t>(action.micro_batch)];
  }
  SliceCall call_of(const Action& action) const;
  double loss_scale() const;
  template <class Work>
  void traced(pipeline::TraceSpan::Kind kind, const Action& action, const Work& work);
  void report_spans();

  Activity activity_of(const Action& action) const;
  Incoming receive_for(std::size_t at);
  void act(const Action& action, std::size_t slot);
  // Packs the weights of the action's products, where it is the first of the step that has them.
  void pack_weights(const Action& action);
  void forward(const Action& action);
  void backward(const Action& action, std::size_t slot);
  void weight_gradients(const Action& action);
  void joint(const Action& action);
  // The action's micro-batch; where it has pairs of answers, with their weights (executor/preferences.h), for which the
  // last layer's output of all its slices must be there.
  MicroBatch weighed(const Action& action);
  // Returns the function that tallies outputs; empty where there are no tallies.
  StagePasses::After tally_output();
  // Takes the gradient of a layer's output.
  void tally_gradient(std::int64_t layer, TensorRef dx);
  // Counts a pass that makes weight gradients. True: it is its cell's last.
  bool is_final_weight_pass(const Action& action);

  // The gradients of a part of the model are complete on this rank.
  void complete(ParameterBucket::Part part, std::int64_t layer = 0);
  void start_sums();
  void finish_gradients();

  Backend& backend_;
  Mesh& mesh_;
  const StagePlan& plan_;
  StagePasses& passes_;
  const StreamMessages messages_;
  const std::span<const MicroBatch> micro_batches_;
  const Options options_;
  const pipeline::Schedule schedule_;
  const std::vector<Action>& actions_;
  SendRing outputs_, gradients_;
  std::vector<ChunkProgress> progress_;
  std::vector<bool> complete_;  // by bucket
  std::vector<Pending> sums_;   // of the first buckets
  std::vector<MarkedSpan> spans_;
  std::vector<std::vector<float>> preference_weights_;  // of each micro-batch
  LossSums preference_sums_;
  std::array<int, pipeline::kPasses> joint_done_{}, joint_passes_{};  // by pass
};

}  // namespace teratron
