#include "products.h"

#include <cstdlib>

#include "int8_products.h"

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

namespace octavo {

void pack(const bf16* weight, int64_t outputs, int64_t inputs, bf16* packed) {
  const int64_t panels = (outputs + kPanel - 1) / kPanel;
  for (int64_t output = 0; output < panels * kPanel; ++output) {
    bf16* lane = packed + output / kPanel * inputs * kPanel + output % kPanel * 2;
    for (int64_t input = 0; input < inputs; ++input)
      lane[input / 2 * kPanel * 2 + input % 2] = output < outputs ? weight[output * inputs + input] : 0;
  }
}

int64_t Weight::panel_bytes() const {
  return is_int8 ? num_groups(inputs) * kGroupBytes : inputs * kPanel * static_cast<int64_t>(sizeof(bf16));
}

Int8Input Int8Input::from(int64_t row, int64_t inputs) const {
  const int64_t skipped = row * num_groups(inputs);
  return {levels + skipped * kGroup, scales + skipped, starts + skipped};
}

Input Input::from(int64_t row) const {
  return {rows + row * inputs, in_int8.levels ? in_int8.from(row, inputs) : in_int8, inputs};
}

#ifdef __AVX512BF16__

bool has_bf16_products() { return true; }

namespace {

constexpr int kMaxRows = 12;       // rows whose sums, two vectors each, fit into the registers
constexpr int64_t kAhead = 4096;   // bytes of weights fetched ahead of their use

inline Floats load_mask(const float* address, int64_t count) {
  return (Floats)_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), address);
}

template <int R>
inline void multiply(const bf16* panel, int64_t inputs, const bf16* x, Sums* sums) {
  __m512 low[R], high[R];
  for (int r = 0; r < R; ++r) low[r] = (__m512)sums[r].low, high[r] = (__m512)sums[r].high;
  for (int64_t k = 0; k < inputs; k += 2) {
    const bf16* pair = panel + k * kPanel;
    __builtin_prefetch(reinterpret_cast<const char*>(pair) + kAhead, 0, 3);
    __builtin_prefetch(reinterpret_cast<const char*>(pair) + kAhead + 64, 0, 3);
    const __m512bh first = (__m512bh)_mm512_loadu_si512(pair);
    const __m512bh second = (__m512bh)_mm512_loadu_si512(pair + kPanel);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      int32_t both;
      std::memcpy(&both, x + r * inputs + k, sizeof(both));
      const __m512bh value = (__m512bh)_mm512_set1_epi32(both);
      low[r] = _mm512_dpbf16_ps(low[r], value, first);
      high[r] = _mm512_dpbf16_ps(high[r], value, second);
    }
  }
  for (int r = 0; r < R; ++r) sums[r] = {(Floats)low[r], (Floats)high[r]};
}

template <int R>
void multiply_up_to(int rows, const bf16* panel, int64_t inputs, const bf16* x, Sums* sums) {
  if (rows == R) return multiply<R>(panel, inputs, x, sums);
  if constexpr (R > 1) multiply_up_to<R - 1>(rows, panel, inputs, x, sums);
}

// Calls finish(row, sums) for every row; every sum begins with `start`.
template <typename Finish>
inline void each_row(
    const Weight& weight, int64_t index, const Input& x, int64_t rows, Sums start, const Finish& finish) {
  const int64_t blocks = (rows + kMaxRows - 1) / kMaxRows;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t begin = rows * block / blocks, end = rows * (block + 1) / blocks;
    Sums sums[kMaxRows];
    if (weight.is_int8) {
      const auto* panel = static_cast<const uint8_t*>(weight.panel(index));
      multiply_int8(panel, weight.inputs, x.in_int8.from(begin, weight.inputs), end - begin, sums);
      for (int64_t r = 0; r < end - begin; ++r) sums[r].low += start.low, sums[r].high += start.high;
    } else {
      for (int64_t r = 0; r < end - begin; ++r) sums[r] = start;
      const auto* panel = static_cast<const bf16*>(weight.panel(index));
      multiply_up_to<kMaxRows>(end - begin, panel, weight.inputs, x.rows + begin * weight.inputs, sums);
    }
    for (int64_t r = begin; r < end; ++r) finish(r, sums[r - begin]);
  }
}

