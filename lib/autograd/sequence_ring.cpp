// Keys and values go round the ranks while the queries stay (arXiv:2310.01889), in balanced blocks where the
// call is causal (arXiv:2311.09431); partial results are put together by their log-sum-exps.
#include <utility>

#include "autograd/sequence_parts.h"
#include "kernels/pointwise.h"
#include "kernels/strided.h"
#include "tensor/copy.h"

namespace dew {
namespace {

/// Blocks of positions as a rank holds them: two balanced ones, or the shard whole.
struct Blocks {
  std::vector<Tensor> tensors;
  std::vector<std::int64_t> begin;  ///< global position of each
};

/// How positions are dealt out.
struct Deal {
  Communicator* group;
  BalancedOrder order;
  bool balanced;
  std::int64_t queries, keys;   ///< positions of a rank
  kernels::AttentionMask mask;  ///< begins are those of rank 0
  kernels::AttentionDropout dropout;

  Blocks blocks_of(int rank, std::vector<Tensor> tensors, bool of_keys) const {
    const std::int64_t first = of_keys ? mask.key_begin : mask.query_begin;
    if (!balanced) return {std::move(tensors), {first + rank * (of_keys ? keys : queries)}};
    const std::int64_t high = 2 * group->size() - 1 - rank;
    return {std::move(tensors), {first + rank * order.half(), first + high * order.half()}};
  }
  Blocks deal(Stream& stream, const Tensor& x, bool of_keys) const {
    return blocks_of(group->rank(), balanced ? order.to_balanced(stream, x) : std::vector<Tensor>{x},
                     of_keys);
  }
  Tensor collect(Stream& stream, const std::vector<Tensor>& blocks) const {
    return balanced ? order.from_balanced(stream, blocks) : blocks[0];
  }
  /// Whether any query of one block sees any key of another.
  bool meets(std::int64_t query_begin, std::int64_t queries_of, std::int64_t key_begin,
             std::int64_t keys_of) const {
    if (!mask.causal) return true;
    if (key_begin > query_begin + queries_of - 1) return false;
    return mask.window == 0 || key_begin + keys_of - 1 > query_begin - mask.window;
  }
  kernels::AttentionMask mask_at(std::int64_t query_begin, std::int64_t key_begin) const {
    kernels::AttentionMask at = mask;
    at.query_begin = query_begin;
    at.key_begin = key_begin;
    return at;
  }
};

std::vector<Tensor> empty_like(Stream& stream, const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& x : tensors)
    copies.push_back(Tensor::empty(x.shape(), x.dtype(), stream, Owner::kBuffers));
  return copies;
}

/// Starts sending tensors to the next rank and receiving as many from the one before.
Ticket rotate(Stream& stream, Communicator& group, const std::vector<Tensor>& leaving,
              const std::vector<Tensor>& arriving) {
  const int next = (group.rank() + 1) % group.size(),
            before = (group.rank() + group.size() - 1) % group.size();
  std::vector<PeerTransfer> transfers;
  for (const Tensor& x : leaving) transfers.push_back({PeerTransfer::Kind::kSend, next, x});
  for (const Tensor& x : arriving) transfers.push_back({PeerTransfer::Kind::kRecv, before, x});
  return group.exchange(transfers, stream);
}

std::vector<Tensor> joined(std::vector<Tensor> a, const std::vector<Tensor>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Calls visit(step's keys, step's values) for the shard of every rank, the own one first, while the next one
/// travels.
template <class Visit>
void go_round(Stream& stream, const Deal& deal, const Blocks& k, const Blocks& v, const Visit& visit) {
  const int ranks = deal.group->size(), rank = deal.group->rank();
  const std::size_t count = k.tensors.size();
  std::vector<Tensor> here = joined(k.tensors, v.tensors);
  for (int step = 0; step < ranks; ++step) {
    std::vector<Tensor> coming;
    Ticket ticket;
    if (step + 1 < ranks) {
      coming = empty_like(stream, here);
      ticket = rotate(stream, *deal.group, here, coming);
    }
    const int from = (rank - step + ranks) % ranks;
    const auto half = here.begin() + static_cast<std::ptrdiff_t>(count);
    visit(step, deal.blocks_of(from, {here.begin(), half}, true), std::vector<Tensor>(half, here.end()));
    ticket.wait(stream);
    here = std::move(coming);
  }
}

struct RingBackward {
  Deal deal;
  Blocks q, k, v;
  std::vector<Tensor> o, log_sum_exp;

  void operator()(Backward& g) const {
    Stream& stream = g.stream();
    const std::vector<Tensor> d_o = deal.deal(stream, g.out(), false).tensors;
    std::vector<Tensor> dq = empty_like(stream, q.tensors);
    std::vector<bool> dq_written(dq.size(), false);
    std::vector<Tensor> travelling;  // dk and dv of the step before, on their way here
    Ticket ticket;
    go_round(stream, deal, k, v,
             [this, &stream, &dq, &dq_written, &d_o, &travelling, &ticket](
                 int step, const Blocks& keys, const std::vector<Tensor>& values) {
               std::vector<Tensor> dk = empty_like(stream, keys.tensors), dv = empty_like(stream, values);
               for (std::size_t j = 0; j < dk.size(); ++j) {
                 bool written = false;
                 for (std::size_t i = 0; i < dq.size(); ++i) {
                   if (!deal.meets(q.begin[i], dq[i].dim(1), keys.begin[j], dk[j].dim(1))) continue;
                   kernels::attention_backward(stream, q.tensors[i], keys.tensors[j], values[j],
                                               deal.mask_at(q.begin[i], keys.begin[j]), deal.dropout, o[i],
                                               log_sum_exp[i], d_o[i], {dq[i], dq_written[i]},
                                               {dk[j], written}, {dv[j], written});
                   dq_written[i] = written = true;
                 }
                 if (written) continue;
                 fill(stream, dk[j], 0);
                 fill(stream, dv[j], 0);
               }
               // What the ranks before have found for these keys is added, and goes on.
               ticket.wait(stream);
               std::vector<Tensor> sums = joined(dk, dv);
               if (step > 0)
                 for (std::size_t i = 0; i < sums.size(); ++i)
                   kernels::add(stream, sums[i], travelling[i], sums[i]);
               travelling = empty_like(stream, sums);
               ticket = rotate(stream, *deal.group, sums, travelling);
             });
    ticket.wait(stream);
    const auto half = travelling.begin() + static_cast<std::ptrdiff_t>(k.tensors.size());
    g.pass(0, deal.collect(stream, dq));
    g.pass(1, deal.collect(stream, {travelling.begin(), half}));
    g.pass(2, deal.collect(stream, {half, travelling.end()}));
  }
};

}  // namespace

Var ring_attention(Tape& tape, const Vars& qkv, const SequenceParts& parts) {
  Stream& stream = tape.stream();
  const int rank = parts.group.rank();
  Deal deal{&parts.group,      BalancedOrder(parts.group, parts.q.dim(1)),
            parts.mask.causal, parts.q.dim(1),
            parts.k.dim(1),    parts.mask,
            parts.dropout};
  deal.mask.query_begin -= rank * parts.q.dim(1);
  deal.mask.key_begin -= rank * parts.k.dim(1);
  RingBackward backward{deal,
                        deal.deal(stream, parts.q, false),
                        deal.deal(stream, parts.k, true),
                        deal.deal(stream, parts.v, true),
                        {},
                        {}};
  for (const Tensor& q : backward.q.tensors) {
    backward.o.push_back(Tensor::empty(q.shape(), q.dtype(), stream, Owner::kActivations));
    backward.log_sum_exp.push_back(
        Tensor::empty({q.dim(0), q.dim(2), q.dim(1)}, real_of(q.dtype()), stream, Owner::kActivations));
  }
  std::vector<bool> written(backward.o.size(), false);
  go_round(stream, deal, backward.k, backward.v,
           [&stream, &deal, &backward, &written](int, const Blocks& keys, const std::vector<Tensor>& values) {
             for (std::size_t i = 0; i < written.size(); ++i)
               for (std::size_t j = 0; j < values.size(); ++j) {
                 const Tensor& q = backward.q.tensors[i];
                 if (!deal.meets(backward.q.begin[i], q.dim(1), keys.begin[j], values[j].dim(1))) continue;
                 const bool first = !written[i];
                 const std::vector<Tensor> into =
                     first ? std::vector<Tensor>{backward.o[i], backward.log_sum_exp[i]}
                           : empty_like(stream, {backward.o[i], backward.log_sum_exp[i]});
                 kernels::attention_forward(stream, q, keys.tensors[j], values[j],
                                            deal.mask_at(backward.q.begin[i], keys.begin[j]), deal.dropout,
                                            into[0], into[1]);
                 if (!first)
                   kernels::merge_attention(stream, into[0], into[1], backward.o[i], backward.log_sum_exp[i]);
                 written[i] = true;
               }
           });
  const Tensor o = deal.collect(stream, backward.o);
  return tape.record("ring_attention", qkv, o, qkv[0].placements, std::move(backward));
}

}  // namespace dew
