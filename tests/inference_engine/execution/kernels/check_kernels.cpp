// The kernels without torch, over random shapes, against plain loops in double precision. Prints the largest error of
// each part beside what is allowed; ends with 1 where one is too large. Built and run by tests/kernel_program.py.
#include <cstdio>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "elementwise.h"
#include "int8_products.h"
#include "paged_attention.h"
#include "products.h"
#include "rowwise.h"
#include "sampling.h"
#include "spread.h"

namespace octavo {

static int64_t threads = 1;

int64_t num_threads() { return threads; }

void on_threads(int64_t count, const std::function<void()>& work) {
  std::vector<std::thread> others;
  for (int64_t i = 1; i < count; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
}

}  // namespace octavo

using namespace octavo;

namespace {

std::mt19937 chance(7);
bool all_right = true;

int64_t any(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(chance); }
float number(float size = 1.0f) { return std::uniform_real_distribution<float>(-size, size)(chance); }
template <typename T>
T one_of(std::initializer_list<T> choices) { return choices.begin()[any(0, choices.size() - 1)]; }

template <typename T>
std::vector<T> numbers(int64_t count, float size = 1.0f) {
  std::vector<T> values(count);
  for (T& value : values) from_float(number(size), &value);
  return values;
}

void report(const std::string& part, double error, double allowed) {
  const bool is_right = error <= allowed;  // false for NaN
  std::printf("%-44s %.2e of %.0e%s\n", part.c_str(), error, allowed, is_right ? "" : "  WRONG");
  all_right &= is_right;
}

double worse(double error, double found) { return found <= error ? error : found; }  // NaN is the worst

// One sequence's rows of all heads in order, and the same in blocks at random places among NaNs.
template <typename T>
struct Case {
  int64_t heads, group, dim, padded, length, num_blocks, window;
  float softcap;
  bool has_sinks;
  std::vector<T> key, value, query, keys, values;
  std::vector<float> sinks;
  std::vector<int32_t> table, sequences;
  std::vector<int64_t> positions;

  explicit Case(int64_t longest)
      : heads(any(1, 3)), group(one_of<int64_t>({1, 2, 3, 4, 5, 9})), dim(one_of<int64_t>({2, 16, 18, 64, 80, 128})),
        padded((dim + 15) / 16 * 16), length(any(1, longest)), num_blocks((length + 15) / 16 + 3),
        window(one_of<int64_t>({0, 0, 1, 37, 1500})), softcap(one_of<float>({0.0f, 0.0f, 3.0f})), has_sinks(any(0, 1)),
        key(numbers<T>(length * heads * dim)), value(numbers<T>(length * heads * dim)),
        sinks(numbers<float>(heads * group, 2.0f)), table((length + 15) / 16) {
    std::vector<int32_t> order(num_blocks);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), chance);
    std::copy_n(order.begin(), table.size(), table.begin());
    T nan;
    from_float(NAN, &nan);
    keys.assign(num_blocks * heads * dim * 16, nan);
    values.assign(num_blocks * heads * padded * 16, nan);
    for (int64_t row = any(1, 4); row > 0; --row) positions.push_back(any(0, length - 1)), sequences.push_back(0);
    positions.push_back(0), sequences.push_back(-1);
    query = numbers<T>(positions.size() * heads * group * dim, 3.0f);
    write();
  }

  KvBlocks blocks() { return {keys.data(), values.data(), num_blocks, heads, dim, padded, sizeof(T) == 4}; }
  HeadRows rows() const {
    return {query.data(), static_cast<int64_t>(positions.size()), heads * group, heads * group * dim, dim};
  }

  void write() {
    std::vector<int64_t> slots;
    for (int64_t p = 0; p < length; ++p) slots.push_back(table[p / 16] * 16 + p % 16);
    const HeadRows rows{nullptr, length, heads, heads * dim, dim};
    KvWriter writer{blocks(), rows, rows, slots.data()};
    writer.key.data = key.data(), writer.value.data = value.data();
    for (int64_t row = 0; row < length; ++row) writer.write(row);
  }

