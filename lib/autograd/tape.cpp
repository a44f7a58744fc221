#include "autograd/tape.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "kernels/pointwise.h"
#include "tensor/copy.h"

namespace dew {

void DeferredWork::run(Stream& stream, const ParamViews& bound) {
  for (Item& item : items_) {
    WeightBackward backward(stream, bound, item.out_gradients);
    item.work(backward);
    item = {};  // frees what it saved as soon as it ran
  }
  items_.clear();
}

int Tape::new_slot(const Tensor& value) {
  slots_.push_back({value.shape(), value.dtype(), {}});
  return static_cast<int>(slots_.size()) - 1;
}

Var Tape::input(Tensor value, const Placements& placements) {
  const int slot = differentiates() ? new_slot(value) : -1;
  return {std::move(value), placements, slot};
}

const Tensor& Tape::param(ParamRef ref) const {
  DEW_CHECK(ref.index >= 0 && static_cast<std::size_t>(ref.index) < bound_->values.size(), ref.index);
  const Tensor& value = bound_->values[static_cast<std::size_t>(ref.index)];
  DEW_CHECK(value.defined(), ref.index);
  return value;
}

AxisSet Tape::split_of(ParamRef ref, int dim) const {
  if (bound_->parts.empty()) return {};
  return bound_->parts[static_cast<std::size_t>(ref.index)].split[static_cast<std::size_t>(dim)];
}

std::int64_t Tape::offset_of(ParamRef ref, int dim) const {
  if (bound_->parts.empty()) return 0;
  return bound_->parts[static_cast<std::size_t>(ref.index)].slab.offset[static_cast<std::size_t>(dim)];
}

std::int64_t Tape::global_of(ParamRef ref, int dim) const {
  if (bound_->parts.empty()) return param(ref).dim(dim);
  return bound_->parts[static_cast<std::size_t>(ref.index)].slab.global.dim(dim);
}

Target Tape::param_gradient(ParamRef ref) {
  DEW_CHECK(differentiates());
  return bound_->gradients->gradient(ref);
}

Var Tape::record(std::string_view op, const Vars& in, Tensor out, const Placements& placements, Vjp vjp,
                 WeightVjp weight) {
  Vars outs =
      record(op, in, std::vector<Tensor>{std::move(out)}, placements, std::move(vjp), std::move(weight));
  return std::move(outs.front());
}

Vars Tape::record(std::string_view op, const Vars& in, std::vector<Tensor> outs, const Placements& placements,
                  Vjp vjp, WeightVjp weight) {
  Vars results;
  results.reserve(outs.size());
  if (!differentiates()) {
    for (Tensor& out : outs) results.push_back({std::move(out), placements, -1});
    return results;
  }
  Node node{op, {}, {}, std::move(vjp), std::move(weight)};
  for (const Var& var : in) node.in.push_back(var.slot);
  for (Tensor& out : outs) {
    node.out.push_back(new_slot(out));
    results.push_back({std::move(out), placements, node.out.back()});
  }
  nodes_.push_back(std::move(node));
  return results;
}

void Tape::seed(int slot, const Tensor& gradient) {
  Slot& target = slots_[static_cast<std::size_t>(slot)];
  DEW_CHECK(gradient.numel() == target.shape.numel() && gradient.dtype() == target.dtype, gradient.shape(),
            target.shape);
  if (!target.gradient.defined()) {
    target.gradient = gradient.reshape(target.shape);
    return;
  }
  Tensor sum = target.gradient.unique() ? target.gradient : empty(target.shape, target.dtype);
  kernels::add(stream_, target.gradient, gradient.reshape(target.shape), sum);
  target.gradient = std::move(sum);
}

// Moves the gradients of a node's outputs out of their slots. False when none was reached: the op has no part
// in the loss. An unreached output among reached ones has a zero gradient.
bool Tape::take_out_gradients(const Node& node, std::vector<Tensor>& gradients) {
  bool reached = false;
  for (int slot : node.out) reached = reached || slots_[static_cast<std::size_t>(slot)].gradient.defined();
  if (!reached) return false;
  for (int index : node.out) {
    Slot& slot = slots_[static_cast<std::size_t>(index)];
    if (!slot.gradient.defined())
      slot.gradient = Tensor::zeros(slot.shape, slot.dtype, stream_, Owner::kActivations);
    gradients.push_back(std::exchange(slot.gradient, {}));
  }
  return true;
}

void Tape::backward(std::span<const Seed> seeds, const ParamViews& bound, WeightMode mode,
                    DeferredWork* deferred) {
  DEW_CHECK(bound.gradients != nullptr);
  DEW_CHECK(mode == WeightMode::kNow || deferred != nullptr);
  for (const Seed& start : seeds)
    if (start.output.slot >= 0) seed(start.output.slot, start.gradient);
  while (!nodes_.empty()) {
    Node node = std::move(nodes_.back());
    nodes_.pop_back();
    std::vector<Tensor> gradients;
    if (!take_out_gradients(node, gradients)) continue;
    Backward handle(*this, node, bound, gradients);
    node.vjp(handle);
    handle.add_repeated();
    if (!node.weight) continue;
    if (mode == WeightMode::kDefer) {
      deferred->add(std::move(node.weight), std::move(gradients));
    } else {
      WeightBackward weight(stream_, bound, gradients);
      node.weight(weight);
    }
  }
}

Tensor Tape::take_gradient(const Var& input) {
  if (input.slot < 0) return {};
  return std::exchange(slots_[static_cast<std::size_t>(input.slot)].gradient, {});
}

std::string Tape::str() const {
  std::string text;
  for (const Node& node : nodes_) {
    text += std::string(node.op);
    for (int slot : node.in) text += format(" %%%d", slot);
    text += " ->";
    for (int slot : node.out)
      text += format(" %%%d%s", slot, slots_[static_cast<std::size_t>(slot)].shape.str().c_str());
    text += '\n';
  }
  return text;
}

Target Backward::in(int i) {
  DEW_CHECK(wants(i), node_.op, i);
  const int index = node_.in[static_cast<std::size_t>(i)];
  Tape::Slot& slot = tape_.slots_[static_cast<std::size_t>(index)];
  // One op may take a value twice, and its kernel write both gradients at once: each has its own tensor.
  if (std::find(node_.in.begin(), node_.in.begin() + i, index) != node_.in.begin() + i) {
    repeated_.push_back({index, tape_.empty(slot.shape, slot.dtype)});
    return {repeated_.back().gradient, false};
  }
  if (!slot.gradient.defined()) {
    slot.gradient = tape_.empty(slot.shape, slot.dtype);
    return {slot.gradient, false};
  }
  if (!slot.gradient.unique()) {  // somebody else can see the tensor: accumulate into a copy
    Tensor copied = tape_.empty(slot.shape, slot.dtype);
    copy(tape_.stream_, slot.gradient, copied);
    slot.gradient = std::move(copied);
  }
  return {slot.gradient, true};
}

Target Backward::in_or_scratch(int i, const Shape& shape, DType dtype) {
  if (wants(i)) return in(i);
  return {Tensor::empty(shape, dtype, stream(), Owner::kBuffers), false};
}

void Backward::add_repeated() {
  for (const Repeated& repeated : repeated_) tape_.seed(repeated.slot, repeated.gradient);
  repeated_.clear();
}

void Backward::pass(int i, const Tensor& gradient) {
  if (wants(i)) tape_.seed(node_.in[static_cast<std::size_t>(i)], gradient);
}

}  // namespace dew
