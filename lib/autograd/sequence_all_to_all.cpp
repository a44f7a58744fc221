// Heads against positions: each rank attends whole rows with its share of the heads (arXiv:2309.14509), a
// group of heads at a time, so that one group's exchange runs beside another's attention.
#include <algorithm>
#include <memory>
#include <utility>

#include "autograd/sequence_parts.h"
#include "autograd/sequence_rule.h"
#include "kernels/strided.h"
#include "tensor/copy.h"

namespace dew {
namespace {

using kernels::copy_strided;

constexpr std::int64_t kMostGroups = 4;

/// How heads go round: `width` elements a head; head h' of H' = repeat x heads is head h' / repeat here; rank
/// r attends heads [r share, (r + 1) share).
struct HeadSplit {
  std::int64_t ranks, samples, positions, heads, repeat, width;
  std::int64_t share() const { return heads * repeat / ranks; }
};

/// An exchange that was started: what arrives, and when.
struct Exchange {
  Tensor arriving;  ///< [N, B L heads K]: a block a rank
  Ticket ticket;
};

Exchange start(Stream& stream, Communicator& group, const Tensor& leaving) {
  const std::vector<std::int64_t> one_row(static_cast<std::size_t>(group.size()), 1);
  Exchange exchange{Tensor::empty(leaving.shape(), leaving.dtype(), stream, Owner::kBuffers), {}};
  exchange.ticket = group.all_to_all_rows({leaving, exchange.arriving}, one_row, one_row, stream);
  return exchange;
}

/// Heads [begin, begin + count) of every rank's share leave x [B, L, H, K] for it.
Exchange start_heads(Stream& stream, Communicator& group, const Tensor& x, const HeadSplit& s,
                     std::int64_t begin, std::int64_t count) {
  const std::int64_t part = count * s.width, row = s.heads * s.width;
  const Tensor leaving =
      Tensor::empty({s.ranks, s.samples * s.positions * part}, x.dtype(), stream, Owner::kBuffers);
  const std::int64_t block = s.samples * s.positions * part;
  if (s.repeat == 1) {
    copy_strided(stream, {s.ranks, s.samples, s.positions, part},
                 {x, begin * s.width, {s.share() * s.width, s.positions * row, row, 1}},
                 {leaving, 0, {block, s.positions * part, part, 1}}, false);
    return start(stream, group, leaving);
  }
  for (std::int64_t r = 0; r < s.ranks; ++r)
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int64_t head = (r * s.share() + begin + j) / s.repeat;
      copy_strided(stream, {1, s.samples, s.positions, s.width},
                   {x, head * s.width, {0, s.positions * row, row, 1}},
                   {leaving, r * block + j * s.width, {0, s.positions * part, part, 1}}, false);
    }
  return start(stream, group, leaving);
}

/// What arrived as whole rows of these heads: [B, N L, count, K].
Tensor finish_heads(Stream& stream, Exchange& exchange, const HeadSplit& s, std::int64_t count) {
  exchange.ticket.wait(stream);
  const std::int64_t part = count * s.width, block = s.samples * s.positions * part;
  Tensor rows = Tensor::empty({s.samples, s.ranks * s.positions, count, s.width}, exchange.arriving.dtype(),
                              stream, Owner::kActivations);
  copy_strided(stream, {s.ranks, s.samples, s.positions, part},
               {exchange.arriving, 0, {block, s.positions * part, part, 1}},
               {rows, 0, {s.positions * part, s.ranks * s.positions * part, part, 1}}, false);
  exchange.arriving = {};
  return rows;
}

/// The way back: rows [B, N L, count, K] of this rank's heads return to the ranks that hold the positions.
Exchange start_positions(Stream& stream, Communicator& group, const Tensor& rows, const HeadSplit& s) {
  const std::int64_t part = rows.dim(2) * s.width, block = s.samples * s.positions * part;
  const Tensor leaving = Tensor::empty({s.ranks, block}, rows.dtype(), stream, Owner::kBuffers);
  copy_strided(stream, {s.ranks, s.samples, s.positions, part},
               {rows, 0, {s.positions * part, s.ranks * s.positions * part, part, 1}},
               {leaving, 0, {block, s.positions * part, part, 1}}, false);
  return start(stream, group, leaving);
}

/// Puts what arrived into heads [begin, begin + count) of each share of x [B, L, H, K]; repeated heads are
/// added to the one they came from.
void finish_positions(Stream& stream, Exchange& exchange, const HeadSplit& s, std::int64_t begin,
                      std::int64_t count, const Tensor& x, bool accumulate) {
  exchange.ticket.wait(stream);
  const std::int64_t part = count * s.width, row = s.heads * s.width, block = s.samples * s.positions * part;
  if (s.repeat == 1) {
    copy_strided(stream, {s.ranks, s.samples, s.positions, part},
                 {exchange.arriving, 0, {block, s.positions * part, part, 1}},
                 {x, begin * s.width, {s.share() * s.width, s.positions * row, row, 1}}, accumulate);
  } else {
    DEW_CHECK(accumulate, "repeated heads are added up");
    for (std::int64_t r = 0; r < s.ranks; ++r)
      for (std::int64_t j = 0; j < count; ++j)
        copy_strided(stream, {1, s.samples, s.positions, s.width},
                     {exchange.arriving, r * block + j * s.width, {0, s.positions * part, part, 1}},
                     {x, (r * s.share() + begin + j) / s.repeat * s.width, {0, s.positions * row, row, 1}},
                     true);
  }
  exchange.arriving = {};
}

HeadSplit split_of(const Tensor& x, std::int64_t repeat, int ranks) {
  return {ranks, x.dim(0), x.dim(1), x.dim(2), repeat, x.dim(3)};
}

/// The most groups, up to kMostGroups, that leave whole key/value heads in each.
std::int64_t groups_of_heads(std::int64_t kv_share) {
  std::int64_t groups = std::min(kMostGroups, kv_share);
  while (kv_share % groups != 0) --groups;
  return groups;
}

struct Plan {
  Communicator* group;
  HeadSplit q, k;
  std::int64_t groups, q_count, k_count;  ///< heads of a group on a rank
  kernels::AttentionMask mask;            ///< of whole rows
  kernels::AttentionDropout dropout;