  std::vector<T> attended(int64_t num_threads) {
    std::vector<T> out(query.size());
    threads = num_threads;
    const Places places{positions.data(), sequences.data(), table.data(), 1, static_cast<int64_t>(table.size())};
    attend(blocks(), rows(), places, rule(), out.data());
    return out;
  }
  Rule rule() const {
    return {1.0f / std::sqrt(static_cast<float>(dim)), window, softcap, has_sinks ? sinks.data() : nullptr};
  }

  // [D] of one row and query head.
  std::vector<double> plain(int64_t row, int64_t head) const {
    std::vector<double> sum(dim, 0.0);
    if (sequences[row] < 0) return sum;
    const int64_t end = positions[row] + 1, begin = window ? std::max<int64_t>(0, end - window) : 0;
    double total = has_sinks ? std::exp(sinks[head]) : 0.0;
    for (int64_t p = begin; p < end; ++p) {
      const int64_t at = (p * heads + head / group) * dim;
      double score = 0;
      for (int64_t d = 0; d < dim; ++d)
        score += double(to_float(query[(row * heads * group + head) * dim + d])) * to_float(key[at + d]);
      score *= rule().scale;
      const double weight = std::exp(softcap ? softcap * std::tanh(score / softcap) : score);
      for (int64_t d = 0; d < dim; ++d) sum[d] += weight * to_float(value[at + d]);
      total += weight;
    }
    for (double& each : sum) each /= total;
    return sum;
  }

  double error() {
    const std::vector<T> out = attended(1), again = attended(3);
    double error = std::memcmp(out.data(), again.data(), out.size() * sizeof(T)) ? NAN : 0.0;
    for (size_t row = 0; row < positions.size(); ++row)
      for (int64_t head = 0; head < heads * group; ++head) {
        const std::vector<double> expected = plain(row, head);
        for (int64_t d = 0; d < dim; ++d)
          error = worse(error, std::abs(to_float(out[(row * heads * group + head) * dim + d]) - expected[d]));
      }
    return error;
  }
};

template <typename T>
double attention_error(int cases, int64_t longest) {
  double error = 0;
  for (int i = 0; i < cases; ++i) error = worse(error, Case<T>(longest).error());
  return error;
}

// Every kind of panel against x [rows][inputs] times weight [outputs][inputs].
struct Product {
  int64_t rows = any(1, 14), inputs = 2 * any(1, 150), outputs = 32 * any(1, 3);
  std::vector<bf16> x = numbers<bf16>(rows * inputs), weight = numbers<bf16>(outputs * inputs);
  std::vector<bf16> packed = std::vector<bf16>(outputs * inputs);
  std::vector<uint8_t> levels;

  Product() { pack(weight.data(), outputs, inputs, packed.data()); }

  Weight in_bf16() const { return {packed.data(), inputs, outputs, false}; }
  Weight in_int8() {
    levels.resize(outputs / kPanel * num_groups(inputs) * kGroupBytes);
    quantise(in_bf16(), levels.data());
    return {levels.data(), inputs, outputs, true};
  }

  double plain(int64_t row, int64_t output) const {
    double sum = 0;
    for (int64_t k = 0; k < inputs; ++k)
      sum += double(to_float(x[row * inputs + k])) * to_float(weight[output * inputs + k]);
    return sum;
  }

