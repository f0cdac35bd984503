// The time of a rung of the GEMM ladder: the twin of distlearn/kernels/timing/predict.py, on the
// lines of distlearn/widgets/ladder_work.py.

// The twins of distlearn/kernels/timing/network.py; a station is [clocks, copies].
function throughput(customers, stations, wait, steps) {
  var rate = 0, queues = stations.map(function () { return customers / stations.length; });
  var others = stations.map(function (station) {
    return Math.max(0, 1 - station[1] / customers) / station[1];
  });
  for (var step = 0; step < steps; step += 1) {
    var around = 0, responses = stations.map(function (station, n) {
      return station[0] * (1 + queues[n] * others[n]);
    });
    for (var n = 0; n < responses.length; n += 1) { around += responses[n]; }
    rate = customers / (wait + around);
    queues = responses.map(function (response) { return rate * response; });
  }
  return rate;
}

function alternating(rates, wait) {
  if (!wait) { return rates[rates.length - 1]; }
  var customers = rates.length - 1, weight = 1, total = 1, served = 0;
  for (var n = 1; n <= customers; n += 1) {
    weight *= (customers - n + 1) / wait / rates[n];
    total += weight;
    served += weight * rates[n];
  }
  return served / total;
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
    "load/store": (both("global", "requests") + both("shared", "requests") +
      count("atomic_requests")) * 32 / device.loadStore,
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
  var scheduler = Math.max(pipes.issue, pipes.arithmetic) * model.schedulers;
  var inside = count("shared_load_requests") / model.loadsInFlight * model.sharedLatency;
  function blocksPerClock(blocks, share, waiting) {
    var stations = [[scheduler / share, model.schedulers]].concat(
      ["load/store", "shared", "l2"].map(function (name) { return [pipes[name] / share, 1]; }));
    return throughput(blocks * share, stations, waiting + inside / share, model.steps) / share;
  }
  function clocks(blocks) {
    if (!count("barrier_warps")) { return blocks / blocksPerClock(blocks, warps, wait); }
    var rates = [0];
    for (var n = 1; n <= blocks; n += 1) {
      var around = 0;
      rung.busy.forEach(function (pair) { around += pair[1] / blocksPerClock(n, pair[0], 0); });
      rates.push(1 / around);
    }
    return Math.max(blocks / alternating(rates, wait), hidden);
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
      : 2 * resident * busy < clocks(resident) ? "latency" : busiest
  };
}
