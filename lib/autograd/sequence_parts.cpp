#include "autograd/sequence_parts.h"

#include "kernels/strided.h"
#include "tensor/copy.h"

namespace dew {
namespace {

kernels::StridedView position_view(const Tensor& x, std::int64_t begin) {
  const std::int64_t row = x.dim(2) * x.dim(3);
  return {x, begin * row, {0, x.dim(1) * row, row, 1}};
}

}  // namespace

Tensor take_positions(Stream& stream, const Tensor& x, std::int64_t begin, std::int64_t count) {
  Tensor part = Tensor::empty({x.dim(0), count, x.dim(2), x.dim(3)}, x.dtype(), stream, Owner::kActivations);
  kernels::copy_strided(stream, {1, x.dim(0), count, x.dim(2) * x.dim(3)}, position_view(x, begin),
                        position_view(part, 0), false);
  return part;
}

void put_positions(Stream& stream, const Tensor& part, const Tensor& whole, std::int64_t begin,
                   bool accumulate) {
  kernels::copy_strided(stream, {1, part.dim(0), part.dim(1), part.dim(2) * part.dim(3)},
                        position_view(part, 0), position_view(whole, begin), accumulate);
}

// Blocks go out in ascending order and come in in ascending order, so that two between the same pair match.
std::vector<Tensor> BalancedOrder::swap(Stream& stream, const std::vector<Tensor>& blocks,
                                        const std::array<int, 2>& to, const std::array<int, 2>& from) const {
  std::vector<Tensor> received;
  std::vector<PeerTransfer> transfers;
  std::size_t own = 0;  // blocks that stay here keep their order too
  for (std::size_t i = 0; i < 2; ++i)
    if (to[i] != rank_) transfers.push_back({PeerTransfer::Kind::kSend, to[i], blocks[i]});
  for (std::size_t i = 0; i < 2; ++i) {
    if (from[i] == rank_) {
      while (to[own] != rank_) ++own;
      received.push_back(blocks[own++]);
      continue;
    }
    received.push_back(Tensor::empty(blocks[0].shape(), blocks[0].dtype(), stream, Owner::kActivations));
    transfers.push_back({PeerTransfer::Kind::kRecv, from[i], received.back()});
  }
  if (!transfers.empty()) group_->exchange(transfers, stream).wait(stream);
  return received;
}

std::vector<Tensor> BalancedOrder::to_balanced(Stream& stream, const Tensor& x) const {
  const std::vector<Tensor> blocks{take_positions(stream, x, 0, half_),
                                   take_positions(stream, x, half_, half_)};
  return swap(stream, blocks, {owner(2 * rank_), owner(2 * rank_ + 1)}, {low() / 2, high() / 2});
}

Tensor BalancedOrder::from_balanced(Stream& stream, const std::vector<Tensor>& blocks) const {
  const std::vector<Tensor> back =
      swap(stream, blocks, {low() / 2, high() / 2}, {owner(2 * rank_), owner(2 * rank_ + 1)});
  const Tensor& first = back.front();
  Tensor x = Tensor::empty({first.dim(0), 2 * half_, first.dim(2), first.dim(3)}, first.dtype(), stream,
                           Owner::kActivations);
  put_positions(stream, back[0], x, 0, false);
  put_positions(stream, back[1], x, half_, false);
  return x;
}

}  // namespace dew
