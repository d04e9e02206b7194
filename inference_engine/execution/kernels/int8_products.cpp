#include "int8_products.h"

#include <cstdlib>

#ifdef __AVX512VNNI__
#include <immintrin.h>
#endif

namespace octavo {

Int8Rows::Int8Rows(int64_t num_rows, int64_t inputs)
    : inputs_(inputs), groups_(num_groups(inputs)), levels_(new int8_t[num_rows * groups_ * kGroup]),
      scales_(new float[num_rows * groups_]), starts_(new int32_t[num_rows * groups_]) {}

namespace {

constexpr float kHighest = 127.0f;

// One output's weights of one group: every fourth byte of the packed group is the next input's.
void quantise_weights(const bf16* panel, int64_t first_input, int64_t inputs, int64_t output, uint8_t* group) {
  float values[kGroup] = {}, largest = 0.0f;
  for (int64_t k = first_input; k < std::min(first_input + kGroup, inputs); ++k) {
    values[k - first_input] = to_float(panel[(k / 2 * kPanel + output) * 2 + k % 2]);
    largest = std::max(largest, std::abs(values[k - first_input]));
  }
  const float scale = largest / kHighest, inverse = largest > 0.0f ? kHighest / largest : 0.0f;
  for (int64_t k = 0; k < kGroup; ++k)
    group[(k / 4 * kPanel + output) * 4 + k % 4] = static_cast<uint8_t>(std::lrint(values[k] * inverse) + 128);
  std::memcpy(group + kGroup * kPanel + output * sizeof(float), &scale, sizeof(scale));
}

}  // namespace

void quantise(const Weight& weight, uint8_t* levels) {
  const int64_t groups = num_groups(weight.inputs);
  for (int64_t index = 0; index < weight.num_panels() * groups; ++index) {
    const auto* panel = static_cast<const bf16*>(weight.panel(index / groups));
    for (int64_t output = 0; output < kPanel; ++output)
      quantise_weights(panel, index % groups * kGroup, weight.inputs, output, levels + index * kGroupBytes);
  }
}

#ifdef __AVX512VNNI__

bool has_int8_products() { return has_bf16_products(); }

namespace {

constexpr int kVectors = kGroup / 16;

// inputs: how many of the group there are; the others count as zeros.
void load_group(const bf16* x, int64_t inputs, Floats (&values)[kVectors]) {
  if (inputs >= kGroup) {
    for (int i = 0; i < kVectors; ++i) values[i] = load(x + i * 16);
    return;
  }
  bf16 padded[kGroup] = {};
  std::memcpy(padded, x, sizeof(bf16) * inputs);
  for (int i = 0; i < kVectors; ++i) values[i] = load(padded + i * 16);
}

}  // namespace

void Int8Rows::take(int64_t row, const bf16* x) {
  for (int64_t group = 0; group < groups_; ++group) {
    Floats values[kVectors], largest{}, not_finite{};
    load_group(x + group * kGroup, inputs_ - group * kGroup, values);
    for (const Floats& vector : values) {
      largest = larger(vector < 0.0f ? -vector : vector, largest);
      not_finite += vector - vector;
    }
    const float highest = horizontal_max(largest);
    const Floats inverse = splat(highest > 0.0f ? kHighest / highest : 0.0f);
    const int64_t index = row * groups_ + group;
    __m512i sum = _mm512_setzero_si512();
    for (int i = 0; i < kVectors; ++i) {
      const __m512i levels = _mm512_cvtps_epi32((__m512)(values[i] * inverse));
      sum = _mm512_add_epi32(sum, levels);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(levels_.get() + index * kGroup + i * 16),
                       _mm512_cvtsepi32_epi8(levels));
    }
    scales_[index] = highest / kHighest + horizontal_sum(not_finite);
    starts_[index] = -128 * _mm512_reduce_add_epi32(sum);
  }
}

namespace {

constexpr int kMaxRows = 6;       // rows whose sums, integers and floats, fit into the registers
constexpr int64_t kAhead = 4096;  // bytes of weights fetched ahead of their use

template <int R>
inline void multiply(const uint8_t* panel, int64_t groups, const Int8Input& x, Sums* sums) {
  __m512 low[R] = {}, high[R] = {};
  for (int64_t group = 0; group < groups; ++group, panel += kGroupBytes) {
    __m512i low_levels[R], high_levels[R];
    for (int r = 0; r < R; ++r) low_levels[r] = high_levels[r] = _mm512_set1_epi32(x.starts[r * groups + group]);
    for (int64_t k = 0; k < kGroup; k += 4) {
      const uint8_t* four = panel + k * kPanel;
      __builtin_prefetch(four + kAhead, 0, 3);
      __builtin_prefetch(four + kAhead + 64, 0, 3);
      const __m512i first = _mm512_loadu_si512(four), second = _mm512_loadu_si512(four + 64);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        int32_t levels;
        std::memcpy(&levels, x.levels + (r * groups + group) * kGroup + k, sizeof(levels));
        const __m512i value = _mm512_set1_epi32(levels);
        low_levels[r] = _mm512_dpbusd_epi32(low_levels[r], first, value);
        high_levels[r] = _mm512_dpbusd_epi32(high_levels[r], second, value);
      }
    }
    const auto* scales = reinterpret_cast<const float*>(panel + kGroup * kPanel);
    const __m512 first_scale = _mm512_loadu_ps(scales), second_scale = _mm512_loadu_ps(scales + 16);
    for (int r = 0; r < R; ++r) {
      const __m512 scale = _mm512_set1_ps(x.scales[r * groups + group]);
      low[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(low_levels[r]), _mm512_mul_ps(first_scale, scale), low[r]);
      high[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(high_levels[r]), _mm512_mul_ps(second_scale, scale), high[r]);
    }
  }
  for (int r = 0; r < R; ++r) sums[r] = {(Floats)low[r], (Floats)high[r]};
}

template <int R>
void multiply_up_to(int rows, const uint8_t* panel, int64_t groups, const Int8Input& x, Sums* sums) {
  if (rows == R) return multiply<R>(panel, groups, x, sums);
  if constexpr (R > 1) multiply_up_to<R - 1>(rows, panel, groups, x, sums);
}

}  // namespace

void multiply_int8(const uint8_t* panel, int64_t inputs, const Int8Input& x, int64_t rows, Sums* sums) {
  const int64_t groups = num_groups(inputs), blocks = (rows + kMaxRows - 1) / kMaxRows;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t begin = rows * block / blocks, end = rows * (block + 1) / blocks;
    multiply_up_to<kMaxRows>(end - begin, panel, groups, x.from(begin, inputs), sums + begin);
  }
}

#else

bool has_int8_products() { return false; }
void Int8Rows::take(int64_t, const bf16*) { std::abort(); }
void multiply_int8(const uint8_t*, int64_t, const Int8Input&, int64_t, Sums*) { std::abort(); }

#endif

}  // namespace octavo
