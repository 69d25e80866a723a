/** Routes the pages and puts the frame around them. Nothing on them is fetched from elsewhere, nothing runs. */
import { randomBytes } from 'node:crypto';
import { signedBlobUrl } from '../blob-url.ts';
import { findRepository, type HubState, type Repository, resolveCommit } from '../state.ts';
import { escaped, type Html, html } from './html.ts';
import { icon } from './icons.ts';
import { repositoryPath } from './parts.ts';
import { pullPage } from './pull-page.ts';
import { blobPage, commitPage, homePage, pullsPage, runPage } from './repository-pages.ts';
import { styleSheet } from './style.ts';

/** A page ready to be written. */
export interface Page {
  status: number;
  headers: { [name: string]: string };
  body: string;
}

/** The page at a path. */
export function servePage(state: HubState, method: string, target: string): Page {
  if (method !== 'GET' && method !== 'HEAD') return plain(405, 'Method Not Allowed');
  const url = new URL(target, state.url);
  const parts = url.pathname.split('/').filter(Boolean).map(decoded);
  if (parts.length === 0) return framed(200, 'Loopback GitHub', null, homePage(state));
  if (parts[0] === 'avatars') return avatarImage(Number(parts[2]));
  if (parts[0] === 'user-attachments') return attachment(state, parts);
  const [owner = '', name = '', area = 'pulls', id = '', tab = ''] = parts;
  const repository = findRepository(state, owner, name);
  if (!repository) return plain(404, 'Not Found');
  if (area === 'pull' && tab !== '') return redirect(`${repositoryPath(repository)}/pull/${id}#${tab}`);
  if (area === 'runs') return checkRunRedirect(repository, Number(id));
  if (area === 'raw') return rawFile(repository, id, parts.slice(4).join('/'));
  const shown = body(state, repository, area, id, parts);
  return shown ? framed(200, shown.title, repository, shown.html) : plain(404, 'Not Found');
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function body(state: HubState, repository: Repository, area: string, id: string, parts: string[]): { title: string; html: Html } | null {
  const name = `${repository.owner.login}/${repository.name}`;
  const of = (title: string, content: Html | null): { title: string; html: Html } | null =>
    content && { title: `${title} · ${name}`, html: content };
  if (area === 'pull') {
    const pull = repository.pulls.find((candidate) => candidate.number === Number(id));
    return pull ? of(`${pull.title} by ${pull.author.login} · Pull Request #${pull.number}`, pullPage(state, pull)) : null;
  }
  if (area === 'blob' || area === 'tree') return of(parts.slice(4).join('/'), blobPage(repository, parts.slice(3).join('/')));
  if (area === 'commit') return of(id.slice(0, 7), commitPage(state, repository, id));
  if (area === 'actions') {
    const run = repository.runs.find((candidate) => candidate.id === Number(parts[4]));
    return run ? of(run.title, runPage(state, repository, run)) : null;
  }
  return area === 'pulls' ? of('Pull requests', pullsPage(state, repository)) : null;
}

function checkRunRedirect(repository: Repository, id: number): Page {
  const run = repository.checkRuns.find((candidate) => candidate.id === id);
  const pull = run && repository.pulls.find((candidate) => candidate.head.sha === run.headSha || candidate.pastHeads.includes(run.headSha));
  return pull ? redirect(`${repositoryPath(repository)}/pull/${pull.number}#check-${id}`) : plain(404, 'Not Found');
}

function policy(nonce: string): string {
  return `default-src 'none'; style-src 'nonce-${nonce}'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
}

const SAFE_HEADERS = { 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer', 'cache-control': 'no-store' };

/** A file that was attached to a comment of a public repository: an address of the blob host, for anybody. */
function attachment(state: HubState, parts: string[]): Page {
  const repository = state.repositories.find(({ attachments }) => attachments.some(({ id }) => id === Number(parts[2])));
  const file = repository?.attachments.find(({ id, name }) => id === Number(parts[2]) && name === parts[3]);
  // Of a private repository only people who are signed in get them, no token does (drogers0/gh-image#42).
  return file && !repository?.private ? redirect(signedBlobUrl(state, file)) : plain(404, 'Not Found');
}

/** A file at a commit as plain text, where `download_url` of the contents API leads. */
function rawFile(repository: Repository, ref: string, path: string): Page {
  const commit = repository.objects.commits.get(resolveCommit(repository, ref) ?? '');
  const blob = commit?.files.get(path);
  return blob === undefined ? plain(404, 'Not Found') : plain(200, repository.objects.blobs.get(blob)?.toString('utf8') ?? '');
}

function plain(status: number, text: string): Page {
  return {
    status,
    headers: { ...SAFE_HEADERS, 'content-type': 'text/plain; charset=utf-8', 'content-security-policy': "default-src 'none'" },
    body: text,
  };
}

function redirect(location: string): Page {
  return { status: 302, headers: { ...SAFE_HEADERS, location }, body: '' };
}

function avatarImage(id: number): Page {
  const hue = (id * 47) % 360;
  const image = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 40"><rect width="40" height="40" rx="20" fill="hsl(${Number.isNaN(hue) ? 0 : hue} 50% 40%)"/></svg>`;
  return {
    status: 200,
    headers: { ...SAFE_HEADERS, 'content-type': 'image/svg+xml', 'content-security-policy': "default-src 'none'" },
    body: image,
  };
}

function framed(status: number, title: string, repository: Repository | null, content: Html): Page {
  const nonce = randomBytes(16).toString('base64');
  const path = repository ? repositoryPath(repository) : '';
  const open = repository?.pulls.filter((pull) => pull.state === 'open').length ?? 0;
  const crumbs = repository
    ? html`<span class="crumbs"><a href="/">${repository.owner.login}</a><span class="slash">/</span><a class="strong" href="${path}/pulls">${repository.name}</a></span>`
    : html`<span class="crumbs"><span class="strong">Loopback GitHub</span></span>`;
  const nav = repository
    ? html`<nav class="repo-nav" aria-label="Repository"><a href="${path}/pulls">${icon('code')} Code</a><a href="${path}/pulls">${icon('issue')} Issues</a><a href="${path}/pulls" aria-current="page">${icon('pull')} Pull requests ${open > 0 ? html`<span class="count">${open}</span>` : ''}</a><a href="${path}/pulls">${icon('play')} Actions</a></nav>`
    : '';
  const page = html`<body><header class="top"><div class="top-row"><a class="top-mark" href="/" aria-label="Home">${icon('loop', 20)}</a>${crumbs}<span class="local">local stand-in, not github.com</span></div>${nav}</header><main class="page">${content}</main></body>`;
  return {
    status,
    headers: { ...SAFE_HEADERS, 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy(nonce) },
    body: `<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escaped(title)}</title><link rel="icon" href="data:,"><style nonce="${nonce}">${styleSheet()}</style></head>\n${page.text}\n</html>\n`,
  };
}
