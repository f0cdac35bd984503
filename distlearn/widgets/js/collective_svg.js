// A step of a collective as SVG and in words: the twin of distlearn/plots/collective_svg.py and
// collective_trace.py, which say what is drawn and why. Nothing is computed here but places.
// one: a trace as CollectiveStepper.static_data wrote it. look: {style, attributes, collective}.

var RIGHT_SIDE = 74, TOP_SIDE = 26, BUFFER = 840;
var COLLECTIVE_LEGEND = [
  ["F", "part of rank i"], ["new", "arrived in this step"], ["off", "not here"], ["done", "final"],
  ["add", "sent and added"], ["copy", "sent and stored"]
];

// Messages by name, and held[step][rank][chunk] as bits, from the short form on the page.
function readTrace(short) {
  var one = Object.assign({}, short);
  one.steps = short.messages.length;
  one.messages = short.messages.map(function (step) {
    return step.map(function (m) {
      return { source: m[0], dest: m[1], chunks: m[2], reduce: m[3] === 1, nbytes: m[4] };
    });
  });
  one.held = short.held.map(function (text) {
    var ranks = [];
    for (var r = 0; r < one.p; r += 1) {
      ranks.push([]);
      for (var c = 0; c < one.chunks; c += 1) {
        var at = 2 * (r * one.chunks + c);
        ranks[r].push(parseInt(text.slice(at, at + 2), 16));
      }
    }
    return ranks;
  });
  return one;
}

function ranksIn(bits) {
  return [0, 1, 2, 3, 4, 5, 6, 7].filter(function (rank) { return bits >> rank & 1; });
}

function wantedIn(one, chunk) {
  return one.held[0].reduce(function (bits, rank) { return bits | rank[chunk]; }, 0);
}

function isComplete(one, step, rank, chunk) {
  return one.final[rank].indexOf(chunk) >= 0 && one.held[step][rank][chunk] === wantedIn(one, chunk);
}

function completeCount(one, step) {
  var count = 0;
  one.final.forEach(function (chunks, rank) {
    chunks.forEach(function (c) { count += isComplete(one, step, rank, c) ? 1 : 0; });
  });
  return count;
}

function resultParts(one) {
  return one.final.reduce(function (sum, chunks) { return sum + chunks.length; }, 0);
}

function sentBy(one, rank, step) {
  var sum = 0;
  one.messages.slice(0, step).forEach(function (messages) {
    messages.forEach(function (m) { sum += m.source === rank ? m.nbytes : 0; });
  });
  return sum;
}

function mostSent(one, step) {
  return Math.max.apply(null, one.held[0].map(function (_, rank) { return sentBy(one, rank, step); }));
}

function chunksInWords(chunks) {
  if (chunks.length === 1) { return "chunk " + chunks[0]; }
  var first = chunks[0], last = chunks[chunks.length - 1];
  if (chunks.length > 2 && last - first === chunks.length - 1) {
    return "chunks " + first + " to " + last;
  }
  return "chunks " + chunks.join(", ");
}

function stepInWords(one, step) {
  if (step === 0) {
    return "Start of " + one.operation + " by " + one.algorithm + " on " + one.p +
      " ranks: nothing was sent yet.";
  }
  return "Step " + step + " of " + one.steps + ": " + one.messages[step - 1].map(function (m) {
    return "rank " + m.source + " sends " + chunksInWords(m.chunks) + " to rank " + m.dest +
      (m.reduce ? ", added there" : "");
  }).join("; ") + ".";
}

function cellInWords(one, step, rank, chunk) {
  var names = ranksIn(one.held[step][rank][chunk]);
  return "chunk " + chunk + " on rank " + rank + ": " + (names.length === 0 ? "nothing"
    : "from rank" + (names.length > 1 ? "s" : "") + " " + names.join(", ") +
      (isComplete(one, step, rank, chunk) ? ", complete" : ""));
}

function describeCollective(one, step) {
  var most = mostSent(one, step);
  return stepInWords(one, step) + " The busiest rank has sent " + most + " bytes, " +
    number(most / BUFFER) + " of the buffer. " + completeCount(one, step) + " of " +
    resultParts(one) + " parts of the result are in place.";
}

function nodeCount(one) { return one.nodes[one.p - 1] + 1; }

function leftSide(one) { return nodeCount(one) > 1 ? 68 : 50; }

function mostContributors(one) {
  return Math.max.apply(null, one.held[0][0].map(function (_, c) {
    return ranksIn(wantedIn(one, c)).length;
  }));
}

function leastWidth(one) {
  var per = mostContributors(one);
  var columns = per <= 4 ? per : Math.ceil(per / 2);
  return leftSide(one) + RIGHT_SIDE + one.chunks * (columns * 9 + 14);
}