inline int lanes(const Weight& weight, int64_t index, int half) {
  return std::clamp<int64_t>(weight.outputs - index * kPanel - half * 16, 0, 16);
}

inline __mmask16 mask(int count) { return static_cast<__mmask16>((1u << count) - 1); }

inline Sums start_of(const Weight& weight, int64_t index, const float* bias) {
  if (!bias) return Sums{Floats{}, Floats{}};
  return {load_mask(bias + index * kPanel, lanes(weight, index, 0)),
          load_mask(bias + index * kPanel + 16, lanes(weight, index, 1))};
}

inline void store_bf16(bf16* out, Floats values, int count) {
  _mm256_mask_storeu_epi16(out, mask(count), (__m256i)_mm512_cvtneps_pbh((__m512)values));
}

inline Floats silu(Floats x) {
  const Floats power = exp_nonpositive(x > 0.0f ? -x : x);
  return x * (x > 0.0f ? splat(1.0f) : power) / (power + 1.0f);
}

}  // namespace

void panel_to_bf16(const Weight& weight, int64_t index, const Input& x, int64_t rows, const float* bias, bf16* out) {
  const int low = lanes(weight, index, 0), high = lanes(weight, index, 1);
  each_row(weight, index, x, rows, start_of(weight, index, bias), [&](int64_t row, const Sums& sums) {
    bf16* target = out + row * weight.outputs + index * kPanel;
    store_bf16(target, sums.low, low);
    store_bf16(target + 16, sums.high, high);
  });
}

void panel_to_float(const Weight& weight, int64_t index, const Input& x, int64_t rows, const float* bias, float* out) {
  const int low = lanes(weight, index, 0), high = lanes(weight, index, 1);
  each_row(weight, index, x, rows, start_of(weight, index, bias), [&](int64_t row, const Sums& sums) {
    float* target = out + row * weight.outputs + index * kPanel;
    _mm512_mask_storeu_ps(target, mask(low), (__m512)sums.low);
    _mm512_mask_storeu_ps(target + 16, mask(high), (__m512)sums.high);
  });
}

void panel_added(const Weight& weight, int64_t index, const Input& x, int64_t rows, float* out) {
  const int low = lanes(weight, index, 0), high = lanes(weight, index, 1);
  each_row(weight, index, x, rows, start_of(weight, index, nullptr), [&](int64_t row, const Sums& sums) {
    float* target = out + row * weight.outputs + index * kPanel;
    _mm512_mask_storeu_ps(target, mask(low), (__m512)(load_mask(target, low) + sums.low));
    _mm512_mask_storeu_ps(target + 16, mask(high), (__m512)(load_mask(target + 16, high) + sums.high));
  });
}

void panel_gated(const Weight& weight, int64_t index, const Input& x, int64_t rows, bf16* out) {
  each_row(weight, index, x, rows, start_of(weight, index, nullptr), [&](int64_t row, const Sums& sums) {
    store_bf16(out + row * weight.outputs / 2 + index * 16, silu(sums.low) * sums.high, 16);
  });
}

#else

bool has_bf16_products() { return false; }
void panel_to_bf16(const Weight&, int64_t, const Input&, int64_t, const float*, bf16*) { std::abort(); }
void panel_to_float(const Weight&, int64_t, const Input&, int64_t, const float*, float*) { std::abort(); }
void panel_added(const Weight&, int64_t, const Input&, int64_t, float*) { std::abort(); }
void panel_gated(const Weight&, int64_t, const Input&, int64_t, bf16*) { std::abort(); }

#endif

}  // namespace octavo
