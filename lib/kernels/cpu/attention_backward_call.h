// The backward of attention as tasks, and the tasks as heads. A Form gives the arithmetic of one head:
//   Stored   what q, k, v and their gradients are stored as
//   Ops      its inner loops on this processor
//   Tiles    one thread's room, made of (Scratch, K, keys) and counted by elements(K, keys): dq [block, K],
//            dk_room and dv_room [keys, K], ones [block]
//   Head     made of (shape, context, ops, tiles); its run(operands, keys, put) adds one query head's part to
//   dk
//            and dv of `keys` and calls put(first query, queries) with dq of each block in the tiles
#pragma once

#include <omp.h>

#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/cpu/attention_parts.h"

namespace dew::kernels::cpu {

/// Heads of one task. dk and dv begin at the task's first key.
template <class T>
struct BackwardOperands {
  Matrix<const T> q, k, v, o, d_o;
  const Real<T>* log_sum_exp;
  Matrix<Real<T>> dk, dv;
};

/// Fills lanes past `rows` so that nothing comes of them.
template <class R>
void load_lanes(const R* log_sum_exp, std::int64_t rows, std::int64_t lanes, R* to, R* delta) {
  for (std::int64_t i = 0; i < lanes; ++i) {
    // A query that saw no key has -infinity: what comes of it is hidden in every tile.
    to[i] = i < rows ? log_sum_exp[i] : std::numeric_limits<R>::infinity();
    if (i >= rows) delta[i] = 0;
  }
}

template <class Form>
class BackwardCall {
 public:
  using T = typename Form::Stored;
  using R = Real<T>;
  using Tiles = typename Form::Tiles;

  BackwardCall(const AttentionShape& shape, const AttentionPass& pass, const Target& dq, const Target& dk,
               const Target& dv, const Tensor& scratch)
      : shape_(shape), pass_(pass), dq_(dq), dk_(dk), dv_(dv), tiles_(scratch.data<R>()) {
    if (key_parts(shape) > 1) dq_parts_ = tiles_ + backward_threads(shape) * tile_elements(shape);
  }

  static std::int64_t scratch(const AttentionShape& shape) {
    return backward_threads(shape) * tile_elements(shape) + key_parts(shape) * part_elements(shape);
  }

  void run() const {
    const std::int64_t parts = key_parts(shape_), tasks = shape_.samples * shape_.kv_heads * parts;
#pragma omp parallel num_threads(static_cast <int>(backward_threads(shape_)))
    {
      R* const own = tiles_ + omp_get_thread_num() * tile_elements(shape_);
      const Tiles tiles(Scratch<R>(own), shape_.width, most_keys(shape_));
#pragma omp for schedule(dynamic)
      for (std::int64_t task = 0; task < tasks; ++task)
        run_task(tiles, task / parts / shape_.kv_heads, task / parts % shape_.kv_heads, task % parts);
    }
    if (parts > 1)
      add_parts(dq_parts_, parts, part_elements(shape_), dq_.into.template data<T>(), dq_.accumulate);
  }

 private:
  static std::int64_t tile_elements(const AttentionShape& shape) {
    return Tiles::elements(shape.width, most_keys(shape));
  }

  template <class U>
  Matrix<U> queries_of(U* first, std::int64_t sample, std::int64_t head) const {
    return head_of(first, sample, shape_.queries, head, shape_.heads, shape_.width);
  }
  template <class U>
  Matrix<U> keys_of(U* first, std::int64_t sample, std::int64_t kv_head) const {
    return head_of(first, sample, shape_.keys, kv_head, shape_.kv_heads, shape_.width);
  }

  void run_task(const Tiles& tiles, std::int64_t sample, std::int64_t kv_head, std::int64_t part) const {
    const std::int64_t group = shape_.heads / shape_.kv_heads;
    const KeyRange keys = part_of_keys(shape_, part);
    const auto values = [](const Tensor& x) { return static_cast<const T*>(x.data<T>()); };
    const Sums dk = opened(dk_, sample, kv_head, keys, tiles.dk_room),
               dv = opened(dv_, sample, kv_head, keys, tiles.dv_room);
    for (std::int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
      const std::int64_t row = (sample * shape_.heads + h) * shape_.queries;
      const BackwardOperands<T> x{.q = queries_of(values(pass_.q), sample, h),
                                  .k = keys_of(values(pass_.k), sample, kv_head),
                                  .v = keys_of(values(pass_.v), sample, kv_head),
                                  .o = queries_of(values(pass_.o), sample, h),
                                  .d_o = queries_of(values(pass_.d_o), sample, h),
                                  .log_sum_exp = pass_.log_sum_exp.template data<R>() + row,
                                  .dk = dk.sums,
                                  .dv = dv.sums};
      const HeadContext context(shape_, sample, h);
      const typename Form::Head head(shape_, context, form_, tiles);
      head.run(x, keys, [&](std::int64_t first, std::int64_t rows) {
        if (dq_parts_ != nullptr)
          put_rows<R>(ops_, tiles.ones, tiles.dq, rows, shape_.width,
                      queries_of(dq_parts_ + part * part_elements(shape_), sample, h).at(first, 0), false);
        else
          put_rows<T>(ops_, tiles.ones, tiles.dq, rows, shape_.width,
                      queries_of(dq_.into.template data<T>(), sample, h).at(first, 0), dq_.accumulate);
      });
    }
    closed(dk, keys, tiles);
    closed(dv, keys, tiles);
  }

  /// Where a task sums dk or dv: in the result itself, or in scratch that is rounded into it at the end.
  struct Sums {
    Matrix<R> sums;
    Matrix<T> target;
    bool accumulate;
  };
  Sums opened(const Target& target, std::int64_t sample, std::int64_t kv_head, KeyRange keys,
              Matrix<R> room) const {
    const Matrix<T> rows = keys_of(target.into.template data<T>(), sample, kv_head).at(keys.begin, 0);
    Sums sums{room, rows, target.accumulate};
    if constexpr (std::is_same_v<T, R>) {
      sums.sums = rows;
      if (target.accumulate) return sums;
    }
    clear_rows(sums.sums, keys.end - keys.begin, shape_.width);
    return sums;
  }
  void closed(const Sums& sums, KeyRange keys, const Tiles& tiles) const {
    if constexpr (!std::is_same_v<T, R>)
      put_rows<T>(ops_, tiles.ones, sums.sums, keys.end - keys.begin, shape_.width, sums.target,
                  sums.accumulate);
  }

  const AttentionShape& shape_;
  const AttentionPass& pass_;
  const Target &dq_, &dk_, &dv_;
  Ops<R> ops_;
  typename Form::Ops form_;
  R* tiles_;
  R* dq_parts_ = nullptr;  ///< of part 0; the others follow; null where there is one part
};

}  // namespace dew::kernels::cpu
