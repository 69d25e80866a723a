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

  const causes = $('.cause');
  const show = (cause) => {
    for (let at = cause.querySelector('details'); at !== null; at = at.parentElement.closest('details')) at.open = true;
    for (const other of causes) other.classList.toggle('shown', other === cause);
    cause.scrollIntoView({ block: 'start' });
    cause.querySelector('summary').focus({ preventScroll: true });
  };
  const follow = () => {
    const wanted = new URLSearchParams(location.hash.slice(1)).get('f');
    const cause = wanted === null ? undefined : causes.find((c) => c.dataset.finding === wanted);
    if (cause !== undefined) show(cause);
  };
  addEventListener('hashchange', follow);
  follow();

  const search = byId('q');
  const count = byId('q-count');
  search.addEventListener('input', () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const cause of causes) {
      const text = cause.textContent.toLowerCase();
      cause.hidden = !words.every((word) => text.includes(word));
      if (!cause.hidden) found++;
    }
    count.textContent = words.length === 0 ? '' : `${found} / ${causes.length}`;
  });

  addEventListener('keydown', (event) => {
    const typing = event.target instanceof HTMLInputElement;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === '/' && !typing) {
      event.preventDefault();
      search.focus();
    } else if (event.key === 'Escape' && typing) search.blur();
    else if ((event.key === ']' || event.key === '[') && !typing && causes.length > 0) {
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

  let closed = [];
  addEventListener('beforeprint', () => {
    closed = $('details:not([open])');
    for (const details of closed) details.open = true;
  });
  addEventListener('afterprint', () => {
    for (const details of closed) details.open = false;
  });
})();
