// When does each action run? The twin of distlearn.pipeline.simulate, on orders that Python made
// and distlearn/widgets/orders.py wrote as strings.

// For each rank, the stages it holds, ascending.
function stagesOfRanks(placement, p) {
  var stages = [];
  for (var rank = 0; rank < p; rank += 1) { stages.push([]); }
  placement.forEach(function (rank, stage) { stages[rank].push(stage); });
  return stages;
}

// The actions of one rank: [{kind, stage, microbatch}, ...]; the grammar is in orders.py.
function decodeOrder(order, stages) {
  var token = /\(|\)(\d+)|([A-Z])([a-z]?)(?:\.(\d+)|(\d*))/y;
  var blocks = [[]];
  while (token.lastIndex < order.length) {
    var at = token.lastIndex;
    var match = token.exec(order);
    if (!match) { throw new Error("order " + order + " cannot be read at " + order.slice(at)); }
    var times = 1, inside;
    if (match[2]) {
      inside = [match];
      times = Number(match[5] || 1);
    } else if (match[1]) {
      inside = blocks.pop();
      times = Number(match[1]);
    } else {
      blocks.push([]);
      continue;
    }
    var block = blocks[blocks.length - 1];
    for (var k = 0; k < times; k += 1) { Array.prototype.push.apply(block, inside); }
  }
  var following = {};
  return blocks[0].map(function (match) {
    var stage = stages[match[3] ? match[3].charCodeAt(0) - 96 : 0];
    var key = match[2] + stage;
    var i = match[4] === undefined ? following[key] || 0 : Number(match[4]);
    following[key] = i + 1;
    return { kind: match[2], stage: stage, microbatch: i };
  });
}

// schedule: {name, p, m, v, placement, ranks}; costs: {F, B, I, W, comm} of one stage.
function simulate(schedule, costs) {
  var p = schedule.p, m = schedule.m, stages = schedule.placement.length;
  var ended = { F: [], B: [], I: [], W: [] };  // ended[kind][stage * m + microbatch]: time or none
  var split = [];
  schedule.ranks.forEach(function (actions) {
    actions.forEach(function (a) { if (a.kind === "I") { split[a.stage * m + a.microbatch] = true; } });
  });

  // When everything that the action waits for is there; undefined if something is not done yet.
  function ready(action, rank) {
    var here = action.stage * m + action.microbatch, next = here + m, time = 0;
    function after(kind, index) {
      var end = ended[kind][index];
      var home = schedule.placement[Math.floor(index / m)];
      time = end === undefined ? undefined : Math.max(time, home === rank ? end : end + costs.comm);
      return time !== undefined;
    }
    if (action.kind === "F") {
      if (action.stage > 0) { after("F", here - m); }
    } else if (action.kind === "W") {
      after("I", here);
    } else if (after("F", here) && action.stage < stages - 1) {
      after(split[next] ? "I" : "B", next);
    }
    return time;
  }

  var free = [], busy = [], count = [], peaks = [], position = [], events = [];
  for (var r = 0; r < p; r += 1) {
    free.push(0); busy.push(0); count.push(0); peaks.push(0); position.push(0); events.push([]);
  }
  for (var moved = true; moved;) {
    moved = false;
    for (var rank = 0; rank < p; rank += 1) {
      var actions = schedule.ranks[rank];
      for (; position[rank] < actions.length; position[rank] += 1) {
        var action = actions[position[rank]];
        var there = ready(action, rank);
        if (there === undefined) { break; }
        moved = true;
        var start = Math.max(free[rank], there), end = start + costs[action.kind];
        free[rank] = end;
        busy[rank] += costs[action.kind];
        ended[action.kind][action.stage * m + action.microbatch] = end;
        events[rank].push({ rank: rank, kind: action.kind, stage: action.stage,
          microbatch: action.microbatch, start: start, end: end });
        if (action.kind === "F") {
          count[rank] += 1;
          peaks[rank] = Math.max(peaks[rank], count[rank]);
        } else if (action.kind !== "I") {
          count[rank] -= 1;
        }
      }
    }
  }
  position.forEach(function (done, rank) {
    if (done < schedule.ranks[rank].length) { throw new Error("deadlock on rank " + rank); }
  });
  var makespan = Math.max.apply(null, free);
  var longest = Math.max.apply(null, events.map(function (row) {
    return row.length ? row[row.length - 1].end - row[0].start : 0;
  }));
  var ideal = busy.reduce(function (a, b) { return a + b; }, 0) / p;
  function share(part, whole) { return whole > 0 ? part / whole : 0; }
  return {
    schedule: schedule, costs: costs, rows: events, events: [].concat.apply([], events),
    makespan: makespan, busy: busy, longestSpan: longest, ideal: ideal, peakActivations: peaks,
    bubbleFraction: share(makespan - ideal, makespan),
    bubbleOverIdeal: share(makespan - ideal, ideal),
    spanBubbleFraction: share(longest - ideal, longest),
    spanBubbleOverIdeal: share(longest - ideal, ideal)
  };
}

// Activations kept by a rank over time: [time, count from then on], from [0, 0].
function memoryCurve(timeline, rank) {
  var curve = [[0, 0]], kept = 0;
  timeline.rows[rank].forEach(function (event) {
    if (event.kind === "I") { return; }
    var time = event.kind === "F" ? event.start : event.end;
    kept += event.kind === "F" ? 1 : -1;
    if (curve[curve.length - 1][0] === time) {
      curve[curve.length - 1] = [time, kept];
    } else {
      curve.push([time, kept]);
    }
  });
  return curve;
}
