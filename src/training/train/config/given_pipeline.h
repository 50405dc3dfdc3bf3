// Parts of the pipeline that a command gives. --schedule auto chooses the others, --pipeline-layout auto only layers.
#pragma once

namespace teratron {

struct GivenPipeline {
  bool is_auto = false;         // --schedule auto was given
  bool layout_is_auto = false;  // --pipeline-layout auto was given
  bool virtual_stages = false, layout = false, token_slices = false, defer_weight_gradients = false,
       vocabulary_parallel = false, recompute = false;

  bool chooses() const { return is_auto || layout_is_auto; }
};

}  // namespace teratron
