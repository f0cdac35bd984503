// What the explorer says about one setting: the twin of distlearn/widgets/pipeline_view.py.
// data: as PipelineExplorer.static_data made it.
// setting: {schedule, option, p, m, v, F, B, W, comm, limit}.

// The closed formulas of distlearn.pipeline.bubble_time, in the times of one stage.
var bubbleTime = {
  "gpipe": function (s, c) { return (s.p - 1) * (c.F + c.B); },
  "1f1b": function (s, c) { return (s.p - 1) * (c.F + c.B); },
  "dapple": function (s, c) { return (s.p - 1) * (c.F + c.B); },
  "pipedream": function (s, c) { return (s.p - 1) * (c.F + c.B); },
  "pipedream_2bw": function (s, c) { return (s.p - 1) * (c.F + c.B); },
  "pipemare": function (s, c) { return (s.p - 1) * (c.F + c.B); },
  "xpipe": function (s, c) { return (s.p - 1) * (c.F + c.B); },
  "interleaved_1f1b": function (s, c) { return (s.p - 1) * (c.F + c.B); },
  "zb_h1": function (s, c) {
    if (c.W > Math.min(c.F, c.I)) {
      throw new Error("zb_h1's bubble formula needs W <= F and W <= I; got F=" +
        pythonFloat(c.F) + " I=" + pythonFloat(c.I) + " W=" + pythonFloat(c.W));
    }
    return (s.p - 1) * (c.F + c.I) - (Math.min(s.m, s.p) - 1) * c.W;
  }
};

function traitsOf(data, s) {
  return data.traits[s.schedule + (s.option ? " " + s.option : "")];
}

// The option mem_limit of a schedule for the limit that is set, and by which name the page has the
// order for it: {option, key}; null if it has none.
function limitOf(data, s) {
  var ends = data.limits[s.schedule];
  if (!ends || s.option || !s.limit || s.p > ends[0] || s.m > ends[1]) { return null; }
  var value = ends[2] ? s.limit : Math.floor(s.limit), found = Math.min(value, s.m);
  return found % 1 && found !== ends[2] ? null : { option: value, key: " mem_limit=" + found };
}

function scheduleOf(data, s) {
  var limit = limitOf(data, s), traits = traitsOf(data, s);
  var key = s.schedule + (s.option ? " " + s.option : limit ? limit.key : "");
  var found = data.catalogue.orders[key][s.v][s.p][s.m];
  if (typeof found === "number") { throw new Error(data.catalogue.errors[found]); }
  var placement = data.catalogue.placements[key][s.v][s.p];
  var copies = data.catalogue.copies[key];
  copies = copies ? copies[s.v][s.p] : null;
  var stages = stagesOfRanks(copies || [placement], s.p);
  return {
    name: s.schedule, p: s.p, m: s.m * traits.batches, v: s.v, placement: placement,
    slices: traits.slices, partner: traits.partner, copies: copies,
    direction: copies && data.catalogue.strings[found[s.p]].split("").map(Number),
    ranks: found.slice(0, s.p).map(function (index, rank) {
      return decodeOrder(data.catalogue.strings[index], stages[rank], traits.slices);
    })
  };
}

// The times of one stage. W is null for schedules that do not split the backward.
function costsOf(s, slices) {
  var pieces = s.v * slices, F = s.F / pieces, B = s.B / pieces, W = B / 2, I = B / 2;
  if (s.W !== null) {
    W = s.W / pieces;
    I = B - W;
    if (I < 0) {
      throw new Error("I = B - W must be >= 0; got B=" + pythonFloat(B) + " W=" + pythonFloat(W));
    }
  }
  return { F: F, B: B, I: I, W: W, R: F, E: 0, L: 0, O: 0, P: 0, comm: s.comm };
}

function timelineOf(data, setting) {
  return simulate(scheduleOf(data, setting),
    costsOf(setting, traitsOf(data, setting).slices));
}

function lookAt(data, setting, options) {
  var timeline, traits = traitsOf(data, setting), limit = limitOf(data, setting);
  try {
    timeline = timelineOf(data, setting);
  } catch (error) {
    return { message: error.message, status: error.message };
  }
  return {
    message: "",
    timeline: timeline,
    picture: timelineSvg(timeline, data.look, {
      width: options.width, tooltips: options.tooltips, limit: setting.limit
    }),
    numbers: numbersOf(timeline, setting.limit) +
      (setting.option || limit ? "" : comparison(data, setting, timeline)) +
      (traits.searched ? data.notes.times : "") +
      (traits.limited && setting.limit && !limit ? data.notes.limit : ""),
    call: callOf(setting, traits.slices, limit),
    command: commandOf(setting, traits.slices, limit) +
      (traits.searched ? " --made-for " + data.madeFor : ""),
    status: describe(timeline)
  };
}

