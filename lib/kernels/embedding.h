// Rows of a table chosen by token. T tokens, V vocabulary, D width.
#pragma once

#include "kernels/gemm.h"
#include "kernels/vocab_part.h"

namespace dew::kernels {

/// y[t] = table[tokens[t]]. tokens [T] i32 in [0, V); table [V, D]; y [T, D]. Throws Error on a token outside
/// the table.
void embedding_forward(Stream& stream, const Tensor& tokens, const Tensor& table, const Tensor& y);
/// The same with a part of the vocabulary's rows: tokens of other parts give zeros. Throws Error on a token
/// outside the whole vocabulary.
void embedding_forward(Stream& stream, const Tensor& tokens, const Tensor& table, const VocabPart& part,
                       const Tensor& y);

/// d_table[tokens[t]] += dy[t], in token order whatever the thread count (no atomics). d_table [V, D] in the
/// reduction dtype; when not accumulating it is zeroed first.
void embedding_backward(Stream& stream, const Tensor& tokens, const Tensor& dy, const Target& d_table);
/// The same for a part of the vocabulary's rows: tokens of other parts are passed over.
void embedding_backward(Stream& stream, const Tensor& tokens, const Tensor& dy, const VocabPart& part,
                        const Target& d_table);

}  // namespace dew::kernels
