#include "decoder.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include "attention_tensors.h"
#include "packed_weight.h"
#include "rowwise.h"
#include "spread.h"

namespace octavo {
namespace {

constexpr int64_t kItemsEach = 8;      // pieces of a product for each thread, at least: they even out
constexpr int64_t kFewestRows = 48;    // rows of such a piece, at least: its weights are read for all of them
constexpr int64_t kRowwiseGrain = 8;   // rows that are worth another thread between the products
constexpr size_t kWeightsEach = 6;

const bf16* bits(const at::Tensor& tensor) { return static_cast<const bf16*>(tensor.const_data_ptr()); }
bf16* mutable_bits(const at::Tensor& tensor) { return static_cast<bf16*>(tensor.mutable_data_ptr()); }

const float* norm_of(const at::Tensor& weight, int64_t width) {
  TORCH_CHECK(weight.scalar_type() == at::kFloat && weight.is_contiguous() && weight.numel() == width,
              "a norm's weight must be fp32 [", width, "]");
  return weight.const_data_ptr<float>();
}

// Calls one(panel, first row, number of rows) for all of a product.
template <typename One>
void each_panel(const Weight& weight, int64_t num_rows, const One& one) {
  // A panel is split by rows only where there are too few panels: each thread that takes a part reads it anew.
  const int64_t wanted = (kItemsEach * at::get_num_threads() + weight.num_panels() - 1) / weight.num_panels();
  const int64_t parts = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(num_rows / kFewestRows, 1));
  spread(weight.num_panels() * parts, [&](int64_t item) {
    const int64_t first = item % parts * num_rows / parts, last = (item % parts + 1) * num_rows / parts;
    one(item / parts, first, last - first);
  });
}

// The buffers of one call and the steps of a layer, in the order in which they happen.
class Rows {
 public:
  Rows(const at::Tensor& hidden, int64_t num_heads, int64_t num_kv_heads, int64_t dim, int64_t inner)
      : num_(hidden.size(0)), width_(hidden.size(1)), num_heads_(num_heads), num_kv_heads_(num_kv_heads), dim_(dim),
        inner_(inner) {
    const auto options = hidden.options();
    residual_ = at::empty({num_, width_}, options.dtype(at::kFloat));
    normed_ = at::empty({num_, width_}, options);
    heads_ = at::empty({num_, num_heads + 2 * num_kv_heads, dim}, options);
    attended_ = at::empty({num_, num_heads, dim}, options);
    activated_ = at::empty({num_, inner}, options);
    float* residual = residual_.mutable_data_ptr<float>();
    const bf16* source = bits(hidden);
    for (int64_t i = 0; i < num_ * width_; ++i) residual[i] = to_float(source[i]);
  }

  // in_int8: the product that follows wants its rows so.
  void normalise(const float* weight, float eps, bool in_int8) {
    const float* residual = residual_.const_data_ptr<float>();
    bf16* out = mutable_bits(normed_);
    if (in_int8 && !int8_) int8_.emplace(num_, width_);
    at::parallel_for(0, num_, kRowwiseGrain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        rms_norm(residual + row * width_, weight, eps, width_, out + row * width_);
        if (in_int8) int8_->take(row, out + row * width_);
      }
    });
  }

  void project_heads(const Weight& qkv) {
    const Input normed = normed_input();
    each_panel(qkv, num_, [&](int64_t panel, int64_t first, int64_t count) {
      panel_to_bf16(qkv, panel, normed.from(first), count, nullptr, mutable_bits(heads_) + first * qkv.outputs);
    });
  }

  // Queries and keys in place; then the row's key and value go into their blocks.
  void rotate_and_write(const bf16* cos, const bf16* signed_sin, const int64_t* positions, const KvWriter& blocks) {
    const int64_t row_size = heads_.stride(0);
    bf16* heads = mutable_bits(heads_);
    at::parallel_for(0, num_, kRowwiseGrain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t head = 0; head < num_heads_ + num_kv_heads_; ++head)
          rotate(cos + positions[row] * dim_, signed_sin + positions[row] * dim_, dim_,
                 heads + row * row_size + head * dim_);
        blocks.write(row);
      }
    });
  }

  at::Tensor queries() const { return heads_.narrow(1, 0, num_heads_); }
  at::Tensor keys() const { return heads_.narrow(1, num_heads_, num_kv_heads_); }
  at::Tensor values() const { return heads_.narrow(1, num_heads_ + num_kv_heads_, num_kv_heads_); }
  const at::Tensor& attended() const { return attended_; }
  const at::Tensor& normed() const { return normed_; }

  void add_output(const Weight& output) { add(output, attended_); }

  void activate(const Weight& gate_up) {
    const Input normed = normed_input();
    each_panel(gate_up, num_, [&](int64_t panel, int64_t first, int64_t count) {
      panel_gated(gate_up, panel, normed.from(first), count, mutable_bits(activated_) + first * inner_);
    });
  }

  void add_down(const Weight& down) { add(down, activated_); }

 private:
  Input normed_input() const { return {bits(normed_), int8_ ? int8_->input() : Int8Input{}, width_}; }

  void add(const Weight& weight, const at::Tensor& rows) {
    const ProductInput input(bits(rows), num_, weight);
    each_panel(weight, num_, [&](int64_t panel, int64_t first, int64_t count) {
      panel_added(weight, panel, input.from(first), count,
                  residual_.mutable_data_ptr<float>() + first * width_);
    });
  }

  int64_t num_, width_, num_heads_, num_kv_heads_, dim_, inner_;
  at::Tensor residual_, normed_, heads_, attended_, activated_;
  std::optional<Int8Rows> int8_;  // of normed_
};

}  // namespace

