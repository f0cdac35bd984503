// What the explorers share: the twin of distlearn/widgets/panel.py, and pieces of their pictures.

// explorer: {
//   view(setting) -> {numbers: [[name, value, note], ...], words, message; disabled: [names] of
//     controls and most: {name: its largest value}, if need be},
//   picture(setting, view, width) -> svg,
//   key(setting, key) -> whether it means something; may change the setting,
//   pick(setting, what, number, point): somebody clicked an element with data-pick="what:number",
//   changed(setting, name): a control has changed; optional
//   shown(root, setting, view): all is drawn; optional
// }
function mountPanel(root, setting, explorer) {
  function one(selector) { return root.querySelector(selector); }
  var inputs = Array.prototype.slice.call(root.querySelectorAll("[name]"));
  var scroll = one(".dl-scroll"), drawnWidth = 0, pending = 0;

  function read(input) {
    if (input.type === "checkbox") { return input.checked; }
    return input.tagName === "SELECT" && typeof setting[input.name] === "string"
      ? input.value : Number(input.value);
  }

  function show() {
    var view = explorer.view(setting), off = view.disabled || [], message = one(".dl-message");
    inputs.forEach(function (input) {
      if (view.most && input.name in view.most) { input.max = view.most[input.name]; }
      if (input.type === "checkbox") { input.checked = setting[input.name]; }
      else if (document.activeElement !== input || input.type !== "number") {
        input.value = setting[input.name];
      }
      input.disabled = off.indexOf(input.name) >= 0;
      var output = input.parentNode.querySelector("output");
      if (output) { output.textContent = setting[input.name]; }
    });
    message.textContent = view.message || "";
    message.hidden = !view.message;
    drawnWidth = scroll.clientWidth;
    var left = scroll.scrollLeft;
    scroll.innerHTML = explorer.picture(setting, view, Math.max(280, Math.min(drawnWidth || 760, 900)));
    scroll.scrollLeft = left;
    one(".dl-numbers").innerHTML = "<dl>" + view.numbers.map(function (row) {
      return "<div><dt>" + escapeText(row[0]) + '</dt><dd class="dl-value">' + escapeText(row[1]) +
        "</dd><dd>" + escapeText(row[2]) + "</dd></div>";
    }).join("") + "</dl>";
    one(".dl-words").textContent = view.words;
    if (explorer.shown) { explorer.shown(root, setting, view); }
    clearTimeout(pending);
    if (!root.contains(document.activeElement)) { return; }
    pending = setTimeout(function () {  // what the reader settled on, not each step on the way
      one('[role="status"]').textContent = view.message || view.words;
    }, 700);
  }

  // Only panels with steps have the button; nothing glides.
  var play = one('[data-go="play"]');
  var player = stepPlayer(root, play, function () {
    var before = setting.step;
    explorer.key(setting, "ArrowRight");
    if (setting.step === before) { return false; }
    show();
    return true;
  }, function () {
    explorer.key(setting, "Home");
    show();
  });

  inputs.forEach(function (input) {
    input.addEventListener("input", function () {
      player.stop();
      var value = read(input);
      if (input.type === "number" && !(input.value !== "" && input.validity.valid)) { return; }
      setting[input.name] = value;
      if (explorer.changed) { explorer.changed(setting, input.name); }
      show();
    });
    if (input.type === "number") {  // what is typed and not allowed goes back when left
      input.addEventListener("blur", function () { input.value = setting[input.name]; });
    }
  });
  scroll.addEventListener("keydown", function (press) {
    if (press.altKey || press.ctrlKey || press.metaKey || !explorer.key(setting, press.key)) {
      return;
    }
    press.preventDefault();
    player.stop();
    show();
  });
  scroll.addEventListener("click", function (event) {
    var target = event.target.closest("[data-pick]");
    if (!target) { return; }
    var what = target.getAttribute("data-pick").split(":"), svg = scroll.firstElementChild;
    var corner = svg.getBoundingClientRect();
    explorer.pick(setting, what[0], Number(what[1]),
      [event.clientX - corner.left, event.clientY - corner.top]);
    show();
  });
  Array.prototype.forEach.call(root.querySelectorAll("[data-go]"), function (button) {
    button.addEventListener("click", function () {
      if (button === play) { player.play(); return; }
      player.stop();
      explorer.key(setting, button.getAttribute("data-go"));
      show();
    });
  });
  if (window.ResizeObserver) {
    new ResizeObserver(function () {
      if (scroll.clientWidth && scroll.clientWidth !== drawnWidth) { show(); }
    }).observe(scroll);
  }
  show();
}

function svgOf(width, height, words, parts) {
  return '<svg xmlns="http://www.w3.org/2000/svg" width="' + width + '" height="' + height +
    '" viewBox="0 0 ' + width + " " + height + '" role="img" aria-label="' +
    escapeText(words).replace(/"/g, "&quot;") + '">' + parts.join("") + "</svg>";
}

function boxOf(x, y, width, height, look, more) {
  return '<rect x="' + fixed(x, 2) + '" y="' + fixed(y, 2) + '" width="' + fixed(width, 2) +
    '" height="' + fixed(height, 2) + '" class="dl-' + look + '" ' + (more || "") + "/>";
}

function textOf(x, y, text, look, anchor) {
  return '<text x="' + fixed(x, 2) + '" y="' + fixed(y, 2) + '" class="dl-' + look +
    '" text-anchor="' + (anchor || "start") + '">' + escapeText(text) + "</text>";
}

// An index from 0 to most - 1 after an arrow key; rows of `across`.
function walk(index, key, across, most) {
  var next = index + { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across }[key];
  return next >= 0 && next < most ? next : index;
}

// Keys and buttons that go through steps.
function stepKey(setting, key, last) {
  var next = { ArrowLeft: setting.step - 1, ArrowRight: setting.step + 1, Home: 0, End: last }[key];
  if (next === undefined) { return false; }
  setting.step = Math.max(0, Math.min(last, next));
  return true;
}

// The 32 lanes of a warp as boxes to click, in one row or two; look(lane) colours them.
function laneBoxes(width, top, chosen, look) {
  var across = width < 560 ? 16 : 32, cell = (width - 2) / across, high = 24, parts = [];
  for (var lane = 0; lane < 32; lane += 1) {
    var x = 1 + lane % across * cell, y = top + Math.floor(lane / across) * (high + 3);
    parts.push(boxOf(x, y, cell - 1, high, look(lane), 'data-pick="lane:' + lane + '"'),
      '<g pointer-events="none">' +
      textOf(x + (cell - 1) / 2, y + 16, lane, look(lane) === "idle" ? "text dl-small"
        : look(lane) + "t dl-small", "middle") + "</g>");
    if (lane === chosen) { parts.push(boxOf(x, y, cell - 1, high, "chosen")); }
  }
  return { parts: parts, bottom: top + 32 / across * (high + 3) };
}

// English: 1 sector, 2 sectors.
function counted(n, word) { return n + " " + word + (n === 1 ? "" : "s"); }
