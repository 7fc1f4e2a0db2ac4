"""The bandit's interactive page: one HTML file, its data inside, from the study's files."""

from __future__ import annotations

import base64
import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

LABELS = {"nclql": "NC-LQL", "lql": "LQL"}


def write_page(out: Path) -> Path | None:
    """page.html beside the study's tables; None if neither LQL nor NC-LQL was studied."""
    methods = {
        name: _method(out, name) for name in LABELS if (out / "data" / f"{name}.npz").exists()
    }
    if not methods:
        return None
    with np.load(out / "data" / "exact.npz") as exact:
        facts = {
            "bound": float(exact["bound"]),
            "near": float(exact["near"]),
            "centres": np.round(exact["centres"], 6).tolist(),
            "high": exact["high"].astype(int).tolist(),
            "sweep": exact["sweep"].tolist(),
            "sigmas": np.round(exact["sigmas"], 4).tolist() if "sigmas" in exact else [],
            "exactReward": _exact_rewards(out),
            "methods": methods,
        }
    path = out / "page.html"
    # No "</" may stand in a script; base64 and numbers have none, labels might one day.
    data = json.dumps(facts, separators=(",", ":")).replace("</", "<\\/")
    path.write_text(TEMPLATE.replace("/*DATA*/null", data), encoding="utf-8")
    return path


def _method(out: Path, name: str) -> dict[str, Any]:
    """Value maps as bytes, each from its least to its most; walks as 16-bit parts of the box."""
    with np.load(out / "data" / f"{name}.npz") as data:
        value, walks = data["value"], data["walks"]
    with np.load(out / "data" / "exact.npz") as exact:
        bound = float(exact["bound"])
    low, high = value.min(axis=(1, 2)), value.max(axis=(1, 2))
    scaled = (value - low[:, None, None]) / (high - low)[:, None, None]
    parts = np.round((walks + bound) / (2 * bound) * 65535).astype("<u2")
    return {
        "label": LABELS[name],
        "levels": len(value),
        "grid": value.shape[1],
        "low": np.round(low, 4).tolist(),
        "high": np.round(high, 4).tolist(),
        "value": _encode(np.round(255 * scaled).astype(np.uint8)),
        "steps": walks.shape[1] - 1,
        "walkers": walks.shape[2],
        "walks": _encode(parts),
    }


def _encode(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode()


def _exact_rewards(out: Path) -> list[float]:
    """Mean reward of the exact law at each w of the sweep."""
    with (out / "sweep.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == "exact"]
    return [round(float(row["reward_mean"]), 4) for row in rows]


TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Langevin Q-learning on a bandit</title>
<link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5a6675; --page: #f6f7f9;
  --card: #ffffff; --line: #d8dde4; --accent: #0b6e75; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #9aa6b5; --page: #12161c;
  --card: #1b212a; --line: #313a47; --accent: #58c4c0; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 24px; display: grid; gap: 24px;
  grid-template-columns: minmax(0, 620px) minmax(280px, 1fr); align-items: start; }
@media (max-width: 860px) { main { grid-template-columns: 1fr; } }
canvas { width: 100%; aspect-ratio: 1; display: block; border-radius: 8px; }
h1 { font-size: 1.35rem; margin: 0 0 4px; line-height: 1.25; }
p { margin: 8px 0; color: var(--soft); font-size: .93rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 14px 16px; margin-top: 12px; }
label { display: flex; justify-content: space-between; font-weight: 600; margin-top: 10px; }
label output { font-weight: 400; color: var(--soft); font-variant-numeric: tabular-nums; }
input[type=range] { width: 100%; accent-color: var(--accent); margin: 6px 0 2px; }
.row { display: flex; gap: 8px; flex-wrap: wrap; }
button { font: inherit; padding: 6px 14px; border-radius: 8px; cursor: pointer;
  border: 1px solid var(--line); background: transparent; color: inherit; }
button[aria-pressed=true], #play { background: var(--accent); border-color: var(--accent);
  color: var(--page); }
