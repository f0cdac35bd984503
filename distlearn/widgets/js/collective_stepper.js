// The static face of CollectiveStepper: reads its controls and shows a recorded step.

function numbersOfStep(one, step) {
  var now = mostSent(one, step), most = Math.max.apply(null, one.sent);
  return "<dl>" + [
    ["step", step + " of " + one.steps, "all messages of a step travel at once"],
    ["sent so far", now + " B", "by the busiest rank: " + number(now / BUFFER) +
      " of the buffer, which has " + BUFFER + " B"],
    ["sent in all", most + " B", number(most / BUFFER) + " of the buffer; the formula gives " +
      one.formula + " B"],
    ["result in place", completeCount(one, step) + " of " + resultParts(one),
      "parts, over all ranks"]
  ].map(function (row) {
    return "<div><dt>" + row[0] + '</dt><dd class="dl-value">' + row[1] + "</dd><dd>" + row[2] +
      "</dd></div>";
  }).join("") + "</dl>";
}

function holdingsOf(one, step) {
  return one.held[step].map(function (row, r) {
    return "<p><b>rank " + r + "</b> has sent " + sentBy(one, r, step) + " bytes; " +
      row.map(function (_, c) { return cellInWords(one, step, r, c); }).join("; ") + "</p>";
  }).join("");
}

function planCall(one) {
  var nodes = nodeCount(one) > 1 ? ", nodes=(" + one.nodes.join(", ") + ")" : "";
  return 'print(plan("' + one.operation + '", "' + one.algorithm + '", size=' + one.p + nodes + "))";
}

