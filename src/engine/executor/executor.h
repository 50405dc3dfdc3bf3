// One rank's instance of a model: all memory planned and allocated before the first call, then forward and backward
// passes. Every rank of a tensor-parallel group makes the same calls with the same tokens; so does every stage of a
// pipeline, of which each runs its own layers and exchanges activations and gradients with its neighbours.
#pragma once

#include <map>

#include "executor/step_run.h"
#include "executor/step_tallies.h"

namespace teratron {

class Executor {
 public:
  // Plans the memory; allocates nothing. All ranks of the mesh call it together. `mesh` holds the groups this rank
  // belongs to; nullptr: it is alone. Refers to `backend` and `model` (made for this tensor-parallel rank), which must
  // outlive it.
  Executor(Backend& backend, Model& model, const ExecutorOptions& options, std::shared_ptr<Mesh> mesh = nullptr);

  void allocate();                      // takes the planned memory
  void initialize(std::uint64_t seed);  // draws weights by Parameter::init, clears the optimizer's slots
  // Draws the weights of some parameters, the same that the call above draws; slots stay as they are.
  void initialize(std::uint64_t seed, std::span<Parameter* const> some);
  void clear_slots();  // clears the slots alone, for weights from elsewhere; training only

  // A step: gradients of loss_scale * sum(weights * loss), added up over its micro-batches, of which there are one at
  // least and the schedule's at most, and over the data-parallel ranks. Returns this model copy's losses, on all its
  // ranks.
  LossSums forward_backward(std::span<const MicroBatch> micro_batches);
  LossSums forward_backward(const MicroBatch& only) { return forward_backward({&only, 1}); }
  // Leaves out every sum of gradients between ranks: of copies, of tensor-parallel ranks, of a tied table's two ends.
  LossSums forward_backward_alone(const MicroBatch& only);

  // New weights from the step's gradients, on every rank. All ranks of the mesh call it.
  void update(const UpdateStep& step);

  // Kinds of the losses that the calls above and below return: the model's, or preference_losses().
  const std::vector<ModelTraits::Loss>& loss_kinds() const {
    return options().preferences ? preference_losses() : model_.traits.losses;
  }

  // The losses of a micro-batch without dropout and without gradients; on all ranks of the model.
  LossSums evaluate(const MicroBatch& micro_batch);

  // Finds the first layer of this stage whose output is not finite in a forward pass of the micro-batch, dropout
  // included, and in it the first operation.
  struct NotFinite {
    std::int64_t layer = 0;  // -1: the embedding
    std::string name;        // "layer 3"; empty: nowhere
    std::string operation;   // "the FFN's up product"; empty: the embedding
    std::string parameter;   // of the layer, on this rank, that is not finite itself; empty: none
  };
  NotFinite first_not_finite(const MicroBatch& micro_batch);

  // A forward pass without dropout, of which the last stage hands on what the last layer gives, slice by slice. Where
  // ends are joint passes the other stages call use(), too, without x.
  using UseOutput = std::function<void(const EndCall& head, TensorRef x)>;
  void forward(const MicroBatch& micro_batch, const UseOutput& use);
  // Forward of tokens of one sequence, at first_position and after. With purpose kGeneration, their keys and values
  // join those of earlier calls in the sequence's cache.
  void extend(std::span<const std::int32_t> ids, std::int64_t first_position, const UseOutput& use,
              std::int64_t cache = 0);
  // Forward of one token of each of the first ids.size() caches' sequences, each at its own position. On a CPU, a
  // sequence's bits do not depend on the others (LinearForward::rows_alone).
  void extend_each(std::span<const std::int32_t> ids, std::span<const std::int32_t> positions, const UseOutput& use);
  // The cache `to` gets the first tokens of another, as if it had been extended with them.
  void copy_cache(std::int64_t from, std::int64_t to, std::int64_t tokens);

  // Copies `values` of the last stage to all stages.
  void share_from_last_stage(std::span<float> values) const;

  // Appends the actions of this stage in later steps to `trace`; nullptr: stops that.
  void record(std::vector<pipeline::TraceSpan>* trace) { trace_ = trace; }

  // Those of the last forward_backward(), with ExecutorOptions::tallies; else null.
  StepTallies* tallies() { return tallies_.get(); }

  Backend& backend() { return backend_; }
  Model& model() { return model_; }
  Mesh& mesh() const { return *mesh_; }
  const ExecutorOptions& options() const { return plan_->options(); }
  const StagePlan& plan() const { return *plan_; }
  const Arena& memory() const { return plan_->memory().arena(); }
  std::vector<Parameter*> parameters();      // those that this stage holds, in the order of Model::visit
  std::vector<Parameter*> all_parameters();  // of every stage; without memory where another stage holds them

 private:
  using After = StagePasses::After;
  LossSums run_step(std::span<const MicroBatch> micro_batches, const StepRun::Options& options);
  // Destination of a cell's output in forward_layers().
  TensorRef output(const SliceCall& call) const;
  struct ForwardOptions {
    bool training = false;  // dropout
    bool without_adapters = false;
    int micro_batch = 0;  // whose memory it takes, and whose cut
  };
  // All slices of a micro-batch through all cells, without a backward pass; use_output(call, x) on the last stage, and
  // where ends are joint passes on the others, too, without x.
  void run_forward(const MicroBatch& micro_batch, const ForwardOptions& options,
                   const std::function<void(const SliceCall&, TensorRef)>& use_output, const After& after = {});
  // Losses of its targets without dropout, [batch, tokens], on the stages that run_forward hands its output to.
  std::vector<double> target_losses(const MicroBatch& micro_batch, const ForwardOptions& options);
  // Those without adapters, where there are preferences; else none.
  std::vector<std::vector<double>> reference_losses(std::span<const MicroBatch> micro_batches);
  LossSums evaluate_preferences(const MicroBatch& micro_batch);
  void check_room(const LayerPass& pass) const;
  // A call of generation: layers(out) runs the layers of this stage.
  void run_call(const SliceCall& call, std::span<const std::int32_t> ids,
                const std::function<void(TensorRef out)>& layers, const UseOutput& use);
  void draw_weights(std::uint64_t seed, const std::function<bool(const Parameter*)>& is_wanted);
  void initialize_weights(const Parameter& parameter, TensorRef whole, const RandomStream& random);

  Backend& backend_;
  Model& model_;
  std::shared_ptr<Mesh> mesh_;
  std::unique_ptr<Communicator> replicas_;  // tensor-parallel ranks with the same key heads (Parameter::replicas)
  std::unique_ptr<StagePlan> plan_;
  StagePasses passes_;
  const StreamMessages messages_;
  // Graphs of generation: the layers, for one more token of each of so many sequences.
  std::map<std::int64_t, std::unique_ptr<Backend::Graph>> next_tokens_;
  std::vector<pipeline::TraceSpan>* trace_ = nullptr;
  std::unique_ptr<StepTallies> tallies_;
};

}  // namespace teratron
