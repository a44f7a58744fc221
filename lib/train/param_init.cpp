// Initial weights: each rank makes the elements it stores, and no other.
#include "base/philox.h"
#include "kernels/random.h"
#include "tensor/copy.h"
#include "train/param_store.h"

namespace dew {
namespace {

/// Elements of a box that follow one another in the global tensor: its trailing dims that are whole, and one
/// more.
std::int64_t run_length(const Slab& box) {
  std::int64_t run = 1;
  for (int d = box.global.dims() - 1; d >= 0; --d) {
    run *= box.extent.dim(d);
    if (box.extent.dim(d) != box.global.dim(d)) break;
  }
  return run;
}

}  // namespace

void ParamStore::initialize(std::uint64_t seed) {
  for (ShardedParameter& param : params_) {
    if (param.spec.init.stddev == 0) {
      fill(stream_, param.master, param.spec.init.constant);
      continue;
    }
    const std::uint64_t key = stream_key(seed, "init:" + param.spec.name);
    std::int64_t local = 0;
    for (const Slab& box : param.layout.boxes(mesh_.coord(), param.range)) {
      const std::int64_t run = run_length(box), size = box.extent.numel();
      for (std::int64_t done = 0; done < size; done += run, local += run) {
        const std::int64_t global = param.layout.global_index(mesh_.coord(), param.range.begin + local);
        kernels::fill_normal(stream_, key, global, param.spec.init.stddev,
                             param.master.range(local, local + run));
      }
    }
  }
}

}  // namespace dew
