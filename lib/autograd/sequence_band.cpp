// A window that fits in one shard: besides its own, a rank needs only the last keys and values of the rank
// before it.
#include <array>

#include "autograd/sequence_parts.h"

namespace dew {
namespace {

/// The ranks on both sides; -1 at an end.
struct Neighbours {
  int before, after;
};

Neighbours neighbours_of(Communicator& group) {
  return {group.rank() - 1, group.rank() + 1 < group.size() ? group.rank() + 1 : -1};
}

/// Sends to one side what the other side's counterpart receives: keys and values together. Either may be -1.
void shift(Stream& stream, Communicator& group, int to, const std::vector<Tensor>& leaving, int from,
           const std::vector<Tensor>& arriving) {
  std::vector<PeerTransfer> transfers;
  for (const Tensor& x : leaving)
    if (to >= 0 && x.numel() > 0) transfers.push_back({PeerTransfer::Kind::kSend, to, x});
  for (const Tensor& x : arriving)
    if (from >= 0 && x.numel() > 0) transfers.push_back({PeerTransfer::Kind::kRecv, from, x});
  if (!transfers.empty()) group.exchange(transfers, stream).wait(stream);
}

struct BandBackward {
  Communicator* group;
  std::int64_t tail;  // keys that come from the rank before
  Tensor q, k, v;     // with the tail in front
  Tensor o, log_sum_exp;
  kernels::AttentionMask mask;
  kernels::AttentionDropout dropout;
  std::int64_t borrowed;  // 0 on the first rank, else tail

  void operator()(Backward& g) const {
    Stream& stream = g.stream();
    const auto like = [&stream](const Tensor& x) {
      return Target{Tensor::empty(x.shape(), x.dtype(), stream, Owner::kBuffers), false};
    };
    const Target dk = like(k), dv = like(v);
    kernels::attention_backward(stream, q, k, v, mask, dropout, o, log_sum_exp, g.out(),
                                g.in_or_scratch(0, q), dk, dv);
    // The borrowed keys' gradients go home, and those of the keys that were lent come back.
    const Neighbours side = neighbours_of(*group);
    const Shape lent{k.dim(0), tail, k.dim(2), k.dim(3)};
    std::vector<Tensor> leaving, arriving;
    for (const Target* d : {&dk, &dv}) {
      if (side.before >= 0) leaving.push_back(take_positions(stream, d->into, 0, borrowed));
      if (side.after >= 0) arriving.push_back(Tensor::empty(lent, k.dtype(), stream, Owner::kBuffers));
    }
    shift(stream, *group, side.before, leaving, side.after, arriving);
    for (int i : {1, 2}) {
      const Target& d = i == 1 ? dk : dv;
      const std::int64_t own = d.into.dim(1) - borrowed;
      const Tensor mine = borrowed == 0 ? d.into : take_positions(stream, d.into, borrowed, own);
      if (side.after >= 0 && tail > 0)
        put_positions(stream, arriving[static_cast<std::size_t>(i - 1)], mine, own - tail, true);
      g.pass(i, mine);
    }
  }
};

}  // namespace

Var band_attention(Tape& tape, const Vars& qkv, const SequenceParts& parts) {
  Stream& stream = tape.stream();
  const std::int64_t tail = parts.mask.window - 1, here = parts.k.dim(1);
  const Neighbours side = neighbours_of(parts.group);
  const std::int64_t borrowed = side.before >= 0 ? tail : 0;
  std::vector<Tensor> leaving, arriving;
  for (const Tensor* x : {&parts.k, &parts.v}) {
    if (side.after >= 0) leaving.push_back(take_positions(stream, *x, here - tail, tail));
    if (side.before >= 0)
      arriving.push_back(
          Tensor::empty({x->dim(0), tail, x->dim(2), x->dim(3)}, x->dtype(), stream, Owner::kActivations));
  }
  shift(stream, parts.group, side.after, leaving, side.before, arriving);
  const auto extended = [&stream, &arriving, borrowed, here](const Tensor& x, std::size_t i) {
    if (borrowed == 0) return x;
    Tensor whole = Tensor::empty({x.dim(0), borrowed + here, x.dim(2), x.dim(3)}, x.dtype(), stream,
                                 Owner::kActivations);
    put_positions(stream, arriving[i], whole, 0, false);
    put_positions(stream, x, whole, borrowed, false);
    return whole;
  };
  BandBackward backward{&parts.group, tail, parts.q,    extended(parts.k, 0), extended(parts.v, 1),
                        {},           {},   parts.mask, parts.dropout,        borrowed};
  backward.mask.key_begin -= borrowed;
  const Tensor& q = parts.q;
  backward.o = tape.empty(q.shape(), q.dtype());
  backward.log_sum_exp = tape.empty({q.dim(0), q.dim(2), q.dim(1)}, real_of(q.dtype()));
  kernels::attention_forward(stream, q, backward.k, backward.v, backward.mask, backward.dropout, backward.o,
                             backward.log_sum_exp);
  const Tensor o = backward.o;
  return tape.record("band_attention", qkv, o, qkv[0].placements, std::move(backward));
}

}  // namespace dew
