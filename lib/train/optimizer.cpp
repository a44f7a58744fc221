#include "train/optimizer.h"

#include "kernels/adamw.h"
#include "tensor/copy.h"

namespace dew {

AdamW::AdamW(const OptimizerSection& section, ParamStore& store) : section_(section), store_(store) {
  const Tensor& master = store.master_arena();
  m_ = Tensor::zeros(master.shape(), master.dtype(), store.stream(), Owner::kOptimizer);
  v_ = Tensor::zeros(master.shape(), master.dtype(), store.stream(), Owner::kOptimizer);
}

void AdamW::step(std::int64_t step, double lr, double gradient_scale) {
  kernels::AdamWStep update{
      lr, section_.beta1, section_.beta2, section_.eps, section_.weight_decay, gradient_scale, step};
  Tensor gradient = store_.gradient_arena();
  const Tensor& weights = store_.master_arena();
  if (gradient.dtype() != weights.dtype()) {  // summed in another precision than the masters are kept in
    gradient = Tensor::empty(gradient.shape(), weights.dtype(), store_.stream(), Owner::kBuffers);
    copy(store_.stream(), store_.gradient_arena(), gradient);
  }
  const auto apply = [&](std::int64_t begin, std::int64_t end) {
    kernels::adamw(store_.stream(), update, gradient.range(begin, end), weights.range(begin, end),
                   m_.range(begin, end), v_.range(begin, end));
  };
  apply(0, store_.decaying_size());
  update.weight_decay = 0;
  apply(store_.decaying_size(), store_.arena_size());
  store_.weights_changed();
}

}  // namespace dew
