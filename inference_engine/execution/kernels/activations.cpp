#include "activations.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

namespace octavo {
namespace {

constexpr int64_t kLanes = 16;
constexpr int64_t kGrain = 16384;  // elements that are worth another thread

template <typename T>
Floats load_part(const T* address, int64_t count) {
  if (count >= kLanes) return load(address);
  T padded[kLanes] = {};
  std::memcpy(padded, address, sizeof(T) * count);
  return load(padded);
}

template <typename T>
void store_part(Floats values, int64_t count, T* address) {
  if (count >= kLanes) return round_and_store(values, address);
  T padded[kLanes];
  round_and_store(values, padded);
  std::memcpy(address, padded, sizeof(T) * count);
}

void check_rows(const at::Tensor& x) {
  TORCH_CHECK(x.dim() == 2 && (x.size(1) < 2 || x.stride(1) == 1) &&
                  (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16),
              "rows must be fp32 or bf16 [rows, width] with a last stride of 1");
}

// out = one(x), or one(x, y); the rows of x and y may lie apart.
template <typename T, typename One>
void each_row(const at::Tensor& x, const at::Tensor& y, at::Tensor& out, const One& one) {
  const int64_t width = x.size(1);
  const auto *first = static_cast<const T*>(x.const_data_ptr()), *second = static_cast<const T*>(y.const_data_ptr());
  auto* target = static_cast<T*>(out.mutable_data_ptr());
  at::parallel_for(0, x.size(0), std::max<int64_t>(1, kGrain / std::max<int64_t>(width, 1)),
                   [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t i = 0; i < width; i += kLanes) {
        const int64_t count = std::min(kLanes, width - i);
        const Floats a = load_part(first + row * x.stride(0) + i, count);
        const Floats b = load_part(second + row * y.stride(0) + i, count);
        store_part(one(a, b), count, target + row * out.stride(0) + i);
      }
  });
}

template <typename One>
at::Tensor combined(const at::Tensor& x, const at::Tensor& y, const One& one) {
  check_rows(x);
  check_rows(y);
  TORCH_CHECK(x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type(), "gate and up must be of one kind");
  at::Tensor out = at::empty(x.sizes(), x.options());
  if (x.scalar_type() == at::kFloat) each_row<float>(x, y, out, one);
  else each_row<bf16>(x, y, out, one);
  return out;
}

}  // namespace

at::Tensor activate(const at::Tensor& x, const std::optional<at::Tensor>& up, int64_t activation) {
  TORCH_CHECK(activation >= kSilu && activation <= kGeluErf, "no such activation: ", activation);
  if (!up) return combined(x, x, [&](Floats a, Floats) { return activated(a, activation); });
  return combined(x, *up, [&](Floats a, Floats b) { return activated(a, activation) * b; });
}

at::Tensor activate_clamped(const at::Tensor& gate, const at::Tensor& up, double alpha, double limit) {
  const auto steepness = static_cast<float>(alpha), bound = static_cast<float>(limit);
  return combined(gate, up, [&](Floats a, Floats b) {
    a = a > bound ? splat(bound) : a;
    b = b > bound ? splat(bound) : b;
    b = b < -bound ? splat(-bound) : b;
    return a * sigmoid(steepness * a) * (b + 1.0f);
  });
}

void soft_cap(at::Tensor x, double cap) {
  check_rows(x);
  TORCH_CHECK(x.scalar_type() == at::kFloat, "logits to cap must be fp32");
  const auto bound = static_cast<float>(cap);
  each_row<float>(x, x, x, [&](Floats a, Floats) { return bound * tanh_of(a / bound); });
}

}  // namespace octavo
