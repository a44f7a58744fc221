// CPU loops of kernels/embedding.h: forward over tokens, backward over columns, so that no two threads add to
// one element.
#pragma once

#include "kernels/embedding.h"

namespace dew::kernels::cpu {

void embedding_forward(const Tensor& tokens, const Tensor& table, const VocabPart& part, const Tensor& y);
void embedding_backward(const Tensor& tokens, const Tensor& dy, const VocabPart& part, const Target& d_table);

}  // namespace dew::kernels::cpu
