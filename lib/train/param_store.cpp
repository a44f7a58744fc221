#include "train/param_store.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "kernels/pointwise.h"
#include "kernels/reduce.h"
#include "tensor/copy.h"
#include "train/param_parts.h"

namespace dew {
namespace {

constexpr std::int64_t kAlign = 16;  // elements: every parameter's range starts on a cache line
std::int64_t aligned(std::int64_t n) {
  return (n + kAlign - 1) / kAlign * kAlign;
}

}  // namespace

struct ParamStore::Weight {
  Tensor value;   ///< the compute slab in precision.compute while somebody holds it
  Ticket ticket;  ///< of the gather that fills it
  int holders = 0;
};

struct ParamStore::Gradient {
  Tensor full;        ///< accumulated and unreduced, precision.reduce
  Tensor microbatch;  ///< of one microbatch in what kernels sum in, where that is not precision.reduce
  bool full_written = false, microbatch_written = false;
  bool shard_written = false;  ///< the reduced shard holds something of this step
  int uses = 0;                ///< blocks that use the parameter
  int closed_uses = 0;         ///< of them, those that asked for the reduction
};

struct ParamStore::Reduction {
  int param = 0;
  bool last = false;       ///< sum over the remaining data axes too
  Tensor full, scattered;  ///< of the reduce-scatter; undefined where storage is whole
  Ticket ticket;
};

/// Hands a block's ops the buffers of its parameters.
class ParamStore::Sink final : public GradientSink {
 public:
  Sink(ParamStore& store, std::span<const int> params) : store_(store), params_(params) {}
  Target gradient(ParamRef ref) override {
    return store_.gradient_target(params_[static_cast<std::size_t>(ref.index)]);
  }

 private:
  ParamStore& store_;
  std::span<const int> params_;
};

ParamStore::ParamStore(const Model& model, const LayoutRules& rules, const ChainCut& cut, const Mesh& mesh,
                       const PrecisionSection& precision, Stream& stream)
    : mesh_(mesh), precision_(precision), stream_(stream), specs_(model.params()) {
  make_params(model, rules, cut);
  make_arenas();
  weights_.resize(params_.size());
  gradients_.resize(params_.size());
  for (const std::vector<int>& list : block_params_) {
    sinks_.push_back(std::make_unique<Sink>(*this, list));
    for (int param : list) ++gradients_[static_cast<std::size_t>(param)].uses;
  }
}

ParamStore::~ParamStore() = default;

void ParamStore::make_params(const Model& model, const LayoutRules& rules, const ChainCut& cut) {
  const int stage = mesh_.coord(Axis::kStage);
  std::map<std::string, std::set<int>> stages;
  for (int b = 0; b < cut.blocks(); ++b)
    for (const ParamSpec& spec : model.chain[static_cast<std::size_t>(b)]->params())
      stages[spec.name].insert(cut.stage_of(b));
  std::map<std::string, int> local;
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    const ParamSpec& spec = specs_[i];
    const std::set<int>& holders = stages.at(spec.name);
    if (!holders.contains(stage)) continue;
    local[spec.name] = static_cast<int>(params_.size());
    Layout layout = layout_of(spec, rules, mesh_.shape());
    const Range range = layout.storage_range(mesh_.coord());
    const bool owned = layout.owns(mesh_.coord()) && stage == *holders.begin();
    params_.push_back({spec,
                       static_cast<int>(i),
                       {holders.begin(), holders.end()},
                       std::move(layout),
                       range,
                       0,
                       {},
                       {},
                       owned});
  }
  for (int b = 0; b < cut.blocks(); ++b) {
    const Block& block = *model.chain[static_cast<std::size_t>(b)];
    std::vector<int>& list = block_params_.emplace_back();
    std::vector<ParamPart>& parts = block_parts_.emplace_back();
    if (cut.stage_of(b) != stage) continue;
    for (const ParamSpec& spec : block.params()) list.push_back(local.at(spec.name));
    parts = param_parts(block, rules, mesh_);
  }
}

void ParamStore::make_arenas() {
  std::int64_t total = 0;
  for (bool decays : {true, false}) {
    for (ShardedParameter& param : params_) {
      if (param.spec.decays() != decays) continue;
      param.offset = total;
      total += aligned(param.range.size());
    }
    if (decays) decaying_ = total;
  }
  master_ = Tensor::zeros({total}, precision_.master, stream_, Owner::kWeights);
  gradient_ = Tensor::zeros({total}, precision_.reduce, stream_, Owner::kGradients);
  for (ShardedParameter& param : params_) {
    param.master = master_.range(param.offset, param.offset + param.range.size());
    param.gradient = gradient_.range(param.offset, param.offset + param.range.size());
  }
}

const ShardedParameter* ParamStore::find(int index) const {
  const auto found = std::lower_bound(params_.begin(), params_.end(), index,
                                      [](const auto& p, int wanted) { return p.index < wanted; });
  return found == params_.end() || found->index != index ? nullptr : &*found;
}

bool ParamStore::stored_whole(int param) const {
  return storage_group(param).size() == 1;
}

