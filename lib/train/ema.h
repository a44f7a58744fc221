// An exponential moving average of the masters: average = decay average + (1 - decay) weights after every
// step.
#pragma once

#include "train/param_store.h"

namespace dew {

class Ema {
 public:
  Ema(double decay, ParamStore& store);
  /// The average becomes the weights as they are.
  void reset();
  void update();
  Tensor of(const ShardedParameter& param) const {
    return average_.range(param.offset, param.offset + param.range.size());
  }

 private:
  double decay_;
  ParamStore& store_;
  Tensor average_;
};

}  // namespace dew
