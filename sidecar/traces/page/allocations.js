// Single allocations over time: each is a band as high as its bytes, on top of those that were there before it. What is
// freed below lets it sink. The rest, too small to be told apart, is on top. Texts of the snapshot are only ever set as text.
(() => {
  "use strict";
  const root = document.querySelector(".alloc");
  const data = JSON.parse(document.getElementById("allocations").textContent);
  const canvas = root.querySelector("canvas");
  const [now, is, alive] = [".now", ".is", ".alive"].map((name) => root.querySelector(name));
  const { bands, stacks, frames, categories, at, total, reserved, rest, events, timed } = data;
  const [FROM, TO, WHEN, UNTIL, SIZE, ADDRESS, STACK, CATEGORY] = [0, 1, 2, 3, 4, 5, 6, 7];

  // Time is in µs, or where none was recorded in events.
  const last = timed ? Math.max(data.times[at.length - 1], 1) : Math.max(events, 1);
  const moments = timed ? data.times : at;
  const beginOf = (b) => (timed ? Math.max(b[WHEN], 0) : Math.max(b[FROM], 0));
  const endOf = (b) => (b[TO] >= events ? last : timed ? b[UNTIL] : b[TO]);

  const bytes = (n) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    for (; Math.abs(n) >= 1024 && unit < 4; unit++) n /= 1024;
    return `${n >= 100 || unit === 0 ? Math.round(n) : n.toPrecision(3)} ${units[unit]}`;
  };
  const time = (t) => {
    if (!timed) return `event ${Math.round(t)}`;
    if (t >= 1e6) return `${(t / 1e6).toPrecision(4)} s`;
    return t >= 1e3 ? `${(t / 1e3).toPrecision(4)} ms` : `${Math.round(t)} µs`;
  };

  // The offsets of a band: pairs of a time and the bytes below it from then on.
  const paths = bands.map(() => []);
  const tops = []; // pairs of a time and the bytes of all bands from then on
  {
    const changes = bands.flatMap((b, i) => [[b[FROM], 1, i], [b[TO], 0, i]]).sort((x, y) => x[0] - y[0] || x[1] - y[1]);
    const live = [];
    let height = 0;
    for (const [event, begins, i] of changes) {
      if (event >= events) break;
      const b = bands[i];
      const t = begins ? beginOf(b) : endOf(b);
      if (begins) {
        paths[i].push(t, height);
        live.push(i);
        height += b[SIZE];
      } else {
        const place = live.indexOf(i);
        live.splice(place, 1);
        for (const above of live.slice(place)) {
          const path = paths[above];
          path.push(t, path[path.length - 1] - b[SIZE]);
        }
        height -= b[SIZE];
      }
      tops.push(t, height);
    }
  }
  // The value of such pairs at a time.
  const valueAt = (path, t) => {
    let [low, high] = [0, path.length / 2];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (path[2 * middle] <= t) low = middle + 1;
      else high = middle;
    }
    return low ? path[2 * low - 1] : 0;
  };
  const momentAt = (t) => {
    let [low, high] = [0, moments.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (moments[middle] <= t) low = middle;
      else high = middle - 1;
    }
    return low;
  };

  let [from, to] = [0, last];
  let [pointed, pinned, cursor, drag] = [-1, -1, null, null];
  const room = { left: 76, right: 12, top: 8, bottom: 24 };
  let [width, height, most] = [0, 0, 1];
  const x = (t) => room.left + ((t - from) / (to - from)) * (width - room.left - room.right);
  const y = (n) => height - room.bottom - (n / most) * (height - room.top - room.bottom);
  const timeOf = (px) => from + ((px - room.left) / (width - room.left - room.right)) * (to - from);
  const bytesOf = (py) => ((height - room.bottom - py) / (height - room.top - room.bottom)) * most;

  function outline(paint, i) {
    const b = bands[i];
    const path = paths[i];
    const end = Math.min(endOf(b), to);
    paint.beginPath();
    let below = valueAt(path, from);
    let t = Math.max(beginOf(b), from);
    if (t > from) below = path[1];
    const steps = [[t, below]];
    for (let k = 0; k < path.length; k += 2) if (path[k] > t && path[k] < end) steps.push([path[k], path[k + 1]]);
    steps.push([end, steps[steps.length - 1][1]]);
    paint.moveTo(x(steps[0][0]), y(steps[0][1]));
    for (let k = 1; k < steps.length; k++) {
      paint.lineTo(x(steps[k][0]), y(steps[k - 1][1]));
      paint.lineTo(x(steps[k][0]), y(steps[k][1]));
    }
    for (let k = steps.length - 1; k > 0; k--) {
      paint.lineTo(x(steps[k][0]), y(steps[k - 1][1] + b[SIZE]));
      paint.lineTo(x(steps[k - 1][0]), y(steps[k - 1][1] + b[SIZE]));
    }
    paint.closePath();
  }

  const inWindow = (b) => beginOf(b) <= to && endOf(b) >= from;

  function draw() {
    const scale = window.devicePixelRatio || 1;
    [width, height] = [canvas.clientWidth, canvas.clientHeight];
    canvas.width = width * scale;
    canvas.height = height * scale;
    const paint = canvas.getContext("2d");
    paint.scale(scale, scale);
    const style = getComputedStyle(root);
    const colour = (name) => style.getPropertyValue(name).trim();
    const text = colour("--dim");
    most = 1;
    for (let k = momentAt(from); k <= Math.min(momentAt(to) + 1, at.length - 1); k++) most = Math.max(most, total[k]);
    for (let k = 0; k < tops.length; k += 2) if (tops[k] >= from && tops[k] <= to) most = Math.max(most, tops[k + 1]);
    most *= 1.05;
    paint.font = "12px system-ui,sans-serif";
    paint.fillStyle = text;
    paint.textAlign = "right";
    for (let k = 0; k <= 4; k++) paint.fillText(bytes((most * k) / 4), room.left - 6, y((most * k) / 4) + 4);
    paint.textAlign = "center";
    for (let k = 0; k <= 4; k++) {
      paint.textAlign = ["left", "center", "center", "center", "right"][k];
      paint.fillText(time(from + ((to - from) * k) / 4), x(from + ((to - from) * k) / 4), height - 6);
    }
    paint.save();
    paint.beginPath();
    paint.rect(room.left, 0, width - room.left - room.right, height - room.bottom);
    paint.clip();
    // The rest, from the bands up to all.
    paint.fillStyle = colour("--soft");
    paint.strokeStyle = text;
    paint.beginPath();
    paint.moveTo(x(moments[0]), y(0));
    moments.forEach((t, k) => paint.lineTo(x(t), y(total[k])));
    paint.lineTo(x(moments[moments.length - 1]), y(0));
    paint.fill();
    paint.lineWidth = 0.5;
    const chosen = pinned >= 0 ? bands[pinned][STACK] : -1;
    paint.strokeStyle = colour("--ground");
    bands.forEach((b, i) => {
      if (!inWindow(b) || (b[SIZE] / most) * height < 0.05) return;
      paint.globalAlpha = chosen >= 0 && b[STACK] !== chosen ? 0.2 : i % 2 ? 0.82 : 1;
      paint.fillStyle = colour(`--c${b[CATEGORY]}`);
      outline(paint, i);
      paint.fill();
      if ((b[SIZE] / most) * height > 2) paint.stroke();
    });
    paint.globalAlpha = 1;
    for (const i of [pinned, pointed]) {
      if (i < 0) continue;
      outline(paint, i);
      paint.strokeStyle = colour("--text");
      paint.lineWidth = 1.5;
      paint.stroke();
    }
    if (cursor !== null) {
      paint.strokeStyle = text;
      paint.lineWidth = 0.5;
      paint.strokeRect(x(cursor), 0, 0, height - room.bottom);
    }
    if (drag !== null && cursor !== null) {
      paint.globalAlpha = 0.2;
      paint.fillStyle = text;
      paint.fillRect(x(Math.min(drag, cursor)), 0, Math.abs(x(drag) - x(cursor)), height - room.bottom);
    }
    paint.restore();
  }

  const element = (name, content) => {
    const made = document.createElement(name);
    made.textContent = content;
    return made;
  };

  // What there is at a time: sums are those of the moment before, allocations are exact.
  function moment(t) {
    const k = momentAt(t);
    const sums = [...rest[k]];
    for (const b of bands) if (b[FROM] <= at[k] && at[k] < b[TO]) sums[b[CATEGORY]] += b[SIZE];
    now.textContent = `at ${time(moments[k])}: `;
    now.append(element("b", `${bytes(total[k])} allocated`), ` of ${bytes(reserved[k])} reserved`);
    const order = sums.map((n, c) => [n, c]).filter(([n]) => n > 0).sort((p, q) => q[0] - p[0]);
    for (const [n, c] of order) {
      const key = element("i", "");
      key.style.background = getComputedStyle(root).getPropertyValue(`--c${c}`);
      now.append(key, `${categories[c]} ${bytes(n)}`);
    }
  }

  function describe(i) {
    is.replaceChildren();
    if (i < 0) {
      is.append(element("span", "Point at an allocation for its stack; a click keeps it and shows all of the same stack. Drag to zoom, double-click or Escape to see all; arrow keys go to the next one."));
      return;
    }
    const b = bands[i];
    const stack = stacks[b[STACK]];
    const head = element("b", `${bytes(b[SIZE])} ${categories[b[CATEGORY]]}, ${stack.place}`);
    const came = b[FROM] < 0 ? "allocated before the history" : `allocated at ${time(beginOf(b))}`;
    const length = endOf(b) - beginOf(b);
    const went = b[TO] >= events ? "still held at the end" : `freed ${timed ? `${time(length)} later` : `at event ${b[TO]}`}`;
    const same = bands.filter((other) => other[STACK] === b[STACK]);
    const facts = `${came}, ${went}, at 0x${b[ADDRESS].toString(16)}; ${same.length} of this stack, ${bytes(same.reduce((sum, o) => sum + o[SIZE], 0))} in all`;
    const list = document.createElement("ol");
    for (const f of stack.frames) list.append(element("li", frames[f]));
    if (stack.more) list.append(element("li", `… ${stack.more} more`));
    if (!stack.frames.length) list.append(element("li", "(no stack recorded)"));
    is.append(head, document.createElement("br"), element("span", facts), list);
  }

  // The stacks that had most in what is in view.
  function listAlive() {
    const by = new Map();
    for (const b of bands) {
      if (!inWindow(b)) continue;
      const sum = by.get(b[STACK]) || { bytes: 0, count: 0, category: b[CATEGORY] };
      sum.bytes += b[SIZE];
      sum.count++;
      by.set(b[STACK], sum);
    }
    const rows = [...by].sort((p, q) => q[1].bytes - p[1].bytes).slice(0, 20);
    const table = document.createElement("table");
    const row = (cell, ...values) => {
      const made = document.createElement("tr");
      values.forEach((value, n) => {
        const one = element(cell, value);
        if (n < 2) one.className = "n";
        made.append(one);
      });
      table.append(made);
    };
    row("th", "allocated", "times", "category", "by");
    for (const [stack, sum] of rows) row("td", bytes(sum.bytes), String(sum.count), categories[sum.category], stacks[stack].place);
    const where = from === 0 && to === last ? "in all" : `between ${time(from)} and ${time(to)}`;
    alive.replaceChildren(element("p", `There ${where}, by stack:`), table);
    alive.firstChild.className = "dim";
  }

  const bandAt = (t, n) => {
    for (let i = bands.length - 1; i >= 0; i--) {
      const b = bands[i];
      if (beginOf(b) > t || endOf(b) < t || !paths[i].length) continue;
      const below = valueAt(paths[i], t);
      if (n >= below && n < below + b[SIZE]) return i;
    }
    return -1;
  };
  const show = () => {
    describe(pinned >= 0 ? pinned : pointed);
    draw();
  };
  function look(event) {
    const box = canvas.getBoundingClientRect();
    cursor = Math.min(Math.max(timeOf(event.clientX - box.left), from), to);
    pointed = drag === null ? bandAt(cursor, bytesOf(event.clientY - box.top)) : -1;
    moment(cursor);
    show();
  }
  function zoom(a, b) {
    [from, to] = [a, b];
    listAlive();
    show();
  }
  canvas.addEventListener("pointermove", look);
  canvas.addEventListener("pointerdown", (event) => {
    look(event);
    drag = cursor;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", (event) => {
    const began = drag;
    drag = null;
    look(event);
    if (Math.abs(x(began) - x(cursor)) > 4) return zoom(Math.min(began, cursor), Math.max(began, cursor));
    pinned = pointed === pinned ? -1 : pointed;
    show();
  });
  canvas.addEventListener("pointerleave", () => {
    [pointed, cursor] = [-1, null];
    show();
  });
  canvas.addEventListener("dblclick", () => zoom(0, last));
  const bySize = bands.map((_, i) => i).sort((p, q) => bands[q][SIZE] - bands[p][SIZE]);
  canvas.addEventListener("keydown", (event) => {
    const list = event.key === "ArrowUp" || event.key === "ArrowDown" ? bySize : bands.map((_, i) => i);
    const step = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") {
      pinned = -1;
      zoom(0, last);
    } else if (step) {
      const seen = list.filter((i) => inWindow(bands[i]));
      if (!seen.length) return;
      const place = seen.indexOf(pinned);
      pinned = seen[place < 0 ? 0 : (place + step + seen.length) % seen.length];
      moment(Math.max(beginOf(bands[pinned]), from));
      show();
    } else return;
    event.preventDefault();
  });
  new ResizeObserver(draw).observe(canvas);
  matchMedia("(prefers-color-scheme:dark)").addEventListener("change", draw);
  moment(moments[data.peak]);
  listAlive();
  show();
})();