Communicator& ParamStore::storage_group(int param) const {
  return mesh_.over(params_[static_cast<std::size_t>(param)].layout.storage_axes());
}

// ---- weights
// ------------------------------------------------------------------------------------------------------

void ParamStore::gather(int block) {
  for (int param : block_params_[static_cast<std::size_t>(block)]) {
    Weight& weight = weights_[static_cast<std::size_t>(param)];
    if (weight.holders++ == 0) start_gather(param);
  }
}

void ParamStore::start_gather(int param) {
  const ShardedParameter& p = params_[static_cast<std::size_t>(param)];
  Weight& weight = weights_[static_cast<std::size_t>(param)];
  const Shape shape = p.layout.compute_slab(mesh_.coord()).extent;
  if (stored_whole(param)) {
    if (precision_.compute == precision_.master) {
      weight.value = p.master.reshape(shape);
      return;
    }
    weight.value = Tensor::empty(shape, precision_.compute, stream_, Owner::kGathered);
    kernels::cast(stream_, p.master, weight.value.range(0, p.range.size()));
    return;
  }
  Communicator& group = storage_group(param);
  const std::int64_t chunk = p.layout.chunk(mesh_.coord());
  const Tensor buffer = Tensor::empty({chunk * group.size()}, precision_.compute, stream_, Owner::kGathered);
  const Tensor own = buffer.range(chunk * group.rank(), chunk * (group.rank() + 1));
  kernels::cast(stream_, p.master, own.range(0, p.range.size()));
  const Transfer transfer{own, buffer};
  weight.ticket = group.all_gather({&transfer, 1}, stream_);
  weight.value = buffer.range(0, shape.numel()).reshape(shape);
}

ParamViews ParamStore::get(int block, bool with_gradients) {
  ParamViews views;
  for (int param : block_params_[static_cast<std::size_t>(block)]) {
    Weight& weight = weights_[static_cast<std::size_t>(param)];
    DEW_CHECK(weight.holders > 0, block, params_[static_cast<std::size_t>(param)].spec.name);
    weight.ticket.wait(stream_);
    views.values.push_back(weight.value);
  }
  views.parts = block_parts_[static_cast<std::size_t>(block)];
  if (with_gradients) views.gradients = sinks_[static_cast<std::size_t>(block)].get();
  return views;
}

void ParamStore::release(int block) {
  for (int param : block_params_[static_cast<std::size_t>(block)]) {
    Weight& weight = weights_[static_cast<std::size_t>(param)];
    DEW_CHECK(weight.holders > 0, block, params_[static_cast<std::size_t>(param)].spec.name);
    if (--weight.holders > 0) continue;
    weight.ticket.wait(stream_);
    weight.value = {};
  }
}

// ---- gradients
// ----------------------------------------------------------------------------------------------------

// Room for the accumulated, unreduced gradient: the shard itself for a parameter that is stored whole, else a
// buffer padded with zeros to the chunks of the storage group.
Tensor ParamStore::open_full(int param) {
  const ShardedParameter& p = params_[static_cast<std::size_t>(param)];
  if (stored_whole(param)) return p.gradient;
  const std::int64_t slab = p.layout.compute_slab(mesh_.coord()).extent.numel();
  const std::int64_t padded = p.layout.chunk(mesh_.coord()) * storage_group(param).size();
  Tensor full = Tensor::empty({padded}, precision_.reduce, stream_, Owner::kGradients);
  fill(stream_, full.range(slab, padded), 0);
  return full;
}

// Where one microbatch's kernels write.
Target ParamStore::gradient_target(int param) {
  const ShardedParameter& p = params_[static_cast<std::size_t>(param)];
  Gradient& gradient = gradients_[static_cast<std::size_t>(param)];
  const Shape shape = p.layout.compute_slab(mesh_.coord()).extent;
  const DType summed = real_of(precision_.compute);
  const bool apart = summed != precision_.reduce;
  Tensor& buffer = apart ? gradient.microbatch : gradient.full;
  bool& written = apart ? gradient.microbatch_written : gradient.full_written;
  if (!buffer.defined()) {
    buffer = apart ? Tensor::empty({shape.numel()}, summed, stream_, Owner::kGradients) : open_full(param);
  }
  const bool accumulate = std::exchange(written, true);
  return {buffer.range(0, shape.numel()).reshape(shape), accumulate};
}

void ParamStore::fold_gradients(int block) {
  if (real_of(precision_.compute) == precision_.reduce) return;
  for (int param : block_params_[static_cast<std::size_t>(block)]) {
    Gradient& gradient = gradients_[static_cast<std::size_t>(param)];
    if (!gradient.microbatch_written) continue;
    if (!gradient.full.defined()) gradient.full = open_full(param);
    const Tensor into = gradient.full.range(0, gradient.microbatch.numel());
    if (gradient.full_written) {
      const Tensor wide = Tensor::empty({into.numel()}, precision_.reduce, stream_, Owner::kBuffers);
      kernels::cast(stream_, gradient.microbatch, wide);
      kernels::add(stream_, into, wide, into);
    } else {
      kernels::cast(stream_, gradient.microbatch, into);
    }
    gradient.full_written = true;
    gradient.microbatch_written = false;
    gradient.microbatch = {};
  }
}

