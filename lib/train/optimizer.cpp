#include "train/optimizer.h"

#include "kernels/adamw.h"

namespace dew {

AdamW::AdamW(const OptimizerSection& section, ParamStore& store) : section_(section), store_(store) {
  const Tensor& master = store.master_arena();
  m_ = Tensor::zeros(master.shape(), master.dtype(), store.stream(), Owner::kOptimizer);
  v_ = Tensor::zeros(master.shape(), master.dtype(), store.stream(), Owner::kOptimizer);
}

void AdamW::step(std::int64_t step, double lr, double gradient_scale) {
  kernels::AdamWStep update{
      lr, section_.beta1, section_.beta2, section_.eps, section_.weight_decay, gradient_scale, step};
  const std::int64_t decaying = store_.decaying_size(), all = store_.arena_size();
  const auto apply = [this, &update](std::int64_t begin, std::int64_t end) {
    kernels::adamw(store_.stream(), update, store_.gradient_arena().range(begin, end),
                   store_.master_arena().range(begin, end), m_.range(begin, end), v_.range(begin, end));
  };
  apply(0, decaying);
  update.weight_decay = 0;
  apply(decaying, all);
  store_.weights_changed();
}

}  // namespace dew
