// The static face of PipelineExplorer: reads its controls, fills its places, follows the pointer.

function mountPipelineExplorer(root, data) {
  function one(selector) { return root.querySelector(selector); }
  var controls = Array.prototype.slice.call(root.querySelectorAll(".dl-controls [name]"));
  var scroll = one(".dl-scroll"), pointed = one(".dl-pointed"), details = one("details");
  var hint = pointed.textContent;
  var shown = null, frame = null, cursor = null, at = null, drawnWidth = 0, pending = 0;

  function settingNow() {
    var s = {};
    controls.forEach(function (control) {
      s[control.name] = isNaN(control.value) || control.name === "option" ? control.value
        : Number(control.value);
    });
    offerOptions(s.schedule);
    s.option = one('[name="option"]').value;
    var traits = traitsOf(data, s);
    controls.forEach(function (control) {
      control.disabled = traits[control.name] === false ||
        control.name === "option" && control.options.length === 1;
      var output = control.parentNode.querySelector("output");
      if (output) { output.textContent = control.disabled ? (control.name === "v" ? String(traits.fixed) : "–") :
        control.name === "limit" && control.value === "0" ? "none" : number(Number(control.value), 12); }
    });
    if (!traits.v) { s.v = traits.fixed; }
    if (!traits.W) { s.W = null; }
    return s;
  }

  // Fill the list of options when another schedule is chosen.
  function offerOptions(schedule) {
    var select = one('[name="option"]'), texts = ["none"].concat(data.variants[schedule]);
    var shown = Array.prototype.map.call(select.options, function (o) { return o.textContent; });
    if (shown.join() === texts.join()) { return; }
    select.textContent = "";
    texts.forEach(function (text, k) { select.add(new Option(text, k ? text : "")); });
  }

  function update(change) {
    var setting = settingNow();
    drawnWidth = scroll.clientWidth;
    var width = Math.max(drawnWidth, 320) * setting.zoom;
    var view = lookAt(data, setting, { width: width, tooltips: false });
    var message = one(".dl-message"), result = one(".dl-result");
    if (!view.message) {
      result.parentNode.style.minHeight = "";
    } else if (!result.hidden) {  // keep the page below from jumping
      result.parentNode.style.minHeight = result.offsetHeight + "px";
    }
    message.textContent = view.message;
    message.hidden = !view.message;
    result.hidden = Boolean(view.message);
    if (change) {  // announce what the reader settled on, not each step of a drag
      clearTimeout(pending);
      pending = setTimeout(function () { one('[role="status"]').textContent = view.status; }, 700);
    }
    if (view.message) { return; }
    shown = view.timeline;
    frame = frameOf(shown, data.look, true, null, width);
    // The page has the style sheet already; another one costs most of the time of a redraw.
    scroll.innerHTML = view.picture.replace("<style>" + data.look.style + "</style>\n", "");
    cursor = null;
    point(null);
    one(".dl-numbers").innerHTML = view.numbers;
    var calls = root.querySelectorAll(".dl-call code");
    calls[0].textContent = view.call;
    calls[1].textContent = view.command;
    fillOrders();
  }

  function fillOrders() {
    one(".dl-orders").innerHTML = details.open ? ordersOf(shown) : "";
  }

  // Mark an event and say what it is: event = {rank, index} in its row, or null.
  function point(place) {
    at = place;
    if (!place) {
      if (cursor) { cursor.setAttribute("visibility", "hidden"); }
      pointed.textContent = hint;
      return;
    }
    var event = shown.rows[place.rank][place.index];
    if (!cursor) {
      cursor = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      cursor.setAttribute("class", "dl-cursor");
      scroll.firstElementChild.appendChild(cursor);
    }
    cursor.setAttribute("visibility", "visible");
    cursor.setAttribute("x", frame.x(event.start));
    cursor.setAttribute("y", frame.y(event.rank));
    cursor.setAttribute("width", (event.end - event.start) * frame.scale);
    cursor.setAttribute("height", frame.row);
    pointed.textContent = event.name + ": " + event.parts.map(function (part) {
      return data.look.kinds[part.kind] + ", stage " + part.stage + ", microbatch " +
        part.microbatch + (part.slice === null ? "" : ", slice " + part.slice);
    }).join("; with ") + "; rank " + event.rank + ", from " + number(event.start) + " to " +
      number(event.end);
  }

  // The last event of a rank that has started at a time; null before the first.
  function indexAt(rank, time) {
    var row = shown.rows[rank], low = 0, high = row.length;
    while (low < high) {
      var middle = (low + high) >> 1;
      if (row[middle].start <= time) { low = middle + 1; } else { high = middle; }
    }
    return low - 1;
  }

  function follow(move) {
    var box = scroll.firstElementChild.getBoundingClientRect();
    var time = (move.clientX - box.left - frame.x(0)) / frame.scale;
    var rank = Math.floor((move.clientY - box.top - frame.top) / (frame.row + frame.gap));
    if (!(rank >= 0 && rank < shown.schedule.p)) { point(null); return; }
    var index = indexAt(rank, time);
    point(index >= 0 && time < shown.rows[rank][index].end ? { rank: rank, index: index } : null);
  }
  scroll.addEventListener("pointermove", follow);
  scroll.addEventListener("pointerdown", follow);
  scroll.addEventListener("pointerleave", function () { point(null); });
  scroll.addEventListener("blur", function () { point(null); });
  scroll.addEventListener("keydown", function (press) {
    var step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (!(press.key in step) || press.altKey || press.ctrlKey || press.metaKey) { return; }
    press.preventDefault();
    var down = step[press.key][0], on = step[press.key][1];
    if (!at) { point({ rank: 0, index: 0 }); return; }
    var rank = Math.min(Math.max(at.rank + down, 0), shown.schedule.p - 1);
    var start = shown.rows[at.rank][at.index].start;
    var index = down ? Math.max(indexAt(rank, start), 0) : at.index + on;
    point({ rank: rank, index: Math.min(Math.max(index, 0), shown.rows[rank].length - 1) });
    var x = frame.x(shown.rows[at.rank][at.index].start);
    if (x < scroll.scrollLeft + LEFT || x > scroll.scrollLeft + scroll.clientWidth - RIGHT) {
      scroll.scrollLeft = x - scroll.clientWidth / 2;
    }
  });

  controls.forEach(function (control) { control.addEventListener("input", update); });
  details.addEventListener("toggle", fillOrders);
  Array.prototype.forEach.call(root.querySelectorAll(".dl-call button"), function (button) {
    button.addEventListener("click", function () {
      copyText(button.parentNode.querySelector("code"), function (done) {
        button.textContent = done ? "copied" : "selected";
        setTimeout(function () { button.textContent = "copy"; }, 1500);
      });
    });
  });
  if (window.ResizeObserver) {
    new ResizeObserver(function () {
      if (scroll.clientWidth && scroll.clientWidth !== drawnWidth) { update(); }
    }).observe(scroll);
  }
  update();
}