function collectiveFrame(one, width) {
  var left = leftSide(one), per = mostContributors(one);
  var column = Math.floor((width - left - RIGHT_SIDE) / one.chunks);
  var room = column - 2 * Math.max(5, Math.min(44, Math.floor(column / 7))) - 4;
  var across = per <= 2 || Math.floor(room / per) >= 12 ? per : Math.ceil(per / 2);
  var pip = Math.min(22, Math.floor(room / across));
  var down = Math.ceil(per / across), cell = across * pip + 4, pitch = down * pip + 24;
  var nodeGap = nodeCount(one) > 1 ? 12 : 0;
  return {
    width: width, left: left, column: column, cell: cell, cellHeight: down * pip + 4, pip: pip,
    across: across, height: TOP_SIDE + one.p * pitch + (nodeCount(one) - 1) * nodeGap,
    x: function (chunk) { return left + chunk * column + Math.floor((column - cell) / 2); },
    y: function (rank) { return TOP_SIDE + rank * pitch + one.nodes[rank] * nodeGap; }
  };
}

function collectiveSvg(one, step, width, look) {
  var frame = collectiveFrame(one, width), legend = collectiveLegend(frame.height, width, look);
  var size = 'width="' + width + '" height="' + legend.height + '"';
  return [
    '<svg xmlns="http://www.w3.org/2000/svg" class="dl-svg" role="img" ' + size + ' viewBox="0 0 ' +
      width + " " + legend.height + '" font-family="system-ui, sans-serif" font-size="12">',
    "<title>" + one.operation + " by " + one.algorithm + "</title>",
    "<desc>" + describeCollective(one, step) + "</desc>",
    "<rect" + look.attributes.bg + " " + size + "/>"
  ].concat(
    collectiveLabels(one, step, frame, look), collectiveCells(one, step, frame, look),
    collectiveArrows(one, step, frame, look), legend.parts, ["</svg>"]
  ).join("\n");
}

function collectiveLabels(one, step, frame, look) {
  var middle = Math.floor(frame.cellHeight / 2), most = Math.max.apply(null, one.sent);
  var ranks = one.held[0].map(function (_, rank) { return rank; });
  var parts = ["<g" + look.attributes.text + ">"];
  ranks.forEach(function (r) {
    parts.push('<text x="' + (frame.left - 8) + '" y="' + (frame.y(r) + middle + 4) +
      '" text-anchor="end">rank ' + r + "</text>");
  });
  ranks.forEach(function (r) {
    parts.push('<text x="' + (frame.width - 6) + '" y="' + (frame.y(r) + middle - 1) +
      '" text-anchor="end">' + sentBy(one, r, step) + " B</text>");
  });
  parts.push("</g>", "<g" + look.attributes.muted + ' font-size="11">',
    '<text x="' + (frame.width - 6) + '" y="16" text-anchor="end">sent</text>');
  for (var c = 0; c < one.chunks; c += 1) {
    var name = one.chunks === 1 ? "whole buffer" : frame.column >= 56 ? "chunk " + c : String(c);
    parts.push('<text x="' + (frame.x(c) + Math.floor(frame.cell / 2)) +
      '" y="16" text-anchor="middle">' + name + "</text>");
  }
  for (var node = 0; nodeCount(one) > 1 && node < nodeCount(one); node += 1) {
    var top = frame.y(one.nodes.indexOf(node));
    var below = frame.y(one.nodes.lastIndexOf(node)) + frame.cellHeight;
    parts.push('<rect x="2" y="' + top + '" width="3" height="' + (below - top) + '"/>',
      '<text transform="translate(16 ' + Math.floor((top + below) / 2) +
      ') rotate(-90)" text-anchor="middle">node ' + node + "</text>");
  }
  parts.push("</g>", "<g" + look.attributes.F0 + ">");
  ranks.forEach(function (r) {
    var sent = sentBy(one, r, step);
    if (sent) {
      parts.push('<rect x="' + (frame.width - 62) + '" y="' + (frame.y(r) + middle + 5) +
        '" width="' + Math.floor(56 * sent / most) + '" height="4"/>');
    }
  });
  parts.push("</g>");
  return parts;
}

