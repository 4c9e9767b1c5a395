"""Pages whose frames are timed, beside an empty canvas of the same tab."""

from __future__ import annotations

import shutil
import sys

# Runs before the page's own script: frames' callbacks are timed by their wrapper.
PROBE = """
window.probe = {spent: [], on: false};
const later = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (f) => later((t) => {
    const began = performance.now();
    f(t);
    if (window.probe.on) window.probe.spent.push(performance.now() - began);
});
window.frames_of = (frames, each) => new Promise((done) => {
    const at = [];
    const step = (t) => {
        at.push(t);
        if (at.length > frames) return done(at.slice(1).map((v, i) => v - at[i]));
        each(at.length);
        later(step);
    };
    later(step);
});
"""

# Says when an expression has become true, one frame later, when it is on the screen: window.shown_at, from opening on.
WAIT = """(ready => {
    const look = () => {
        let there = false;
        try { there = document.body && ready(); } catch {}
        if (!there) return requestAnimationFrame(look);
        requestAnimationFrame(() => { window.shown_at = performance.now(); });
    };
    requestAnimationFrame(look);
})(() => %s);"""

# Begins what zooms, and zooms it at a point that moves: every frame shows another window.
ZOOM = """async ([begin, frames]) => {
    const e = await eval(begin)(), box = e.getBoundingClientRect();
    await new Promise((r) => setTimeout(r, 500));
    let handlers = 0;
    window.probe.spent = [];
    window.probe.on = true;
    const intervals = await window.frames_of(frames, (i) => {
        const began = performance.now();
        e.dispatchEvent(new WheelEvent('wheel', {
            bubbles: true, cancelable: true, ctrlKey: true, deltaY: i % 2 ? -60 : 60,
            clientX: box.left + 200 + (i * 37) % 700, clientY: box.top + Math.min(box.height / 2, 100)}));
        handlers += performance.now() - began;
    });
    window.probe.on = false;
    return {intervals, script: (handlers + window.probe.spent.reduce((a, b) => a + b, 0)) / frames};
}"""

# %s is the canvas whose size it has.
EMPTY = """async (frames) => {
    const stage = %s;
    const canvas = document.createElement('canvas');
    canvas.width = stage.width; canvas.height = stage.height;
    canvas.style.cssText = 'position:fixed;left:0;top:0;z-index:9';
    document.body.append(canvas);
    const c = canvas.getContext('2d', {alpha: false});
    const intervals = await window.frames_of(frames, (i) => {
        c.fillStyle = i %% 2 ? '#fff' : '#fefefe';
        c.fillRect(0, 0, 9999, 9999);
    });
    canvas.remove();
    return {intervals, spent: []};
}"""


def chromium() -> str:
    """Where Chromium is."""
    found = next((p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None)
    if found is None:
        sys.exit("bench/viewer: no Chromium here; on Debian: apt-get install chromium")
    return found
