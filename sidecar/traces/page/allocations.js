// Single allocations over time: each is a band as high as its bytes, on top of those that were there before it. What is
// freed below lets it sink. The rest, too small to be told apart, is on top. Texts of the snapshot are only ever set as text.
(() => {
  "use strict";
  const root = document.querySelector(".alloc");
  const data = JSON.parse(document.getElementById("allocations").textContent);
  const canvas = root.querySelector("canvas");
  const [now, is, alive] = [".now", ".is", ".alive"].map((name) => root.querySelector(name));
  const { bands, stacks, frames, categories, at, total, reserved, rest, events, timed, count } = data;
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
  // A time, so exactly that others so far away read differently.
  const time = (t, apart = t / 1000) => {
    if (!timed) return `event ${Math.round(t)}`;
    const [unit, name] = t >= 1e6 ? [1e6, "s"] : t >= 1e3 ? [1e3, "ms"] : [1, "µs"];
    const digits = Math.min(Math.max(Math.ceil(-Math.log10(Math.max(apart, 1) / unit)), 0), Math.log10(unit));
    return `${(t / unit).toFixed(digits)} ${name}`;
  };

  // The offsets of a band: pairs of a time and the bytes below it from then on.
  const paths = bands.map(() => []);
  const tops = []; // pairs of a time and the bytes of all bands from then on
  {
    const changes = bands
      .flatMap((b, i) => [
        [b[FROM], 1, i],
        [b[TO], 0, i],
      ])
      .sort((x, y) => x[0] - y[0] || x[1] - y[1]);
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
  // What the others have together, from each moment on.
  const others = at.map((_, k) => rest[k].reduce((sum, n) => sum + n, 0));
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
  // OTHERS is what is too small to be told apart.
  const OTHERS = -2;
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
    const t = Math.max(beginOf(b), from);
    const steps = [[t, valueAt(path, t)]];
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

  // The times at which the upper edge changes, in view, with both ends.
  function edges() {
    const list = [from, to];
    for (let k = 0; k < tops.length; k += 2) if (tops[k] > from && tops[k] < to) list.push(tops[k]);
    for (const t of moments) if (t > from && t < to) list.push(t);
    return list.sort((a, b) => a - b);
  }
  const edgeAt = (t) => valueAt(tops, t) + others[momentAt(t)];

  // All but what follows the pointer is drawn once for a view.
  const base = document.createElement("canvas");
  let drawn = "";

  function drawBase(scale) {
    const style = getComputedStyle(root);
    const colour = (name) => style.getPropertyValue(name).trim();
    const view = [from, to, width, height, scale, pinned, colour("--ground")].join();
    if (view === drawn) return;
    drawn = view;
    [base.width, base.height] = [width * scale, height * scale];
    const paint = base.getContext("2d");
    paint.scale(scale, scale);
    const text = colour("--dim");
    const list = edges();
    most = 1.05 * Math.max(1, ...list.map(edgeAt));
    paint.font = "12px system-ui,sans-serif";
    paint.fillStyle = text;
    paint.textAlign = "right";
    for (let k = 0; k <= 4; k++) paint.fillText(bytes((most * k) / 4), room.left - 6, y((most * k) / 4) + 4);
    for (let k = 0; k <= 4; k++) {
      const t = from + ((to - from) * k) / 4;
      paint.textAlign = ["left", "center", "center", "center", "right"][k];
      paint.fillText(time(t, (to - from) / 100), x(t), height - 6);
    }
    paint.beginPath();
    paint.rect(room.left, 0, width - room.left - room.right, height - room.bottom);
    paint.clip();
    // The others, on top of the bands, in steps as they came.
    paint.fillStyle = colour("--others");
    paint.beginPath();
    paint.moveTo(x(from), y(0));
    let top = edgeAt(from);
    for (const t of list) {
      paint.lineTo(x(t), y(top));
      top = edgeAt(t);
      paint.lineTo(x(t), y(top));
    }
    paint.lineTo(x(to), y(0));
    paint.fill();
    paint.fillStyle = colour("--ground");
    paint.beginPath();
    paint.moveTo(x(from), y(0));
    top = valueAt(tops, from);
    for (const t of list) {
      paint.lineTo(x(t), y(top));
      top = valueAt(tops, t);
      paint.lineTo(x(t), y(top));
    }
    paint.lineTo(x(to), y(0));
    paint.fill();
    const chosen = pinned >= 0 ? bands[pinned][STACK] : -1;
    paint.lineWidth = 0.5;
    paint.strokeStyle = colour("--ground");
    bands.forEach((b, i) => {
      if (!inWindow(b) || (b[SIZE] / most) * height < 0.05) return;
      paint.globalAlpha = chosen >= 0 && b[STACK] !== chosen ? 0.2 : i % 2 ? 0.82 : 1;
      paint.fillStyle = colour(`--c${b[CATEGORY]}`);
      outline(paint, i);
      paint.fill();
      if ((b[SIZE] / most) * height > 2) paint.stroke();
    });
  }

  function draw() {
    const scale = window.devicePixelRatio || 1;
    [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width || !height) return;
    drawBase(scale);
    [canvas.width, canvas.height] = [width * scale, height * scale];
    const paint = canvas.getContext("2d");
    paint.drawImage(base, 0, 0);
    paint.scale(scale, scale);
    const style = getComputedStyle(root);
    paint.beginPath();
    paint.rect(room.left, 0, width - room.left - room.right, height - room.bottom);
    paint.clip();
    paint.strokeStyle = style.getPropertyValue("--text");
    paint.lineWidth = 1.5;
    for (const i of [pinned, pointed]) {
      if (i < 0) continue;
      outline(paint, i);
      paint.stroke();
    }
    if (cursor === null) return;
    paint.strokeStyle = paint.fillStyle = style.getPropertyValue("--dim");
    paint.lineWidth = 0.5;
    paint.strokeRect(x(cursor), 0, 0, height - room.bottom);
    if (drag === null) return;
    paint.globalAlpha = 0.2;
    paint.fillRect(x(Math.min(drag, cursor)), 0, Math.abs(x(drag) - x(cursor)), height - room.bottom);
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
    now.append(
      element("b", `${bytes(total[k])} allocated`),
      reserved[k] > 0 ? ` of ${bytes(reserved[k])} reserved` : "",
    );
    const order = sums
      .map((n, c) => [n, c])
      .filter(([n]) => n > 0)
      .sort((p, q) => q[0] - p[0]);
    for (const [n, c] of order) {
      const key = element("i", "");
      key.style.background = getComputedStyle(root).getPropertyValue(`--c${c}`);
      now.append(key, `${categories[c]} ${bytes(n)}`);
    }
  }

  function describe(i) {
    is.replaceChildren();
    is.setAttribute("aria-live", pinned >= 0 ? "polite" : "off"); // a pointer that passes is not read aloud
    if (i === OTHERS && cursor !== null) {
      const k = momentAt(cursor);
      is.append(
        element("b", `${bytes(others[k])} in smaller or shorter allocations`),
        element("span", `, at ${time(moments[k])}`),
      );
      return;
    }
    if (i < 0) {
      is.append(
        element(
          "span",
          "Point at an allocation for its stack; a click keeps it and shows all of the same stack. Drag to zoom, double-click or Escape to see all; arrow keys go to the next one.",
        ),
      );
      return;
    }
    const b = bands[i];
    const stack = stacks[b[STACK]];
    const head = element("b", `${bytes(b[SIZE])} ${categories[b[CATEGORY]]}, ${stack.place}`);
    const came = b[FROM] < 0 ? "allocated before the history" : `allocated at ${time(beginOf(b))}`;
    const length = endOf(b) - beginOf(b);
    const went =
      b[TO] >= events ? "still held at the end" : `freed ${timed ? `${time(length)} later` : `at event ${b[TO]}`}`;
    const are = count > bands.length ? " are shown" : "";
    const same = bands.filter((other) => other[STACK] === b[STACK]);
    const facts = `${came}, ${went}, at 0x${b[ADDRESS].toString(16)}; ${same.length} of this stack${are}, ${bytes(same.reduce((sum, o) => sum + o[SIZE], 0))} together`;
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
    for (const [stack, sum] of rows)
      row("td", bytes(sum.bytes), String(sum.count), categories[sum.category], stacks[stack].place);
    if (count > bands.length) {
      const high = Math.max(0, ...edges().map((t) => others[momentAt(t)]));
      row("td", `≤ ${bytes(high)}`, "", "", "smaller and shorter allocations, at one time");
    }
    const apart = (to - from) / 100;
    const where = from === 0 && to === last ? "In all" : `Between ${time(from, apart)} and ${time(to, apart)}`;
    const known = moments.filter((t) => t >= from && t <= to).length;
    const which =
      count > bands.length
        ? `, of the ${bands.length} allocations that are shown one by one; what the others are together is known at ${known} times in view, and drawn on until the next`
        : "";
    alive.replaceChildren(element("p", `${where}, by stack${which}:`), table);
    alive.firstChild.className = "dim";
  }

  const bandAt = (t, n) => {
    for (let i = bands.length - 1; i >= 0; i--) {
      const b = bands[i];
      if (beginOf(b) > t || endOf(b) < t || !paths[i].length) continue;
      const below = valueAt(paths[i], t);
      if (n >= below && n < below + b[SIZE]) return i;
    }
    return n >= valueAt(tops, t) && n < edgeAt(t) ? OTHERS : -1;
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
    if (event.button !== 0) return;
    look(event);
    drag = cursor;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", (event) => {
    const began = drag;
    drag = null;
    look(event);
    if (began === null) return; // it was pressed elsewhere
    if (Math.abs(x(began) - x(cursor)) > 4) return zoom(Math.min(began, cursor), Math.max(began, cursor));
    pinned = pointed === pinned ? -1 : Math.max(pointed, -1);
    show();
  });
  canvas.addEventListener("pointercancel", () => {
    drag = null;
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
  moment(moments[total.indexOf(Math.max(...total))]);
  listAlive();
  show();
})();