  /// Of group g's query heads.
  kernels::AttentionDropout dropout_of(std::int64_t g) const {
    kernels::AttentionDropout of_group = dropout;
    of_group.first_head += group->rank() * q.share() + g * q_count;
    return of_group;
  }
};

Plan plan_of(const SequenceParts& parts) {
  const int ranks = parts.group.size();
  SequenceCall call;
  call.kv_heads = parts.k.dim(2);
  call.ranks = ranks;
  Plan plan{&parts.group,
            split_of(parts.q, 1, ranks),
            split_of(parts.k, repeated_kv_heads(call) / parts.k.dim(2), ranks),
            0,
            0,
            0,
            parts.mask,
            parts.dropout};
  plan.groups = groups_of_heads(plan.k.share());
  plan.q_count = plan.q.share() / plan.groups;
  plan.k_count = plan.k.share() / plan.groups;
  plan.mask.query_begin -= parts.group.rank() * parts.q.dim(1);
  plan.mask.key_begin -= parts.group.rank() * parts.k.dim(1);
  return plan;
}

/// One group of heads after its attention.
struct Attended {
  Tensor q, k, v, o, log_sum_exp;
};

struct Inward {
  Exchange q, k, v;
};

Inward start_group(Stream& stream, const Plan& plan, const SequenceParts& parts, std::int64_t g) {
  return {start_heads(stream, *plan.group, parts.q, plan.q, g * plan.q_count, plan.q_count),
          start_heads(stream, *plan.group, parts.k, plan.k, g * plan.k_count, plan.k_count),
          start_heads(stream, *plan.group, parts.v, plan.k, g * plan.k_count, plan.k_count)};
}

Attended attend(Stream& stream, const Plan& plan, Inward inward, std::int64_t g) {
  Attended a;
  a.q = finish_heads(stream, inward.q, plan.q, plan.q_count);
  a.k = finish_heads(stream, inward.k, plan.k, plan.k_count);
  a.v = finish_heads(stream, inward.v, plan.k, plan.k_count);
  a.o = Tensor::empty(a.q.shape(), a.q.dtype(), stream, Owner::kActivations);
  a.log_sum_exp =
      Tensor::empty({a.q.dim(0), a.q.dim(2), a.q.dim(1)}, real_of(a.q.dtype()), stream, Owner::kActivations);
  kernels::attention_forward(stream, a.q, a.k, a.v, plan.mask, plan.dropout_of(g), a.o, a.log_sum_exp);
  return a;
}

/// Gradients of one group on their way back.
struct Outward {
  Exchange q, k, v;
};

Outward differentiate(Stream& stream, const Plan& plan, const Attended& a, const Tensor& d_o,
                      std::int64_t g) {
  const auto like = [&stream](const Tensor& x) {
    return Target{Tensor::empty(x.shape(), x.dtype(), stream, Owner::kBuffers), false};
  };
  const Target dq = like(a.q), dk = like(a.k), dv = like(a.v);
  kernels::attention_backward(stream, a.q, a.k, a.v, plan.mask, plan.dropout_of(g), a.o, a.log_sum_exp, d_o,
                              dq, dk, dv);
  return {start_positions(stream, *plan.group, dq.into, plan.q),
          start_positions(stream, *plan.group, dk.into, plan.k),
          start_positions(stream, *plan.group, dv.into, plan.k)};
}

/// Where finished gradients of an input are put, all groups one after the other.
Target opened(Stream& stream, Target target, const HeadSplit& s) {
  if (s.repeat == 1 || target.accumulate) return target;
  fill(stream, target.into, 0);
  return {target.into, true};
}

struct AllToAllBackward {
  Plan plan;
  std::vector<Attended> attended;
  Shape q_here, k_here;  // of this rank's queries, and of its keys and values

