// The record of one block run on one microbatch: a list of ops, never a graph. The backward pops nodes from
// the back and frees what each one saved. A vjp gives input gradients and small weight gradients; matrix-like
// ops put their weight gradient into a separate phase, which may be deferred (the split that zero-bubble
// schedules need).
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "autograd/param_ref.h"
#include "autograd/placement.h"
#include "tensor/tensor.h"

namespace dew {

/// A value on a tape. slot < 0: a constant, no gradient wanted.
struct Var {
  Tensor value;
  Placements placements;
  int slot = -1;
};
using Vars = std::vector<Var>;

class Backward;
class WeightBackward;
using Vjp = std::function<void(Backward&)>;
using WeightVjp = std::function<void(WeightBackward&)>;

enum class WeightMode : std::uint8_t { kNow, kDefer };

/// Weight gradients put off: each with the output gradients it needs. `run` empties it, in the order of
/// recording.
class DeferredWork {
 public:
  void add(WeightVjp work, std::vector<Tensor> out_gradients) {
    items_.push_back({std::move(work), std::move(out_gradients)});
  }
  void run(Stream& stream, const ParamViews& bound);
  bool empty() const { return items_.empty(); }

 private:
  struct Item {
    WeightVjp work;
    std::vector<Tensor> out_gradients;
  };
  std::vector<Item> items_;
};

/// The gradient of one output of a block, given to start a backward.
struct Seed {
  Var output;
  Tensor gradient;
};

class Tape {
 public:
  /// `bound` must stay bound while the forward records.
  Tape(Stream& stream, const ParamViews& bound) : stream_(stream), bound_(&bound) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  Stream& stream() { return stream_; }
  Tensor empty(const Shape& shape, DType dtype) {
    return Tensor::empty(shape, dtype, stream_, Owner::kActivations);
  }

  /// A value whose gradient is wanted after the backward.
  Var input(Tensor value, const Placements& placements);
  /// The bound value of a parameter.
  const Tensor& param(ParamRef ref) const;
  const ParamViews& bound() const { return *bound_; }
  /// The axes of extent above 1 that split a dim of a parameter; none for a whole one.
  AxisSet split_of(ParamRef ref, int dim) const;
  /// The global index at which this rank's part of a dim begins.
  std::int64_t offset_of(ParamRef ref, int dim) const;
  /// The size of a dim over all ranks.
  std::int64_t global_of(ParamRef ref, int dim) const;
  /// False while evaluating: ops then save nothing and compute no gradients.
  bool differentiates() const { return bound_->gradients != nullptr; }
  /// For an op that forms its weight gradient in its forward (the fused head).
  Target param_gradient(ParamRef ref);

  /// Puts an op on the tape. Without `differentiates()` the closures are dropped and the outputs are
  /// constants.
  Var record(std::string_view op, const Vars& in, Tensor out, const Placements& placements, Vjp vjp,
             WeightVjp weight = {});
  Vars record(std::string_view op, const Vars& in, std::vector<Tensor> outs, const Placements& placements,
              Vjp vjp, WeightVjp weight = {});

  /// Runs the tape back from its seeds, freeing node by node; afterwards the tape is empty of nodes.
  /// `deferred` must not be null with kDefer.
  void backward(std::span<const Seed> seeds, const ParamViews& bound, WeightMode mode,
                DeferredWork* deferred);
  /// Takes the gradient of an input after the backward; undefined when nothing reached it.
  Tensor take_gradient(const Var& input);

  std::size_t size() const { return nodes_.size(); }
  /// One op a line, for people.
  std::string str() const;

 private:
  friend class Backward;
  struct Slot {
    Shape shape;
    DType dtype;
    Tensor gradient;
  };
  struct Node {
    std::string_view op;
    std::vector<int> in, out;
    Vjp vjp;
    WeightVjp weight;
  };
  int new_slot(const Tensor& value);
  void seed(int slot, const Tensor& gradient);
  bool take_out_gradients(const Node& node, std::vector<Tensor>& gradients);

  Stream& stream_;
  const ParamViews* bound_;
  std::vector<Slot> slots_;
  std::vector<Node> nodes_;
};

/// What a vjp may touch.
class Backward {
 public:
  Backward(Tape& tape, const Tape::Node& node, const ParamViews& bound, std::span<const Tensor> out_gradients)
      : tape_(tape), node_(node), bound_(bound), out_gradients_(out_gradients) {}

  Stream& stream() { return tape_.stream_; }
  const ParamViews& bound() const { return bound_; }
  /// dL/d(output i).
  const Tensor& out(int i = 0) const { return out_gradients_[static_cast<std::size_t>(i)]; }
  /// Whether input i wants a gradient.
  bool wants(int i) const { return node_.in[static_cast<std::size_t>(i)] >= 0; }
  /// Where to write or accumulate dL/d(input i). Input i must want it.
  Target in(int i);
  /// The same for a kernel that writes the gradients of all inputs at once: scratch of the input's shape
  /// where input i wants none.
  Target in_or_scratch(int i, const Shape& shape, DType dtype);
  Target in_or_scratch(int i, const Tensor& like) { return in_or_scratch(i, like.shape(), like.dtype()); }
  /// Hands a finished gradient of input i over without a copy where that can be. Ignored when not wanted.
  void pass(int i, const Tensor& gradient);
  const Tensor& param(ParamRef ref) const { return bound_.values[static_cast<std::size_t>(ref.index)]; }
  Target grad(ParamRef ref) { return bound_.gradients->gradient(ref); }

 private:
  friend class Tape;
  struct Repeated {
    int slot;
    Tensor gradient;
  };
  void add_repeated();

  Tape& tape_;
  const Tape::Node& node_;
  const ParamViews& bound_;
  std::span<const Tensor> out_gradients_;
  std::vector<Repeated> repeated_;  ///< of values that the op takes again, added up after its vjp
};

/// What the weight phase of an op may touch.
class WeightBackward {
 public:
  WeightBackward(Stream& stream, const ParamViews& bound, std::span<const Tensor> out_gradients)
      : stream_(stream), bound_(bound), out_gradients_(out_gradients) {}
  Stream& stream() { return stream_; }
  const Tensor& out(int i = 0) const { return out_gradients_[static_cast<std::size_t>(i)]; }
  Target grad(ParamRef ref) { return bound_.gradients->gradient(ref); }

 private:
  Stream& stream_;
  const ParamViews& bound_;
  std::span<const Tensor> out_gradients_;
};

}  // namespace dew