button:focus-visible, input:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
dl { display: grid; grid-template-columns: 1fr auto; gap: 4px 12px; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; font-variant-numeric: tabular-nums; text-align: right; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 50%;
  vertical-align: -.05em; margin-right: .35em; border: 1px solid #333; }
</style>
</head>
<body>
<main>
<div><canvas id="view" width="620" height="620" role="img"
  aria-label="Value landscape with the chains' current actions"></canvas></div>
<div>
<h1>Actions drawn straight from a critic</h1>
<p id="story"></p>
<div class="card">
<div class="row" id="methods" role="group" aria-label="Method"></div>
<label for="step"><span>Chain step</span><output id="stepText"></output></label>
<input id="step" type="range" min="0" max="10" value="0">
<label for="w"><span>Inverse temperature w</span><output id="wText"></output></label>
<input id="w" type="range" min="0" max="1" value="0">
<div class="row" style="margin-top:12px"><button id="play">Play</button></div>
</div>
<div class="card"><dl>
<dt>Near a high mode, within <span id="near"></span></dt><dd id="share"></dd>
<dt>Mean reward of these chains</dt><dd id="reward"></dd>
<dt>Mean reward of the exact law exp(w r)</dt><dd id="exact"></dd>
<dt>Landscape shown</dt><dd id="level"></dd>
</dl></div>
<p><span class="key" style="background:#fff"></span>start of each chain
&nbsp; <span class="key" style="background:#ffc83d"></span>where it is now.
Circles: the four high modes. Brighter is more valuable; each landscape has its own scale.</p>
</div>
</main>
<script>
"use strict";
const DATA = /*DATA*/null;
const $ = (id) => document.getElementById(id);
const canvas = $("view"), brush = canvas.getContext("2d");
const PALETTE = [[11, 24, 48], [24, 62, 92], [36, 108, 124], [92, 160, 156], [196, 226, 210]];
const STORIES = {
  nclql: "NC-LQL learns one critic for ten levels of noise. Its chain climbs the smoothest " +
    "landscape first and ends on the true one, so few actions are caught by low modes.",
  lql: "LQL knows the true landscape only. Where it is flat or a low mode is near, " +
    "the chain cannot tell that something better lies further off.",
};
const state = { method: Object.keys(DATA.methods)[0], step: 0, w: 0, shown: 0, playing: 0 };

function bytes(text) {
  const raw = atob(text), out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out;
}

function colour(part) {
  const place = Math.min(part, 0.9999) * (PALETTE.length - 1), i = Math.floor(place);
  return PALETTE[i].map((c, k) => c + (PALETTE[i + 1][k] - c) * (place - i));
}

function landscape(value, grid) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = grid;
  const context = tile.getContext("2d"), image = context.createImageData(grid, grid);
  for (let x = 0; x < grid; x++) for (let y = 0; y < grid; y++) {
    const at = 4 * ((grid - 1 - y) * grid + x);  // rows run downwards, y upwards
    image.data.set([...colour(value[x * grid + y] / 255), 255], at);
  }
  context.putImageData(image, 0, 0);
  return tile;
}

for (const method of Object.values(DATA.methods)) {
  const value = bytes(method.value), size = method.grid * method.grid;
  method.tiles = [];
  for (let level = 0; level < method.levels; level++)
    method.tiles.push(landscape(value.subarray(level * size, (level + 1) * size), method.grid));
  method.points = new Uint16Array(bytes(method.walks).buffer);
}

function point(method, w, step, walker) {
  const at = 2 * ((w * (method.steps + 1) + step) * method.walkers + walker);
  return [0, 1].map((k) => (method.points[at + k] / 65535) * 2 * DATA.bound - DATA.bound);
}

function between(method, w, time, walker) {
  const step = Math.floor(time), part = time - step;
  const from = point(method, w, step, walker);
  if (part === 0) return from;
  const to = point(method, w, step + 1, walker);
  return from.map((x, k) => x + (to[k] - x) * part);
}

function levelOf(method, time) {
  return method.levels === 1 ? 0 : Math.max(0, Math.min(Math.ceil(time), method.levels) - 1);
}

function rewardAt([x, y]) {
  let total = 0;
  DATA.centres.forEach(([a, b], i) => {
    const weight = DATA.high.includes(i) ? 2 : 1;
    total += weight * Math.exp(-((x - a) ** 2 + (y - b) ** 2) / 0.18);
  });
  return total / 2.00298496;
}

