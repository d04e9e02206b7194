// Products of rows with weights packed once: bf16 for CPUs that multiply it themselves (AVX-512 BF16), and the same
// in 8 bits (int8_products.h).
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
bool has_int8_products();  // the same of weights in 8 bits

struct Weight {
  const void* packed;
  int64_t inputs, outputs;  // inputs even
  bool is_int8;

  int64_t num_panels() const { return (outputs + kPanel - 1) / kPanel; }
  int64_t panel_bytes() const;
  const void* panel(int64_t index) const { return static_cast<const char*>(packed) + index * panel_bytes(); }
};

struct Int8Input {  // rows in 8 bits, as Int8Rows makes them: each of whole groups
  const int8_t* levels;
  const float* scales;
  const int32_t* starts;

  Int8Input from(int64_t row, int64_t inputs) const;
};

struct Input {  // rows [rows][inputs] in the form that the weight wants
  const bf16* rows;
  Int8Input in_int8;
  int64_t inputs;

  Input from(int64_t row) const;
};

struct Sums {
  Floats low, high;  // outputs 0 .. 15 and 16 .. 31 of a panel
};

// Pack weight [outputs][inputs], both row-major; outputs past the last are zeros.
void pack(const bf16* weight, int64_t outputs, int64_t inputs, bf16* packed);

// Panels `index` of x times the weight, with what happens to the sums on their way out.
void panel_to_bf16(const Weight& weight, int64_t index, const Input& x, int64_t rows, const float* bias, bf16* out);
void panel_to_float(const Weight& weight, int64_t index, const Input& x, int64_t rows, const float* bias, float* out);
void panel_added(const Weight& weight, int64_t index, const Input& x, int64_t rows, float* out);  // out += product
// A panel of 16 gates and the 16 ups that belong to them: out [rows][outputs / 2] = silu(gate) * up.
void panel_gated(const Weight& weight, int64_t index, const Input& x, int64_t rows, bf16* out);

// The sums of one panel in 8 bits, bias not included.
void multiply_int8(const uint8_t* panel, int64_t inputs, const Int8Input& x, int64_t rows, Sums* sums);

}  // namespace octavo
