// What Python sees of sampling: torch.ops.octavo.highest_if_finite, first_highest, draw_tokens.
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <vector>

#include "sampling.h"
#include "spread.h"

namespace octavo {
namespace {

void check_logits(const at::Tensor& logits) {
  TORCH_CHECK(logits.dim() == 2 && logits.stride(1) == 1 && logits.scalar_type() == at::kFloat &&
                  logits.size(1) > 0,
              "logits must be fp32 [rows, vocabulary], each row contiguous");
}

// fp32 [R]
at::Tensor highest_of_rows(const at::Tensor& logits) {
  check_logits(logits);
  at::Tensor out = at::empty({logits.size(0)}, logits.options());
  const float* values = logits.const_data_ptr<float>();
  float* highest = out.mutable_data_ptr<float>();
  const int64_t size = logits.size(1), stride = logits.stride(0);
  spread(logits.size(0), [&](int64_t row) { highest[row] = highest_if_finite(values + row * stride, size); });
  return out;
}

// int64 [R]
at::Tensor first_highest_of_rows(const at::Tensor& logits) {
  check_logits(logits);
  at::Tensor out = at::empty({logits.size(0)}, logits.options().dtype(at::kLong));
  const float* values = logits.const_data_ptr<float>();
  int64_t* ids = out.mutable_data_ptr<int64_t>();
  const int64_t size = logits.size(1), stride = logits.stride(0);
  spread(logits.size(0), [&](int64_t row) { ids[row] = first_highest(values + row * stride, size); });
  return out;
}

template <typename T>
const T* column(const at::Tensor& values, int64_t count, at::ScalarType type) {
  TORCH_CHECK(values.dim() == 1 && values.size(0) == count && values.is_contiguous() &&
                  values.scalar_type() == type,
              "one setting a row is needed, ", type, " [", count, "]");
  return values.const_data_ptr<T>();
}

// int64 [n]: tokens of the rows of logits named; temperatures fp32, top_k int64, the others fp64, all [n].
// firsts int64 [R]: the id of the highest logit of every row.
at::Tensor draw_tokens(const at::Tensor& logits, const at::Tensor& rows, const at::Tensor& firsts,
                       const at::Tensor& temperatures, const at::Tensor& top_k, const at::Tensor& top_p,
                       const at::Tensor& min_p, const at::Tensor& uniforms) {
  check_logits(logits);
  const int64_t count = rows.size(0), size = logits.size(1), stride = logits.stride(0);
  const float* values = logits.const_data_ptr<float>();
  const int64_t* row_of = column<int64_t>(rows, count, at::kLong);
  const int64_t* first = column<int64_t>(firsts, logits.size(0), at::kLong);
  const float* temperature = column<float>(temperatures, count, at::kFloat);
  const int64_t* most = column<int64_t>(top_k, count, at::kLong);
  const double* share = column<double>(top_p, count, at::kDouble);
  const double* least = column<double>(min_p, count, at::kDouble);
  const double* uniform = column<double>(uniforms, count, at::kDouble);
  at::Tensor out = at::empty({count}, rows.options());
  int64_t* tokens = out.mutable_data_ptr<int64_t>();
  spread(count, [&](int64_t index) {
    static thread_local std::vector<float> weights;
    weights.resize(static_cast<size_t>((size + kBlockIds - 1) / kBlockIds * kBlockIds));
    const int64_t row = row_of[index];
    const float* start = values + row * stride;
    const Filters filters{most[index], share[index], least[index]};
    tokens[index] =
        draw(start, size, start[first[row]], temperature[index], filters, uniform[index], weights.data());
  });
  return out;
}

}  // namespace
}  // namespace octavo

TORCH_LIBRARY_FRAGMENT(octavo, library) {
  library.def("highest_if_finite(Tensor logits) -> Tensor");
  library.def("first_highest(Tensor logits) -> Tensor");
  library.def(
      "draw_tokens(Tensor logits, Tensor rows, Tensor firsts, Tensor temperatures, Tensor top_k, Tensor top_p, "
      "Tensor min_p, Tensor uniforms) -> Tensor");
}

TORCH_LIBRARY_IMPL(octavo, CPU, library) {
  library.impl("highest_if_finite", octavo::highest_of_rows);
  library.impl("first_highest", octavo::first_highest_of_rows);
  library.impl("draw_tokens", octavo::draw_tokens);
}
