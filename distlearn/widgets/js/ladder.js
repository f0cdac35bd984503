// The time of a rung of the GEMM ladder: the twin of distlearn/kernels/timing/predict.py, on the
// lines of distlearn/widgets/ladder_work.py.

// The twins of distlearn/kernels/timing/network.py; a station is [clocks, copies].
function throughput(customers, stations, wait, beside, besideWait, steps) {
  var every = stations.concat(beside), rate = 0;
  var queues = every.map(function () { return customers / every.length; });
  var others = every.map(function (station) {
    return Math.max(0, 1 - station[1] / customers) / station[1];
  });
  for (var step = 0; step < steps; step += 1) {
    var first = 0, second = 0, responses = every.map(function (station, n) {
      return station[0] * (1 + queues[n] * others[n]);
    });
    for (var n = 0; n < responses.length; n += 1) {
      if (n < stations.length) { first += responses[n]; } else { second += responses[n]; }
    }
    second += besideWait;
    rate = customers / (wait + later(first, second));
    queues = responses.map(function (response) { return rate * response; });
  }
  return rate;
}

function later(first, second) {
  return first + second - (first && second ? first * second / (first + second) : 0);
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
  var requests = both("global", "requests") + both("shared", "requests") +
    count("atomic_requests");
  var instructions = flops / 64 + both("global", "requests") + requests + count("branches") +
    count("barrier_warps") + tensor / 4096;
  var pipes = {
    issue: instructions / model.schedulers / model.issueShare,
    arithmetic: Math.max(flops / rate, tensor ? tensor / device.matrix : 0),
    address: requests * 32 / model.addresses / model.schedulers,
    "load/store": requests * 32 / device.loadStore,
    tags: both("global", "lines"),
    shared: both("shared", "wavefronts") + bytes / model.l1 + count("atomic_requests") +
      count("atomic_conflicts"),
    l2: bytes / model.l2
  };
  var busiest = Object.keys(pipes).sort(function (a, b) {
    return pipes[b] - pipes[a] || (a < b ? 1 : -1);
  })[0];
  var busy = pipes[busiest], hidden = at(rung.hidden) * model.globalLatency;
  var wait = at(rung.trips) * model.globalLatency + barriers * 2 * model.sharedLatency;
  var scheduler = Math.max(pipes.issue, pipes.arithmetic) * model.schedulers;
  var inside = count("shared_load_requests") / model.loadsInFlight * model.sharedLatency;
  function blocksPerClock(blocks, share, waiting) {
    var accesses = [[pipes.address * model.schedulers / share, model.schedulers]].concat(
      ["load/store", "tags", "shared", "l2"].map(function (name) {
        return [pipes[name] / share, 1];
      }));
    return throughput(blocks * share, [[scheduler / share, model.schedulers]], waiting, accesses,
                      inside / share, model.steps) / share;
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