  double error(const Weight& packed_weight) {
    Int8Rows in_int8(rows, inputs);
    Input input{x.data(), {}, inputs};
    if (packed_weight.is_int8) {
      for (int64_t row = 0; row < rows; ++row) in_int8.take(row, x.data() + row * inputs);
      input.in_int8 = in_int8.input();
    }
    const std::vector<float> bias = numbers<float>(outputs);
    std::vector<float> as_float(rows * outputs), added(rows * outputs, 1.0f);
    std::vector<bf16> as_bf16(rows * outputs), gated(rows * outputs / 2);
    for (int64_t panel = 0; panel < packed_weight.num_panels(); ++panel) {
      panel_to_float(packed_weight, panel, input, rows, bias.data(), as_float.data());
      panel_to_bf16(packed_weight, panel, input, rows, nullptr, as_bf16.data());
      panel_added(packed_weight, panel, input, rows, added.data());
      panel_gated(packed_weight, panel, input, rows, gated.data());
    }
    double error = 0;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t output = 0; output < outputs; ++output) {
        const double sum = plain(row, output);
        const int64_t at = row * outputs + output;
        error = worse(error, std::abs(as_float[at] - bias[output] - sum));
        error = worse(error, std::abs(added[at] - 1.0f - sum));
        error = worse(error, std::max(0.0, std::abs(to_float(as_bf16[at]) - sum) - std::abs(sum) / 128));
        if (output % 32 >= 16) continue;
        const double expected = sum / (1 + std::exp(-sum)) * plain(row, output + 16);
        const double found = to_float(gated[row * outputs / 2 + output / 32 * 16 + output % 16]);
        error = worse(error, std::max(0.0, std::abs(found - expected) - std::abs(expected) / 64) / 16);
      }
    return error;
  }
};

// Levels times scale against the weights they were made of, in steps of a level.
double quantising_error() {
  double error = 0;
  for (int i = 0; i < 10; ++i) {
    Product product;
    product.in_int8();
    for (int64_t output = 0; output < product.outputs; ++output)
      for (int64_t k = 0; k < product.inputs; ++k) {
        const int64_t group = output / kPanel * num_groups(product.inputs) + k / kGroup, lane = output % kPanel;
        const uint8_t* start = product.levels.data() + group * kGroupBytes;
        float scale;
        std::memcpy(&scale, start + kGroup * kPanel + lane * sizeof(float), sizeof(scale));
        const double level = start[(k % kGroup / 4 * kPanel + lane) * 4 + k % 4] - 128;
        error = worse(error, std::abs(level - to_float(product.weight[output * product.inputs + k]) / scale));
      }
  }
  return error;
}

double product_error(bool in_int8) {
  double error = 0;
  for (int i = 0; i < 20; ++i) {
    Product product;
    error = worse(error, product.error(in_int8 ? product.in_int8() : product.in_bf16()));
  }
  return error;
}

// By how much of the whole weight a draw lies outside its token's share.
double draw_error() {
  const int64_t size = any(1, 1500);
  const std::vector<float> logits = numbers<float>(size, 6.0f);
  std::vector<float> room((size + kBlockIds - 1) / kBlockIds * kBlockIds);
  const Filters filters{any(0, 1) ? any(1, size) : size, any(0, 1) ? 0.7 : 1.0, any(0, 1) ? 0.05 : 0.0};
  const float temperature = one_of<float>({0.3f, 1.0f, 1.7f}), highest = highest_if_finite(logits.data(), size);
  const int64_t first = first_highest(logits.data(), size);
  const double uniform = std::uniform_real_distribution<double>(1e-9, 1 - 1e-9)(chance);
  const int64_t token = draw(logits.data(), size, highest, temperature, filters, uniform, room.data());
  std::vector<int64_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return logits[a] > logits[b]; });
  if (first != order[0] || highest != logits[first]) return NAN;
  std::vector<double> weights(size, 0.0);
  double total = 0, reached = 0, kept = 0, before = 0;
  for (int64_t i = 0; i < std::min(filters.top_k, size); ++i)
    total += weights[order[i]] = std::exp((double(logits[order[i]]) - highest) / temperature);
  for (const int64_t id : order) {
    const bool is_out = reached >= filters.top_p * total || weights[id] < filters.min_p;
    reached += weights[id];
    if (is_out) weights[id] = 0;
    kept += weights[id];
  }
  for (int64_t id = 0; id < token; ++id) before += weights[id];
  const double outside = std::max(before - uniform * kept, uniform * kept - before - weights[token]);
  return weights[token] > 0 ? std::max(0.0, outside / kept) : NAN;
}