function mountCollectiveStepper(root, data) {
  function one(selector) { return root.querySelector(selector); }
  var operation = one("[name=operation]"), algorithm = one("[name=algorithm]");
  var ranks = one("[name=p]"), slider = one("[name=step]");
  var scroll = one(".dl-scroll"), pointed = one(".dl-pointed"), details = one("details");
  var words = one(".dl-words");
  var hint = pointed.textContent, buttons = {}, shown = null, frame = null, drawnWidth = 0;
  var pending = 0;
  Array.prototype.forEach.call(root.querySelectorAll("[data-go]"), function (button) {
    buttons[button.getAttribute("data-go")] = button;
  });

  function chooseAlgorithms() {
    var names = data.algorithms[operation.value], before = algorithm.value;
    algorithm.innerHTML = names.map(function (name) {
      return '<option value="' + name + '">' + name + "</option>";
    }).join("");
    algorithm.value = names.indexOf(before) >= 0 ? before : names[0];
  }

  // Take what the controls say; back to the start if the collective is another one.
  function choose() {
    var found = data.traces[operation.value][algorithm.value][ranks.value];
    var refused = typeof found === "string", message = one(".dl-message");
    player.stop();
    ranks.parentNode.querySelector("output").textContent = ranks.value;
    message.textContent = refused ? found : "";
    message.hidden = !refused;
    one(".dl-result").hidden = refused;
    shown = refused ? null : readTrace(found);
    words.style.minHeight = "";
    slider.max = refused ? 0 : shown.steps;
    slider.value = 0;
    show(false);
  }

  function show(moving) {
    var step = Number(slider.value);
    slider.parentNode.querySelector("output").textContent = step;
    slider.disabled = buttons.play.disabled = !shown;
    buttons.first.disabled = buttons.back.disabled = !shown || step === 0;
    buttons.next.disabled = buttons.last.disabled = !shown || step === shown.steps;
    announce();
    if (!shown) { return; }
    drawnWidth = scroll.clientWidth;
    var width = Math.max(Math.min(drawnWidth, 900), leastWidth(shown));
    frame = collectiveFrame(shown, width);
    scroll.innerHTML = collectiveSvg(shown, step, width, data.look);
    if (moving && step && !window.matchMedia("(prefers-reduced-motion: reduce)").matches) {
      sendPackets(step);
    }
    pointed.textContent = hint;
    one(".dl-numbers").innerHTML = numbersOfStep(shown, step);
    words.textContent = stepInWords(shown, step);
    words.style.minHeight = words.offsetHeight + "px";  // what is below stays where it is
    one(".dl-call code").textContent = planCall(shown);
    fillHoldings();
  }

  // A dot travels along each arrow of the step, once.
  function sendPackets(step) {
    var svg = scroll.firstElementChild;
    shown.messages[step - 1].forEach(function (m) {
      m.chunks.forEach(function (c) {
        var dot = document.createElementNS(svg.namespaceURI, "circle");
        var motion = document.createElementNS(svg.namespaceURI, "animateMotion");
        dot.setAttribute("class", "dl-packet");
        dot.setAttribute("r", "4");
        motion.setAttribute("dur", "0.9s");
        motion.setAttribute("path", arrowPath(m.source, m.dest, c, frame)[0]);
        dot.appendChild(motion);
        svg.appendChild(dot);
      });
    });
    setTimeout(function () {
      Array.prototype.forEach.call(svg.querySelectorAll(".dl-packet"), function (dot) {
        dot.remove();
      });
    }, 900);
  }

  function fillHoldings() {
    one(".dl-orders").innerHTML = details.open && shown ? holdingsOf(shown, Number(slider.value)) : "";
  }

  function announce() {  // what the reader settled on, not each step on the way
    clearTimeout(pending);
    if (!root.contains(document.activeElement)) { return; }
    pending = setTimeout(function () {
      one('[role="status"]').textContent = shown
        ? describeCollective(shown, Number(slider.value)) : one(".dl-message").textContent;
    }, 700);
  }

  function go(step, moving) {
    if (!shown || step < 0 || step > shown.steps) { return; }
    slider.value = step;
    show(moving);
  }

  var player = stepPlayer(root, buttons.play, function () {
    if (Number(slider.value) === shown.steps) { return false; }
    go(Number(slider.value) + 1, true);
    return true;
  }, function () { go(0, false); });

  var actions = {
    first: function () { go(0, false); },
    back: function () { go(Number(slider.value) - 1, false); },
    next: function () { go(Number(slider.value) + 1, true); },
    last: function () { go(shown.steps, false); }
  };
  Object.keys(actions).forEach(function (name) {
    buttons[name].addEventListener("click", function () { player.stop(); actions[name](); });
  });
  buttons.play.addEventListener("click", player.play);
  var keys = { ArrowLeft: "back", ArrowRight: "next", Home: "first", End: "last" };
  scroll.addEventListener("keydown", function (press) {
    if (!(press.key in keys) || press.altKey || press.ctrlKey || press.metaKey) { return; }
    press.preventDefault();
    player.stop();
    actions[keys[press.key]]();
  });
  slider.addEventListener("input", function () { player.stop(); show(false); });
  operation.addEventListener("input", function () { chooseAlgorithms(); choose(); });
  algorithm.addEventListener("input", choose);
  ranks.addEventListener("input", choose);

  function follow(move) {
    var box = scroll.firstElementChild.getBoundingClientRect();
    var x = move.clientX - box.left, y = move.clientY - box.top;
    for (var r = 0; r < shown.p; r += 1) {
      for (var c = 0; c < shown.chunks; c += 1) {
        if (x >= frame.x(c) && x <= frame.x(c) + frame.cell &&
            y >= frame.y(r) && y <= frame.y(r) + frame.cellHeight) {
          pointed.textContent = cellInWords(shown, Number(slider.value), r, c);
          return;
        }
      }
    }
    pointed.textContent = hint;
  }
  scroll.addEventListener("pointermove", follow);
  scroll.addEventListener("pointerdown", follow);
  scroll.addEventListener("pointerleave", function () { pointed.textContent = hint; });
  details.addEventListener("toggle", fillHoldings);
  one(".dl-call button").addEventListener("click", function () {
    var button = this;
    copyText(one(".dl-call code"), function (done) {
      button.textContent = done ? "copied" : "selected";
      setTimeout(function () { button.textContent = "copy"; }, 1500);
    });
  });
  if (window.ResizeObserver) {
    new ResizeObserver(function () {
      if (shown && scroll.clientWidth && scroll.clientWidth !== drawnWidth) {
        words.style.minHeight = "";
        show(false);
      }
    }).observe(scroll);
  }
  var first = Number(slider.value);
  choose();
  go(first, false);
}
