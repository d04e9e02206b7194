#include "spread.h"

#include <ATen/Parallel.h>

namespace octavo {

int64_t num_threads() { return at::get_num_threads(); }

void on_threads(int64_t count, const std::function<void()>& work) {
  at::parallel_for(0, count, 1, [&](int64_t, int64_t) { work(); });
}

}  // namespace octavo