function collectiveCells(one, step, frame, look) {
  var messages = step ? one.messages[step - 1] : [];
  var boxes = { off: [], F: [], "new": [] }, digits = { off: [], F: [], "new": [] };
  var grounds = [], outlines = [];
  function copied(r, c) {
    return messages.some(function (m) {
      return !m.reduce && m.dest === r && m.chunks.indexOf(c) >= 0;
    });
  }
  one.held[step].forEach(function (row, r) {
    row.forEach(function (bits, c) {
      var x = frame.x(c), y = frame.y(r);
      var before = !step || copied(r, c) ? 0 : one.held[step - 1][r][c];
      grounds.push('<rect x="' + x + '" y="' + y + '" width="' + frame.cell + '" height="' +
        frame.cellHeight + '" rx="3"/>');
      ranksIn(wantedIn(one, c)).forEach(function (rank, k) {
        var kind = !(bits >> rank & 1) ? "off" : !step || before >> rank & 1 ? "F" : "new";
        var px = x + 2 + k % frame.across * frame.pip;
        var py = y + 2 + Math.floor(k / frame.across) * frame.pip;
        boxes[kind].push('<rect x="' + (px + 1) + '" y="' + (py + 1) + '" width="' +
          (frame.pip - 2) + '" height="' + (frame.pip - 2) + '" rx="2"/>');
        digits[kind].push('<text x="' + (px + Math.floor(frame.pip / 2)) + '" y="' +
          (py + Math.floor(frame.pip / 2) + 4) + '">' + rank + "</text>");
      });
      if (isComplete(one, step, r, c)) {
        outlines.push('<rect x="' + (x - 2) + '" y="' + (y - 2) + '" width="' + (frame.cell + 4) +
          '" height="' + (frame.cellHeight + 4) + '" rx="4"/>');
      }
    });
  });
  var parts = ["<g" + look.attributes.idle + ">"].concat(grounds, ["</g>"]);
  var shapes = { off: look.collective.off, F: look.attributes.F0, "new": look.collective["new"] };
  var inks = { off: look.attributes.muted, F: look.attributes.F0t, "new": look.collective.newt };
  Object.keys(boxes).forEach(function (kind) {
    parts = parts.concat(["<g" + shapes[kind] + ">"], boxes[kind], ["</g>"]);
  });
  if (frame.pip >= 11) {
    Object.keys(digits).forEach(function (kind) {
      parts = parts.concat(["<g" + inks[kind] + ' font-size="' + (frame.pip >= 15 ? 11 : 9) +
        '" text-anchor="middle">'], digits[kind], ["</g>"]);
    });
  }
  return parts.concat(["<g" + look.collective.done + ">"], outlines, ["</g>"]);
}

function collectiveArrows(one, step, frame, look) {
  var lines = { add: [], copy: [] }, heads = [], parts = [];
  (step ? one.messages[step - 1] : []).forEach(function (m) {
    m.chunks.forEach(function (c) {
      var arrow = arrowPath(m.source, m.dest, c, frame);
      lines[m.reduce ? "add" : "copy"].push('<path d="' + arrow[0] + '"/>');
      heads.push('<path d="' + arrow[1] + '"/>');
    });
  });
  Object.keys(lines).forEach(function (kind) {
    parts = parts.concat(["<g" + look.collective[kind] + ">"], lines[kind], ["</g>"]);
  });
  return parts.concat(["<g" + look.attributes.text + ">"], heads, ["</g>"]);
}

function arrowPath(source, dest, chunk, frame) {
  var x = frame.x(chunk), start = frame.y(source), end = frame.y(dest);
  var down = dest > source ? 1 : -1, far = Math.abs(dest - source);
  if (far === 1) {
    var at = x + Math.floor(down > 0 ? frame.cell * 2 / 3 : frame.cell / 3);
    start += down > 0 ? frame.cellHeight + 3 : -3;
    end += down > 0 ? -3 : frame.cellHeight + 3;
    return ["M" + at + " " + start + "V" + (end - 6 * down),
      "M" + at + " " + end + "l-4 " + -7 * down + "h8z"];
  }
  var bulge = down * Math.max(9, Math.min(Math.floor((frame.column - frame.cell) * 2 / 3),
    8 + 5 * far));
  var side = x + (down > 0 ? frame.cell + 2 : -2), middle = Math.floor(frame.cellHeight / 2);
  start += middle + 3 * down;
  end += middle - 3 * down;
  return ["M" + side + " " + start + "C" + (side + bulge) + " " + start + " " + (side + bulge) +
    " " + end + " " + (side + 5 * down) + " " + end,
  "M" + side + " " + end + "l" + 7 * down + " -4v8z"];
}

function collectiveLegend(top, width, look) {
  var x = 8, y = top + 8, parts = [];
  COLLECTIVE_LEGEND.forEach(function (entry) {
    var kind = entry[0], wide = 30 + 7 * entry[1].length;
    if (x > 8 && x + wide > width) { x = 8; y += 20; }
    var shape = kind === "add" || kind === "copy" ? '<path d="M' + x + " " + (y + 6) + 'h16"/>'
      : '<rect x="' + (x + 2) + '" y="' + y + '" width="12" height="12" rx="2"/>';
    parts.push("<g" + (kind === "F" ? look.attributes.F0 : look.collective[kind]) + ">" + shape +
      "</g>", "<text" + look.attributes.text + ' x="' + (x + 22) + '" y="' + (y + 10) + '">' +
      entry[1] + "</text>");
    x += wide;
  });
  return { parts: parts, height: y + 24 };
}
