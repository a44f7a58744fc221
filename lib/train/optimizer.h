// AdamW on the shards: its state has the shape of the arenas.
#pragma once

#include "io/run_spec.h"
#include "train/param_store.h"

namespace dew {

class AdamW {
 public:
  AdamW(const OptimizerSection& section, ParamStore& store);

  /// One update (step counted from 1) of the masters from the reduced gradients times `gradient_scale`.
  void step(std::int64_t step, double lr, double gradient_scale);

  /// The state of one parameter, views of the arenas: first and second moment.
  Tensor first_moment(const ShardedParameter& param) const { return view(m_, param); }
  Tensor second_moment(const ShardedParameter& param) const { return view(v_, param); }

 private:
  static Tensor view(const Tensor& arena, const ShardedParameter& param) {
    return arena.range(param.offset, param.offset + param.range.size());
  }

  OptimizerSection section_;
  ParamStore& store_;
  Tensor m_, v_;
};

}  // namespace dew
