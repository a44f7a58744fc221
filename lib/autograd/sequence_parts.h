// What the exchanges over the sequence axis share. Private to this folder. B samples, L positions here, H
// heads, K head width, N ranks of the axis.
#pragma once

#include <array>
#include <vector>

#include "autograd/scope.h"
#include "kernels/attention.h"

namespace dew {

/// One attention call on one rank, and all it needs of its surroundings.
struct SequenceParts {
  Communicator& group;  ///< along sequence
  Tensor q, k, v;       ///< [B, L, H, K], [B, S, G, K]
  kernels::AttentionMask mask;
  kernels::AttentionDropout dropout;
};

/// Forward: returns o [B, L, H, K], and puts on the tape, as one node, what the backward needs.
Var all_to_all_attention(Tape& tape, const Vars& qkv, const SequenceParts& parts);
Var gather_attention(Tape& tape, const Vars& qkv, const SequenceParts& parts);
Var band_attention(Tape& tape, const Vars& qkv, const SequenceParts& parts);
Var ring_attention(Tape& tape, const Vars& qkv, const SequenceParts& parts);

/// Positions [begin, begin + count) of x [B, L, H, K], as a tensor of their own.
Tensor take_positions(Stream& stream, const Tensor& x, std::int64_t begin, std::int64_t count);
/// Puts part [B, count, H, K] at position `begin` of whole [B, L, H, K], or adds it there.
void put_positions(Stream& stream, const Tensor& part, const Tensor& whole, std::int64_t begin,
                   bool accumulate);

/// The 2 N blocks of positions that balance a causal call: rank r computes blocks r and 2 N - 1 - r.
class BalancedOrder {
 public:
  BalancedOrder(Communicator& group, std::int64_t positions_here)
      : group_(&group), half_(positions_here / 2), ranks_(group.size()), rank_(group.rank()) {}

  std::int64_t half() const { return half_; }  ///< positions of a block
  int low() const { return rank_; }
  int high() const { return 2 * ranks_ - 1 - rank_; }

  /// x [B, 2 half, H, K] in contiguous order -> this rank's two balanced blocks, low then high. Collective.
  std::vector<Tensor> to_balanced(Stream& stream, const Tensor& x) const;
  /// The way back: two blocks -> [B, 2 half, H, K]. Collective.
  Tensor from_balanced(Stream& stream, const std::vector<Tensor>& blocks) const;

 private:
  std::vector<Tensor> swap(Stream& stream, const std::vector<Tensor>& blocks, const std::array<int, 2>& to,
                           const std::array<int, 2>& from) const;
  int owner(int block) const { return block < ranks_ ? block : 2 * ranks_ - 1 - block; }

  Communicator* group_;
  std::int64_t half_;
  int ranks_, rank_;
};

}  // namespace dew