function numbersOf(t, limit) {
  var v = piecesPerMicrobatch(t);
  var peaks = t.peakActivations.map(function (peak) { return number(peak / v); });
  var verdict = "";
  if (limit) {
    var over = t.peakActivations.map(function (_, rank) { return rank; })
      .filter(function (rank) { return t.peakActivations[rank] / v > limit; });
    verdict = over.length ? "; over the limit of " + number(limit) + " on rank " + over.join(", ")
      : "; within the limit of " + number(limit);
  }
  return "<dl>" + [
    ["makespan", number(t.makespan, 6), "ideal " + number(t.ideal, 6) + ": the mean work of a rank"],
    ["bubble / makespan", percent(t.bubbleFraction),
      "idle share; " + percent(t.spanBubbleFraction) + " of the longest rank's span"],
    ["bubble / ideal", percent(t.bubbleOverIdeal),
      "idle over work, as in Megatron-LM; " + percent(t.spanBubbleOverIdeal) + " within that span"],
    ["peak activations", number(Math.max.apply(null, t.peakActivations) / v),
      "whole microbatches; from rank 0 on: " + peaks.join(", ") + verdict]
  ].map(function (row) {
    return "<div><dt>" + row[0] + '</dt><dd class="dl-value">' + row[1] + "</dd><dd>" + row[2] +
      "</dd></div>";
  }).join("") + "</dl>";
}

function comparison(data, s, timeline) {
  var formula = data.formulas[s.schedule], verdict;
  if (formula === undefined) { return ""; }
  var simulated = number(Math.max(timeline.makespan - timeline.ideal, 0));
  try {
    if (s.comm) { throw new Error("the formula needs comm=0; got comm=" + pythonFloat(s.comm)); }
    verdict = "gives " + number(bubbleTime[s.schedule](s, timeline.costs));
  } catch (error) {
    verdict = "does not apply: " + escapeQuotes(error.message);
  }
  var other = formula === data.formulas["1f1b"] ? "" : " 1F1B with free transfers would idle " +
    data.formulas["1f1b"] + " = " + number((s.p - 1) * (s.F + s.B)) + ".";
  return "<p>Idle time of a rank: " + simulated + " on average in this simulation; " +
    "the closed formula " + escapeQuotes(formula) + " " + verdict + "." + other + "</p>";
}

function escapeQuotes(text) {
  return escapeText(text).replace(/"/g, "&quot;").replace(/'/g, "&#x27;");
}

function ordersOf(timeline) {
  return timeline.rows.map(function (row, rank) {
    return "<p><b>rank " + rank + "</b> " + row.map(function (e) {
      return escapeText(e.name) + " (" + number(e.start) + " to " + number(e.end) +
        ")";
    }).join(", ") + "</p>";
  }).join("");
}

// Each time as it is to be written: the share of one action, exactly.
function timesOf(s, slices) {
  var pieces = s.v * slices, share = pieces > 1 ? "/" + pieces : "";
  var times = ["F", "B", "W"].filter(function (name) { return s[name] !== null; })
    .map(function (name) { return [name, number(s[name], 12) + share]; });
  return s.comm ? times.concat([["comm", number(s.comm, 12)]]) : times;
}

function callOf(s, slices, limit) {
  var option = "";
  if (s.option) {  // as Python writes it
    var at = s.option.indexOf("="), value = s.option.slice(at + 1);
    option = ", " + s.option.slice(0, at + 1) + (/^[0-9.]+$/.test(value) ? value
      : { "true": "True", "false": "False" }[value] || '"' + value + '"');
  }
  return 'simulate(build("' + s.schedule + '", p=' + s.p + ", m=" + s.m +
    (s.v > 1 ? ", v=" + s.v : "") + option +
    (limit ? ", mem_limit=" + number(limit.option, 12) : "") + "), Costs(" +
    timesOf(s, slices).map(function (time) { return time.join("="); }).join(", ") + "))";
}

function commandOf(s, slices, limit) {
  var words = ["distlearn schedule " + s.schedule + " -p " + s.p + " -m " + s.m];
  if (s.v > 1) { words.push("-v " + s.v); }
  if (s.option) { words.push("-o " + s.option); }
  if (limit) { words.push("-o mem_limit=" + number(limit.option, 12)); }
  timesOf(s, slices).forEach(function (time) {
    words.push((time[0].length > 1 ? "--" : "-") + time.join(" "));
  });
  return words.join(" ");
}