void ParamStore::reduce(int block, bool last) {
  std::size_t started = 0;
  for (int param : block_params_[static_cast<std::size_t>(block)]) {
    Gradient& gradient = gradients_[static_cast<std::size_t>(param)];
    if (++gradient.closed_uses < gradient.uses) continue;
    gradient.closed_uses = 0;
    start_reduction(param, last);
    ++started;
  }
  advance(started);
}

// Moves the accumulated gradient onto the shard by a reduce-scatter; where storage is whole it is there
// already. Every rank of a group takes the same branch: `written` follows from the program alone.
void ParamStore::start_reduction(int param, bool last) {
  const ShardedParameter& p = params_[static_cast<std::size_t>(param)];
  Gradient& gradient = gradients_[static_cast<std::size_t>(param)];
  Reduction reduction;
  reduction.param = param;
  reduction.last = last;
  if (gradient.full_written && !stored_whole(param)) {
    Communicator& group = storage_group(param);
    reduction.full = std::exchange(gradient.full, {});
    gradient.full_written = false;
    reduction.scattered =
        Tensor::empty({p.layout.chunk(mesh_.coord())}, precision_.reduce, stream_, Owner::kGradients);
    const Transfer transfer{reduction.full, reduction.scattered};
    reduction.ticket = group.reduce_scatter({&transfer, 1}, stream_);
  } else if (gradient.full_written && last) {
    gradient.full = {};
    gradient.full_written = false;
    gradient.shard_written = true;
  }
  reductions_.push_back(std::move(reduction));
}

// Waits for the scatters of all reductions but the newest `keep`, those of one block, and starts their
// all-reduces: one fixed order on every rank, and a block's backward beside each scatter.
void ParamStore::advance(std::size_t keep) {
  for (; summing_ + keep < reductions_.size(); ++summing_) {
    Reduction& reduction = reductions_[summing_];
    finish_scatter(reduction);
    if (!reduction.last) continue;
    const ShardedParameter& p = params_[static_cast<std::size_t>(reduction.param)];
    Gradient& gradient = gradients_[static_cast<std::size_t>(reduction.param)];
    if (!gradient.shard_written) fill(stream_, p.gradient, 0);
    Communicator& group = mesh_.over(p.layout.reduce_axes());
    if (group.size() > 1) reduction.ticket = group.all_reduce({&p.gradient, 1}, stream_);
  }
}

void ParamStore::finish_scatter(Reduction& reduction) {
  if (!reduction.full.defined()) return;
  reduction.ticket.wait(stream_);
  const ShardedParameter& p = params_[static_cast<std::size_t>(reduction.param)];
  Gradient& gradient = gradients_[static_cast<std::size_t>(reduction.param)];
  const Tensor arrived = reduction.scattered.range(0, p.range.size());
  if (gradient.shard_written)
    kernels::add(stream_, p.gradient, arrived, p.gradient);
  else
    copy(stream_, arrived, p.gradient);
  gradient.shard_written = true;
  reduction.full = {};
  reduction.scattered = {};
}

void ParamStore::finish() {
  advance(0);
  for (Reduction& reduction : reductions_) reduction.ticket.wait(stream_);
  summing_ = 0;
  reductions_.clear();
  sum_over_stages();
}

// Every stage that uses a parameter has reduced its own uses onto its shard. The shards lie alike, so that
// each stage swaps them with the others that hold the parameter and adds in the order of the stages: equal
// bits on all.
void ParamStore::sum_over_stages() {
  struct Swap {
    ShardedParameter* param;
    std::vector<Tensor> terms;  // by holder
  };
  const int stage = mesh_.coord(Axis::kStage);
  std::vector<Swap> swaps;
  std::vector<PeerTransfer> transfers;
  for (ShardedParameter& p : params_) {
    if (p.stages.size() < 2 || p.range.size() == 0) continue;
    Swap swap{&p, {}};
    for (int holder : p.stages) {
      Tensor term = Tensor::empty({p.range.size()}, precision_.reduce, stream_, Owner::kBuffers);
      if (holder == stage) {
        copy(stream_, p.gradient, term);
      } else {
        transfers.push_back({PeerTransfer::Kind::kSend, holder, p.gradient});
        transfers.push_back({PeerTransfer::Kind::kRecv, holder, term});
      }
      swap.terms.push_back(std::move(term));
    }
    swaps.push_back(std::move(swap));
  }
  if (transfers.empty()) return;
  mesh_.along(Axis::kStage).exchange(transfers, stream_).wait(stream_);
  for (const Swap& swap : swaps) kernels::sum_in_order(stream_, swap.terms, swap.param->gradient, false);
}

void ParamStore::weights_changed() {
  DEW_CHECK(reductions_.empty());
  for (std::size_t i = 0; i < params_.size(); ++i) {
    DEW_CHECK(weights_[i].holders == 0, params_[i].spec.name, "is gathered while the weights change");
    DEW_CHECK(!gradients_[i].full_written && gradients_[i].closed_uses == 0, params_[i].spec.name);
    gradients_[i].shard_written = false;
  }
}

}  // namespace dew
