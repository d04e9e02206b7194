// Products of bf16 rows with weights packed once, for CPUs that multiply bf16 themselves (AVX-512 BF16).
//
//   packed   [panels][K / 2][32][2]   a panel is 32 outputs; a vector holds 16 outputs' weights of 2 inputs
//
// Each output of each row is one chain of fp32 additions over the inputs in rising order, whatever rows and
// outputs are computed beside it: rows are bitwise independent of their batch by construction, single rows too.
#pragma once

#include <cstdint>

#include "vectors.h"

namespace octavo {

constexpr int64_t kPanel = 32;

bool has_bf16_products();  // compiled for such a CPU; the functions below abort where not

struct Weight {
  const bf16* packed;
  int64_t inputs, outputs;  // inputs even

  int64_t num_panels() const { return (outputs + kPanel - 1) / kPanel; }
  const bf16* panel(int64_t index) const { return packed + index * inputs * kPanel; }
};

// Pack weight [outputs][inputs], both row-major; outputs past the last are zeros.
void pack(const bf16* weight, int64_t outputs, int64_t inputs, bf16* packed);

// Panels `index` of x [rows][inputs] times the weight, with what happens to the sums on their way out.
void panel_to_bf16(const Weight& weight, int64_t index, const bf16* x, int64_t rows, const float* bias, bf16* out);
void panel_to_float(const Weight& weight, int64_t index, const bf16* x, int64_t rows, const float* bias, float* out);
void panel_added(const Weight& weight, int64_t index, const bf16* x, int64_t rows, float* out);  // out += product
// A panel of 16 gates and the 16 ups that belong to them: out [rows][outputs / 2] = silu(gate) * up.
void panel_gated(const Weight& weight, int64_t index, const bf16* x, int64_t rows, bf16* out);

}  // namespace octavo
