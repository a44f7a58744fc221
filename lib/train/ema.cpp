#include "train/ema.h"

#include "kernels/pointwise.h"
#include "tensor/copy.h"

namespace dew {

Ema::Ema(double decay, ParamStore& store) : decay_(decay), store_(store) {
  const Tensor& master = store.master_arena();
  average_ = Tensor::zeros(master.shape(), master.dtype(), store.stream(), Owner::kEma);
}

void Ema::reset() {
  copy(store_.stream(), store_.master_arena(), average_);
}

void Ema::update() {
  kernels::lerp(store_.stream(), average_, store_.master_arena(), decay_);
}

}  // namespace dew
