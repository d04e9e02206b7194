// Rows and weights in 8 bits, for CPUs with AVX-512 VNNI.
//
// 64 inputs share a scale, of a row and of an output's weights alike: value = level * scale, levels -127 .. 127.
// A row's scales depend on that row alone and its levels are summed up in integers, so rows stay bitwise independent
// of their batch.
//
//   packed   [panels][groups]{ [16][32][4] weight levels + 128, [32] fp32 scales }     a panel is 32 outputs
//
// The instruction multiplies unsigned by signed bytes: what the 128 adds to a sum is 128 * the row's levels, so sums
// start at minus that.
#pragma once

#include <memory>

#include "products.h"

namespace octavo {

constexpr int64_t kGroup = 64;
constexpr int64_t kGroupBytes = kGroup * kPanel + kPanel * sizeof(float);

inline int64_t num_groups(int64_t inputs) { return (inputs + kGroup - 1) / kGroup; }

// Turn a packed bf16 weight into 8 bits; levels has num_panels * num_groups * kGroupBytes bytes.
void quantise(const Weight& weight, uint8_t* levels);

// Room for the rows [rows][inputs] of one product's input.
class Int8Rows {
 public:
  Int8Rows(int64_t num_rows, int64_t inputs);

  // Different rows may be taken by different threads. What is not finite gives sums that are not finite.
  void take(int64_t row, const bf16* x);
  Int8Input input() const { return {levels_.get(), scales_.get(), starts_.get()}; }

 private:
  int64_t inputs_, groups_;
  std::unique_ptr<int8_t[]> levels_;
  std::unique_ptr<float[]> scales_;
  std::unique_ptr<int32_t[]> starts_;
};

}  // namespace octavo
