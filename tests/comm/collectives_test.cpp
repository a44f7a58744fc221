// Integer-valued floats: sums are exact in any order, so every comparison is for equality.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/check.h"
#include "comm/communicator.h"
#include "comm/mpi_communicator.h"
#include "support/mpi_world.h"
#include "tensor/copy.h"

namespace dew {
namespace {

using testing::world;

// Elements: none, one, odd, above a vector, and above the size that is reduced in two phases (with a tail).
constexpr std::int64_t kSizes[] = {0, 1, 5, 33, 257, 8191, 20'011};

// The bytes of one MPI call: everything at once, and so few that most tensors go in many pieces.
class Collectives : public ::testing::TestWithParam<std::int64_t> {
 protected:
  Tensor filled(std::int64_t n, DType dtype, auto&& value) {
    Tensor tensor = Tensor::empty({n}, dtype, stream_, Owner::kActivations);
    visit_float(dtype, [&](auto zero) {
      for (std::int64_t i = 0; i < n; ++i)
        tensor.data<decltype(zero)>()[i] = static_cast<decltype(zero)>(value(i));
    });
    return tensor;
  }
  Tensor empty(std::int64_t n, DType dtype) {
    return filled(n, dtype, [](std::int64_t) { return -1; });
  }
  static double at(const Tensor& tensor, std::int64_t i) {
    return visit_float(tensor.dtype(),
                       [&](auto zero) { return static_cast<double>(tensor.data<decltype(zero)>()[i]); });
  }
  // What rank r holds at element i.
  static std::int64_t value(int r, std::int64_t i) { return (r + 1) * (i % 1000 + 1); }
  std::int64_t sum_of_values(std::int64_t i) const {
    return std::int64_t{ranks_} * (ranks_ + 1) / 2 * (i % 1000 + 1);
  }
  Tensor own_values(std::int64_t n, DType dtype) {
    return filled(n, dtype, [&](std::int64_t i) { return value(rank_, i); });
  }
  double dot(const Tensor& a, const Tensor& b) const {
    double sum = 0;
    for (std::int64_t i = 0; i < a.numel(); ++i) sum += at(a, i) * at(b, i);
    return sum;
  }

  int rank_ = world().rank(), ranks_ = world().size();
  Allocator pool_{Device{}};
  Stream stream_{pool_};
  MpiProgress progress_;
  std::unique_ptr<Communicator> group_ =
      make_mpi_communicator("test", world().duplicate(), progress_, GetParam());
};

INSTANTIATE_TEST_SUITE_P(PieceBytes, Collectives, ::testing::Values(std::int64_t{1} << 30, 1000),
                         [](const auto& instance) { return instance.param > 1000 ? "Whole" : "InPieces"; });

TEST_P(Collectives, AllReduceSums) {
  for (DType dtype : {DType::kF32, DType::kF64}) {
    std::vector<Tensor> tensors;
    for (std::int64_t n : kSizes) tensors.push_back(own_values(n, dtype));

    group_->all_reduce(tensors, stream_).wait(stream_);

    for (const Tensor& tensor : tensors) {
      for (std::int64_t i = 0; i < tensor.numel(); ++i)
        ASSERT_EQ(at(tensor, i), sum_of_values(i)) << tensor.shape();
    }
  }
}

TEST_P(Collectives, AllReduceWrapsIntegers) {
  const Tensor tensor = Tensor::empty({33}, DType::kI64, stream_, Owner::kActivations);
  std::fill_n(tensor.data<std::int64_t>(), 33, std::int64_t{1} << 62);

  group_->all_reduce({&tensor, 1}, stream_).wait(stream_);

  const auto expected = static_cast<std::int64_t>(static_cast<std::uint64_t>(ranks_) << 62);
  for (int i = 0; i < 33; ++i) EXPECT_EQ(tensor.data<std::int64_t>()[i], expected);
}

TEST_P(Collectives, AllReduceAddsInRankOrderOnEveryRank) {
  // 1 then halves of an epsilon: only a sum from rank 0 upwards gives exactly 1.
  for (std::int64_t n : {33, 20'011}) {
    const Tensor tensor = filled(n, DType::kF64, [&](std::int64_t) { return rank_ == 0 ? 1.0 : 0x1p-53; });

    group_->all_reduce({&tensor, 1}, stream_).wait(stream_);

    for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(at(tensor, i), 1.0);
  }
}

TEST_P(Collectives, AllGatherPlacesEveryRank) {
  for (DType dtype : {DType::kF32, DType::kF64}) {
    std::vector<Transfer> transfers;
    for (std::int64_t n : kSizes) {
      // Every other one in place.
      const Tensor recv = empty(n * ranks_, dtype), own = own_values(n, dtype);
      Tensor send = own;
      if (transfers.size() % 2 == 1) {
        send = recv.range(rank_ * n, (rank_ + 1) * n);
        for (std::int64_t i = 0; i < n; ++i) {
          visit_float(dtype,
                      [&](auto zero) { send.data<decltype(zero)>()[i] = own.data<decltype(zero)>()[i]; });
        }
      }
      transfers.push_back({send, recv});
    }

    group_->all_gather(transfers, stream_).wait(stream_);

    for (const auto& [send, recv] : transfers) {
      for (int r = 0; r < ranks_; ++r) {
        for (std::int64_t i = 0; i < send.numel(); ++i)
          ASSERT_EQ(at(recv, r * send.numel() + i), value(r, i));
      }
    }
  }
}

TEST_P(Collectives, ReduceScatterSumsThisRanksPlace) {
  std::vector<Transfer> transfers;
  for (std::int64_t n : kSizes) {
    for (DType dtype : {DType::kF32, DType::kF64}) {
      transfers.push_back({own_values(n * ranks_, dtype), empty(n, dtype)});
    }
  }

  group_->reduce_scatter(transfers, stream_).wait(stream_);

  for (const auto& [send, recv] : transfers) {
    for (std::int64_t i = 0; i < recv.numel(); ++i) {
      ASSERT_EQ(at(recv, i), sum_of_values(rank_ * recv.numel() + i));
      ASSERT_EQ(at(send, i), value(rank_, i));  // unchanged
    }
  }
}

TEST_P(Collectives, GatherAndReduceScatterAreAdjoint) {
  // <A x, y> = <x, A^T y>: x is sharded, A x is replicated and y, its cotangent, partial on every rank.
  constexpr std::int64_t kShard = 257;
  const Tensor x = own_values(kShard, DType::kF64), gathered = empty(kShard * ranks_, DType::kF64);
  const Tensor y =
      filled(kShard * ranks_, DType::kF64, [&](std::int64_t i) { return (i * 7 + rank_) % 11 - 5; });
  const Tensor scattered = empty(kShard, DType::kF64);
  const std::vector<Transfer> forward{{x, gathered}}, backward{{y, scattered}};

  group_->all_gather(forward, stream_).wait(stream_);
  group_->reduce_scatter(backward, stream_).wait(stream_);
  std::vector<double> products{dot(gathered, y), dot(x, scattered)};
  world().sum(products);

  EXPECT_EQ(products[0], products[1]);
  EXPECT_NE(products[0], 0);
}

TEST_P(Collectives, RowsGoToTheirRanksAndBack) {
  // Rank s sends (s + 2 r) % 3 rows to rank r, none to some.
  constexpr std::int64_t kWidth = 5;
  std::vector<std::int64_t> out, in;
  for (int r = 0; r < ranks_; ++r) {
    out.push_back((rank_ + 2 * r) % 3);
    in.push_back((r + 2 * rank_) % 3);
  }
  const std::int64_t sent = std::accumulate(out.begin(), out.end(), std::int64_t{0});
  const std::int64_t received = std::accumulate(in.begin(), in.end(), std::int64_t{0});
  const auto matrix = [&](std::int64_t rows, const Tensor& flat) { return flat.reshape({rows, kWidth}); };
  const Tensor x = matrix(sent, own_values(sent * kWidth, DType::kF32));
  const Tensor there = matrix(received, empty(received * kWidth, DType::kF32));
  const Tensor back = matrix(sent, empty(sent * kWidth, DType::kF32));

  group_->all_to_all_rows({x, there}, out, in, stream_).wait(stream_);
  group_->all_to_all_rows({there, back}, in, out, stream_).wait(stream_);

  std::int64_t row = 0;
  for (int r = 0; r < ranks_; ++r) {
    for (std::int64_t k = 0; k < in[static_cast<std::size_t>(r)]; ++k, ++row) {
      for (std::int64_t c = 0; c < kWidth; ++c) {
        // The sender's row number: what it sent to ranks before this one.
        std::int64_t before = 0;
        for (int q = 0; q < rank_; ++q) before += (r + 2 * q) % 3;
        ASSERT_EQ(at(there, row * kWidth + c), value(r, (before + k) * kWidth + c));
      }
    }
  }
  for (std::int64_t i = 0; i < x.numel(); ++i) ASSERT_EQ(at(back, i), at(x, i));
}

TEST_P(Collectives, BroadcastCopiesTheRoot) {
  const int root = ranks_ - 1;
  std::vector<Tensor> tensors;
  for (std::int64_t n : kSizes) tensors.push_back(own_values(n, DType::kF32));

  group_->broadcast(tensors, root, stream_).wait(stream_);

  for (const Tensor& tensor : tensors) {
    for (std::int64_t i = 0; i < tensor.numel(); ++i) ASSERT_EQ(at(tensor, i), value(root, i));
  }
}

TEST_P(Collectives, ExchangeInARingKeepsTheOrder) {
  const int next = (rank_ + 1) % ranks_, previous = (rank_ + ranks_ - 1) % ranks_;
  std::vector<PeerTransfer> transfers;
  std::vector<Tensor> received;
  for (std::int64_t n : kSizes) {
    received.push_back(empty(n, DType::kF32));
    transfers.push_back({PeerTransfer::Kind::kSend, next, own_values(n, DType::kF32)});
    transfers.push_back({PeerTransfer::Kind::kRecv, previous, received.back()});
  }

  group_->exchange(transfers, stream_).wait(stream_);

  for (const Tensor& tensor : received) {
    for (std::int64_t i = 0; i < tensor.numel(); ++i) ASSERT_EQ(at(tensor, i), value(previous, i));
  }
}

TEST_P(Collectives, ManyInFlightMayBeWaitedForInAnyOrder) {
  constexpr int kOperations = 6;
  std::vector<Tensor> sums;
  std::vector<Transfer> gathers;
  std::vector<Ticket> tickets;
  for (int k = 0; k < kOperations; ++k) {
    sums.push_back(filled(20'011, DType::kF32, [&](std::int64_t i) { return value(rank_, i) + k; }));
    gathers.push_back({own_values(257, DType::kF32), empty(257 * ranks_, DType::kF32)});
    tickets.push_back(group_->all_reduce({&sums.back(), 1}, stream_));
    tickets.push_back(group_->all_gather({&gathers.back(), 1}, stream_));
    // Ranks poll differently, so second phases start in different orders.
    for (int poll = 0; poll < rank_ * 20; ++poll) progress_.poll();
  }
  // Odd ranks wait backwards.
  for (std::size_t k = 0; k < tickets.size(); ++k) {
    tickets[rank_ % 2 == 0 ? k : tickets.size() - 1 - k].wait(stream_);
  }

  for (int k = 0; k < kOperations; ++k) {
    const Tensor& sum = sums[static_cast<std::size_t>(k)];
    for (std::int64_t i = 0; i < sum.numel(); ++i) ASSERT_EQ(at(sum, i), sum_of_values(i) + ranks_ * k);
    const Tensor& all = gathers[static_cast<std::size_t>(k)].recv;
    for (std::int64_t i = 0; i < all.numel(); ++i) {
      ASSERT_EQ(at(all, i), value(static_cast<int>(i / 257), i % 257));
    }
  }
}

TEST_P(Collectives, PollingAloneFinishes) {
  const Tensor tensor = own_values(20'011, DType::kF64);
  Ticket ticket = group_->all_reduce({&tensor, 1}, stream_);

  while (!ticket.done()) progress_.poll();

  EXPECT_EQ(at(tensor, 20'010), sum_of_values(20'010));
  EXPECT_EQ(pool_.use().live[static_cast<std::size_t>(Owner::kBuffers)], 0);
  ticket.wait(stream_);
}

TEST_P(Collectives, TicketsHoldTheirTensors) {
  const std::int64_t n = 100'000;  // too many for MPI to copy away at once
  const Tensor recv = empty(n, DType::kF32);
  Ticket ticket;
  {
    const std::vector<Transfer> transfers{{own_values(n * ranks_, DType::kF32), recv}};
    ticket = group_->reduce_scatter(transfers, stream_);
  }
  // Would take the freed block of the send.
  const Tensor other = empty(n * ranks_, DType::kF32);
  ticket.wait(stream_);

  EXPECT_EQ(at(other, 0), -1);
  for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(at(recv, i), sum_of_values(rank_ * n + i));
}

TEST_P(Collectives, TrafficIsThatOfTheDryRun) {
  Allocator meta_pool{Device{Device::Kind::kMeta, 0}};
  Stream meta(meta_pool);
  const auto dry = make_dry_communicator("test", rank_, ranks_);
  const auto run = [&](Communicator& group, Stream& stream) {
    const auto tensor = [&](std::int64_t n) {
      return Tensor::empty({n}, DType::kF32, stream, Owner::kWeights);
    };
    const std::vector<Tensor> tensors{tensor(33), tensor(20'011)};
    const std::vector<Transfer> gather{{tensor(33), tensor(33 * ranks_)}},
        scatter{{tensor(33 * ranks_), tensor(33)}};
    for (const Tensor& t : {tensors[0], tensors[1], gather[0].send, scatter[0].send}) fill(stream, t, 1);
    group.all_reduce(tensors, stream).wait(stream);
    group.all_gather(gather, stream).wait(stream);
    group.reduce_scatter(scatter, stream).wait(stream);
    group.broadcast(tensors, 0, stream).wait(stream);
  };

  run(*group_, stream_);
  run(*dry, meta);

  EXPECT_EQ(group_->traffic().bytes, dry->traffic().bytes);
  EXPECT_EQ(group_->traffic().calls, dry->traffic().calls);
  EXPECT_EQ(group_->call_hash(), dry->call_hash());
  EXPECT_EQ(meta_pool.use().peak, pool_.use().peak);
}

TEST_P(Collectives, DifferentCallsAreAnErrorThatNamesThem) {
  const Tensor tensor = own_values(33, DType::kF32);
  group_->all_reduce({&tensor, 1}, stream_).wait(stream_);
  EXPECT_NO_THROW(check_same_calls(*group_, world()));
  if (ranks_ == 1) return;

  // The dry group calls without waiting for anyone, so a difference does not hang.
  Allocator meta_pool{Device{Device::Kind::kMeta, 0}};
  Stream meta(meta_pool);
  const auto dry = make_dry_communicator("fsdp", rank_, ranks_);
  const std::int64_t n = rank_ == ranks_ - 1 ? 34 : 33;
  const Tensor planted = Tensor::empty({n}, DType::kF32, meta, Owner::kWeights);
  dry->broadcast({&planted, 1}, 0, meta).wait(meta);

  try {
    check_same_calls(*dry, world());
    ADD_FAILURE() << "different calls went through";
  } catch (const SharedError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("group fsdp"), std::string::npos) << text;
    EXPECT_NE(text.find("call 1: broadcast f32, 132 bytes"), std::string::npos) << text;
    EXPECT_NE(text.find("call 1: broadcast f32, 136 bytes"), std::string::npos) << text;
  }
}

TEST_P(Collectives, TheOrderOfCallsChangesTheHash) {
  Allocator meta_pool{Device{Device::Kind::kMeta, 0}};
  Stream meta(meta_pool);
  const auto first = make_dry_communicator("a", 0, 2), second = make_dry_communicator("a", 0, 2);
  const Tensor small = Tensor::empty({1}, DType::kF32, meta, Owner::kWeights);
  const Tensor large = Tensor::empty({2}, DType::kF32, meta, Owner::kWeights);

  first->broadcast(std::vector<Tensor>{small, large}, 0, meta).wait(meta);
  second->broadcast(std::vector<Tensor>{large, small}, 0, meta).wait(meta);

  EXPECT_NE(first->call_hash(), second->call_hash());
}

}  // namespace
}  // namespace dew
