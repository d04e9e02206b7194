// Work on several threads, each item taken by whichever thread is free: on shared cores none waits for another's
// share. What an item computes must not depend on who computes it.
#pragma once

#include <ATen/Parallel.h>

#include <atomic>
#include <cstdint>

namespace octavo {

// Calls work(item) for every item, in rising order on each thread.
template <typename Work>
void spread(int64_t num_items, const Work& work) {
  std::atomic<int64_t> num_taken{0};
  at::parallel_for(0, std::min<int64_t>(at::get_num_threads(), num_items), 1, [&](int64_t, int64_t) {
    for (int64_t item = num_taken++; item < num_items; item = num_taken++) work(item);
  });
}

}  // namespace octavo