function draw() {
  const method = DATA.methods[state.method], size = canvas.width, unit = size / (2 * DATA.bound);
  const place = ([x, y]) => [(x + DATA.bound) * unit, (DATA.bound - y) * unit];
  const level = levelOf(method, state.shown);
  brush.imageSmoothingEnabled = true;
  brush.imageSmoothingQuality = "high";
  brush.drawImage(method.tiles[level], 0, 0, size, size);
  brush.lineWidth = size / 500;
  brush.setLineDash([size / 100, size / 100]);
  brush.strokeStyle = "rgba(255,255,255,.8)";
  for (const i of DATA.high) disc(place(DATA.centres[i]), DATA.near * unit, null);
  brush.setLineDash([]);
  const now = [];
  for (let i = 0; i < method.walkers; i++) {
    const start = place(point(method, state.w, 0, i));
    const here = between(method, state.w, state.shown, i);
    now.push(here);
    brush.strokeStyle = "rgba(255,255,255,.16)";
    brush.beginPath();
    brush.moveTo(...start);
    for (let k = 1; k <= Math.floor(state.shown); k++)
      brush.lineTo(...place(point(method, state.w, k, i)));
    brush.lineTo(...place(here));
    brush.stroke();
    disc(start, size / 400, "rgba(255,255,255,.65)");
  }
  brush.strokeStyle = "rgba(40,25,0,.75)";
  for (const here of now) disc(place(here), size / 165, "#ffc83d");
  report(method, level, now);
}

function disc([x, y], radius, fill) {
  brush.beginPath();
  brush.arc(x, y, radius, 0, 2 * Math.PI);
  if (fill) { brush.fillStyle = fill; brush.fill(); }
  if (!fill || radius > canvas.width / 300) brush.stroke();
}

function report(method, level, now) {
  const near = (a) => DATA.high.some((i) =>
    Math.hypot(a[0] - DATA.centres[i][0], a[1] - DATA.centres[i][1]) <= DATA.near);
  const share = now.filter(near).length / now.length;
  const mean = now.reduce((sum, a) => sum + rewardAt(a), 0) / now.length;
  $("share").textContent = (100 * share).toFixed(1) + " %";
  $("reward").textContent = mean.toFixed(3);
  $("exact").textContent = DATA.exactReward[state.w].toFixed(3);
  const noise = method.levels > 1 && level < method.levels - 1
    ? "level " + (level + 1) + ", σ = " + DATA.sigmas[level].toFixed(2) : "clean value";
  $("level").textContent = noise;
  $("stepText").textContent = Math.round(state.step) + " of " + method.steps;
  $("wText").textContent = DATA.sweep[state.w];
}

function refresh() {
  const method = DATA.methods[state.method];
  $("step").max = method.steps;
  state.step = Math.max(0, Math.min(state.step, method.steps));
  $("step").value = state.step;
  $("w").value = state.w;
  $("story").textContent = STORIES[state.method];
  for (const button of $("methods").children)
    button.setAttribute("aria-pressed", String(button.dataset.name === state.method));
  draw();
}

function stop() {
  cancelAnimationFrame(state.playing);
  state.playing = 0;
  $("play").textContent = "Play";
}

function show(step) { stop(); state.step = state.shown = step; refresh(); }

function play() {
  if (state.playing) return stop();
  const steps = DATA.methods[state.method].steps;
  if (state.shown >= steps) state.shown = 0;
  let before = null;
  $("play").textContent = "Pause";
  const frame = (time) => {
    if (before !== null) state.shown = Math.min(steps, state.shown + (time - before) / 600);
    before = time;
    state.step = Math.floor(state.shown);
    refresh();
    if (state.shown >= steps) return stop();
    state.playing = requestAnimationFrame(frame);
  };
  state.playing = requestAnimationFrame(frame);
}

function resize() {
  const size = Math.round(canvas.clientWidth * (window.devicePixelRatio || 1));
  if (size && size !== canvas.width) canvas.width = canvas.height = size;
  draw();
}

for (const [name, method] of Object.entries(DATA.methods)) {
  const button = document.createElement("button");
  button.textContent = method.label;
  button.dataset.name = name;
  button.onclick = () => { state.method = name; show(state.step); };
  $("methods").append(button);
}
$("near").textContent = DATA.near.toFixed(1);
$("w").max = DATA.sweep.length - 1;
state.w = Math.max(0, DATA.sweep.indexOf(300));
$("step").oninput = (event) => show(Number(event.target.value));
$("w").oninput = (event) => { state.w = Number(event.target.value); refresh(); };
$("play").onclick = play;
window.addEventListener("resize", resize);
refresh();
resize();
</script>
</body>
</html>
"""