double sampling_error() {
  double error = 0;
  for (int i = 0; i < 300; ++i) error = worse(error, draw_error());
  return error;
}

double norm_error() {
  double error = 0;
  for (int i = 0; i < 50; ++i) {
    const int64_t width = 32 * any(1, 40);
    const std::vector<float> x = numbers<float>(width, 5.0f), weight = numbers<float>(width);
    std::vector<bf16> out(width);
    rms_norm(x.data(), weight.data(), 1e-5f, width, out.data());
    double squares = 0;
    for (const float each : x) squares += double(each) * each;
    for (int64_t d = 0; d < width; ++d)
      error = worse(error, std::abs(to_float(out[d]) - x[d] / std::sqrt(squares / width + 1e-5) * weight[d]));
  }
  return error;
}

double rotary_error() {
  double error = 0;
  for (int i = 0; i < 50; ++i) {
    const int64_t dim = 2 * any(1, 70), half = dim / 2;
    const std::vector<bf16> cos = numbers<bf16>(dim), sin = numbers<bf16>(dim), head = numbers<bf16>(dim);
    std::vector<bf16> turned = head;
    rotate(cos.data(), sin.data(), dim, turned.data());
    for (int64_t d = 0; d < dim; ++d) {
      const double other = to_float(head[d < half ? d + half : d - half]);
      const double expected = double(to_float(head[d])) * to_float(cos[d]) + other * to_float(sin[d]);
      error = worse(error, std::abs(to_float(turned[d]) - expected));
    }
  }
  return error;
}

double function_error(Floats (*function)(Floats), double (*plain)(double), float low, float high) {
  double error = 0;
  for (int i = 0; i < 2000; ++i) {
    Floats x;
    for (int lane = 0; lane < 16; ++lane) x[lane] = low + (high - low) * (number() + 1) / 2;
    const Floats found = function(x);
    for (int lane = 0; lane < 16; ++lane)
      error = worse(error, std::abs(found[lane] - plain(x[lane])) / (1 + std::abs(plain(x[lane]))));
  }
  return error;
}

double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x))); }
double silu(double x) { return x / (1 + std::exp(-x)); }

void check_functions() {
  const auto plain_exp = [](double x) { return std::exp(x); };
  const auto plain_tanh = [](double x) { return std::tanh(x); };
  report("exp", function_error(exp_nonpositive, plain_exp, -90, 0), 3e-7);
  report("tanh", function_error(tanh_of, plain_tanh, -12, 12), 3e-7);
  report("silu", function_error([](Floats x) { return activated(x, kSilu); }, silu, -20, 20), 1e-6);
  report("gelu", function_error([](Floats x) { return activated(x, kGeluErf); }, gelu, -8, 8), 1e-6);
  report("gelu by tanh", function_error([](Floats x) { return activated(x, kGeluTanh); }, gelu_tanh, -8, 8), 1e-6);
}

void check_products() {
  report("weights in 8 bits, in levels", quantising_error(), 0.502);
  if (has_bf16_products()) report("products in bf16", product_error(false), 1e-4);
  else std::puts("products in bf16: not compiled for this kind of CPU");
  if (has_int8_products()) report("products in int8", product_error(true), 0.35);
  else std::puts("products in int8: not compiled for this kind of CPU");
}

}  // namespace

int main() {
  report("attention, fp32", attention_error<float>(40, 400), 3e-6);
  report("attention, fp32, several stretches", attention_error<float>(6, 3000), 3e-6);
  report("attention, bf16", attention_error<bf16>(40, 400), 1e-2);
  report("attention, bf16, several stretches", attention_error<bf16>(6, 3000), 1e-2);
  check_products();
  report("draws, in shares of the whole weight", sampling_error(), 1e-6);
  report("RMS norm", norm_error(), 2e-2);
  report("rotary embedding", rotary_error(), 5e-3);
  check_functions();
  return all_right ? 0 : 1;
}
