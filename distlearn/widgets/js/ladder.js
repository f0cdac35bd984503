// The time of a rung of the GEMM ladder: the twin of distlearn/kernels/timing/predict.py, on the
// lines of distlearn/widgets/ladder_work.py.

function closedNetwork(customers, service, wait) {
  var queue = 0, cycle = 0;
  for (var n = 1; n <= customers; n += 1) {
    var response = service * (1 + queue);
    cycle = wait + response;
    queue = cycle ? n * response / cycle : 0;
  }
  return cycle;
}

// null if the device has no rate for the rung's number format.
function predictRung(rung, dtype, device, model, M, N, K) {
  var more = Math.ceil(K / rung.tile[2]) / rung.splits - rung.base;
  function at(line) { return line ? line[0] + more * line[1] : 0; }
  function count(name) { return at(rung.counts[name]); }
  function both(kind, unit) {
    return count(kind + "_load_" + unit) + count(kind + "_store_" + unit);
  }
  var flops = count("flops"), tensor = count("tensor_flops"), warps = Math.ceil(rung.threads / 32);
  var rate = device.vector[tensor ? "float32" : dtype];
  if (rate === null) { return null; }
  var blocks = Math.ceil(M / rung.tile[0]) * Math.ceil(N / rung.tile[1]) * rung.splits;
  var bytes = 32 * both("global", "sectors"), barriers = count("barrier_warps") / warps;
  var held = occupancyOf(device.sm, rung.threads, rung.registers, rung.shared).blocks;
  var instructions = flops / 64 + 2 * both("global", "requests") + both("shared", "requests") +
    count("branches") + count("barrier_warps") + count("atomic_requests") + tensor / 4096;
  var pipes = {
    issue: instructions / model.schedulers / model.issueShare,
    arithmetic: Math.max(flops / rate, tensor ? tensor / device.matrix : 0),
    shared: both("shared", "wavefronts") + both("global", "lines") + count("atomic_requests") +
      count("atomic_conflicts"),
    l2: bytes / model.l2
  };
  var busiest = Object.keys(pipes).sort(function (a, b) {
    return pipes[b] - pipes[a] || (a < b ? 1 : -1);
  })[0];
  var busy = pipes[busiest], hidden = at(rung.hidden) * model.globalLatency;
  var wait = at(rung.trips) * model.globalLatency + barriers * model.sharedLatency;
  function clocks(count) {
    return barriers ? Math.max(closedNetwork(count, busy, wait), hidden)
      : closedNetwork(count * warps, busy / warps, wait);
  }
  var slots = device.cores * held, full = Math.floor(blocks / slots), rest = blocks % slots;
  var total = full * clocks(held) + (rest ? clocks(Math.ceil(rest / device.cores)) : 0);
  var arrays = (M * K + K * N) * rung.size + M * N * rung.out;
  var memory = Math.min(arrays, blocks * bytes) / device.memory;
  var seconds = Math.max(total / device.clock, memory);
  var resident = Math.min(held, Math.ceil(blocks / device.cores));
  return {
    flops: (flops + tensor) * blocks,
    seconds: seconds,
    gflops: (flops + tensor) * blocks / seconds / 1e9,
    intensity: (flops + tensor) / bytes,
    bound: seconds === memory ? "memory"
      : resident * busy < (barriers ? wait + busy : wait) ? "latency" : busiest
  };
}
