// When does each action run? The twin of distlearn.pipeline.simulate, on orders that Python made
// and distlearn/widgets/orders.py wrote as strings.

var TRANSFERS = "ELOP";

// For each rank, the stages it holds in any copy of the model, ascending.
function stagesOfRanks(placements, p) {
  var stages = [];
  for (var rank = 0; rank < p; rank += 1) {
    stages.push(placements[0].map(function (_, stage) { return stage; }).filter(function (stage) {
      return placements.some(function (homes) { return homes[stage] === rank; });
    }));
  }
  return stages;
}

// The actions of one rank, each {kind, stage, microbatch, slice, parts, name}; a pair has two
// parts, every other action one, itself. The grammar is in orders.py.
function decodeOrder(order, stages, slices) {
  var token = /\(|\)(\d+)|([A-Z])([a-z]?)(?:\.(\d+))?(?:&([A-Z])([a-z]?)(?:\.(\d+))?)?(\d*)/y;
  var blocks = [[]];
  slices = slices || 1;
  while (token.lastIndex < order.length) {
    var at = token.lastIndex;
    var match = token.exec(order);
    if (!match) { throw new Error("order " + order + " cannot be read at " + order.slice(at)); }
    var times = 1, inside;
    if (match[2]) {
      inside = [match];
      times = Number(match[8] || 1);
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
  function part(kind, chunk, written) {
    var stage = stages[chunk ? chunk.charCodeAt(0) - 96 : 0];
    var i = written === undefined ? following[kind + stage] || 0 : Number(written);
    following[kind + stage] = i + 1;
    var action = { kind: kind, stage: stage, microbatch: Math.floor(i / slices),
      slice: slices > 1 ? i % slices : null };
    action.name = kind + stage + "." + action.microbatch + (slices > 1 ? "." + action.slice : "");
    action.parts = [action];
    return action;
  }
  return blocks[0].map(function (match) {
    var first = part(match[2], match[3], match[4]);
    if (!match[5]) { return first; }
    var second = part(match[5], match[6], match[7]);
    return { kind: first.kind + "&" + second.kind, stage: first.stage, slice: null,
      microbatch: first.microbatch, parts: [first, second], name: first.name + "&" + second.name };
  });
}

// schedule: {name, p, m, v, slices, placement, copies, direction, partner, ranks}
// costs: {F, B, I, W, R, E, L, O, P, comm} of one stage.
function simulate(schedule, costs) {
  var p = schedule.p, slices = schedule.slices || 1, width = schedule.m * slices;
  var stages = schedule.placement.length;
  var forward = [], backward = [], away = [], returned = [];  // by unit: when it has ended
  function unitOf(a) { return a.stage * width + a.microbatch * slices + (a.slice || 0); }
  function home(stage, a) {
    return schedule.direction ? schedule.copies[schedule.direction[a.microbatch]][stage]
      : schedule.placement[stage];
  }
  // When the input of a forward, or the gradient that a backward needs, is there; or undefined.
  function arrived(a, rank) {
    var unit = unitOf(a), end, from;
    if (a.kind === "F") {
      if (a.stage === 0) { return 0; }
      end = forward[unit - width];
      from = home(a.stage - 1, a);
    } else if (a.stage === stages - 1) {
      return forward[unit];
    } else {
      end = backward[unit + width];
      from = home(a.stage + 1, a);
    }
    if (end !== undefined && from !== rank) { end += costs.comm; }
    if (a.kind !== "F" && away[unit] !== undefined) {
      if (returned[unit] === undefined) { return undefined; }
      end = end === undefined ? undefined : Math.max(end, returned[unit]);
    }
    return end;
  }

  var free = [], room = [], out = [], back = [], position = [], events = [];
  for (var r = 0; r < p; r += 1) {
    free.push(0); room.push(0); out.push(0); back.push(0); position.push(0); events.push([]);
  }
  // Do one action if what it waits for is there.
  function step(rank, action) {
    var now = free[rank], kind = action.kind, unit = unitOf(action), start = now, end;
    var evicted = room[rank];
    if (TRANSFERS.indexOf(kind) >= 0) {
      if (kind === "E" || kind === "O") {
        if (forward[unit] === undefined) { return false; }
        start = Math.max(now, out[rank]);
        away[unit] = out[rank] = end = start + costs[kind];
      } else {
        if (away[unit] === undefined) { return false; }
        start = Math.max(now, back[rank], away[unit]);
        returned[unit] = back[rank] = end = start + costs[kind];
      }
      room[rank] = kind === "E" ? end : 0;
    } else {
      if (kind === "W") {
        if (backward[unit] === undefined) { return false; }
      } else if (kind === "R") {
        if (forward[unit] === undefined) { return false; }
      } else {
        for (var k = 0; k < action.parts.length; k += 1) {
          var there = arrived(action.parts[k], rank);
          if (there === undefined) { return false; }
          start = Math.max(start, there);
        }
        if (kind === "F") { start = Math.max(start, evicted); }
      }
      end = start + secondsOf(action, costs);
      free[rank] = end;
      room[rank] = 0;
      action.parts.forEach(function (part) {
        if (part.kind === "F") { forward[unitOf(part)] = end; }
        if (part.kind === "B" || part.kind === "I") { backward[unitOf(part)] = end; }
      });
    }
    events[rank].push({ rank: rank, kind: kind, stage: action.stage, slice: action.slice,
      microbatch: action.microbatch, parts: action.parts, name: action.name, start: start, end: end });
    return true;
  }
  for (var moved = true; moved;) {
    moved = false;
    for (var rank = 0; rank < p; rank += 1) {
      var actions = schedule.ranks[rank];
      while (position[rank] < actions.length && step(rank, actions[position[rank]])) {
        position[rank] += 1;
        moved = true;
      }
    }
  }
  position.forEach(function (done, rank) {
    if (done < schedule.ranks[rank].length) { throw new Error("deadlock on rank " + rank); }
  });
  var busy = schedule.ranks.map(function (row) {
    return row.reduce(function (sum, a) {
      return TRANSFERS.indexOf(a.kind) >= 0 ? sum : sum + secondsOf(a, costs);
    }, 0);
  });
  function lastEnd(row) { return row.length ? row[row.length - 1].end : 0; }
  var makespan = Math.max.apply(null, events.map(lastEnd));
  var longest = Math.max.apply(null, events.map(function (row) {
    return row.length ? lastEnd(row) - row[0].start : 0;
  }));
  var ideal = busy.reduce(function (a, b) { return a + b; }, 0) / p;
  function share(part, whole) { return whole > 0 ? part / whole : 0; }
  var timeline = {
    schedule: schedule, costs: costs, rows: events, events: [].concat.apply([], events),
    makespan: makespan, busy: busy, longestSpan: longest, ideal: ideal,
    bubbleFraction: share(makespan - ideal, makespan),
    bubbleOverIdeal: share(makespan - ideal, ideal),
    spanBubbleFraction: share(longest - ideal, longest),
    spanBubbleOverIdeal: share(longest - ideal, ideal)
  };
  timeline.redone = {};
  timeline.events.forEach(function (e) {
    if (e.kind === "R") { timeline.redone[e.name.slice(1)] = true; }
  });
  timeline.peakActivations = events.map(function (_, rank) {
    return Math.max.apply(null, running(timeline, rank).map(function (point) { return point[1]; }));
  });
  return timeline;
}

function secondsOf(action, costs) {
  return action.parts.reduce(function (sum, part) { return sum + costs[part.kind]; }, 0);
}

// Every change of what a rank keeps: [time, activations from then on], from [0, 0].
function running(timeline, rank) {
  var s = timeline.schedule, changes = [];
  timeline.rows.forEach(function (row, home) {
    var mine = home === rank;
    if (!mine && !(s.partner && s.p - 1 - home === rank)) { return; }
    row.forEach(function (event, k) {
      event.parts.forEach(function (part) {
        var kind = part.kind;
        if (!mine) {  // the partner's: free at first, take at last
          if (kind === "E") { changes.push([event.start, 2 * row.length + k, 1]); }
          if (kind === "L") { changes.push([event.end, -1, -1]); }
        } else if (kind === "F" && timeline.redone[part.name.slice(1)]) {
          return;
        } else if ("FRLP".indexOf(kind) >= 0) {
          changes.push([event.start, 2 * k + 1, 1]);
        } else if (kind !== "I") {
          changes.push([event.end, 2 * k + 2, -1]);
        }
      });
    });
  });
  changes.sort(function (a, b) { return a[0] - b[0] || a[1] - b[1]; });
  var kept = 0, points = [[0, 0]];
  changes.forEach(function (change) {
    kept += change[2];
    points.push([change[0], kept]);
  });
  return points;
}

// Activations kept by a rank over time: [time, count from then on], each time once.
function memoryCurve(timeline, rank) {
  var curve = [];
  running(timeline, rank).forEach(function (point) {
    if (curve.length && curve[curve.length - 1][0] === point[0]) { curve.pop(); }
    curve.push(point);
  });
  return curve;
}
