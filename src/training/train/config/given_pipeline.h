// Parts of the pipeline that a command gives; --schedule auto chooses the others.
#pragma once

namespace teratron {

struct GivenPipeline {
  bool is_auto = false;  // --schedule auto was given
  bool virtual_stages = false, layout = false, token_slices = false, defer_weight_gradients = false, recompute = false;
};

}  // namespace teratron
