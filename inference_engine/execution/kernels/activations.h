// Functions of single elements. Every element goes through the same vector operations, the last ones of a row too, so
// its result depends on nothing beside it. (torch takes a scalar path at the end of whatever share a thread got.)
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "elementwise.h"

namespace octavo {

// x [rows][width], rows at any stride -> a new tensor act(x), or act(x) * up where there is an up of x's shape.
at::Tensor activate(const at::Tensor& x, const std::optional<at::Tensor>& up, int64_t activation);

// The gate of gpt-oss: with both clamped to the limit, gate * sigmoid(alpha * gate) * (up + 1).
at::Tensor activate_clamped(const at::Tensor& gate, const at::Tensor& up, double alpha, double limit);

// In place: x [rows][width], fp32, becomes cap * tanh(x / cap).
void soft_cap(at::Tensor x, double cap);

}  // namespace octavo
