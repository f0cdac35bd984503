// The face of WarpStepper: shows recorded steps.

var OPERATIONS = { R: "reads", W: "writes", A: "changes" };

// Put back into each step what has not changed since the one before.
function unpackRecording(data) {
  var before = { registers: {}, shared: {} };
  data.steps.forEach(function (step) {
    ["registers", "shared"].forEach(function (kind) {
      step[kind] = before[kind] = Object.assign({}, before[kind], step[kind]);
    });
  });
}

function warpView(recordings, setting) {
  var data = recordings[setting.kernel], lane = setting.lane, last = data.steps.length - 1;
  var step = data.steps[setting.step], active = step.lanes.indexOf(lane) >= 0, mask = 0;
  step.lanes.forEach(function (n) { mask += Math.pow(2, n); });
  var held = Object.keys(step.registers).filter(function (name) {
    return step.registers[name][lane] !== null;
  }).map(function (name) { return name + " = " + step.registers[name][lane]; }).join("; ");
  var touched = step.touches.filter(function (t) { return t[0] === lane; }).map(function (t) {
    return OPERATIONS[t[1]] + " " + t[2] + "[" + t[3] + "]";
  }).join(", ");
  var where = step.line
    ? "before line " + step.line + ": " + data.source[step.line - data.first].trim() + "."
    : data.complete ? "at the end." : "where the recording stops.";
  var of = step.lanes.length + " of " + data.threads;
  return {
    data: data,
    step: step,
    before: setting.step ? data.steps[setting.step - 1] : null,
    most: { step: last, lane: data.threads - 1 },
    numbers: [
      ["step", setting.step + " of " + last, "statements of the warp"],
      ["active lanes", of, "mask 0x" + mask.toString(16).toUpperCase().padStart(8, "0")],
      ["lane " + lane, active ? "active" : "off", touched || "touches no memory"]
    ],
    words: "Step " + setting.step + " of " + last + ", " + where + " " + of +
      " lanes active. Lane " + lane + " " +
      (active ? "takes part" : step.line ? "is masked off" : "is done") + ": " +
      (held || "no registers yet") + ".",
    message: setting.step === last ? data.error : ""
  };
}

// A grid of values; look(i) is the colour of a box, frame(i) whether this step touches it.
function valueBoxes(values, top, width, across, look, more) {
  var cell = (width - 2) / across, parts = [];
  values.forEach(function (value, i) {
    var x = 1 + i % across * cell, y = top + Math.floor(i / across) * 20, kind = look(i);
    parts.push(boxOf(x, y, cell - 1, 18, kind, more ? more(i) : ""));
    if (value !== null && String(value).length * 5.7 <= cell - 1) {
      parts.push('<g pointer-events="none">' + textOf(x + (cell - 1) / 2, y + 13, value,
        (kind === "idle" || kind === "over" ? "text" : kind + "t") + " dl-small", "middle") + "</g>");
    }
  });
  return { parts: parts, bottom: top + Math.ceil(values.length / across) * 20 };
}

function warpPicture(setting, view, width) {
  var step = view.step, before = view.before, y = 30;
  var across = width < 560 ? 16 : 32, cell = (width - 2) / across;
  var lanes = laneBoxes(width, 16, setting.lane, function (lane) {
    return step.lanes.indexOf(lane) >= 0 ? "F0" : "idle";
  });
  var parts = [textOf(1, 11, "lanes", "muted")].concat(lanes.parts);
  y = lanes.bottom + 14;
  Object.keys(step.registers).forEach(function (name) {
    var values = step.registers[name], old = before ? before.registers[name] : null;
    var row = valueBoxes(values, y + 4, width, across, function (i) {
      return values[i] === null ? "over" : old && old[i] === values[i] ? "idle" : "F2";
    }, function (i) { return 'data-pick="lane:' + i + '"'; });
    parts.push(textOf(1, y, name, "text"));
    parts = parts.concat(row.parts);
    for (var r = 0; r < 32 / across; r += 1) {
      if (Math.floor(setting.lane / across) === r) {
        parts.push(boxOf(1 + setting.lane % across * cell, y + 4 + r * 20, cell - 1, 18, "chosen"));
      }
    }
    y = row.bottom + 16;
  });
  Object.keys(step.shared).forEach(function (name) {
    var values = step.shared[name], most = 0;
    values.forEach(function (v) { most = Math.max(most, Math.abs(Number(v)) || 0); });
    parts.push(textOf(1, y, name + ", shared by the block: the fuller, the larger", "text"));
    values.forEach(function (value, i) {  // heat as a level in the box: text stays readable
      var x = 1 + i % across * cell, top = y + 4 + Math.floor(i / across) * 20;
      var share = most ? Math.abs(Number(value) || 0) / most : 0;
      parts.push(boxOf(x, top, cell - 1, 18, value === null ? "over" : "idle"),
        boxOf(x, top + 18 * (1 - share), cell - 1, 18 * share, "heat"));
    });
    var texts = valueBoxes(values, y + 4, width, across, function () { return "clear"; });
    parts = parts.concat(texts.parts.map(function (part) {
      return part.replace("dl-cleart", "dl-text");
    }));
    step.touches.forEach(function (t) {
      if (t[2] !== name) { return; }
      parts.push(boxOf(1 + t[3] % across * cell, y + 4 + Math.floor(t[3] / across) * 20, cell - 1,
        18, t[1] === "R" ? "read" : "wrote"));
    });
    y = texts.bottom + 16;
  });
  return svgOf(width, y - 8, view.words, parts);
}

function mountWarpStepper(root, data) {
  var shown = "";
  Object.keys(data.recordings).forEach(function (name) {
    unpackRecording(data.recordings[name]);
  });
  mountPanel(root, data.setting, {
    view: function (setting) { return warpView(data.recordings, setting); },
    picture: warpPicture,
    key: function (setting, key) {
      var one = data.recordings[setting.kernel];
      if (key === "ArrowUp" || key === "ArrowDown") {
        var next = setting.lane + (key === "ArrowUp" ? -1 : 1);
        setting.lane = Math.max(0, Math.min(one.threads - 1, next));
        return true;
      }
      return stepKey(setting, key, one.steps.length - 1);
    },
    pick: function (setting, what, number) {
      setting.lane = Math.min(number, data.recordings[setting.kernel].threads - 1);
    },
    changed: function (setting, name) {
      if (name === "kernel") { setting.step = 0; setting.lane = 0; }
    },
    shown: function (face, setting, view) {
      var listing = face.querySelector(".dl-source"), first = view.data.first;
      if (shown !== setting.kernel) {
        listing.innerHTML = view.data.source.map(function (line, i) {
          return "<span>" + String(first + i).padStart(4) + " " + escapeText(line) + "\n</span>";
        }).join("");
        shown = setting.kernel;
      }
      Array.prototype.forEach.call(listing.children, function (line, i) {
        var now = first + i === view.step.line;
        line.className = now ? "dl-now" : "";
        if (now) { line.setAttribute("aria-current", "step"); }
        else { line.removeAttribute("aria-current"); }
      });
    }
  });
}