  void operator()(Backward& g) const {
    Stream& stream = g.stream();
    const DType dtype = g.out().dtype();
    const Target dq = opened(stream, g.in_or_scratch(0, q_here, dtype), plan.q),
                 dk = opened(stream, g.in_or_scratch(1, k_here, dtype), plan.k),
                 dv = opened(stream, g.in_or_scratch(2, k_here, dtype), plan.k);
    const auto start_out = [this, &stream, &g](std::int64_t i) {
      return start_heads(stream, *plan.group, g.out(), plan.q, i * plan.q_count, plan.q_count);
    };
    std::vector<Outward> outward;
    Exchange next = start_out(0);
    for (std::int64_t i = 0; i < plan.groups; ++i) {
      Exchange current = std::exchange(next, {});
      if (i + 1 < plan.groups) next = start_out(i + 1);
      const Tensor d_o = finish_heads(stream, current, plan.q, plan.q_count);
      outward.push_back(differentiate(stream, plan, attended[static_cast<std::size_t>(i)], d_o, i));
    }
    for (std::int64_t i = 0; i < plan.groups; ++i) {
      Outward& out = outward[static_cast<std::size_t>(i)];
      finish_positions(stream, out.q, plan.q, i * plan.q_count, plan.q_count, dq.into, dq.accumulate);
      finish_positions(stream, out.k, plan.k, i * plan.k_count, plan.k_count, dk.into, dk.accumulate);
      finish_positions(stream, out.v, plan.k, i * plan.k_count, plan.k_count, dv.into, dv.accumulate);
    }
  }
};

}  // namespace

Var all_to_all_attention(Tape& tape, const Vars& qkv, const SequenceParts& parts) {
  Stream& stream = tape.stream();
  const Plan plan = plan_of(parts);
  Tensor o = tape.empty(parts.q.shape(), parts.q.dtype());
  AllToAllBackward backward{plan, {}, parts.q.shape(), parts.k.shape()};
  std::vector<Exchange> returning;
  Inward next = start_group(stream, plan, parts, 0);
  for (std::int64_t g = 0; g < plan.groups; ++g) {
    Inward current = std::exchange(next, {});
    if (g + 1 < plan.groups) next = start_group(stream, plan, parts, g + 1);
    Attended attended = attend(stream, plan, std::move(current), g);
    returning.push_back(start_positions(stream, *plan.group, attended.o, plan.q));
    if (tape.differentiates()) backward.attended.push_back(std::move(attended));
  }
  for (std::int64_t g = 0; g < plan.groups; ++g)
    finish_positions(stream, returning[static_cast<std::size_t>(g)], plan.q, g * plan.q_count, plan.q_count,
                     o, false);
  return tape.record("all_to_all_attention", qkv, o, qkv[0].placements, std::move(backward));
}

}  // namespace dew
