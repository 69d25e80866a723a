// Tasks of the cards on canvas. Lanes that hold more than can be seen are drawn as coverage: a lane that is 6 % busy looks 6 % full.
(() => {
  const source = document.getElementById('tl-data');
  if (source === null) return;
  const data = JSON.parse(source.textContent);
  const { words } = data;
  const box = document.getElementById('tl-box');
  const canvas = document.getElementById('tl-draw');
  const over = document.getElementById('tl-over');
  const live = document.getElementById('tl-live');
  const panel = document.getElementById('tl-panel');
  const picker = document.getElementById('tl-step');
  if (typeof DecompressionStream === 'undefined') return;
  document.querySelector('#timeline .noscript').hidden = true;
  document.getElementById('tl').hidden = false;

  const KINDS = ['computing', 'exposed', 'layout', 'data', 'host', 'waiting'];
  const LABEL = 150;
  const LANE = 18;
  const GAP = 3;
  const RULER = 20;
  const MAX_RECTS = 10_000;
  // Pixels for each single slice: with less, edges inside pixels, which are blended, would take 2 % of a full lane.
  const ROOM = 6;
  const MIN_VIEW_MS = 0.0005;
  const NAMES = 30;
  const MAP = 28;

  const decode = async (lane, shift) => {
    const bytes = Uint8Array.from(atob(lane.data), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
    const raw = new Uint8Array(await new Response(stream).arrayBuffer());
    const n = lane.count;
    const out = { start: new Float64Array(n), end: new Float64Array(n), name: new Uint32Array(n), kind: new Uint8Array(n) };
    let at = 0;
    const next = () => {
      let value = 0;
      let scale = 1;
      for (;;) {
        const byte = raw[at++];
        value += (byte & 127) * scale;
        if (byte < 128) return value;
        scale *= 128;
      }
    };
    let before = 0;
    for (let i = 0; i < n; i++) {
      before += next();
      out.start[i] = before / 1e5 + shift;
      out.end[i] = out.start[i] + next() / 1e5;
      out.name[i] = next();
      out.kind[i] = next();
    }
    return out;
  };

  const lanePart = (list, names) => {
    const n = list.length;
    const out = { start: new Float64Array(n), end: new Float64Array(n), name: new Uint32Array(n), kind: new Uint8Array(n), names };
    list.forEach((s, i) => {
      out.start[i] = s[0];
      out.end[i] = s[1];
      out.kind[i] = s[2];
      out.name[i] = s[3] ?? s[2];
    });
    return out;
  };

  // Union of lanes as [start, end), minus another union.
  const union = (lanes) => {
    const all = lanes.flatMap((l) => Array.from(l.start, (s, i) => [s, l.end[i]])).sort((a, b) => a[0] - b[0]);
    const out = [];
    for (const [s, e] of all) {
      const last = out.at(-1);
      if (last !== undefined && s <= last[1]) last[1] = Math.max(last[1], e);
      else out.push([s, e]);
    }
    return out;
  };
  const minus = (a, b) => {
    const out = [];
    let j = 0;
    for (const [s, e] of a) {
      let from = s;
      while (j < b.length && b[j][1] <= from) j++;
      for (let k = j; k < b.length && b[k][0] < e; k++) {
        if (b[k][0] > from) out.push([from, b[k][0]]);
        from = Math.max(from, b[k][1]);
      }
      if (from < e) out.push([from, e]);
    }
    return out;
  };

  let lanes = [];
  let whole = [0, 1];
  let view = [0, 1];
  const undo = [];
  let focus = null;
  let selection = null;
  let dirty = true;
  let drawn = { frames: 0, rects: 0, worst: 0, times: [] };
  const loaded = new Map();
  // Lanes kept on top, by rank and name: they stay there in other steps.
  const pinned = new Set();
  const nameOf = (lane) => `${lane.part.rank ?? '–'}/${lane.title}`;
  const pinnedFirst = (all) => [...all.filter((l) => pinned.has(nameOf(l))), ...all.filter((l) => !pinned.has(nameOf(l)))];

  const load = async (at) => {
    if (loaded.has(at)) return loaded.get(at);
    const parts = data.parts.filter((p) => p.step === data.steps[at]);
    const out = [];
    let end = 0;
    for (const part of parts) {
      const decoded = await Promise.all(part.lanes.map((lane) => decode(lane, part.shiftMs)));
      const rank = part.rank ?? '–';
      const from = part.shiftMs;
      const to = part.shiftMs + part.lengthMs;
      end = Math.max(end, to);
      const marks = data.marks
        .filter((m) => m.rank === part.rank)
        .map((m) => [(m.fromUs - part.startUs) / 1000 + from, (m.fromUs + m.forUs - part.startUs) / 1000 + from, 3, m.number, m.id])
        .filter((m) => m[1] > from && m[0] < to)
        .sort((a, b) => a[0] - b[0]);
      const on = (name) => decoded.filter((_, i) => part.lanes[i].lane === name);
      const computing = union(on('device'));
      const exposed = minus(union(on('communication')), computing);
      const busy = [...computing.map(([s, e]) => [s, e, 0]), ...exposed.map(([s, e]) => [s, e, 1])].sort((a, b) => a[0] - b[0]);
      const title = `${words.rank} ${rank}`;
      const common = { part, from, to };
      if (marks.length > 0) out.push({ ...common, title: words.causes, rank: title, slices: lanePart(marks, []), marks, isMarks: true });
      out.push({
        ...common,
        title: words.busy,
        rank: marks.length > 0 ? '' : title,
        slices: lanePart(busy, [words.computing, words.exposed]),
        isBusy: true,
      });
      part.lanes.forEach((lane, i) => {
        const name = lane.stream === null || lane.stream < 0 ? words[lane.lane] : `${words[lane.lane]} ${lane.stream}`;
        out.push({ ...common, title: name, rank: '', slices: { ...decoded[i], names: part.names } });
      });
    }
    loaded.set(at, { lanes: out, whole: [0, end] });
    return loaded.get(at);
  };

  const ratio = () => Math.min(2, devicePixelRatio || 1);
  const width = () => Math.max(200, box.clientWidth - LABEL);
  const top = (i) => RULER + i * (LANE + GAP);
  const x = (ms) => LABEL + ((ms - view[0]) / (view[1] - view[0])) * width();
  const msAt = (px) => view[0] + ((px - LABEL) / width()) * (view[1] - view[0]);
  const time = (ms) => {
    const abs = Math.abs(ms);
    // As in the rest of the page: three digits. Kernels keep tenths of a microsecond.
    if (abs > 0 && abs < 0.0995) return `${(ms * 1000).toFixed(abs < 0.01 ? 2 : 1)}\u00a0µs`;
    const [value, unit] = abs < 9999.5 ? [ms, 'ms'] : [ms / 1000, 's'];
    const whole = Math.abs(value);
    const digits = whole === 0 || whole >= 99.95 ? 0 : whole >= 9.995 || unit === 's' ? 1 : 2;
    return `${value.toFixed(digits).replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, ',')}\u00a0${unit}`;
  };
  // First slice that ends after an instant: ends rise with starts in a stream; where slices overlap the search starts earlier.
  const firstAfter = (slices, ms) => {
    let low = 0;
    let high = slices.start.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (slices.start[middle] < ms) low = middle + 1;
      else high = middle;
    }
    while (low > 0 && slices.end[low - 1] > ms) low--;
    return low;
  };

  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(`--${name}`).trim();
    const hex = (c) => [1, 3, 5].map((i) => Number.parseInt(c.slice(i, i + 2), 16));
    const kinds = KINDS.map(of);
    const packed = kinds.map((c) => {
      const [r, g, b] = hex(c);
      return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
    });
    return { kinds, packed, text: of('text'), dim: of('dim'), line: of('line'), page: of('page'), on: of('on'), link: of('link') };
  };

  const draw = () => {
    const begin = performance.now();
    const r = ratio();
    const w = width();
    const height = top(lanes.length) + 2;
    for (const c of [canvas, over]) {
      if (c.width !== Math.round((w + LABEL) * r) || c.height !== Math.round(height * r)) {
        c.width = Math.round((w + LABEL) * r);
        c.height = Math.round(height * r);
        c.style.width = `${w + LABEL}px`;
        c.style.height = `${height}px`;
      }
    }
    box.style.height = `${height}px`;
    const g = canvas.getContext('2d');
    const paint = colours();
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.clearRect(0, 0, canvas.width, canvas.height);
    g.setTransform(r, 0, 0, r, 0, 0);
    g.font = '12px system-ui, sans-serif';
    g.textBaseline = 'middle';
    let rects = 0;
    // ruler
    const span = view[1] - view[0];
    const most = Math.max(2, Math.floor(w / 90));
    const step = [1, 2, 5, 10, 20].map((k) => k * 10 ** Math.floor(Math.log10(span / most))).find((s) => span / s <= most) ?? span;
    g.fillStyle = paint.dim;
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    for (let t = Math.ceil(view[0] / step) * step; t <= view[1]; t += step) {
      g.fillRect(x(t), 14, 1, height);
      const label = `${t.toFixed(Math.min(6, digits))} ms`;
      if (x(t) + 3 + g.measureText(label).width <= LABEL + w) g.fillText(label, x(t) + 3, 8);
    }
    lanes.forEach((lane, i) => {
      const y = top(i);
      const { slices } = lane;
      g.fillStyle = paint.page;
      g.fillRect(LABEL, y, w, LANE);
      g.fillStyle = paint.text;
      const isPinned = pinned.has(nameOf(lane));
      // Away from the other lanes of its rank a pinned one says whose it is.
      g.fillText(isPinned ? `▲ ${lane.part.rank ?? '–'}` : lane.rank, 0, y + LANE / 2, 52);
      g.fillStyle = paint.dim;
      g.fillText(lane.title, 56, y + LANE / 2, LABEL - 60);
      const from = firstAfter(slices, view[0]);
      let to = from;
      while (to < slices.start.length && slices.start[to] < view[1]) to++;
      // Single slices only where each has room; a sliver keeps its true width, so that a lane never looks fuller than it is.
      if (to - from <= Math.min(w / ROOM, MAX_RECTS / lanes.length)) {
        const ends = new Path2D();
        for (let k = from; k < to; k++) {
          const left = Math.max(LABEL, x(slices.start[k]));
          const right = Math.min(LABEL + w, x(slices.end[k]));
          const wide = Math.max(lane.isMarks ? 3 : 0, right - left);
          g.fillStyle = lane.isMarks ? paint.text : paint.kinds[slices.kind[k]];
          g.fillRect(left, y, wide, LANE);
          rects++;
          // A line, not a gap, between equal neighbours: a gap would make a full lane look less busy than its coverage does.
          if (wide > 6 && !lane.isMarks) ends.rect(right - 1, y, 1, LANE);
          if (wide < 40 && !lane.isMarks) continue;
          g.fillStyle = lane.isMarks ? paint.page : paint.on;
          const label = lane.isMarks ? String(slices.name[k]) : (slices.names[slices.name[k]] ?? '');
          g.save();
          g.beginPath();
          g.rect(left, y, Math.max(wide, 14), LANE);
          g.clip();
          g.fillText(label, left + 3, y + LANE / 2);
          g.restore();
        }
        g.globalAlpha = 0.45;
        g.fillStyle = paint.text;
        g.fill(ends);
        g.globalAlpha = 1;
      } else {
        const columns = Math.round(w * r);
        const cover = new Float32Array(columns * KINDS.length);
        const per = columns / span;
        for (let k = from; k < to; k++) {
          const a = Math.max(0, (slices.start[k] - view[0]) * per);
          const b = Math.min(columns, (slices.end[k] - view[0]) * per);
          const kind = slices.kind[k] * columns;
          const last = Math.min(columns - 1, Math.floor(b));
          for (let c = Math.floor(a); c <= last; c++) cover[kind + c] += Math.min(b, c + 1) - Math.max(a, c);
        }
        const rows = Math.round(LANE * r);
        const image = g.createImageData(columns, rows);
        const pixels = new Uint32Array(image.data.buffer);
        // What rounding to rows takes from one column is given to the next, so that the area stays true.
        let carry = 0;
        for (let c = 0; c < columns; c++) {
          let filled = 0;
          let row = 0;
          for (let kind = 0; kind < KINDS.length; kind++) {
            const part = cover[kind * columns + c];
            if (part === 0) continue;
            filled = Math.min(1, filled + part);
            for (const goal = Math.min(rows, Math.round(filled * rows + carry)); row < goal; row++)
              pixels[(rows - 1 - row) * columns + c] = paint.packed[kind];
          }
          carry += filled * rows - row;
        }
        g.putImageData(image, Math.round(LABEL * r), Math.round(y * r));
      }
      // before and after the part there is nothing to see
      g.fillStyle = paint.line;
      if (x(lane.from) > LABEL) g.fillRect(LABEL, y + LANE - 1, Math.min(w, x(lane.from) - LABEL), 1);
      if (x(lane.to) < LABEL + w) g.fillRect(Math.max(LABEL, x(lane.to)), y + LANE - 1, LABEL + w - Math.max(LABEL, x(lane.to)), 1);
    });
    drawOver(paint);
    drawMap(paint);
    drawn.rects = rects;
    drawn.frames++;
    const took = performance.now() - begin;
    drawn.worst = Math.max(drawn.worst, took);
    if (drawn.times.length < 1000) drawn.times.push(took);
  };

  const drawOver = (paint) => {
    const g = over.getContext('2d');
    const r = ratio();
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.clearRect(0, 0, over.width, over.height);
    g.setTransform(r, 0, 0, r, 0, 0);
    if (selection !== null) {
      g.globalAlpha = 0.18;
      g.fillStyle = paint.link;
      g.fillRect(x(selection[0]), RULER, x(selection[1]) - x(selection[0]), top(lanes.length) - RULER);
      g.globalAlpha = 1;
    }
    if (focus !== null) {
      const { slices } = lanes[focus.lane];
      g.strokeStyle = paint.text;
      g.lineWidth = 2;
      const left = Math.max(LABEL, x(slices.start[focus.at]));
      g.strokeRect(left, top(focus.lane), Math.max(2, Math.min(LABEL + width(), x(slices.end[focus.at])) - left), LANE);
    }
  };

  // The whole step: how busy the rank in focus is, else the first one, and what of it is in view.
  const map = document.getElementById('tl-map');
  const mapCanvas = document.getElementById('tl-map-draw');
  const handles = [document.getElementById('tl-from'), document.getElementById('tl-to')];
  let mapped = '';
  let painted = null;
  const mapX = (ms) => LABEL + ((ms - whole[0]) / (whole[1] - whole[0])) * width();
  const drawMap = (paint) => {
    const part = (focus === null ? lanes.find((l) => l.isBusy) : lanes[focus.lane])?.part;
    const busy = lanes.find((l) => l.isBusy && l.part === part);
    const r = ratio();
    const w = width();
    const size = [Math.round((w + LABEL) * r), Math.round(MAP * r)];
    const g = mapCanvas.getContext('2d', { willReadFrequently: true });
    if (mapCanvas.width !== size[0] || mapCanvas.height !== size[1]) {
      [mapCanvas.width, mapCanvas.height] = size;
      mapCanvas.style.width = `${w + LABEL}px`;
      mapCanvas.style.height = `${MAP}px`;
      painted = null;
    }
    // What does not change with the view is painted once.
    const key = `${part?.rank}/${picker.value}/${paint.page}`;
    if (painted === null || mapped !== key) {
      const columns = Math.max(1, Math.round(w * r));
      const cover = [new Float64Array(columns), new Float64Array(columns)];
      const per = columns / (whole[1] - whole[0]);
      const slices = busy?.slices;
      for (let k = 0; k < (slices?.start.length ?? 0); k++) {
        const a = Math.max(0, (slices.start[k] - whole[0]) * per);
        const b = Math.min(columns, (slices.end[k] - whole[0]) * per);
        for (let c = Math.floor(a); c <= Math.min(columns - 1, b); c++)
          cover[slices.kind[k]][c] += Math.max(0, Math.min(b, c + 1) - Math.max(a, c));
      }
      g.setTransform(1, 0, 0, 1, 0, 0);
      g.clearRect(0, 0, ...size);
      for (let c = 0; c < columns; c++) {
        let y = size[1];
        for (const kind of [0, 1]) {
          const high = Math.min(1, cover[kind][c]) * size[1];
          g.fillStyle = paint.kinds[kind];
          g.fillRect(Math.round(LABEL * r) + c, y - high, 1, high);
          y -= high;
        }
      }
      g.setTransform(r, 0, 0, r, 0, 0);
      g.font = '12px system-ui, sans-serif';
      g.textBaseline = 'middle';
      g.fillStyle = paint.text;
      g.fillText(part === undefined ? '' : `${words.rank} ${part.rank ?? '–'}`, 0, MAP / 2, LABEL - 8);
      painted = g.getImageData(0, 0, ...size);
      mapped = key;
    } else g.putImageData(painted, 0, 0);
    g.setTransform(r, 0, 0, r, 0, 0);
    const [from, to] = [mapX(view[0]), mapX(view[1])];
    g.globalAlpha = 0.6;
    g.fillStyle = paint.page;
    g.fillRect(LABEL, 0, from - LABEL, MAP);
    g.fillRect(to, 0, LABEL + w - to, MAP);
    g.globalAlpha = 1;
    g.strokeStyle = paint.text;
    g.strokeRect(from + 0.5, 0.5, Math.max(1, to - from - 1), MAP - 1);
    handles.forEach((handle, i) => {
      handle.style.left = `${mapX(view[i])}px`;
      handle.setAttribute('aria-valuemin', whole[0].toFixed(3));
      handle.setAttribute('aria-valuemax', whole[1].toFixed(3));
      handle.setAttribute('aria-valuenow', view[i].toFixed(3));
      handle.setAttribute('aria-valuetext', time(view[i]));
    });
  };

  const redraw = () => {
    if (dirty) return;
    dirty = true;
    requestAnimationFrame(() => {
      dirty = false;
      draw();
    });
  };

  const limit = ([a, b]) => {
    const span = Math.min(whole[1] - whole[0], Math.max(MIN_VIEW_MS, b - a));
    const from = Math.min(whole[1] - span, Math.max(whole[0], a));
    return [from, from + span];
  };
  let noted = 0;
  const look = (next, remember = true) => {
    if (remember) {
      undo.push(view);
      if (undo.length > 100) undo.shift();
    }
    view = limit(next);
    redraw();
    clearTimeout(noted);
    noted = setTimeout(() => {
      const hash = new URLSearchParams(location.hash.slice(1));
      hash.set('s', String(data.steps[picker.value] ?? ''));
      hash.set('t', `${view[0].toFixed(4)}-${view[1].toFixed(4)}`);
      history.replaceState(null, '', `#${hash}`);
    }, 300);
  };
  const zoom = (factor, px) => {
    const at = px === undefined ? (view[0] + view[1]) / 2 : msAt(px);
    look([at - (at - view[0]) * factor, at + (view[1] - at) * factor], px === undefined);
  };
  const pan = (share) => look([view[0] + share * (view[1] - view[0]), view[1] + share * (view[1] - view[0])], false);

  const cell = (row, text, isFigure) => {
    const td = document.createElement('td');
    td.textContent = text;
    if (isFigure) td.className = 'n';
    row.append(td);
  };
  const heads = (table, texts) => {
    const head = table.createTHead().insertRow();
    texts.forEach((text, i) => {
      const th = document.createElement('th');
      th.scope = 'col';
      th.textContent = text;
      if (i > 0) th.className = 'n';
      head.append(th);
    });
  };
  const tell = () => {
    if (focus === null) return;
    const { slices, part, isMarks } = lanes[focus.lane];
    const name = isMarks ? `${words.causes} ${slices.name[focus.at]}` : (slices.names[slices.name[focus.at]] ?? '');
    const start = slices.start[focus.at];
    live.textContent = `${name} · ${words.rank} ${part.rank ?? '–'} · ${time(slices.end[focus.at] - start)} · ${time(start)} · ${focus.at + 1} / ${slices.start.length} ${words.slices}`;
    redraw();
  };
  const select = () => {
    panel.replaceChildren();
    if (selection === null) return;
    const [a, b] = selection;
    const table = document.createElement('table');
    heads(table, [words.rank, words.span, words.union, words.idle, words.sum]);
    const body = table.createTBody();
    const byName = new Map();
    for (const lane of lanes) {
      const inside = (f) => {
        for (let k = firstAfter(lane.slices, a); k < lane.slices.start.length && lane.slices.start[k] < b; k++) {
          const part = Math.min(b, lane.slices.end[k]) - Math.max(a, lane.slices.start[k]);
          if (part > 0) f(k, part);
        }
      };
      if (lane.isBusy) {
        let busy = 0;
        let sum = 0;
        inside((_, part) => {
          busy += part;
        });
        for (const other of lanes) {
          if (other.part !== lane.part || other.isBusy || other.isMarks || other.title === words.host) continue;
          for (let k = firstAfter(other.slices, a); k < other.slices.start.length && other.slices.start[k] < b; k++)
            sum += Math.max(0, Math.min(b, other.slices.end[k]) - Math.max(a, other.slices.start[k]));
        }
        const row = body.insertRow();
        row.dataset.busy = busy;
        row.dataset.sum = sum;
        cell(row, String(lane.part.rank ?? '–'));
        for (const text of [time(b - a), time(busy), time(b - a - busy), sum - busy > 1e-6 ? time(sum) : '']) cell(row, text, true);
      } else if (!lane.isMarks) {
        inside((k, part) => {
          const name = lane.slices.names[lane.slices.name[k]] ?? '';
          const known = byName.get(name) ?? { count: 0, ms: 0, longest: 0 };
          known.count++;
          known.ms += part;
          known.longest = Math.max(known.longest, part);
          byName.set(name, known);
        });
      }
    }
    const names = document.createElement('table');
    heads(names, [words.name, words.count, words.total, words.mean, words.longest]);
    const list = names.createTBody();
    const sorted = [...byName].sort((p, q) => q[1].ms - p[1].ms);
    for (const [name, { count, ms, longest }] of sorted.slice(0, NAMES)) {
      const row = list.insertRow();
      cell(row, name);
      for (const text of [String(count), time(ms), time(ms / count), time(longest)]) cell(row, text, true);
    }
    panel.append(table, names);
    if (sorted.length > NAMES) {
      const note = document.createElement('p');
      note.className = 'dim';
      note.textContent = words.cut.replace('{n}', NAMES).replace('{all}', sorted.length);
      panel.append(note);
    }
  };

  const laneAt = (py) => {
    const i = Math.floor((py - RULER) / (LANE + GAP));
    return i >= 0 && i < lanes.length ? i : null;
  };
  const sliceAt = (px, py) => {
    const i = laneAt(py);
    if (i === null || px < LABEL) return null;
    const { slices } = lanes[i];
    const ms = msAt(px);
    const slack = (2 / width()) * (view[1] - view[0]);
    for (let k = firstAfter(slices, ms - slack); k < slices.start.length && slices.start[k] <= ms + slack; k++)
      if (slices.end[k] >= ms - slack) return { lane: i, at: k };
    return null;
  };
  const fit = () => {
    if (focus === null) return;
    const { slices } = lanes[focus.lane];
    const [s, e] = [slices.start[focus.at], slices.end[focus.at]];
    look([s - (e - s), e + (e - s)]);
  };
  const step = (by) => {
    if (focus === null) focus = { lane: 0, at: 0 };
    else focus.at = Math.min(lanes[focus.lane].slices.start.length - 1, Math.max(0, focus.at + by));
    const start = lanes[focus.lane].slices.start[focus.at];
    if (start < view[0] || start > view[1]) look([start - (view[1] - view[0]) / 2, start + (view[1] - view[0]) / 2], false);
    tell();
  };
  const press = (key) => {
    switch (key) {
      case 'w':
        return zoom(1 / 1.5);
      case 's':
        return zoom(1.5);
      case 'a':
        return pan(-0.25);
      case 'd':
        return pan(0.25);
      case '0':
        return look(whole);
      case 'Backspace':
        if (undo.length > 0) look(undo.pop(), false);
        return undefined;
      case 'f':
        return fit();
      case '.':
        return step(1);
      case ',':
        return step(-1);
      case 'ArrowDown':
      case 'ArrowUp': {
        const by = key === 'ArrowDown' ? 1 : -1;
        const lane = Math.min(lanes.length - 1, Math.max(0, (focus?.lane ?? -1) + by));
        focus = { lane, at: Math.min(firstAfter(lanes[lane].slices, view[0]), Math.max(0, lanes[lane].slices.start.length - 1)) };
        return tell();
      }
      case 'p': {
        if (focus === null) focus = { lane: 0, at: 0 };
        const lane = lanes[focus.lane];
        const name = nameOf(lane);
        if (!pinned.delete(name)) pinned.add(name);
        lanes = pinnedFirst(loaded.get(Number(picker.value)).lanes);
        focus.lane = lanes.indexOf(lane);
        tell();
        live.textContent = `${lane.title} · ${words.rank} ${lane.part.rank ?? '–'}${pinned.has(name) ? ` · ${words.pinned}` : ''}`;
        return undefined;
      }
      case 'm':
        if (focus !== null) selection = [lanes[focus.lane].slices.start[focus.at], lanes[focus.lane].slices.end[focus.at]];
        select();
        return redraw();
      case 'Escape':
        selection = null;
        focus = null;
        live.textContent = '';
        select();
        return redraw();
      default:
        return null;
    }
  };
  canvas.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (press(key) !== null) event.preventDefault();
  });
  for (const button of document.querySelectorAll('#tl [data-key]')) button.addEventListener('click', () => press(button.dataset.key));

  const at = (event) => {
    const rect = canvas.getBoundingClientRect();
    return [event.clientX - rect.left, event.clientY - rect.top];
  };
  canvas.addEventListener(
    'wheel',
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(Math.exp(Math.max(-200, Math.min(200, event.deltaY)) / 300), at(event)[0]);
    },
    { passive: false },
  );
  let drag = null;
  canvas.addEventListener('pointerdown', (event) => {
    const [px, py] = at(event);
    if (px < LABEL) return;
    drag = { px, py, from: msAt(px), view, moves: event.shiftKey, moved: false };
    canvas.setPointerCapture(event.pointerId);
    canvas.focus();
  });
  canvas.addEventListener('pointermove', (event) => {
    const [px, py] = at(event);
    if (drag === null) {
      const hit = sliceAt(px, py);
      if (hit === null) canvas.title = '';
      else {
        const { slices } = lanes[hit.lane];
        const length = time(slices.end[hit.at] - slices.start[hit.at]);
        canvas.title = `${slices.names[slices.name[hit.at]] ?? ''}\n${length} · ${time(slices.start[hit.at])}`;
      }
      return;
    }
    if (Math.abs(px - drag.px) > 3) drag.moved = true;
    if (!drag.moved) return;
    if (drag.moves) {
      const by = ((drag.px - px) / width()) * (drag.view[1] - drag.view[0]);
      view = limit([drag.view[0] + by, drag.view[1] + by]);
    } else {
      const now = msAt(px);
      selection = [Math.min(drag.from, now), Math.max(drag.from, now)];
    }
    redraw();
  });
  canvas.addEventListener('pointerup', (event) => {
    if (drag !== null && !drag.moved) {
      focus = sliceAt(...at(event));
      if (focus !== null && lanes[focus.lane].isMarks) location.hash = `f=${encodeURIComponent(lanes[focus.lane].marks[focus.at][4])}`;
      tell();
      redraw();
    } else if (drag !== null && !drag.moves) select();
    drag = null;
  });
  canvas.addEventListener('dblclick', fit);

  // The map: drag inside the part in view to move it, elsewhere to look there; a handle moves one end.
  const mapMs = (event) => {
    const px = event.clientX - map.getBoundingClientRect().left;
    return Math.min(whole[1], Math.max(whole[0], whole[0] + ((px - LABEL) / width()) * (whole[1] - whole[0])));
  };
  const setEnd = (i, ms, remember) => {
    const span = Math.max(MIN_VIEW_MS, (whole[1] - whole[0]) / 1e6);
    look(i === 0 ? [Math.min(ms, view[1] - span), view[1]] : [view[0], Math.max(ms, view[0] + span)], remember);
  };
  let held = null;
  map.addEventListener('pointerdown', (event) => {
    const end = handles.indexOf(event.target);
    const ms = mapMs(event);
    const span = view[1] - view[0];
    undo.push(view);
    if (end < 0 && (ms < view[0] || ms > view[1])) look([ms - span / 2, ms + span / 2], false);
    held = { end, from: ms, view };
    map.setPointerCapture(event.pointerId);
    event.preventDefault();
    if (end >= 0) handles[end].focus();
  });
  map.addEventListener('pointermove', (event) => {
    if (held === null) return;
    const ms = mapMs(event);
    if (held.end >= 0) setEnd(held.end, ms, false);
    else look([held.view[0] + ms - held.from, held.view[1] + ms - held.from], false);
  });
  for (const over of ['pointerup', 'pointercancel'])
    map.addEventListener(over, () => {
      held = null;
    });
  handles.forEach((handle, i) => {
    handle.addEventListener('keydown', (event) => {
      const sign = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
      const by = (view[1] - view[0]) / 20;
      if (sign !== undefined) setEnd(i, Math.min(whole[1], Math.max(whole[0], view[i] + sign * by)), true);
      else if (event.key === 'Home' || event.key === 'End') setEnd(i, event.key === 'Home' ? whole[0] : whole[1], true);
      else return;
      event.preventDefault();
    });
  });

  const show = async (index) => {
    const next = await load(index);
    lanes = pinnedFirst(next.lanes);
    whole = next.whole;
    view = [...whole];
    focus = null;
    selection = null;
    select();
    picker.value = String(index);
    dirty = false;
    redraw();
  };
  picker.addEventListener('change', () => show(Number(picker.value)).catch(broken));

  // Evidence with a place in time leads here.
  const go = async (rank, stepId, us, length) => {
    const index = data.steps.indexOf(stepId);
    const part = data.parts.find((p) => p.rank === rank && p.step === stepId);
    if (index < 0 || part === undefined) return false;
    await show(index);
    const from = (us - part.startUs) / 1000 + part.shiftMs;
    const span = Math.max(length / 1000, 0.01);
    selection = [from, from + length / 1000];
    look([from - span, from + 2 * span]);
    select();
    // The slice of that rank which is the evidence, or lies in it most.
    const own = lanes.findIndex((l) => l.part === part);
    const marked = lanes.findIndex((l) => l.part === part && l.isMarks);
    const lane = marked < 0 ? own : marked;
    const { slices } = lanes[lane];
    let best = -1;
    let most = -1;
    for (let k = firstAfter(slices, from); k < slices.start.length && slices.start[k] <= from + span; k++) {
      const both = Math.min(slices.end[k], selection[1]) - Math.max(slices.start[k], from);
      const fits = both - Math.abs(slices.start[k] - from) - Math.abs(slices.end[k] - selection[1]);
      if (best < 0 || fits > most) [best, most] = [k, fits];
    }
    focus = best < 0 ? null : { lane, at: best };
    tell();
    scrollTo({ top: box.getBoundingClientRect().top + scrollY + top(lane) - innerHeight / 3 });
    canvas.focus({ preventScroll: true });
    return true;
  };
  for (const button of document.querySelectorAll('button.show[data-us]')) {
    const { rank, step: stepId, us, for: length } = button.dataset;
    // Some evidence names no step: its time lies in one.
    const part = data.parts.find(
      (p) =>
        p.rank === Number(rank) &&
        (stepId === undefined ? Number(us) >= p.startUs && Number(us) < p.startUs + p.lengthMs * 1000 : p.step === Number(stepId)),
    );
    if (part === undefined) continue;
    button.hidden = false;
    button.dataset.timed = '';
    button.addEventListener('click', () => {
      const hash = new URLSearchParams(location.hash.slice(1));
      hash.set('r', rank);
      history.replaceState(null, '', `#${hash}`);
      go(Number(rank), part.step, Number(us), Number(length));
    });
  }

  // Step and time of the address; what another part of the page wrote there without a time does not move the view.
  const follow = async (isFirst) => {
    const hash = new URLSearchParams(location.hash.slice(1));
    const wanted = data.steps.findIndex((s) => String(s) === hash.get('s'));
    const range = /^(-?[\d.]+)-([\d.]+)$/.exec(hash.get('t') ?? '');
    const isPlace = range !== null && wanted >= 0 && Number(range[2]) > Number(range[1]);
    if (isFirst || (isPlace && String(wanted) !== picker.value)) await show(Math.max(0, wanted));
    if (!isPlace) return;
    look([Number(range[1]), Number(range[2])], false);
    const lane = lanes.findIndex((l) => String(l.part.rank) === hash.get('r'));
    if (lane >= 0) scrollTo({ top: box.getBoundingClientRect().top + scrollY + top(lane) - innerHeight / 3 });
    else if (isFirst && hash.get('f') === null) box.scrollIntoView({ block: 'center' });
  };
  // One damaged block costs this section only.
  const broken = () => {
    document.getElementById('tl').hidden = true;
    const note = document.querySelector('#timeline .noscript');
    note.hidden = false;
    note.textContent = words.broken;
  };
  follow(true).catch(broken);
  addEventListener('hashchange', () => follow(false).catch(broken));
  addEventListener('resize', redraw);
  document.getElementById('theme').addEventListener('click', redraw);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  addEventListener('beforeprint', draw);
  // For tests: what was drawn, and where things are.
  globalThis.timeline = {
    stats: () => drawn,
    reset: () => (drawn = { frames: 0, rects: 0, worst: 0, times: [] }),
    view: () => view,
    whole: () => whole,
    lanes: () => lanes.map((l) => ({ title: l.title, rank: l.part.rank, count: l.slices.start.length })),
    top,
    LABEL,
    LANE,
  };
})();