at::Tensor decode_layers(
    const at::Tensor& hidden, at::TensorList weights, const at::Tensor& final_norm, double eps, at::TensorList keys,
    at::TensorList values, const at::Tensor& positions, const at::Tensor& slot_mapping,
    const at::Tensor& sequence_of_row, const at::Tensor& block_table, const at::Tensor& cos,
    const at::Tensor& signed_sin, double scale, at::IntArrayRef windows, int64_t num_heads, int64_t inner) {
  const size_t num_layers = windows.size();
  TORCH_CHECK(weights.size() == num_layers * kWeightsEach && keys.size() == num_layers && values.size() == num_layers,
              "weights and KV blocks must be of the same layers");
  TORCH_CHECK(hidden.dim() == 2 && hidden.scalar_type() == at::kBFloat16 && hidden.is_contiguous() &&
                  hidden.size(0) == positions.numel() && hidden.size(1) % kPanel == 0,
              "hidden must be contiguous bf16, one row for each position");
  TORCH_CHECK(cos.is_contiguous() && signed_sin.is_contiguous() && cos.scalar_type() == at::kBFloat16 &&
                  signed_sin.scalar_type() == at::kBFloat16 && cos.sizes() == signed_sin.sizes(),
              "cos and signed_sin must be contiguous bf16 tables");
  const int64_t width = hidden.size(1), dim = cos.size(-1), num_kv_heads = keys[0].size(1);
  const auto* row_positions = positions.const_data_ptr<int64_t>();
  for (int64_t row = 0; row < positions.numel(); ++row)
    TORCH_CHECK(row_positions[row] >= 0 && row_positions[row] < cos.size(0), "position ", row_positions[row],
                " lies outside the rotary tables");
  Rows rows(hidden, num_heads, num_kv_heads, dim, inner);
  const at::Tensor queries = rows.queries(), new_keys = rows.keys(), new_values = rows.values();
  for (size_t layer = 0; layer < num_layers; ++layer) {
    const at::Tensor* parts = weights.begin() + layer * kWeightsEach;
    const Weight qkv = weight_of(parts[1], width, (num_heads + 2 * num_kv_heads) * dim);
    const Weight gate_up = weight_of(parts[4], width, 2 * inner);
    rows.normalise(norm_of(parts[0], width), eps, qkv.is_int8);
    rows.project_heads(qkv);
    const KvWriter blocks = writer_of(keys[layer], values[layer], new_keys, new_values, slot_mapping);
    rows.rotate_and_write(bits(cos), bits(signed_sin), row_positions, blocks);
    attend_paged(keys[layer], values[layer], queries, positions, sequence_of_row, block_table,
                 {static_cast<float>(scale), windows[layer]}, rows.attended());
    rows.add_output(weight_of(parts[2], num_heads * dim, width));
    rows.normalise(norm_of(parts[3], width), eps, gate_up.is_int8);
    rows.activate(gate_up);
    rows.add_down(weight_of(parts[5], inner, width));
  }
  rows.normalise(norm_of(final_norm, width), eps, false);
  return rows.normed();
}

}  // namespace octavo
