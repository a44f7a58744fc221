// Keys and values of all positions come to every rank's queries; causal calls balance the queries.
#include <utility>

#include "autograd/sequence_parts.h"
#include "kernels/strided.h"

namespace dew {
namespace {

using kernels::copy_strided;

/// x [B, S, G, K] of every rank -> [B, N S, G, K]: starts, then puts in order.
struct Gathering {
  Tensor arriving;
  Ticket ticket;
};

Gathering start_gather(Stream& stream, Communicator& group, const Tensor& x) {
  Gathering gathering{Tensor::empty({group.size() * x.numel()}, x.dtype(), stream, Owner::kActivations), {}};
  const Transfer transfer{x, gathering.arriving};
  gathering.ticket = group.all_gather({&transfer, 1}, stream);
  return gathering;
}

/// Between [N, B, S, G K], a block a rank, and rows [B, N S, G, K].
void reorder(Stream& stream, const Shape& x, std::int64_t ranks, const Tensor& blocks, const Tensor& rows,
             bool to_rows) {
  const std::int64_t row = x.dim(2) * x.dim(3), shard = x.dim(1) * row;
  const kernels::StridedView by_rank{blocks, 0, {x.dim(0) * shard, shard, row, 1}},
      by_row{rows, 0, {shard, ranks * shard, row, 1}};
  const std::array<std::int64_t, 4> extents{ranks, x.dim(0), x.dim(1), row};
  if (to_rows)
    copy_strided(stream, extents, by_rank, by_row, false);
  else
    copy_strided(stream, extents, by_row, by_rank, false);
}

Tensor finish_gather(Stream& stream, Gathering gathering, const Tensor& x, int ranks) {
  gathering.ticket.wait(stream);
  const Shape whole{x.dim(0), ranks * x.dim(1), x.dim(2), x.dim(3)};
  if (x.dim(0) == 1) return gathering.arriving.reshape(whole);
  Tensor rows = Tensor::empty(whole, x.dtype(), stream, Owner::kActivations);
  reorder(stream, x.shape(), ranks, gathering.arriving, rows, true);
  return rows;
}

/// A block of queries with its result.
struct QueryBlock {
  Tensor q, o, log_sum_exp;
  kernels::AttentionMask mask;
};

struct GatherBackward {
  Communicator* group;
  std::vector<QueryBlock> blocks;
  Tensor k, v;           // of all positions
  Shape q_here, k_here;  // of this rank's queries, and of its keys and values
  kernels::AttentionDropout dropout;

  void scatter(Stream& stream, const Tensor& rows, const Target& target) const {
    Tensor leaving = rows;
    if (k_here.dim(0) != 1) {
      leaving = Tensor::empty({rows.numel()}, rows.dtype(), stream, Owner::kBuffers);
      reorder(stream, k_here, group->size(), leaving, rows, false);
    }
    const Tensor sum =
        target.accumulate ? Tensor::empty(k_here, rows.dtype(), stream, Owner::kBuffers) : target.into;
    const Transfer transfer{leaving, sum};
    group->reduce_scatter({&transfer, 1}, stream).wait(stream);
    if (target.accumulate) put_positions(stream, sum, target.into, 0, true);
  }

  void operator()(Backward& g) const {
    Stream& stream = g.stream();
    const BalancedOrder order(*group, q_here.dim(1));
    const std::vector<Tensor> d_o =
        blocks.size() == 1 ? std::vector<Tensor>{g.out()} : order.to_balanced(stream, g.out());
    const Target dk{Tensor::empty(k.shape(), k.dtype(), stream, Owner::kBuffers), false},
        dv{Tensor::empty(v.shape(), v.dtype(), stream, Owner::kBuffers), false};
    std::vector<Tensor> dq;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const QueryBlock& block = blocks[i];
      dq.push_back(Tensor::empty(block.q.shape(), block.q.dtype(), stream, Owner::kActivations));
      kernels::attention_backward(stream, block.q, k, v, block.mask, dropout, block.o, block.log_sum_exp,
                                  d_o[i], {dq.back(), false}, {dk.into, i > 0}, {dv.into, i > 0});
    }
    g.pass(0, blocks.size() == 1 ? dq[0] : order.from_balanced(stream, dq));
    scatter(stream, dk.into, g.in_or_scratch(1, k_here, k.dtype()));
    scatter(stream, dv.into, g.in_or_scratch(2, k_here, v.dtype()));
  }
};

}  // namespace

Var gather_attention(Tape& tape, const Vars& qkv, const SequenceParts& parts) {
  Stream& stream = tape.stream();
  Gathering k = start_gather(stream, parts.group, parts.k), v = start_gather(stream, parts.group, parts.v);
  const BalancedOrder order(parts.group, parts.q.dim(1));
  const std::vector<Tensor> queries =
      parts.mask.causal ? order.to_balanced(stream, parts.q) : std::vector<Tensor>{parts.q};
  GatherBackward backward{&parts.group,
                          {},
                          finish_gather(stream, std::move(k), parts.k, parts.group.size()),
                          finish_gather(stream, std::move(v), parts.v, parts.group.size()),
                          parts.q.shape(),
                          parts.k.shape(),
                          parts.dropout};
  const std::int64_t first_query = parts.mask.query_begin - parts.group.rank() * parts.q.dim(1);
  std::vector<Tensor> outs;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    QueryBlock block{queries[i], {}, {}, parts.mask};
    const Tensor& q = block.q;
    block.mask.key_begin -= parts.group.rank() * parts.k.dim(1);
    if (queries.size() > 1)
      block.mask.query_begin = first_query + (i == 0 ? order.low() : order.high()) * order.half();
    block.o = Tensor::empty(q.shape(), q.dtype(), stream, Owner::kActivations);
    block.log_sum_exp =
        Tensor::empty({q.dim(0), q.dim(2), q.dim(1)}, real_of(q.dtype()), stream, Owner::kActivations);
    kernels::attention_forward(stream, q, backward.k, backward.v, block.mask, backward.dropout, block.o,
                               block.log_sum_exp);
    outs.push_back(block.o);
    backward.blocks.push_back(std::move(block));
  }
  const Tensor o = outs.size() == 1 ? outs[0] : order.from_balanced(stream, outs);
  return tape.record("gather_attention", qkv, o, qkv[0].placements, std::move(backward));
}

}  // namespace dew
