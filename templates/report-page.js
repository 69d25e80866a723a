// The page reads without this; it adds search, sorting, deep links, tips on the maps, the theme and printing.
(() => {
  const $ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);

  const theme = byId('theme');
  theme.hidden = false;
  theme.addEventListener('click', () => {
    const dark = getComputedStyle(document.documentElement).getPropertyValue('--page').trim() === '#0d1117';
    document.documentElement.dataset.theme = dark ? 'light' : 'dark';
  });

  const language = byId('language');
  language?.addEventListener('click', () => {
    language.hash = location.hash;
  });

  const state = () => new URLSearchParams(location.hash.slice(1));
  const absent = byId('absent');
  const lacks = (place) => {
    absent.textContent = place === '' ? '' : absent.dataset.text.replace('{place}', place);
  };

  // The steps of one rank: picked by hand, by a bar, by a link or by evidence.
  const picker = byId('rank');
  const columns = byId('step-columns');
  const pick = (rank, step) => {
    if (columns === null || ![...picker.options].some((o) => o.value === String(rank))) return false;
    picker.value = String(rank);
    for (const one of $('[data-rank]', columns)) one.toggleAttribute('hidden', one.dataset.rank !== String(rank));
    const caption = columns.querySelector('[data-caption]').dataset.caption.replace('{rank}', rank);
    columns.querySelector('figcaption').textContent = caption;
    let found = step === undefined;
    for (const column of $('g.col', columns)) {
      const isIt = step !== undefined && column.dataset.x === String(step) && column.closest('[data-rank]').dataset.rank === String(rank);
      column.classList.toggle('shown', isIt);
      found ||= isIt;
    }
    for (const bar of $('#rank-bars .rank')) bar.classList.toggle('shown', bar.dataset.rank === String(rank));
    return found;
  };
  if (picker !== null) {
    picker.closest('.scripted').hidden = false;
    const remember = () => {
      const hash = state();
      hash.set('r', picker.value);
      history.replaceState(null, '', `#${hash}`);
    };
    picker.addEventListener('change', () => {
      pick(picker.value);
      remember();
    });
    for (const bar of $('#rank-bars .rank'))
      bar.addEventListener('click', () => {
        if (pick(bar.dataset.rank)) remember();
      });
  }
  const showSteps = (rank, step) => {
    if (!pick(rank, step)) return false;
    columns.scrollIntoView({ block: 'center' });
    picker.focus({ preventScroll: true });
    return true;
  };
  // Evidence without a place in the timeline leads to the steps of its rank. The timeline takes over those that it holds.
  for (const button of $('button.show')) {
    const { rank, step } = button.dataset;
    if (picker === null || ![...picker.options].some((o) => o.value === rank)) continue;
    button.hidden = false;
    button.addEventListener('click', () => {
      if (button.dataset.timed !== undefined) return;
      showSteps(rank, step);
      const hash = state();
      hash.delete('t');
      hash.set('r', rank);
      if (step !== undefined) hash.set('s', step);
      history.replaceState(null, '', `#${hash}`);
    });
  }

  const causes = $('.cause');
  const show = (cause) => {
    for (let at = cause.querySelector('details'); at !== null; at = at.parentElement.closest('details')) at.open = true;
    for (const other of causes) other.classList.toggle('shown', other === cause);
    cause.scrollIntoView({ block: 'start' });
    cause.querySelector('summary').focus({ preventScroll: true });
  };
  const follow = () => {
    const target = byId(location.hash.slice(1));
    for (let at = target?.closest('details') ?? null; at !== null; at = at.parentElement.closest('details')) at.open = true;
    target?.scrollIntoView({ block: 'start' });
    const hash = state();
    const [finding, rank, step] = ['f', 'r', 's'].map((key) => hash.get(key) ?? undefined);
    lacks('');
    if (rank !== undefined && hash.get('t') === null) {
      if (!showSteps(rank, step)) lacks(step === undefined ? `r=${rank}` : `r=${rank} s=${step}`);
    } else if (rank !== undefined) pick(rank, step);
    if (finding === undefined) return;
    const cause = causes.find((c) => c.dataset.finding === finding);
    if (cause === undefined) lacks(`f=${finding}`);
    else if (rank === undefined) show(cause);
  };
  addEventListener('hashchange', follow);
  follow();

  const help = byId('help');
  byId('keys').hidden = false;
  byId('keys').addEventListener('click', () => help.showModal());
  byId('help-close').addEventListener('click', () => help.close());

  const search = byId('q');
  const count = byId('q-count');
  const more = byId('q-more');
  search.addEventListener('input', () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const cause of causes) {
      // What the documentation says of a rule is no place to search.
      const about = cause.querySelector('.rule-doc')?.textContent ?? '';
      const text = cause.textContent.replace(about, '').toLowerCase();
      cause.hidden = !words.every((word) => text.includes(word));
      if (!cause.hidden) found++;
    }
    count.textContent = words.length === 0 ? '' : `${found} / ${causes.length}`;
    more.replaceChildren();
    if (words.length === 0) return;
    // Rows of tables elsewhere that hold all words; one way to the first of each section.
    for (const section of $('main > section')) {
      if (section.id === 'causes' || section.id === 'verdict') continue;
      const rows = $('tbody tr', section).filter((row) => words.every((word) => row.textContent.toLowerCase().includes(word)));
      if (rows.length === 0) continue;
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = `${section.querySelector('h2').textContent} ${rows.length}`;
      button.addEventListener('click', () => {
        for (const other of $('tr.shown')) other.classList.remove('shown');
        for (const row of rows) row.classList.add('shown');
        for (let at = rows[0].closest('details'); at !== null; at = at.parentElement.closest('details')) at.open = true;
        rows[0].scrollIntoView({ block: 'center' });
      });
      more.append(more.childElementCount === 0 ? `${more.dataset.text} ` : ' ', button);
    }
  });

  addEventListener('keydown', (event) => {
    const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === '/' && !typing) {
      event.preventDefault();
      search.focus();
    } else if (event.key === 'Escape' && typing) event.target.blur();
    else if (event.key === '?' && !typing) help.showModal();
    else if (event.key === 't' && !typing) {
      const shown = causes.find((c) => c.classList.contains('shown')) ?? causes[0];
      shown?.querySelector('button.show:not([hidden])')?.click();
    } else if ((event.key === ']' || event.key === '[') && !typing && causes.length > 0) {
      const at = causes.findIndex((c) => c.classList.contains('shown'));
      const next = event.key === ']' ? Math.min(at + 1, causes.length - 1) : Math.max(at - 1, 0);
      location.hash = `f=${encodeURIComponent(causes[next].dataset.finding)}`;
    }
  });

  const figureOf = (cell) => {
    const match = /[−-]?[\d.,]+/.exec(cell.textContent.replaceAll(',', '').replace('−', '-'));
    return match === null ? null : Number(match[0]);
  };
  for (const table of $('table.sortable')) {
    $('th', table).forEach((head, column) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener('click', () => {
        const down = head.getAttribute('aria-sort') !== 'descending';
        for (const other of $('th', table)) other.removeAttribute('aria-sort');
        head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        const rows = $('tbody tr', table);
        rows.sort((a, b) => {
          const [x, y] = [figureOf(a.cells[column]), figureOf(b.cells[column])];
          const order = x !== null && y !== null ? x - y : a.cells[column].textContent.localeCompare(b.cells[column].textContent);
          return down ? -order : order;
        });
        table.tBodies[0].append(...rows);
      });
    });
  }

  for (const map of $('[data-map]')) {
    const data = JSON.parse(byId(map.dataset.map).textContent);
    const tip = document.querySelector(`[data-map-tip="${map.dataset.map}"]`);
    const said = tip.textContent;
    const tell = (event) => {
      const box = map.getBoundingClientRect();
      const x = Math.floor(((event.clientX - box.left) / box.width) * data.columns.length);
      const y = Math.floor(((event.clientY - box.top) / box.height) * data.cells.length);
      const cell = data.cells[y]?.[x];
      const [row, column] = data.names;
      const place = `${row} ${cell?.[0] ?? data.rows[y * data.per] ?? '–'} · ${column} ${data.columns[x]}`;
      tip.textContent = cell === undefined ? said : `${place}: ${cell === null ? '–' : `${cell[1]} ${data.unit ?? 'ms'}`}`;
    };
    map.addEventListener('pointermove', tell);
    map.addEventListener('pointerleave', () => {
      tip.textContent = said;
    });
  }

  // What is too wide scrolls by itself, by keyboard too.
  const reach = () => {
    for (const box of $('.wide, pre, header nav')) {
      const isWider = box.scrollWidth > box.clientWidth + 1;
      if (isWider) box.tabIndex = 0;
      else box.removeAttribute('tabindex');
    }
  };
  reach();
  addEventListener('resize', reach);
  document.addEventListener('toggle', reach, true);

  // Paper is light, and nothing on it can be opened.
  let closed = [];
  let worn;
  addEventListener('beforeprint', () => {
    worn = document.documentElement.dataset.theme;
    document.documentElement.dataset.theme = 'light';
    closed = $('details:not([open])');
    for (const details of closed) details.open = true;
  });
  addEventListener('afterprint', () => {
    if (worn === undefined) delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = worn;
    for (const details of closed) details.open = false;
  });
})();
