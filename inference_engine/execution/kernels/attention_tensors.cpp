#include "attention_tensors.h"

#include <ATen/Parallel.h>

namespace octavo {
namespace {

KvBlocks blocks_of(const at::Tensor& keys, const at::Tensor& values) {
  const bool is_float = keys.scalar_type() == at::kFloat;
  return {keys.data_ptr(), values.data_ptr(), keys.size(0), keys.size(1), keys.size(2) * (is_float ? 1 : 2),
          values.size(3), is_float};
}

HeadRows rows_of(const at::Tensor& rows, const at::Tensor& keys, int64_t dim, const char* name) {
  TORCH_CHECK(rows.dim() == 3 && rows.size(2) == dim && rows.stride(2) == 1, name, " must be [T, heads, ", dim,
              "] with a last stride of 1");
  TORCH_CHECK(rows.scalar_type() == keys.scalar_type(), name, " must have the dtype of the KV blocks");
  return {rows.const_data_ptr(), rows.size(0), rows.size(1), rows.stride(0), rows.stride(1)};
}

}  // namespace

KvWriter writer_of(const at::Tensor& keys, const at::Tensor& values, const at::Tensor& key, const at::Tensor& value,
                   const at::Tensor& slot_mapping) {
  const KvBlocks blocks = blocks_of(keys, values);
  TORCH_CHECK(key.size(1) == blocks.num_heads && value.size(1) == blocks.num_heads,
              "key and value need one row a KV head");
  TORCH_CHECK(slot_mapping.is_contiguous() && key.size(0) == slot_mapping.size(0) && value.size(0) == key.size(0),
              "one slot for each row");
  return {blocks, rows_of(key, keys, blocks.dim, "key"), rows_of(value, keys, blocks.dim, "value"),
          slot_mapping.const_data_ptr<int64_t>()};
}

void write_kv(at::Tensor keys, at::Tensor values, const at::Tensor& key, const at::Tensor& value,
              const at::Tensor& slot_mapping) {
  const KvWriter writer = writer_of(keys, values, key, value, slot_mapping);
  at::parallel_for(0, key.size(0), 8, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) writer.write(row);
  });
}

void attend_paged(const at::Tensor& keys, const at::Tensor& values, const at::Tensor& query,
                  const at::Tensor& positions, const at::Tensor& sequence_of_row, const at::Tensor& block_table,
                  const Rule& rule, at::Tensor out) {
  const KvBlocks blocks = blocks_of(keys, values);
  const HeadRows rows = rows_of(query, keys, blocks.dim, "query");
  TORCH_CHECK(rows.num_heads % blocks.num_heads == 0, "query heads must be a multiple of KV heads");
  TORCH_CHECK(rows.num_rows == positions.size(0) && rows.num_rows == sequence_of_row.size(0),
              "one position for each row");
  TORCH_CHECK(out.is_contiguous() && out.sizes() == query.sizes(), "out must be contiguous, of the query's shape");
  TORCH_CHECK(positions.is_contiguous() && sequence_of_row.is_contiguous() && block_table.is_contiguous(),
              "metadata must be contiguous");
  const Places places{positions.const_data_ptr<int64_t>(), sequence_of_row.const_data_ptr<int32_t>(),
                      block_table.const_data_ptr<int32_t>(), block_table.size(0), block_table.size(1)};
  attend(blocks, rows, places, rule, out.mutable_data_ptr());
}

void attend_by_rule(const at::Tensor& keys, const at::Tensor& values, const at::Tensor& query,
                    const at::Tensor& positions, const at::Tensor& sequence_of_row, const at::Tensor& block_table,
                    double scale, int64_t window, double softcap, const std::optional<at::Tensor>& sinks,
                    at::Tensor out) {
  TORCH_CHECK(!sinks || (sinks->scalar_type() == at::kFloat && sinks->is_contiguous() &&
                         sinks->numel() == query.size(1)),
              "sinks must be fp32, one for each query head");
  const float* first_sink = sinks ? sinks->const_data_ptr<float>() : nullptr;
  const Rule rule{static_cast<float>(scale), window, static_cast<float>(softcap), first_sink};
  attend_paged(keys, values, query, positions, sequence_of_row, block_table, rule, out);
}

}  // namespace octavo
